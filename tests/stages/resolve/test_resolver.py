from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gossamer.model.counters import Counters
from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Located, Reply
from gossamer.options import convert
from gossamer.stages.resolve.options import ResolveOptions
from gossamer.stages.resolve.resolver import DnsResolver
from gossamer.testing import FakeClock
from tests.stages.resolve.answerer import NXDOMAIN, REFUSED, SERVFAIL, Zone, answerer


@asynccontextmanager
async def resolving(zone: Zone, **options: object) -> AsyncIterator[tuple[DnsResolver, FakeClock]]:
    clock = FakeClock()
    async with answerer(zone):
        given: dict[str, object] = {"servers": (zone.server,), "timeout_s": 0.25, "tries": 1, **options}
        resolver = DnsResolver(convert(ResolveOptions, given), clock)
        try:
            yield resolver, clock
        finally:
            await resolver.close()


def located(answer: object) -> Located:
    assert isinstance(answer, Located), answer
    return answer


def failed(answer: object) -> Failure:
    assert isinstance(answer, Failure), answer
    return answer


PUBLIC = {("a.test", "A"): ["9.9.9.9", "9.9.9.10"], ("a.test", "AAAA"): ["2620:fe::fe"]}


def test_both_families_and_the_cache() -> None:
    async def main() -> None:
        zone = Zone(PUBLIC, ttl_s=300)
        async with resolving(zone) as (resolver, clock):
            assert resolver.cached("a.test") is None
            answer = located(await resolver.resolve("a.test"))
            assert answer.addresses == ("9.9.9.9", "9.9.9.10", "2620:fe::fe")
            assert answer.expires_at == clock.now() + 300
            assert sorted(zone.asked) == [("a.test", "A"), ("a.test", "AAAA")]
            assert await resolver.resolve("a.test") == answer
            assert resolver.cached("a.test") == answer
            assert len(zone.asked) == 2
            clock.instant += 300
            assert resolver.cached("a.test") is None
            failed(await resolver.resolve("none.test"))
            counters = Counters()
            resolver.count(counters)
            assert (counters.dns_lookups, counters.dns_failures, counters.dns_within_10_ms) == (2, 1, 2)
            assert (counters.dns_hits, counters.dns_misses) == (2, 2)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("family", "addresses", "kinds"),
    [
        ("ipv4_first", ("9.9.9.9", "9.9.9.10", "2620:fe::fe"), {"A", "AAAA"}),
        ("ipv6_first", ("2620:fe::fe", "9.9.9.9", "9.9.9.10"), {"A", "AAAA"}),
        ("ipv4", ("9.9.9.9", "9.9.9.10"), {"A"}),
        ("ipv6", ("2620:fe::fe",), {"AAAA"}),
    ],
)
def test_families(family: str, addresses: tuple[str, ...], kinds: set[str]) -> None:
    async def main() -> None:
        zone = Zone(PUBLIC)
        async with resolving(zone, family=family) as (resolver, _):
            assert located(await resolver.resolve("a.test")).addresses == addresses
            assert {kind for _, kind in zone.asked} == kinds

    asyncio.run(main())


def test_the_preferred_family_does_not_wait_for_a_silent_one() -> None:
    async def main() -> None:
        zone = Zone(PUBLIC, silent={("a.test", "AAAA")})
        async with resolving(zone, timeout_s=30, lookup_s_max=60) as (resolver, _):
            async with asyncio.timeout(60):
                assert located(await resolver.resolve("a.test")).addresses == ("9.9.9.9", "9.9.9.10")

    asyncio.run(main())


@pytest.mark.parametrize(("ttl_s", "kept_s"), [(0, 60), (59, 60), (61, 61), (86_400, 86_400), (600_000, 86_400)])
def test_ttl_within_bounds(ttl_s: int, kept_s: float) -> None:
    async def main() -> None:
        zone = Zone(PUBLIC, ttl_s=ttl_s)
        async with resolving(zone) as (resolver, clock):
            answer = located(await resolver.resolve("a.test"))
            assert answer.expires_at == clock.now() + kept_s

    asyncio.run(main())


def test_an_expired_answer_is_asked_for_again() -> None:
    async def main() -> None:
        zone = Zone({("a.test", "A"): ["9.9.9.9"]}, ttl_s=0)
        async with resolving(zone, family="ipv4") as (resolver, clock):
            await resolver.resolve("a.test")
            zone.records[("a.test", "A")] = ["9.9.9.10"]
            clock.instant += 59.9
            assert located(await resolver.resolve("a.test")).addresses == ("9.9.9.9",)
            clock.instant += 0.1
            assert located(await resolver.resolve("a.test")).addresses == ("9.9.9.10",)

    asyncio.run(main())


def test_a_clock_that_is_set_back_makes_no_answer_last() -> None:
    async def main() -> None:
        zone = Zone({("a.test", "A"): ["9.9.9.9"]}, ttl_s=300)
        async with resolving(zone, family="ipv4") as (resolver, clock):
            await resolver.resolve("a.test")
            clock.instant -= 86_400
            assert resolver.cached("a.test") is None, "c-ares has the answer by a clock of its own"
            # c-ares answers from its own cache, and takes off what has passed of the TTL by its clock.
            assert clock.now() + 290 < located(await resolver.resolve("a.test")).expires_at <= clock.now() + 300

    asyncio.run(main())


def test_an_answer_of_time_0_serves_who_asked() -> None:
    async def main() -> None:
        zone = Zone({("a.test", "A"): ["9.9.9.9"]}, ttl_s=0)
        async with resolving(zone, family="ipv4", ttl_s_min=0) as (resolver, _):
            asking = [asyncio.create_task(resolver.resolve("a.test")) for _ in range(5)]
            assert [located(await one).addresses for one in asking] == [("9.9.9.9",)] * 5
            assert len(zone.asked) == 1
            assert resolver.cached("a.test") is None

    asyncio.run(main())


def test_of_very_many_addresses_some_are_kept() -> None:
    async def main() -> None:
        zone = Zone({("a.test", "A"): [f"9.9.9.{number}" for number in range(1, 29)]})
        told: list[Reply] = []
        async with answerer(zone):
            options = ResolveOptions(servers=(zone.server,), family="ipv4", tries=1)
            resolver = DnsResolver(options, FakeClock(), told.append)
            assert len(located(await resolver.resolve("a.test")).addresses) == 16
            assert told[0].body.count(b"\tIN\tA\t") == 28
            assert told[0].status == 1
            await resolver.close()

    asyncio.run(main())


def test_what_is_archived_skips_records_of_other_types() -> None:
    def answer(query: bytes, question: bytes) -> bytes:
        records = [(16, b"\x02hi"), (1, bytes((9, 9, 9, 9)))]
        packed = [b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 300, len(data)) + data for kind, data in records]
        return query[:2] + struct.pack(">HHHHH", 0x8180, 1, len(packed), 0, 0) + question + b"".join(packed)

    async def main() -> None:
        archived: list[Reply] = []
        async with answerer(Zone(raw={"a.test": answer})) as zone:
            options = ResolveOptions(servers=(zone.server,), family="ipv4", tries=1)
            resolver = DnsResolver(options, FakeClock(), archived.append)
            assert located(await resolver.resolve("a.test")).addresses == ("9.9.9.9",)
            await resolver.close()
        assert archived[0].body.splitlines()[1:] == [b"a.test.\t300\tIN\tA\t9.9.9.9"]

    asyncio.run(main())


def test_an_alias_bounds_the_ttl() -> None:
    async def main() -> None:
        zone = Zone({("b.test", "A"): ["9.9.9.9"]}, ttl_s=5000, aliases={"a.test": ("b.test", 100)})
        async with resolving(zone, family="ipv4") as (resolver, clock):
            answer = located(await resolver.resolve("a.test"))
            assert answer.addresses == ("9.9.9.9",)
            assert answer.expires_at == clock.now() + 100

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "retry", "kept_s"),
    [(NXDOMAIN, False, 60), (SERVFAIL, True, 1), (REFUSED, True, 1)],
    ids=["nxdomain", "servfail", "refused"],
)
def test_failures_are_values_and_kept_briefly(code: int, retry: bool, kept_s: int) -> None:
    async def main() -> None:
        zone = Zone(codes={"no.test": code})
        async with resolving(zone) as (resolver, clock):
            failure = failed(await resolver.resolve("no.test"))
            assert (failure.outcome, failure.retry, failure.host_level) == ("dns_error", retry, True)
            assert failure.error
            assert "\n" not in failure.error
            asked = len(zone.asked)
            clock.instant += kept_s - 0.5
            assert await resolver.resolve("no.test") == failure
            assert resolver.cached("no.test") is None
            assert len(zone.asked) == asked
            clock.instant += 0.5
            await resolver.resolve("no.test")
            assert len(zone.asked) > asked

    asyncio.run(main())


def test_a_name_without_addresses() -> None:
    async def main() -> None:
        zone = Zone({("a.test", "MX"): []})
        async with resolving(zone) as (resolver, _):
            failure = failed(await resolver.resolve("a.test"))
            assert (failure.outcome, failure.retry, failure.host_level) == ("dns_error", False, True)

    asyncio.run(main())


def test_one_family_that_cannot_be_asked_leaves_the_question_open() -> None:
    async def main() -> None:
        zone = Zone({("a.test", "A"): []}, silent={("a.test", "AAAA")})
        async with resolving(zone) as (resolver, _):
            assert failed(await resolver.resolve("a.test")).retry

    asyncio.run(main())


def test_a_family_that_failed_leaves_the_question_open_though_the_other_has_no_such_name() -> None:
    def answer(query: bytes, question: bytes) -> bytes:
        code = NXDOMAIN if question[-4:-2] == b"\0\1" else SERVFAIL
        return query[:2] + struct.pack(">5H", 0x8180 | code, 1, 0, 0, 0) + question

    async def main() -> None:
        zone = Zone(raw={"a.test": answer})
        async with resolving(zone, tries=1) as (resolver, _):
            assert failed(await resolver.resolve("a.test")).retry

    asyncio.run(main())


def test_a_slow_name_of_a_quick_server_has_the_time_of_the_options() -> None:
    """c-ares waits five times as long as a server usually takes, 0.25 s at least: too short for a recursion."""

    async def main() -> None:
        quick = {(f"q{n}.test", "A"): ["9.9.9.9"] for n in range(20)}
        zone = Zone({**quick, ("slow.test", "A"): ["9.9.9.10"]})
        async with resolving(zone, timeout_s=30, lookup_s_max=60) as (resolver, _):
            for name, _ in quick:
                located(await resolver.resolve(name))
            zone.held = asyncio.Event()
            slow = asyncio.create_task(resolver.resolve("slow.test"))
            while zone.asked.count(("slow.test", "A")) < 2:
                await zone.until_asked(len(zone.asked) + 1)
            zone.held.set()
            assert located(await slow).addresses == ("9.9.9.10",)
            assert zone.asked.count(("slow.test", "A")) == 2

    asyncio.run(main())


def test_every_lookup_has_a_deadline() -> None:
    async def main() -> None:
        zone = Zone(silent={"slow.test"})
        async with resolving(zone, timeout_s=60, tries=10, lookup_s_max=0.2) as (resolver, _):
            async with asyncio.timeout(120):
                failure = failed(await resolver.resolve("slow.test"))
            assert (failure.outcome, failure.retry, failure.host_level) == ("dns_error", True, True)
            assert "0.2 s" in failure.error

    asyncio.run(main())


def test_simultaneous_questions_are_one_lookup() -> None:
    async def main() -> None:
        zone = Zone(PUBLIC, held=asyncio.Event())
        async with resolving(zone, family="ipv4", timeout_s=30) as (resolver, _):
            tasks = [asyncio.create_task(resolver.resolve("a.test")) for _ in range(20)]
            await zone.until_asked(1)
            assert zone.held is not None
            zone.held.set()
            answers = await asyncio.gather(*tasks)
            assert len({located(answer).addresses for answer in answers}) == 1
            assert zone.asked == [("a.test", "A")]

    asyncio.run(main())


def test_who_leads_may_be_cancelled() -> None:
    async def main() -> None:
        zone = Zone(PUBLIC, held=asyncio.Event())
        async with resolving(zone, family="ipv4", timeout_s=30) as (resolver, _):
            tasks = [asyncio.create_task(resolver.resolve("a.test")) for _ in range(3)]
            await zone.until_asked(1)
            tasks[0].cancel()
            tasks[1].cancel()
            assert zone.held is not None
            zone.held.set()
            assert located(await tasks[2]).addresses == ("9.9.9.9", "9.9.9.10")
            assert tasks[0].cancelled()
            assert tasks[1].cancelled()

    asyncio.run(main())


def test_lookups_are_bounded() -> None:
    async def main() -> None:
        names = [f"h{i}.test" for i in range(10)]
        zone = Zone({(name, "A"): ["9.9.9.9"] for name in names}, held=asyncio.Event())
        async with resolving(zone, family="ipv4", lookups_max=3, timeout_s=30) as (resolver, _):
            tasks = [asyncio.create_task(resolver.resolve(name)) for name in names]
            await zone.until_asked(3)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(zone.asked) == 3
            assert zone.held is not None
            zone.held.set()
            for answer in await asyncio.gather(*tasks):
                located(answer)

    asyncio.run(main())


def test_late_lookups_keep_half_of_those_that_may_be_under_way() -> None:
    """While others wait, the oldest end, and can be repeated."""

    async def main() -> None:
        names = [f"h{i}.test" for i in range(4)]
        zone = Zone(PUBLIC, silent=set(names))
        async with resolving(zone, family="ipv4", lookups_max=4, timeout_s=0.1, tries=10) as (resolver, _):
            silent = [asyncio.create_task(resolver.resolve(name)) for name in names]
            await asyncio.sleep(0.3)
            assert not any(task.done() for task in silent), "no other request waits"
            located(await resolver.resolve("a.test"))
            for task in silent[:2]:
                failure = failed(await task)
                assert (failure.outcome, failure.retry, failure.host_level) == ("dns_error", True, True)
                assert "no answer in time" in failure.error
            located(await resolver.resolve("a.test."))
            assert not any(task.done() for task in silent[2:])
            for task in silent[2:]:
                task.cancel()

    asyncio.run(main())


def test_the_cache_is_bounded_and_forgets_the_least_recently_used() -> None:
    async def main() -> None:
        names = [f"h{i}.test" for i in range(4)]
        zone = Zone({(name, "A"): ["9.9.9.9"] for name in names})
        async with resolving(zone, family="ipv4", cache_hosts_max=3) as (resolver, _):
            for name in names[:3]:
                await resolver.resolve(name)
            assert resolver.cached(names[0]) is not None
            await resolver.resolve(names[3])
            assert [resolver.cached(name) is not None for name in names] == [True, False, True, True]

    asyncio.run(main())


def test_the_guard_judges_what_name_servers_say() -> None:
    async def main() -> None:
        zone = Zone({
            ("inside.test", "A"): ["10.0.0.1", "192.168.0.1"],
            ("mixed.test", "A"): ["127.0.0.1", "9.9.9.9"],
            ("mixed.test", "AAAA"): ["::1", "::ffff:9.9.9.9", "2620:fe::fe"],
            ("nothing.test", "A"): ["0.0.0.0"],
        })  # fmt: skip
        async with resolving(zone) as (resolver, _):
            failure = failed(await resolver.resolve("inside.test"))
            assert (failure.outcome, failure.retry, failure.host_level) == ("excluded", False, True)
            assert failure.error == "address 10.0.0.1 is private; --allow-private lets it pass"
            assert located(await resolver.resolve("mixed.test")).addresses == ("9.9.9.9", "2620:fe::fe")
            assert "--allow-private" not in failed(await resolver.resolve("nothing.test")).error
        async with resolving(zone, allow_private=True) as (resolver, _):
            assert located(await resolver.resolve("inside.test")).addresses == ("10.0.0.1", "192.168.0.1")
            assert failed(await resolver.resolve("nothing.test")).outcome == "excluded"

    asyncio.run(main())


def test_literals_localhost_and_names_that_exist_nowhere_ask_nobody() -> None:
    async def main() -> None:
        zone = Zone()
        async with resolving(zone, allow_private=True) as (resolver, _):
            assert located(await resolver.resolve("9.9.9.9")).addresses == ("9.9.9.9",)
            assert located(await resolver.resolve("[2620:fe:0::fe]")).addresses == ("2620:fe::fe",)
            assert located(await resolver.resolve("[::1]")).addresses == ("::1",)
            assert located(await resolver.resolve("localhost")).addresses == ("127.0.0.1", "::1")
            assert located(await resolver.resolve("a.localhost.")).addresses == ("127.0.0.1", "::1")
            for name in ("a.invalid", "abc.onion", "invalid."):
                assert failed(await resolver.resolve(name)).outcome == "dns_error"
        async with resolving(zone) as (resolver, _):
            assert failed(await resolver.resolve("localhost")).outcome == "excluded"
            assert failed(await resolver.resolve("[::1]")).outcome == "excluded"
        assert zone.asked == []

    asyncio.run(main())


@pytest.mark.parametrize(
    "host", ["", ".", "a..b", "b\xfccher.test", "a b.test", "a\0b.test", "x" * 64 + ".test", "a." * 200]
)
def test_what_is_no_name_is_a_failure(host: str) -> None:
    async def main() -> None:
        zone = Zone()
        async with resolving(zone) as (resolver, _):
            failure = failed(await resolver.resolve(host))
            assert failure.outcome == "dns_error"
            assert not failure.retry
        assert zone.asked == []

    asyncio.run(main())


def test_the_hosts_file_comes_first_and_the_guard_judges_it_too(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "hosts"
        path.write_text("127.0.0.7 a.test\n9.9.9.8 b.test\n127.0.0.9 localhost\n")
        zone = Zone(PUBLIC)
        async with resolving(zone, hosts_file=str(path), allow_private=True) as (resolver, _):
            assert located(await resolver.resolve("a.test")).addresses == ("127.0.0.7",)
            assert located(await resolver.resolve("localhost")).addresses == ("127.0.0.9",)
            assert resolver.cached("a.test") is not None
        async with resolving(zone, hosts_file=str(path)) as (resolver, _):
            assert failed(await resolver.resolve("a.test")).outcome == "excluded"
        assert zone.asked == []

    asyncio.run(main())


def test_a_bad_hosts_file_is_the_operators(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        DnsResolver(ResolveOptions(hosts_file=str(tmp_path / "missing")), FakeClock())


def test_a_worn_channel_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr("gossamer.stages.resolve.lookup._LOOKUPS_PER_CHANNEL", 2)
        names = [f"h{i}.test" for i in range(7)]
        zone = Zone({(name, "A"): ["9.9.9.9"] for name in names})
        async with resolving(zone, family="ipv4") as (resolver, _):
            for answer in await asyncio.gather(*(resolver.resolve(name) for name in names)):
                located(answer)

    asyncio.run(main())
