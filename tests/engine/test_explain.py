"""What `why` says of a URL, in every state that it may be in."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from gossamer.engine.explain import Explainer
from gossamer.engine.history import UrlMemory
from gossamer.model.visits import Failure
from gossamer.model.words import iso_time
from gossamer.stages.seen.bloom import BloomUrlSeen
from gossamer.stages.seen.options import SeenOptions
from gossamer.testing import page, reply
from tests.engine.ring import Ring

ROOT = "http://a.example/"
OTHER = "http://b.example/"
"""A host that answers: one that is alone is tried again at once."""
GONE = Failure("timeout", "it took too long", retry=True)


def test_what_is_no_address(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        told = ring.explainer.why("not an address")
        assert (told["state"], "cannot" in str(told["reason"]) or "not an address" in str(told["reason"])) == (
            "unknown", True,
        )  # fmt: skip


def test_what_was_never_named(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        told = ring.explainer.why(ROOT)
        assert told["state"] == "unknown"
        assert "no seed, redirect or link that is followed has named it" in str(told["reason"])
        assert "nofollow" in str(told["reason"])
        assert told["rule"] is None


def test_a_robots_txt_is_read_for_its_rules(tmp_path: Path) -> None:
    answers = {ROOT + "robots.txt": reply(b"User-agent: *\nDisallow: /x"), ROOT: page()}
    with Ring(tmp_path, answers, obey=True) as ring:
        told = ring.explainer.why(ROOT + "robots.txt")
        assert told["state"] == "unknown"
        assert told["reason"] == (
            "it is requested for its rules, before a page of its host, and no such request has ended so far"
        )
        at = ring.clock.now()
        ring.crawl(ROOT)
        told = ring.explainer.why(ROOT + "robots.txt")
        assert (told["state"], told["rule"]) == ("prerequisite", None)
        assert "it is fetched for its rules, not as a page; its rules were read, in force until " in str(told["reason"])
        assert at <= datetime.fromisoformat(str(told["fetched_at"])).timestamp() <= ring.clock.now()
        assert ring.explainer.why(ROOT)["state"] == "fetched"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reply(b"", 404), "its host gives none, so all is permitted, in force until "),
        (reply(b"", 503), "as a page; 1 failure: HTTP 503"),
        (GONE, "as a page; 1 failure: it took too long"),
    ],
)
def test_a_robots_txt_without_rules(tmp_path: Path, answer: object, reason: str) -> None:
    web = {ROOT + "robots.txt": answer, ROOT: page(), OTHER: page(), OTHER + "robots.txt": reply(b"", 404)}
    with Ring(tmp_path, web, obey=True) as ring:  # type: ignore[arg-type]
        ring.crawl(ROOT, OTHER, until=ring.clock.now() + 5)
        assert reason in str(ring.explainer.why(ROOT + "robots.txt")["reason"])


@pytest.mark.parametrize(
    ("scope", "url", "rule"),
    [
        ({"scope": "host"}, "http://b.example/", "scope"),
        ({"exclude": ["secret"]}, ROOT + "secret", "exclude"),
        ({"include": ["docs"]}, ROOT + "else", "include"),
        ({}, "gopher://a.example/", "scheme"),
        ({"url_bytes_max": 50}, ROOT + "x" * 60, "length"),
    ],
)
def test_what_a_filter_rejects(tmp_path: Path, scope: dict[str, object], url: str, rule: str) -> None:
    with Ring(tmp_path, scope=scope) as ring:
        ring.seed(ROOT)
        before = dict(ring.chain.counts)
        told = ring.explainer.why(url)
        assert (told["state"], told["rule"]) == ("rejected", rule)
        assert ring.chain.counts == before


def test_what_is_queued_and_in_flight_and_fetched(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page("/a", title="Home")}) as ring:
        ring.seed(ROOT)
        told = ring.explainer.why(ROOT)
        assert (told["state"], told["depth"], told["hops"]) == ("queued", 0, 0)
        ring.web.held = asyncio.Event()

        async def look() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(ring.turns())
                await ring.web.asked(1)
                assert ring.explainer.why(ROOT)["state"] == "in_flight"
                assert ring.web.held is not None
                ring.web.held.set()

        asyncio.run(look())
        told = ring.explainer.why(ROOT)
        assert (told["state"], told["status"], told["reason"]) == ("fetched", 200, "HTTP 200")
        assert (told["warc_file"], told["warc_offset"]) == ("memory.warc.gz", 0)
        assert str(told["fetched_at"]).endswith("+00:00")
        assert ring.explainer.why(ROOT + "a")["referrer"] == ROOT


def test_what_an_eliminator_without_ways_was_offered(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page("/a")}) as ring:
        seen = BloomUrlSeen(ring.epochs, ring.journals, SeenOptions())
        ring.joined(url_seen=seen)
        explainer = Explainer(UrlMemory(ring.namer, seen, ring.history), ring.chain, ring.lookups)
        ring.seed(ROOT)
        assert explainer.why(ROOT)["state"] == "queued"
        assert explainer.why(ROOT + "a")["state"] == "unknown"
        ring.run(ring.turns())
        told = explainer.why(ROOT)
        assert (told["state"], told["reason"]) == ("fetched", "HTTP 200")
        assert "depth" not in told
        seen.close()


def test_what_no_host_delays_has_no_time(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        ring.seed(ROOT)
        told = ring.explainer.why(ROOT)
        assert told["state"] == "queued"
        assert "1970" not in str(told)


def test_what_failed_and_waits_for_its_next_attempt(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: GONE, OTHER: page()}, frontier={"retry_s_first": 100}) as ring:
        ring.crawl(ROOT, OTHER, until=ring.clock.now() + 50)
        told = ring.explainer.why(ROOT)
        assert told["state"] == "waiting"
        assert told["reason"] == "attempt 2 is due after: it took too long"
        assert told["next_due"]
        assert told["error"] == "it took too long"


def test_a_revisit_that_failed_is_due_with_its_next_attempt(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: GONE}, frontier={"retry_s_first": 100}) as ring:
        began = ring.clock.now()
        lookups = ring.lookups._replace(further=[lambda _: {"next_due": iso_time(began)}])
        explainer = Explainer(ring.urls, ring.chain, lookups)
        ring.crawl(ROOT, until=began + 50)
        told = explainer.why(ROOT)
        assert told["state"] == "waiting"
        assert told["next_due"] == ring.explainer.why(ROOT)["next_due"]
        assert datetime.fromisoformat(str(told["next_due"])).timestamp() >= began + 100


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (reply(b"", 404), "http_error", "HTTP 404"),
        (reply(b"", 301, (("Location", "/new"),)), "redirected", f"it redirects to {ROOT}new"),
        (Failure("tls_error", "a bad certificate"), "tls_error", "a bad certificate"),
        (KeyError("ours"), "internal_error", "KeyError: 'ours'"),
    ],
)
def test_what_ended(tmp_path: Path, answer: object, state: str, reason: str) -> None:
    with Ring(tmp_path, {ROOT: answer}) as ring:  # type: ignore[dict-item]
        ring.crawl(ROOT)
        told = ring.explainer.why(ROOT)
        assert (told["state"], told["reason"], told["rule"]) == (state, reason, state)


def test_what_waits_for_robots_txt(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT + "robots.txt": page(), ROOT: page()}, obey=True) as ring:
        ring.seed(ROOT)
        ring.web.held = asyncio.Event()

        async def look() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(ring.turns())
                await ring.web.asked(1)
                told = ring.explainer.why(ROOT)
                assert (told["state"], told["reason"]) == ("queued", "its host waits for robots.txt")
                assert ring.web.held is not None
                ring.web.held.set()

        asyncio.run(look())


def test_a_host_that_answers_with_an_error_for_robots_txt_is_not_said_not_to_answer(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT + "robots.txt": reply(b"", 503), ROOT: page()}, obey=True) as ring:
        ring.crawl(ROOT, until=ring.clock.now() + 10)
        reason = str(ring.explainer.why(ROOT)["reason"])
        assert reason == f"http://a.example waits: could not fetch {ROOT}robots.txt (1 attempt): HTTP 503"


def test_failures_in_a_row_are_counted_before_the_host_waits_for_them(tmp_path: Path) -> None:
    web = {ROOT: page("/a", "/b", "/c")} | {
        ROOT + path: msgspec.structs.replace(GONE, host_level=True) for path in "abc"
    }
    with Ring(tmp_path, web, frontier={"host_failures_max": 5}) as ring:
        ring.crawl(ROOT, until=ring.clock.now() + 20)
        host = ring.explainer.why(ROOT + "c")["host_state"]
        assert isinstance(host, dict)
        assert (host["failures_in_a_row"], host["origin"]) == (3, None)


def test_what_robots_txt_denied(tmp_path: Path) -> None:
    robots = reply(b"User-agent: *\nDisallow: /", media_type="text/plain")
    with Ring(tmp_path, {ROOT + "robots.txt": robots}, obey=True) as ring:
        ring.crawl(ROOT)
        told = ring.explainer.why(ROOT)
        assert (told["state"], told["reason"]) == ("robots_denied", "robots.txt disallows it")


def test_what_stood_in_the_queue_of_a_host_that_closed(tmp_path: Path) -> None:
    busy = reply(b"", 503, (("Retry-After", "9999999"),))
    with Ring(tmp_path, {ROOT: busy}) as ring:
        ring.crawl(ROOT, ROOT + "a", ROOT + "b")
        told = ring.explainer.why(ROOT + "b")
        assert (told["state"], told["rule"]) == ("host_closed", "host_closed")
        assert "115 d 17 h (Retry-After), more than politeness.retry_after_s_max" in str(told["reason"])
        host = told["host_state"]
        assert isinstance(host, dict)
        assert host["closed"] == told["reason"]
        assert ring.adds_up()
