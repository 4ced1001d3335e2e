"""One visit's way through the ring, and every end that it may have."""

from __future__ import annotations

import asyncio
import errno
import gzip
import itertools
import random
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.engine.outcomes import SITEMAP_GATHER_S
from gossamer.engine.stages import BatchEnding
from gossamer.features.requests import Requests, read_requests
from gossamer.model.links import SEED_ARGUMENT, Link
from gossamer.model.pages import Findings
from gossamer.model.visits import EARLY_SHARE, Failure, Located, Reply, Request
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.frontier.priority import BreadthFirst
from gossamer.stages.process.chain import ModuleError, Processed
from gossamer.testing import FixedResolver, page, reply
from gossamer.url.url import Url
from tests.engine.ring import Ring, url_of

ROOT = "http://a.example/"
GONE = Failure("timeout", "it took too long", retry=True, host_level=True)


def moved(target: str, status: int = 301) -> Reply:
    return reply(b"moved", status, (("Location", target),))


def robots(text: str, status: int = 200) -> Reply:
    return reply(text.encode(), status, media_type="text/plain")


# ---- the ends of a visit


def test_a_page_is_fetched_once_and_its_links_follow(tmp_path: Path) -> None:
    pages = {ROOT: page("/a", "/b", "/a#x", title="Home"), ROOT + "a": page("/"), ROOT + "b": page("/a")}
    with Ring(tmp_path, pages) as ring:
        ring.crawl(ROOT)

        assert ring.web.counts == {ROOT: 1, ROOT + "a": 1, ROOT + "b": 1}
        assert set(ring.outcomes.values()) == {"fetched"}
        first = ring.rows[0]
        assert (first.title, first.depth, first.status, first.attempt, first.ip) == ("Home", 0, 200, 1, "127.0.0.1")
        assert first.digest.startswith("sha1:")
        assert [row.depth for row in ring.rows[1:]] == [1, 1]
        assert {row.referrer for row in ring.rows[1:]} == {ROOT}
        assert ring.frontier.counts.terminal == {"fetched": 3}
        assert ring.adds_up()
        assert ring.counters.totals.pages == 3
        record = ring.record(ROOT)
        assert (record.outcome, record.final, record.warc_offset) == ("fetched", True, 0)


def test_a_page_that_is_not_there_is_an_http_error_at_once(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        ring.crawl(ROOT)
        (row,) = ring.rows
        assert (row.outcome, row.status, row.error) == ("http_error", 404, "HTTP 404")
        assert ring.frontier.counts.terminal == {"http_error": 1}
        assert ring.log("info.log")[0]["event"] == "http_error"


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_redirect_is_a_link_with_a_hop_more(tmp_path: Path, status: int) -> None:
    with Ring(tmp_path, {ROOT: moved("/new", status), ROOT + "new": page()}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "redirected", ROOT + "new": "fetched"}
        old, new = ring.rows
        assert (old.redirect_to, old.status) == (ROOT + "new", status)
        assert (new.link_type, new.referrer, new.depth) == ("redirect", ROOT, 0)
        assert ring.url_seen.way(url_of(ROOT + "new")) == (0, 1)


def test_redirects_end_after_so_many_hops(tmp_path: Path) -> None:
    pages = {f"{ROOT}{n}": moved(f"/{n + 1}") for n in range(20)}
    with Ring(tmp_path, pages, scope={"hops_max": 5}) as ring:
        ring.crawl(ROOT + "0")
        assert len(ring.rows) == 6
        assert ring.chain.counts["hops"] == 1


def test_a_redirect_to_another_form_of_the_same_key_is_the_next_hop_of_the_entry(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT + "%7Eu": moved("/~u"), ROOT + "~u": page(title="user")}) as ring:
        ring.crawl(ROOT + "%7Eu")
        assert [(row.url, row.outcome) for row in ring.rows] == [
            (ROOT + "%7Eu", "redirected"),
            (ROOT + "~u", "fetched"),
        ]
        assert ring.frontier.counts.discovered == 1
        assert ring.frontier.counts.terminal == {"fetched": 1}


@pytest.mark.promise("What is fetched", "A redirect to itself ends.")
def test_a_redirect_to_itself_ends(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: moved(ROOT)}, scope={"hops_max": 5}) as ring:
        ring.crawl(ROOT)
        assert ring.web.counts[ROOT] == 6
        assert ring.frontier.counts.terminal == {"redirected": 1}
        assert ring.adds_up()


@pytest.mark.promise("What is fetched", "A redirect to itself ends.")
@pytest.mark.parametrize("trouble", [GONE, reply(b"", 503)])
def test_a_redirect_to_itself_ends_also_where_the_server_is_in_trouble_in_between(
    tmp_path: Path, trouble: Reply | Failure
) -> None:
    with Ring(tmp_path, {ROOT: [trouble, moved(ROOT)] * 6 + [page()]}, scope={"hops_max": 5}) as ring:
        ring.crawl(ROOT)
        assert ring.web.counts[ROOT] == 12
        assert ring.frontier.counts.terminal == {"redirected": 1}
        assert ring.adds_up()


@pytest.mark.parametrize(
    ("status", "asks"),
    [
        (402, "crawler-price: USD 0.01; www-authenticate: NTLM"),
        (401, "it asks for a login with NTLM, which is not supported"),
        (404, ""),
    ],
)
def test_an_error_says_what_the_server_asks_for_by_its_status(tmp_path: Path, status: int, asks: str) -> None:
    headers = (("Crawler-Price", "USD 0.01"), ("WWW-Authenticate", "NTLM"))
    with Ring(tmp_path, {ROOT: reply(b"", status, headers)}) as ring:
        ring.crawl(ROOT)
        assert ring.rows[0].error == f"HTTP {status}{asks and f': {asks}'}"
        assert ring.rows[0].offer == (asks if status == 402 else "")


def test_a_refresh_without_hops_left_is_a_link_like_others(tmp_path: Path) -> None:
    refresh = reply(b'<meta http-equiv="refresh" content="0; url=/next">')
    with Ring(tmp_path, {ROOT: refresh, ROOT + "next": page()}, scope={"hops_max": 0}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "next": "fetched"}
        assert [(row.link_type, row.depth) for row in ring.rows] == [("seed", 0), ("meta_refresh", 1)]
    with Ring(tmp_path / "hop", {ROOT: refresh, ROOT + "next": page()}) as ring:
        ring.crawl(ROOT)
        assert [(row.link_type, row.depth) for row in ring.rows] == [("seed", 0), ("meta_refresh", 0)]


@pytest.mark.parametrize(("extra", "fetched"), [("", 7), ("<a href=/>Home</a>", 10)], ids=["bare", "slides"])
@pytest.mark.parametrize("by_redirect", [False, True])
def test_a_chain_of_refreshes_ends_as_one_of_redirects(
    tmp_path: Path, extra: str, fetched: int, by_redirect: bool
) -> None:
    """Of sparklemotion/mechanize#67 and #134: refreshes without end. Slides have other links."""
    web: dict[str, Reply] = {ROOT: page("/0")}
    for number in range(9):
        further = f"/{number + 1}"
        shown = f'<meta http-equiv="refresh" content="0; url={further}">{number}{extra}'
        is_hop = by_redirect and number % 2
        web[f"{ROOT}{number}"] = reply(b"", 302, (("Location", further),)) if is_hop else reply(shown.encode())
    with Ring(tmp_path, web) as ring:
        ring.crawl(ROOT)
        assert sum(url != ROOT for url in ring.outcomes) == fetched


def test_a_redirect_that_names_nothing_is_an_error_of_the_page(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: reply(b"", 302)}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "http_error"}
        assert ring.rows[0].error == "HTTP 302 without a Location that can be visited"


@pytest.mark.parametrize("headers", [(), (("Location", ""),)], ids=["none", "empty"])
def test_the_page_of_a_redirect_without_location_is_read(tmp_path: Path, headers: tuple[tuple[str, str], ...]) -> None:
    shown = msgspec.structs.replace(page("/a"), status=302)
    shown = msgspec.structs.replace(shown, headers=(*shown.headers, *headers))
    with Ring(tmp_path, {ROOT: shown, ROOT + "a": page()}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "http_error", ROOT + "a": "fetched"}
        assert ring.rows[0].error == "HTTP 302 without a Location that can be visited"


def test_a_redirect_without_location_may_refresh(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: reply(b"", 302, (("Refresh", "0; url=/a"),)), ROOT + "a": page()}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "http_error", ROOT + "a": "fetched"}


def test_the_page_of_a_redirect_to_what_cannot_be_visited_is_not_read(tmp_path: Path) -> None:
    left = msgspec.structs.replace(page("/a"), status=302)
    left = msgspec.structs.replace(left, headers=(*left.headers, ("Location", "mailto:a@b.test")))
    with Ring(tmp_path, {ROOT: left, ROOT + "a": page()}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "http_error"}


def test_the_choices_of_a_300_without_location_are_links(tmp_path: Path) -> None:
    choices = msgspec.structs.replace(page("/de", "/fr"), status=300)
    with Ring(tmp_path, {ROOT: choices, ROOT + "de": page(), ROOT + "fr": reply(b"", 300)}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "de": "fetched", ROOT + "fr": "http_error"}
        assert ring.rows[0].status == 300


def test_a_seed_that_redirects_elsewhere_brings_its_target_into_scope_and_says_so(tmp_path: Path) -> None:
    pages = {"http://example.org/": moved("https://www.example.org/"), "https://www.example.org/": page("/deep")}
    with Ring(tmp_path, pages, scope={"scope": "host"}) as ring:
        ring.crawl("http://example.org/")
        assert ring.outcomes["https://www.example.org/"] == "fetched"
        assert "https://www.example.org/deep" in ring.outcomes
        assert len(ring.counters.notes) == 1
        assert "www.example.org" in ring.counters.notes[0]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (moved("http://portal.test/login"), "5 of 5 seeds redirect to http://portal.test/"),
        (reply(b"<title>Hotel</title><form>"), "5 of 5 seeds have one page (sha1:TCJNBXK3D7KGS2JIVRITABYG56HXMPPS)"),
    ],
)
def test_one_answer_in_place_of_those_of_all_seeds_is_reported(tmp_path: Path, answer: Reply, says: str) -> None:
    """As of a network that wants a login, or of a name server that knows every name."""
    seeds = [f"http://s{number}.test/" for number in range(5)]
    with Ring(tmp_path, dict.fromkeys(seeds, answer) | {"http://portal.test/login": page()}) as ring:
        ring.counters.count_seeds(seeds)
        ring.crawl(*seeds)
        warnings = ring.counters.totals.warnings()
        may_be = "a network that wants a login, a proxy, a name server or one owner may answer for all of them"
        assert [one for one in warnings if one.endswith(may_be)] == [f"{says}: {may_be}"]


def test_some_seeds_with_one_answer_are_no_sign_of_another_server(tmp_path: Path) -> None:
    seeds = [f"http://s{number}.test/" for number in range(10)]
    pages = {seed: reply(b"<title>%d</title>" % max(4, number)) for number, seed in enumerate(seeds)}
    of_one_site = {f"http://{name}.one.test/": reply(b"<title>same</title>") for name in "abcdefghijkl"}
    with Ring(tmp_path, pages | of_one_site) as ring:
        ring.counters.count_seeds([*seeds, *of_one_site])
        ring.crawl(*seeds, *of_one_site)
        assert ring.counters.totals.warnings() == []


AGAIN = Failure("protocol_error", "Header without colon", again=True)


def test_a_request_that_is_sent_again_is_the_same_attempt_and_does_not_wait(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: [AGAIN, page("/x")]}, frontier={"retry_s_first": 1_000, "attempts_max": 1}) as ring:
        ring.crawl(ROOT)
        rows = [row for row in ring.rows if row.url == ROOT]
        assert [(row.attempt, row.outcome) for row in rows] == [(1, "protocol_error"), (1, "fetched")]
        assert rows[1].fetched_at < rows[0].fetched_at + 1_000
        assert ring.adds_up()


def test_a_robots_txt_is_requested_again_where_its_failure_asks_for_it(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT + "robots.txt": [AGAIN, reply(b"", 404)], ROOT: page()}, obey=True) as ring:
        began = ring.clock.now()
        ring.crawl(ROOT)
        assert ring.outcomes[ROOT] == "fetched"
        assert ring.web.counts[ROOT + "robots.txt"] == 2
        assert ring.rows[-1].fetched_at < began + 20


@pytest.mark.parametrize("first", [GONE, *(reply(b"", status) for status in (503, 500, 429, 408, 511, 522, 529, 304))])
def test_what_may_be_gone_next_time_is_asked_for_again(tmp_path: Path, first: Reply | Failure) -> None:
    with Ring(tmp_path, {ROOT: [first, first, page("/x")]}, frontier={"retry_s_first": 10}) as ring:
        ring.crawl("http://b.example/")  # Which answers: the only host of a crawl is not waited for.
        began = ring.clock.now()
        ring.crawl(ROOT)
        rows = [row for row in ring.rows if row.url == ROOT]
        assert [row.attempt for row in rows] == [1, 2, 3]
        assert ring.outcomes[ROOT] == "fetched"
        assert rows[1].fetched_at >= began + 10
        assert rows[2].fetched_at >= rows[1].fetched_at + 20
        assert ring.frontier.counts.terminal["fetched"] == 1
        assert ring.adds_up()


def test_another_attempt_goes_over_a_connection_of_its_own(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: [GONE, page()]}) as ring:
        ring.crawl(ROOT)
        assert [request.fresh for request in ring.web.requests if request.url == ROOT] == [False, True]


@pytest.mark.promise(
    "Files and exports", "A reply that breaks off is archived, marked as truncated and never treated as a page."
)
def test_what_came_of_a_reply_that_broke_off_is_kept_and_not_looked_into(tmp_path: Path) -> None:
    half = reply(b'<a href="/never">there</a>', truncated="disconnect")
    broken = Failure("protocol_error", "26 bytes of 99", retry=True, came=half)
    pages = {ROOT: broken, ROOT + "whole": [broken, page("/found")], ROOT + "found": reply(half.body, truncated="time")}
    with Ring(tmp_path, pages, frontier={"attempts_max": 3}) as ring:
        ring.crawl(ROOT, ROOT + "whole")
        rows = [row for row in ring.rows if row.url == ROOT]
        assert [(row.outcome, row.truncated, row.status, row.error) for row in rows] == [
            ("protocol_error", "disconnect", 200, "26 bytes of 99")
        ] * 3
        assert all(row.wire_bytes >= row.body_bytes == len(half.body) for row in rows)
        assert len({(row.warc_file, row.warc_offset) for row in rows if row.warc_file}) == 3
        assert ROOT + "never" in ring.outcomes  # By the page that took too long, and by no other.
        assert [row.referrer for row in ring.rows if row.url == ROOT + "never"] == [ROOT + "found"]
        assert ring.outcomes[ROOT + "whole"] == "fetched"
        assert not [row for row in ring.rows if row.duplicate_of]
        assert ring.frontier.counts.terminal["protocol_error"] == 1


@pytest.mark.parametrize(("answer", "outcome"), [(GONE, "timeout"), (reply(b"", 503), "http_error")])
def test_there_is_a_last_attempt(tmp_path: Path, answer: Reply | Failure, outcome: str) -> None:
    with Ring(tmp_path, {ROOT: answer}, frontier={"attempts_max": 3}) as ring:
        ring.crawl(ROOT)
        assert ring.web.counts[ROOT] == 3
        assert ring.frontier.counts.terminal == {outcome: 1}
        record = ring.record(ROOT)
        assert (record.final, record.attempt) == (True, 3)


def test_what_is_not_worth_it_is_not_asked_again(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: Failure("tls_error", "a bad certificate")}) as ring:
        ring.crawl(ROOT)
        assert ring.web.counts[ROOT] == 1
        assert ring.frontier.counts.terminal == {"tls_error": 1}


def test_retry_after_is_waited_for(tmp_path: Path) -> None:
    busy = reply(b"", 503, (("Retry-After", "1000"),))
    with Ring(tmp_path, {ROOT: [busy, page()]}) as ring:
        began = ring.clock.now()
        ring.crawl(ROOT)
        assert ring.rows[1].fetched_at >= began + 1000


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_listed_request_passes_its_gate_after_the_commit_of_its_mark(tmp_path: Path, *, cancelled: bool) -> None:
    lines = tmp_path / "requests.jsonl"
    lines.write_text(f'{{"url": "{ROOT}", "method": "POST"}}')
    [(address, request)] = read_requests(lines)
    with Ring(tmp_path, {ROOT: page()}) as ring:
        requests = Requests(ring.epochs)
        requests.keep(url_of(address), request)
        began = ring.clock.now()

        async def commit() -> None:
            if ring.clock.now() < began + 5:
                ring.frontier.control.back_off(url_of(address), 1, "another request was answered with 429", began)
                await ring.clock.sleep_until(began + 5)
                if cancelled:
                    raise asyncio.CancelledError

        ring.with_feature(requests).commit = commit
        if cancelled:
            with pytest.raises(asyncio.CancelledError):
                ring.crawl(address)
            assert not requests.was_sent(url_of(address))
            return
        ring.crawl(address)
        assert [(one.outcome, one.fetched_at >= began + 30) for one in ring.rows] == [("fetched", True)]
        assert len(ring.web.requests) == 1


def test_a_host_without_address_is_a_dns_error(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        ring.resolver.hosts["a.example"] = Failure("dns_error", "no such name", host_level=True)
        ring.crawl(ROOT, ROOT + "2")
        assert ring.outcomes == {ROOT: "dns_error", ROOT + "2": "dns_error"}
        assert not ring.web.requests
        assert ring.adds_up()


def test_the_next_address_has_its_turn_after_a_failure(tmp_path: Path) -> None:
    answer: Callable[[Request], Reply | Failure] = lambda request: GONE if request.ip == "127.0.0.2" else page()  # noqa: E731
    with Ring(tmp_path, {ROOT: answer}) as ring:
        ring.resolver.hosts["a.example"] = ("127.0.0.2", "127.0.0.3")
        ring.crawl(ROOT)
        assert [request.ip for request in ring.web.requests] == ["127.0.0.2", "127.0.0.3"]
        assert ring.outcomes == {ROOT: "fetched"}


REFUSED = Failure("connect_error", "refused", retry=True, host_level=True)
LEFT = msgspec.structs.replace(REFUSED, error="no connection", has_others=True)
MANY = tuple(f"127.0.0.{number}" for number in range(2, 18))
SIXES = tuple(f"fd00::{number:x}" for number in range(1, 9))


def dead(ring: Ring, *, silent: bool = True, alive: str = "") -> Callable[[Request], Reply | Failure]:
    """Return a web whose addresses refuse connections or, as long as is waited for them, say nothing."""
    waits_s = FetchOptions().connect_s_max

    def answer(request: Request) -> Reply | Failure:
        if request.ip == alive:
            return page()
        if not silent:
            return REFUSED
        ring.fake_clock.advance(waits_s * EARLY_SHARE if request.has_others else waits_s)
        return LEFT if request.has_others else GONE

    return answer


def looked_up(ring: Ring, *lookups: tuple[str, ...]) -> None:
    """Give a host's addresses, which are others at each lookup."""
    found = itertools.chain(lookups, itertools.repeat(lookups[-1]))

    class Changing(FixedResolver):
        async def resolve(self, host: str) -> Located | Failure:
            self.hosts[host] = next(found)
            return await super().resolve(host)

        def cached(self, host: str) -> Located | None:
            return None

    ring.joined(resolver=Changing())


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(
    "lookups",
    [
        (MANY,),
        (MANY[:1],),
        (MANY[:2],),
        ((*MANY[:8], *SIXES),),
        ((*SIXES, *MANY[:8]),),
        (MANY[:4], MANY[4:8], MANY[8:12], MANY[12:], SIXES),
        tuple((address,) for address in MANY),
    ],
    ids=["many", "one", "two", "A before AAAA", "AAAA before A", "changing", "changing, one each"],
)
def test_a_lone_seed_whose_addresses_are_all_dead_ends_soon(
    tmp_path: Path, lookups: tuple[tuple[str, ...], ...], silent: bool
) -> None:
    with Ring(tmp_path, obey=True) as ring:
        ring.web.pages[ROOT + "robots.txt"] = dead(ring, silent=silent)
        looked_up(ring, *lookups)
        began = ring.clock.now()
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "host_closed"}
        asked = [request.ip for request in ring.web.requests]
        assert len(asked) == 5
        assert len(set(asked)) == min(5, len({address for found in lookups for address in found}))
        assert ring.clock.now() - began < (27.0 if silent else 9.0)


def slow(ring: Ring, first_byte_s: float) -> Callable[[Request], Reply | Failure]:
    """Return a server that accepts each connection, and needs as long for its first byte."""
    connect_s_max = FetchOptions().connect_s_max

    def answer(request: Request) -> Reply | Failure:
        waited_s = min(first_byte_s, connect_s_max * request.first_byte_share)
        ring.fake_clock.advance(waited_s)
        return checked(page()) if waited_s == first_byte_s else GONE

    return answer


@pytest.mark.parametrize("obey", [False, True])
@pytest.mark.parametrize(
    ("first_byte_s", "outcomes"), [(15.0, {"fetched"}), (60.0, {"host_closed", "timeout"})], ids=["slow", "silent"]
)
def test_a_lone_seed_that_accepts_and_says_nothing_ends_soon_and_a_slow_one_is_fetched(
    tmp_path: Path, obey: bool, first_byte_s: float, outcomes: set[str]
) -> None:
    with Ring(tmp_path, obey=obey) as ring:
        answer = slow(ring, first_byte_s)
        if obey:
            ring.web.pages |= {ROOT + "robots.txt": answer, ROOT: page()}
        else:
            ring.web.pages[ROOT] = lambda request: result if isinstance(result := answer(request), Failure) else page()
        began = ring.clock.now()
        ring.crawl(ROOT)
        assert ring.outcomes[ROOT] in outcomes
        attempts = 5 if obey else 3
        shares = [request.first_byte_share for request in ring.web.requests]
        assert shares[:attempts] == [0.25] * (attempts - 1) + [1.0]
        assert ring.clock.now() - began < 50.0


def test_where_several_hosts_are_silent_the_network_may_be_and_the_patience_stays(tmp_path: Path) -> None:
    with Ring(tmp_path, obey=True) as ring:
        seeds = [f"http://{name}.example/" for name in "abc"]
        for seed in seeds:
            ring.web.pages[seed + "robots.txt"] = dead(ring)
            ring.resolver.hosts[url_of(seed).host] = MANY[:1]
        began = ring.clock.now()
        ring.crawl(*seeds)
        assert ring.clock.now() - began > 500.0
        assert not any(request.has_others for request in ring.web.requests[:9])


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("position", range(5))
def test_a_lone_seed_is_fetched_by_the_first_address_that_is_alive(tmp_path: Path, position: int, silent: bool) -> None:
    with Ring(tmp_path, obey=True) as ring:
        answer = dead(ring, silent=silent, alive=MANY[position])
        ring.web.pages |= {ROOT: answer, ROOT + "robots.txt": lambda request: checked(answer(request))}
        ring.resolver.hosts["a.example"] = MANY
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched"}
        assert [request.ip for request in ring.web.requests] == [*MANY[: position + 1], MANY[position]]


@pytest.mark.parametrize("answers", [False, True])
def test_dead_addresses_cost_a_url_its_attempts_only_when_five_were_tried(tmp_path: Path, answers: bool) -> None:
    """Without robots.txt, or after a restart when it is known, the page itself is the first request to the host."""
    with Ring(tmp_path, frontier={"attempts_max": 3}) as ring:
        if answers:
            ring.crawl("http://b.example/")
        for name, last in (("a", 4), ("c", 5)):
            ring.web.pages[f"http://{name}.example/"] = dead(ring, silent=False, alive=MANY[last])
            ring.resolver.hosts[f"{name}.example"] = MANY
        ring.crawl(ROOT, "http://c.example/")
        assert ring.outcomes[ROOT] == "fetched"
        assert ring.outcomes["http://c.example/"] == "connect_error"
        assert [request.ip for request in ring.web.requests if "c.example" in request.url] == list(MANY[:5])


def checked(result: Reply | Failure) -> Reply | Failure:
    """Return a result for a robots.txt: what is no failure is none."""
    return result if isinstance(result, Failure) else robots("", 404)


@pytest.mark.parametrize(("addresses", "answers"), [(MANY[:1], False), (MANY[:1], True), (MANY, True)])
def test_the_patience_stays_where_another_host_answered(
    tmp_path: Path, addresses: tuple[str, ...], answers: bool
) -> None:
    """The second host answers before the first one is requested, if it is a seed at all."""
    with Ring(tmp_path, obey=True, frontier={"unanswered_failures_max": 5}) as ring:
        ring.web.pages[ROOT + "robots.txt"] = dead(ring, silent=False)
        ring.resolver.hosts["a.example"] = addresses
        if answers:
            ring.crawl("http://b.example/")
        began = ring.clock.now()
        ring.crawl(ROOT)
        waited_s = ring.clock.now() - began
        assert any(request.has_others for request in ring.web.requests if request.url.startswith(ROOT)) is not answers
        assert ring.outcomes[ROOT] == ("robots_unreachable" if answers else "host_closed")
        assert waited_s > 500.0 if answers else waited_s < 9.0


def test_a_continuous_crawl_of_a_lone_seed_waits_as_others_do_after_some_attempts(tmp_path: Path) -> None:
    with Ring(tmp_path, obey=True, frontier={"unanswered_failures_max": 0}) as ring:
        ring.web.pages[ROOT + "robots.txt"] = dead(ring, silent=False)
        began = ring.clock.now()
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "robots_unreachable"}
        assert ring.clock.now() - began > 500.0
        assert len(ring.web.requests) < 13


@pytest.mark.parametrize("obey", [False, True])
def test_a_lone_seed_whose_name_cannot_be_looked_up_ends_soon(tmp_path: Path, obey: bool) -> None:
    class Failing(FixedResolver):
        async def resolve(self, host: str) -> Located | Failure:
            return Failure("dns_error", "no server answers", retry=True, host_level=True)

    with Ring(tmp_path, obey=obey) as ring:
        ring.joined(resolver=Failing())
        began = ring.clock.now()
        ring.crawl(ROOT)
        assert ring.outcomes[ROOT] in ("dns_error", "host_closed")
        assert ring.clock.now() - began < 9.0


@pytest.mark.parametrize("at_once", [1, 8])
def test_the_address_that_answered_is_used_again_when_its_name_is_looked_up_again(tmp_path: Path, at_once: int) -> None:
    answer: Callable[[Request], Reply | Failure] = lambda request: GONE if request.ip == "127.0.0.2" else page()  # noqa: E731
    urls = [f"{ROOT}{number}" for number in range(8)]
    with Ring(tmp_path, dict.fromkeys(urls, answer), polite={"per_host": at_once}) as ring:
        ring.joined(resolver=FixedResolver({"a.example": ("127.0.0.2", "127.0.0.3")}, expires_at=0.0))
        ring.seed(*urls)
        leases: list[Coroutine[Any, Any, None]] = []

        async def first() -> None:
            while len(leases) < at_once and (lease := ring.frontier.select(ring.clock.now())) is not None:
                if (work := ring.pipeline.lease(lease, ring.clock.now())) is not None:
                    leases.append(work) if lease.address else await work
            await asyncio.gather(*leases)

        ring.run(first())
        ring.run(ring.turns())
        assert [request.ip for request in ring.web.requests] == [*["127.0.0.2"] * at_once, *["127.0.0.3"] * len(urls)]
        assert ring.outcomes == dict.fromkeys(urls, "fetched")


def test_a_module_that_never_ends_is_a_timeout(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}, crawl={"request_s_max": 0.02}, frontier={"attempts_max": 1}) as ring:
        ring.web.held = asyncio.Event()
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "timeout"}
        assert ring.frontier.facts(url_of(ROOT)).failures == 1


# ---- robots.txt and the exclusion list


def test_what_robots_txt_denies_is_not_asked_for(tmp_path: Path) -> None:
    pages = {
        ROOT + "robots.txt": robots("User-agent: gossamer\nDisallow: /private"),
        ROOT: page("/private", "/open"),
        ROOT + "open": page(),
        ROOT + "private": page(),
    }
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "private": "robots_denied", ROOT + "open": "fetched"}
        assert ring.web.requests[0].url == ROOT + "robots.txt"
        assert ring.web.counts == {ROOT + "robots.txt": 1, ROOT: 1, ROOT + "open": 1}


def test_robots_txt_is_read_before_anything_else_of_each_origin(tmp_path: Path) -> None:
    other = "http://b.example/"
    pages = {ROOT: page(other), other: page()}
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        asked = [request.url for request in ring.web.requests]
        assert asked == [ROOT + "robots.txt", ROOT, other + "robots.txt", other]


def test_a_robots_txt_that_cannot_be_had_is_waited_for(tmp_path: Path) -> None:
    pages = {ROOT + "robots.txt": [GONE, reply(b"", 503), robots("User-agent: *\nAllow: /")], ROOT: page()}
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched"}
        assert ring.web.counts[ROOT + "robots.txt"] == 3
        assert [event["event"] for event in ring.log("info.log")] == ["robots", "robots"]


def test_a_robots_txt_that_breaks_off_within_its_coding_permits_nothing(tmp_path: Path) -> None:
    rules = b"User-agent: *\nAllow: /\n" + random.Random(7).randbytes(500).hex().encode() + b"\nDisallow: /secret\n"
    coded = (("Content-Encoding", "gzip"),)
    cut, whole = gzip.compress(rules)[:-40], gzip.compress(rules)
    pages = {ROOT + "robots.txt": [reply(cut, 200, coded), reply(whole, 200, coded)], ROOT: page("/secret")}
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "secret": "robots_denied"}
        assert ring.web.counts[ROOT + "robots.txt"] == 2


def test_a_robots_txt_that_lies_about_its_coding_has_rules(tmp_path: Path) -> None:
    plain = reply(b"User-agent: *\nDisallow: /secret\n", 200, (("Content-Encoding", "gzip"),))
    with Ring(tmp_path, {ROOT + "robots.txt": plain, ROOT: page("/secret")}, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "secret": "robots_denied"}


@pytest.mark.parametrize("labels", [(), ("gzip", "gzip")], ids=["no label", "two labels"])
def test_a_robots_txt_in_gzip_has_rules_whatever_its_headers_say(tmp_path: Path, labels: tuple[str, ...]) -> None:
    headers = (("Content-Type", "application/x-gzip"), *(("Content-Encoding", label) for label in labels))
    coded = reply(gzip.compress(b"User-agent: *\nDisallow: /secret\n"), 200, headers)
    coded = msgspec.structs.replace(coded, media_type="application/x-gzip")
    with Ring(tmp_path, {ROOT + "robots.txt": coded, ROOT: page("/secret")}, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "secret": "robots_denied"}


def test_it_is_given_up_in_the_end(tmp_path: Path) -> None:
    pages = {ROOT + "robots.txt": reply(b"", 500), ROOT: page("/x")}
    options = {"robots_wait_max_s": 1_000}
    with Ring(tmp_path, pages, obey=True, robots=options) as ring:
        ring.crawl(ROOT, ROOT + "other")
        assert ring.outcomes == {ROOT: "robots_unreachable", ROOT + "other": "robots_unreachable"}
        assert not ring.web.counts[ROOT]
        assert ring.adds_up()


@pytest.mark.promise(
    "Politeness", "A host on the exclusion list gets no request, not even for the robots.txt of another host."
)
def test_an_excluded_host_is_not_asked_for_its_robots_txt_either(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}, obey=True) as ring:
        ring.seed(ROOT)
        ring.exclusions.add("a.example")
        ring.crawl()
        assert ring.outcomes == {ROOT: "excluded"}
        assert not ring.web.requests


def test_crawl_delay_is_kept(tmp_path: Path) -> None:
    pages = {ROOT + "robots.txt": robots("User-agent: *\nCrawl-delay: 30"), ROOT: page("/a", "/b")}
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        times = [row.fetched_at for row in ring.rows]
        assert [later - earlier >= 30 for earlier, later in itertools.pairwise(times)] == [True, True]


# ---- what a page says of its links


def test_nofollow_is_recorded_and_not_followed(tmp_path: Path) -> None:
    body = b"""<a href="/no" rel="nofollow">x</a><a href="/yes">y</a>"""
    with Ring(tmp_path, {ROOT: reply(body), ROOT + "yes": page()}) as ring:
        ring.crawl(ROOT)
        assert set(ring.outcomes) == {ROOT, ROOT + "yes"}
        links = {found.url: found.nofollow for found in ring.archive.added[0].links}
        assert links == {ROOT + "no": True, ROOT + "yes": False}
        assert ring.archive.added[0].link_keys == [ROOT + "no", ROOT + "yes"]


def test_nofollow_is_counted_where_a_filter_would_have_let_the_link_pass(tmp_path: Path) -> None:
    body = b"""<a href="http://b.example/" rel="nofollow">x</a><a href="/no" rel="nofollow">y</a>"""
    with Ring(tmp_path, {ROOT: reply(body)}, scope={"scope": "host"}) as ring:
        ring.crawl(ROOT)
        assert (ring.chain.counts["scope"], ring.chain.counts["nofollow"]) == (1, 1)
        assert ring.chain.examples == {"scope": "http://b.example/", "nofollow": ROOT + "no"}


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"""<meta name="robots" content="nofollow"><a href="/no">x</a>"""),
        reply(b"""<a href="/no">x</a>""", headers=(("X-Robots-Tag", "nofollow"),)),
    ],
)
def test_a_page_may_say_nofollow_for_all(tmp_path: Path, answer: Reply) -> None:
    with Ring(tmp_path, {ROOT: answer}) as ring:
        ring.crawl(ROOT)
        assert set(ring.outcomes) == {ROOT}
        assert [found.url for found in ring.archive.added[0].links] == [ROOT + "no"]


def test_links_out_of_scope_are_recorded_and_not_followed(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page("http://b.example/")}, scope={"scope": "host"}) as ring:
        ring.crawl(ROOT)
        assert set(ring.outcomes) == {ROOT}
        assert ring.chain.counts["scope"] == 1
        assert len(ring.archive.added[0].links) == 1


def test_an_exact_copy_is_marked_and_its_links_followed(tmp_path: Path) -> None:
    same = page("x", title="same")
    pages = {ROOT: page("/1/", "/2/"), ROOT + "1/": same, ROOT + "2/": same, ROOT + "1/x": page(), ROOT + "2/x": page()}
    with Ring(tmp_path, pages) as ring:
        ring.crawl(ROOT)
        copies = [visited for visited in ring.archive.added if visited.row.duplicate_of]
        assert [visited.row.url for visited in copies if visited.row.url.endswith("/2/")] == [ROOT + "2/"]
        original = next(visited.revisit_of for visited in copies if visited.row.url == ROOT + "2/")
        assert original is not None
        assert (original.url, bool(original.record_id)) == (ROOT + "1/", True)
        assert {ROOT + "1/x", ROOT + "2/x"} <= set(ring.outcomes)


def test_links_of_copies_can_be_left(tmp_path: Path) -> None:
    same = page("x", title="same")
    pages = {ROOT: page("/1/", "/2/"), ROOT + "1/": same, ROOT + "2/": same}
    with Ring(tmp_path, pages, crawl={"follow_copies": False}) as ring:
        ring.crawl(ROOT)
        assert ROOT + "1/x" in ring.outcomes
        assert ROOT + "2/x" not in ring.outcomes


def test_empty_and_cut_bodies_are_nobodys_copy(tmp_path: Path) -> None:
    pages = {
        ROOT: page("/1", "/2", "/3", "/4"),
        ROOT + "1": reply(),
        ROOT + "2": reply(),
        ROOT + "3": reply(b"begin", truncated="length"),
        ROOT + "4": reply(b"begin", truncated="time"),
    }
    with Ring(tmp_path, pages) as ring:
        ring.crawl(ROOT)
        assert not [row for row in ring.rows if row.duplicate_of]
        assert {row.url: row.truncated for row in ring.rows if row.truncated} == {
            ROOT + "3": "length",
            ROOT + "4": "time",
        }


# ---- depth


def test_a_shorter_way_found_later_reaches_what_was_too_deep(tmp_path: Path) -> None:
    other = "http://b.example/"
    pages = {
        ROOT: page("/long", other),
        ROOT + "long": page("/middle"),
        ROOT + "middle": page("/deep"),  # At depth 2: its link is too deep, until another way to it comes at depth 1.
        other: [GONE, moved(ROOT + "middle")],
        ROOT + "deep": page("/deeper"),
        ROOT + "deeper": page(),
    }
    with Ring(tmp_path, pages, scope={"depth_max": 2}) as ring:
        ring.crawl(ROOT)
        way = ring.url_seen.way(url_of(ROOT + "middle"))
        assert way is not None
        assert way[0] == 1
        assert ring.outcomes.get(ROOT + "deep") == "fetched"
        assert ROOT + "deeper" not in ring.outcomes
        assert ring.web.counts[ROOT + "middle"] == 1


def test_outlinks_are_kept_only_where_depth_is_limited(tmp_path: Path) -> None:
    for name, scope in (("limited", {"depth_max": 0}), ("free", {})):
        with Ring(tmp_path / name, {ROOT: page("/a")}, scope=scope) as ring:
            ring.crawl(ROOT)
            record = ring.record(ROOT)
            assert record.outlinks == ([ROOT + "a"] if name == "limited" else [])


# ---- our own mistakes, and the disk's


class Broken:
    """Stands before a room; one of its methods raises, for URLs that hold `bad`."""

    def __init__(self, room: object, method: str, error: Exception) -> None:
        self._room = room
        self._method = method
        self._error = error

    def __getattr__(self, name: str) -> object:
        found = getattr(self._room, name)
        if name != self._method:
            return found

        def broken(*given: object) -> object:
            if any("bad" in address for address in map(str, given)):
                raise self._error
            return found(*given)

        return broken


ROOMS = [
    ("middlewares", "judge"),
    ("resolver", "resolve"),
    ("resolver", "cached"),
    ("protocols", "fetch"),
    ("examiner", "examine_in_slices"),
    ("content_seen", "find"),
    ("content_seen", "remember"),
    ("archive", "add"),
    ("history", "put"),
    ("namer", "names"),
]


@pytest.mark.promise(
    "Crash safety", "An internal error ends one page, with a row, a log entry and a count, and no other page."
)
@pytest.mark.parametrize(("room", "method"), ROOMS)
def test_a_mistake_of_ours_ends_one_page_and_no_other(tmp_path: Path, room: str, method: str) -> None:
    bad = "http://bad.example/bad"
    pages = {ROOT: page("/a", "/b"), bad: page("/bad/x"), ROOT + "a": page(), ROOT + "b": page()}
    with Ring(tmp_path, pages) as ring:
        ring.joined(**{room: Broken(getattr(ring.stages, room), method, KeyError("ours"))})
        ring.crawl(bad, ROOT)

        assert {url: ring.outcomes[url] for url in (ROOT, ROOT + "a", ROOT + "b")} == dict.fromkeys(
            (ROOT, ROOT + "a", ROOT + "b"), "fetched"
        )
        assert ring.adds_up()
        assert ring.frontier.counts.pending == 0
        assert ring.frontier.counts.terminal["internal_error"] >= 1
        logged = ring.log("critical.log")
        assert {event["url"] for event in logged} <= {bad, "http://bad.example/bad/x"}
        assert logged[0]["error"] == "KeyError: 'ours'"
        assert "traceback" in logged[0]
        assert ring.counters.fatal_error is None
        if (room, method) not in {("archive", "add"), ("history", "put")}:
            assert ring.outcomes[bad] == "internal_error"
            assert ring.explainer.why(bad)["state"] == "internal_error"
            assert "KeyError" in str(ring.explainer.why(bad)["reason"])


def test_the_host_of_a_page_that_we_failed_on_is_asked_on(tmp_path: Path) -> None:
    pages = {ROOT: page("/bad", "/a"), ROOT + "bad": KeyError("ours"), ROOT + "a": page()}
    with Ring(tmp_path, pages) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "bad": "internal_error", ROOT + "a": "fetched"}


def test_a_mistake_on_robots_txt_leaves_its_host_waiting_not_lost(tmp_path: Path) -> None:
    pages = {ROOT + "robots.txt": [KeyError("ours"), robots("")], ROOT: page()}
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched"}
        assert ring.log("critical.log")[0]["url"] == ROOT + "robots.txt"


def test_many_mistakes_are_the_end(tmp_path: Path) -> None:
    pages = {ROOT: page(*(f"/{n}" for n in range(30))), **{f"{ROOT}{n}": KeyError(str(n)) for n in range(30)}}
    with Ring(tmp_path, pages, crawl={"errors_max": 5}) as ring:
        ring.crawl(ROOT)
        assert isinstance(ring.counters.fatal_error, KeyError)
        assert len([row for row in ring.rows if row.outcome == "internal_error"]) == 5


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_disk_that_refuses_is_nobodys_page_and_the_end(tmp_path: Path, number: int) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.joined(archive=Broken(ring.archive, "add", OSError(number, "disk")))
        ring.crawl(ROOT + "bad")
        assert isinstance(ring.counters.fatal_error, OSError)
        assert ring.frontier.counts.pending == 1
        assert not ring.frontier.counts.terminal
        assert ring.log("critical.log") == []


def test_a_socket_error_in_a_module_is_no_disk_error(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: OSError(errno.ECONNRESET, "reset")}) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "internal_error"}
        assert ring.counters.fatal_error is None
        assert ring.frontier.facts(url_of(ROOT)).failures == 1, "the host may be why, and waits longer"


@pytest.mark.parametrize("fetched", [True, False])
def test_a_seed_counts_as_fetched_when_its_page_is(tmp_path: Path, fetched: bool) -> None:
    with Ring(tmp_path, {ROOT: page() if fetched else reply(404)}) as ring:
        ring.crawl(ROOT)
        assert ring.counters.totals.seeds.any_fetched == fetched


def test_a_processing_module_that_fails_is_logged_and_the_page_kept(tmp_path: Path) -> None:
    error = ModuleError("words", "KeyError: 'ours'")
    with Ring(tmp_path, {ROOT: page()}, look=lambda _: Processed(Findings(title="kept"), (error,))) as ring:
        ring.crawl(ROOT)
        assert (ring.rows[0].outcome, ring.rows[0].title) == ("fetched", "kept")
        (event,) = ring.log("critical.log")
        assert event["event"] == "module_failed"
        assert "words" in event["error"]


def test_a_visit_that_is_left_says_nothing_of_its_host_but_makes_it_rest(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}, polite={"delay_s_min": 5.0}) as ring:
        ring.web.held = asyncio.Event()
        ring.seed(ROOT)

        async def leave() -> None:
            task = asyncio.create_task(ring.turns())
            await ring.web.asked(1)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(leave())
        facts = ring.frontier.facts(url_of(ROOT))
        assert (facts.failures, facts.requests, facts.in_flight) == (0, 1, 0)
        assert facts.delay_until >= ring.clock.now() + 5
        assert ring.frontier.counts.pending == 1


def test_discover_takes_a_url_once(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        links = [Link(url_of(ROOT + "a"), "anchor", 1), Link(url_of(ROOT + "a"), "anchor", 1)]
        ring.pipeline.discovery.discover(links)
        ring.pipeline.discovery.discover(links)
        ring.pipeline.discovery.discover([])
        assert ring.frontier.counts.discovered == 1


def test_a_known_link_is_offered_again_only_by_a_shorter_path_and_after_an_error(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        offered: list[tuple[str, int]] = []
        offer = ring.url_seen.offer

        def listened(urls: list[Url], depths: list[int], hops: list[int]) -> Sequence[int]:
            offered.extend((url.text, depth) for url, depth in zip(urls, depths, strict=True))
            if len(offered) == 1:
                raise RuntimeError("the eliminator fails once")
            return offer(urls, depths, hops)

        ring.url_seen.offer = listened  # type: ignore[method-assign]
        old, new = Link(url_of(ROOT + "menu"), "anchor", 3), Link(url_of(ROOT + "new"), "anchor", 3)
        with pytest.raises(RuntimeError):
            ring.pipeline.discovery.discover([old])
        ring.pipeline.discovery.discover([old])
        ring.pipeline.discovery.discover([old, new, old])
        ring.pipeline.discovery.discover([msgspec.structs.replace(old, depth=2), new])
        assert offered == [(ROOT + "menu", 3), (ROOT + "menu", 3), (ROOT + "new", 3), (ROOT + "menu", 2)]
        assert ring.frontier.counts.discovered == 2


def test_a_link_that_was_let_in_is_judged_again_only_by_a_shorter_path(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        url = ring.namer.name(ROOT + "menu")
        assert url is not None
        judged: list[tuple[int, int]] = []
        reason = ring.chain.reason
        ring.chain.reason = lambda link: judged.append((link.depth, link.hops)) or reason(link)  # type: ignore[method-assign, func-returns-value]
        for depth, hops in [(3, 1), (3, 1), (4, 1), (3, 2), (3, 0), (2, 1), (2, 1), (3, 0)]:
            ring.pipeline.discovery.discover([Link(url, "anchor", depth, hops, ROOT)])
        # Depth and hops count each for itself: (2, 1) is no shorter than (3, 0) by hops.
        assert judged == [(3, 1), (3, 0), (2, 1), (3, 0)]
        assert ring.url_seen.way(url) == (2, 0)
        ring.pipeline.reconfigure(ring._retries, ring.options)
        ring.pipeline.discovery.discover([Link(url, "anchor", 2, 1, ROOT)])
        assert judged[-1] == (2, 1)
        seed = Link(url, "seed", 2, 1, "", SEED_ARGUMENT)
        ring.pipeline.discovery.discover([seed])
        ring.pipeline.discovery.discover([seed])
        assert judged[-2:] == [(2, 1), (2, 1)]


@pytest.mark.parametrize("is_final", [True, False])
def test_a_url_that_was_queued_again_is_dropped_once_it_is_concluded(tmp_path: Path, is_final: bool) -> None:
    """Where links count, a more urgent level queues a URL a second time."""
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.crawl(ROOT)
        url = url_of(ROOT)
        ring.history.put(url, msgspec.structs.replace(ring.history.get(url), final=is_final))
        ring.pipeline.discovery.counts_links = True
        ring.frontier.add(Link(url, "seed", 0), 0, ring.clock.now())
        asyncio.run(ring.turns())
        assert len(ring.rows) == (1 if is_final else 2)


def test_a_seed_by_a_shorter_path_counts_as_fetched_also_where_the_scope_does_not_grow(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page("/a"), f"{ROOT}a": page()}) as ring:
        ring.crawl(ROOT)
        ring.memory.pending_scope.grows = False
        for address, fetched in [(f"{ROOT}b", False), (f"{ROOT}a", True)]:
            ring.counters.totals.seeds.any_fetched = False
            ring.seed(address)
            assert ring.counters.totals.seeds.any_fetched == fetched


def test_a_sitemap_that_another_host_names_is_read_again_after_a_while(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        at: list[float] = []

        class Ending(BatchEnding):
            def visit_again(self, link: Link, now: float, not_before: float) -> None:
                at.append(not_before - now)

        ring.joined(ending=Ending(ring.urls, ring.chain, ring.frontier, BreadthFirst()))
        ring.pipeline._outcomes.read_again([Link(url_of(f"{ROOT}sitemap.xml"), "sitemap", 0)], ring.clock.now())
        assert at == [SITEMAP_GATHER_S]
