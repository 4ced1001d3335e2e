"""One unreadable answer costs no other name its lookup: c-ares ends all queries of a channel with it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from gossamer.model.visits import Failure, Located
from gossamer.options import convert
from gossamer.stages.resolve.lookup import Lookup
from gossamer.stages.resolve.options import ResolveOptions
from gossamer.stages.resolve.resolver import DnsResolver
from gossamer.testing import FakeClock
from tests.stages.resolve.answerer import Zone, answerer

ANSWER = b"\xc0\x0c\0\1\0\1\0\0\0\x3c"
MALFORMED = {
    "bare FORMERR": lambda query, _: query[:2] + b"\x81\x81" + bytes(8),
    "cut header": lambda query, _: query[:5],
    "cut answer": lambda query, question: _head(query) + question + b"\xc0\x0c\0\1",
    "no answer behind its count": lambda query, question: _head(query) + question,
    "RDLENGTH beyond the end": lambda query, question: _head(query) + question + ANSWER + b"\0\x40\1\2\3\4",
    "RDLENGTH too small": lambda query, question: _head(query) + question + ANSWER + b"\0\2\1\2",
    "pointer to itself": lambda query, question: (
        _head(query) + question + b"\xc0" + bytes([12 + len(question)]) + b"\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4"
    ),
    "pointer forward": lambda query, question: _head(query) + question + b"\xc0\xff" + ANSWER[2:] + b"\0\4\1\2\3\4",
    "label of 255": lambda query, question: _head(query) + question + b"\xbf" + ANSWER[2:] + b"\0\4\1\2\3\4",
}


def _head(query: bytes) -> bytes:
    return query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0"


@asynccontextmanager
async def resolving(zone: Zone, **options: object) -> AsyncIterator[DnsResolver]:
    async with answerer(zone):
        given: dict[str, object] = {"servers": (zone.server,), "family": "ipv4", **options}
        resolver = DnsResolver(convert(ResolveOptions, given), FakeClock())
        try:
            yield resolver
        finally:
            await resolver.close()


def sound(names: list[str]) -> dict[tuple[str, str], list[str]]:
    return {(name, "A"): ["9.9.9.9"] for name in names}


async def resolve(resolver: DnsResolver, names: list[str]) -> list[Located | Failure]:
    return list(await asyncio.gather(*(resolver.resolve(name) for name in names)))


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("zones", [1, 12], ids=["one zone", "a zone each"])
def test_an_unreadable_answer_fails_its_own_name_alone(kind: str, zones: int) -> None:
    async def main() -> None:
        good = [f"a.good{i}.test" for i in range(24)]
        bad = [f"x{i}.evil{i % zones}.test" for i in range(24)]
        raw = {f"evil{i}.test": MALFORMED[kind] for i in range(zones)}
        zone = Zone(sound(good), raw=raw, delay_s=0.02)
        async with resolving(zone) as resolver:
            found = await resolve(resolver, [name for pair in zip(bad, good, strict=True) for name in pair])
            assert all(isinstance(one, Located) for one in found[1::2]), found[1::2]
            for one in found[::2]:
                assert isinstance(one, Failure)
                assert (one.outcome, one.retry, one.host_level) == ("dns_error", True, True)

    asyncio.run(main())


def test_a_malformed_zone_costs_later_lookups_of_others_no_query() -> None:
    async def main() -> None:
        good = [f"a.good{i}.test" for i in range(20)]
        zone = Zone(sound(good), raw={"evil.test": MALFORMED["cut answer"]}, delay_s=0.02)
        async with resolving(zone) as resolver:
            await resolver.resolve("first.evil.test")
            zone.asked.clear()
            bad = [f"x{i}.evil.test" for i in range(20)]
            found = await resolve(resolver, bad + good)
            assert all(isinstance(one, Located) for one in found[20:])
            assert sorted(zone.asked) == sorted((name, "A") for name in bad + good), "one query each"

    asyncio.run(main())


def test_sound_names_of_a_malformed_zone_are_found() -> None:
    async def main() -> None:
        good = [f"www{i}.mixed.test" for i in range(30)]
        bad = [f"x{i}.mixed.test" for i in range(30)]
        zone = Zone(sound(good), raw=dict.fromkeys(bad, MALFORMED["bare FORMERR"]), delay_s=0.01)
        async with resolving(zone) as resolver:
            await resolver.resolve(bad[0])
            for _ in range(2):
                found = await resolve(resolver, bad[1:] + good)
                assert all(isinstance(one, Located) for one in found[29:]), found[29:]

    asyncio.run(main())


def test_a_server_that_rejects_edns_by_a_bare_header_is_asked_without() -> None:
    async def main() -> None:
        def old(query: bytes, _: bytes) -> bytes | None:
            return MALFORMED["bare FORMERR"](query, b"") if query[10:12] != b"\0\0" else None

        zone = Zone(sound(["old.test"]), raw={"old.test": old})
        async with resolving(zone) as resolver:
            assert isinstance(await resolver.resolve("old.test"), Located)

    asyncio.run(main())


def test_a_malformed_answer_for_one_family_costs_no_other_name() -> None:
    """The addresses of the other family are found; the zone is noted all the same."""

    async def main() -> None:
        def half(query: bytes, question: bytes) -> bytes | None:
            return MALFORMED["cut answer"](query, question) if question[-4:-2] == b"\0\x1c" else None

        zone = Zone(sound(["a.half.test", "b.half.test", "good.test"]), raw={"half.test": half}, delay_s=0.01)
        async with resolving(zone, family="ipv4_first") as resolver:
            assert isinstance(await resolver.resolve("a.half.test"), Located)
            zone.asked.clear()
            found = await resolve(resolver, ["b.half.test", "good.test"])
            assert all(isinstance(one, Located) for one in found)
            assert zone.asked.count(("good.test", "A")) == zone.asked.count(("good.test", "AAAA")) == 1

    asyncio.run(main())


def test_a_malformed_zone_that_falls_silent_is_bounded_in_time_and_number() -> None:
    async def main() -> None:
        zone = Zone(raw={"evil.test": MALFORMED["cut answer"]})
        async with resolving(zone, timeout_s=0.2, lookup_s_max=0.5) as resolver:
            names = (f"first{i}.evil.test" for i in count())
            while not resolver._alone.holds("x.evil.test"):  # On a busy machine an answer may come too late.
                await resolver.resolve(next(names))
            zone.asked.clear()
            bad = [f"x{i}.evil.test" for i in range(80)]
            zone.silent.update(bad)
            async with asyncio.timeout(120):
                found = await resolve(resolver, bad)
            assert all(isinstance(one, Failure) and one.retry for one in found)
            # Two at a time, for half a second; where the loop is held up, some more begin in that time.
            assert 2 <= len(set(zone.asked)) <= 20

    asyncio.run(main())


def test_the_zones_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr("gossamer.stages.resolve.alone._ZONES_MAX", 2)
        zone = Zone(raw={f"evil{i}.test": MALFORMED["cut answer"] for i in range(3)})
        async with resolving(zone, tries=1) as resolver:
            for i in (0, 1, 2):
                await resolver.resolve(f"x.evil{i}.test")
            zone.asked.clear()
            for i in (1, 2, 0):
                await resolver.resolve(f"y.evil{i}.test")
            assert [name for name, _ in zone.asked] == ["y.evil1.test", "y.evil2.test", "y.evil0.test", "y.evil0.test"]

    asyncio.run(main())


def test_a_host_that_cannot_be_asked_leaves_its_zone_unmarked() -> None:
    """Where no server listens, all lookups fail alike, and none of their names is to blame."""

    async def main() -> None:
        zone = Zone()
        async with answerer(zone):
            server = zone.server
        resolver = DnsResolver(ResolveOptions(servers=(server,), timeout_s=0.2), FakeClock())
        try:
            found = await resolve(resolver, [f"x{i}.test" for i in range(20)])
            assert all(isinstance(one, Failure) and one.retry for one in found)
            async with answerer(Zone(sound(["x0.test"]))):
                assert not resolver._alone.holds("x0.test")
        finally:
            await resolver.close()

    asyncio.run(main())


def test_a_lookup_that_nobody_waits_for_logs_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its second question has failed, the first one is under way."""

    class Channel:
        def query_dns(self, _host: str, kind: str) -> asyncio.Future[object]:
            answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            if kind == "AAAA":
                answer.set_exception(OSError("refused"))
            return answer

    async def give_up() -> None:
        lookup = Lookup(ResolveOptions())
        asking = asyncio.ensure_future(lookup.ask("shop.test"))
        await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    monkeypatch.setattr("gossamer.stages.resolve.lookup._channel", lambda *_: Channel())
    asyncio.run(give_up())
    gc.collect()
    assert not caplog.records
