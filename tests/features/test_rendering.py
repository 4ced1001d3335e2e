"""Resources of rendered pages, through the gates of a real frontier: no browser is needed for that."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from gossamer.features.logins.sessions import Jars, Sessions
from gossamer.features.render.choice import RenderBudget, RenderChoice
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.renderer import Renderer
from gossamer.features.render.rendering import (
    HOST_VISITS_MAX,
    SLOW,
    Auto,
    Gates,
    Headers,
    PageRendering,
    PageResources,
    add_sent,
)
from gossamer.features.render.session import SiteSessions
from gossamer.model.links import Found
from gossamer.model.pages import Findings
from gossamer.model.visits import Failure, Reply
from gossamer.options import convert
from gossamer.ports import VisitMiddleware
from gossamer.testing.fakes import Answers, reply
from gossamer.url.url import Url
from gossamer.world.dice import Dice
from tests.engine.ring import Ring, url_of

PAGE, PAGE_ID = "https://a.test/", "id-1"
JS = "text/javascript"
SCRIPTS: Mapping[str, Answers] = {f"https://cdn.test/{name}.js": reply(b"code", media_type=JS) for name in "abc"}


class Rendering:
    """A ring whose pages are rendered, without a page."""

    def __init__(
        self, ring: Ring, auto: Auto | None = None, sessions: Sessions | None = None, **options: object
    ) -> None:
        self.ring = ring
        made = convert(RenderOptions, options)
        kept = SiteSessions(sessions.jars.find, sessions.jars.keep, sessions.headers) if sessions is not None else None
        gates = Gates(ring.namer, ring.chain, ring.stages.middlewares.judge_resource, ring.frontier.control, kept)
        examiner = ring.stages.examiner
        self.resources = PageResources(gates, ring.archive, examiner, ring.telemetry, made)
        self.pages = PageRendering(made, Renderer(made), self.resources, ring.telemetry, auto)
        ring.with_feature(self.resources, rendering=self.pages)

    def get(
        self, *texts: str, kind: str = "script", has_session: bool = False, via: str = PAGE, sent: Headers = ()
    ) -> list[Reply | Failure]:
        async def all_of() -> list[Reply | Failure]:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self.resources.get(text, kind, PAGE_ID, via, has_session=has_session, sent=sent))
                    for text in texts
                ]
                while not all(task.done() for task in tasks):
                    await asyncio.sleep(0)
                    await self.ring.turns()
            return [task.result() for task in tasks]

        return asyncio.run(all_of())


class WithCookies(Rendering):
    """The same with the cookies of a crawl."""

    def __init__(self, ring: Ring) -> None:
        self.sessions = Sessions(Jars(ring.epochs, None))
        super().__init__(ring, sessions=self.sessions)
        self.sessions.is_without_session = self.resources.is_without_session
        ring.with_feature(self.sessions)

    def set_cookie(self, text: str) -> None:
        self.sessions.received(url_of(PAGE), reply(headers=(("Set-Cookie", text),)), 0.0)


def outcome(result: Reply | Failure) -> str | int:
    return result.outcome if isinstance(result, Failure) else result.status


def test_a_resource_is_requested_once_for_all_who_want_it(tmp_path: Path) -> None:
    with Ring(tmp_path, SCRIPTS) as ring:
        rendering = Rendering(ring)
        url = "https://cdn.test/a.js"
        first, second = rendering.get(url, url)
        assert isinstance(first, Reply)
        assert (first.status, first.body) == (200, b"code")
        assert second == first
        assert rendering.get(url) == [first]
        assert ring.web.counts[url] == 1
        assert ring.counters.totals.figures["rendering"] == {"resources_requested": 1, "resources_reused": 2}
        [(archived, via, kind)] = ring.archive.prerequisites
        assert (archived.url, archived.page_id, archived.resource_type) == (url, PAGE_ID, "script")
        assert (via, kind) == (PAGE, "script")


def test_requests_to_a_host_keep_its_delay(tmp_path: Path) -> None:
    with Ring(tmp_path, SCRIPTS, polite={"preset": "polite", "delay_s_min": 7.0}) as ring:
        began = ring.clock.now()
        assert [outcome(one) for one in Rendering(ring).get(*SCRIPTS)] == [200, 200, 200]
        assert ring.clock.now() - began >= 2 * 7.0


def test_robots_txt_is_read_first_and_obeyed(tmp_path: Path) -> None:
    robots = reply(b"User-agent: *\nDisallow: /b", media_type="text/plain")
    with Ring(tmp_path, {**SCRIPTS, "https://cdn.test/robots.txt": robots}, obey=True) as ring:
        found = Rendering(ring).get(*SCRIPTS)
        assert [outcome(one) for one in found] == [200, "robots_denied", 200]
        assert ring.web.requests[0].url == "https://cdn.test/robots.txt"
        requested = ("robots.txt", "a.js", "c.js")
        assert ring.web.counts == {f"https://cdn.test/{name}": 1 for name in requested}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"exclude_hosts": ["cdn.test"]}, "excluded"),
        ({"exclude": ["tracker"]}, 200),
        ({"exclude": [r"/a\.js"]}, "excluded"),
        ({"scope": "host"}, 200),
    ],
)
def test_exclusions_hold_for_resources_and_the_scope_does_not(
    tmp_path: Path, scope: dict[str, object], expected: str | int
) -> None:
    with Ring(tmp_path, SCRIPTS, scope=scope) as ring:
        [found] = Rendering(ring).get("https://cdn.test/a.js")
        assert outcome(found) == expected
        assert ring.web.counts["https://cdn.test/a.js"] == (expected == 200)


def test_an_address_that_is_refused_is_not_requested(tmp_path: Path) -> None:
    with Ring(tmp_path, SCRIPTS) as ring:
        refused = Failure("dns_error", "10.0.0.1 is a private address")
        ring.resolver.hosts["cdn.test"] = refused
        assert Rendering(ring).get("https://cdn.test/a.js") == [refused]
        assert ring.web.requests == []


def test_a_stale_resource_is_requested_on_condition(tmp_path: Path) -> None:
    url = "https://cdn.test/a.js"
    headers = (("ETag", '"1"'), ("Cache-Control", "no-cache"))
    answers = [reply(b"code", headers=headers, media_type=JS), reply(b"", 304, (("ETag", '"1"'),), media_type="")]
    with Ring(tmp_path, {url: answers}) as ring:
        rendering = Rendering(ring)
        [first], [second] = rendering.get(url), rendering.get(url)
        assert isinstance(first, Reply)
        assert isinstance(second, Reply)
        assert (second.status, second.body) == (200, first.body) == (200, b"code")
        assert ring.web.requests[1].headers == (("If-None-Match", '"1"'),)
        assert [one.status for one, _, kind in ring.archive.prerequisites if kind == "script"] == [200, 304]


def test_a_resource_is_requested_with_the_headers_of_its_browser(tmp_path: Path) -> None:
    """RFC 9110, sections 10.1.3 and 12.5.1: pages of one site share what does not vary by them."""
    urls = "https://cdn.test/a.png", "https://cdn.test/b.png"
    varies = reply(b"x", headers=(("Vary", "Accept"), ("Cache-Control", "max-age=9")), media_type="image/png")
    image: Headers = (("Accept", "image/*"), ("Referer", PAGE))
    with Ring(tmp_path, {urls[0]: reply(b"x", media_type="image/png"), urls[1]: varies}) as ring:
        rendering = Rendering(ring)
        for sent in (image, (("Accept", "*/*"), ("Referer", "https://a.test/b"))):
            assert [outcome(one) for one in rendering.get(*urls, kind="image", sent=sent)] == [200, 200]
        assert [(one.url, one.headers) for one in ring.web.requests] == [
            (urls[0], image), (urls[1], image), (urls[1], (("Accept", "*/*"), ("Referer", "https://a.test/b")))
        ]  # fmt: skip


@pytest.mark.promise("What is fetched", "Links of a page as sent are followed, also if its scripts remove them.")
def test_links_that_scripts_remove_are_links_of_the_page() -> None:
    """But for those of templates, which scripts fill in."""
    texts = ["https://a.test/" + path for path in ("both", "gone", "%7B%7Burl%7D%7D", "x?q={{url}}", "${url}", "{one}")]
    sent = Findings(links=[Found(one, "anchor") for one in texts])
    rendered = Findings(links=[Found(texts[0], "anchor", nofollow=True), Found("https://a.test/new", "anchor")])
    add_sent(rendered, sent)
    paths = [one.url.removeprefix("https://a.test/") for one in rendered.links]
    assert paths == ["both", "new", "gone", "{one}"]
    assert rendered.links[0].nofollow


def test_too_long_a_resource_is_cut_off_and_refused(tmp_path: Path) -> None:
    with Ring(tmp_path, {"https://cdn.test/a.js": reply(b"x" * 5_000, media_type=JS)}) as ring:
        assert [outcome(one) for one in Rendering(ring, resource_bytes_max=1_000).get("https://cdn.test/a.js")] == [
            "too_large"
        ]
        assert ring.counters.totals.wire_bytes < 5_000


def test_a_resource_that_no_page_waits_for_any_more_is_not_requested(tmp_path: Path) -> None:
    async def given_up(rendering: Rendering) -> None:
        task = asyncio.create_task(rendering.resources.get("https://cdn.test/a.js", "script", PAGE_ID, PAGE))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await rendering.ring.turns()

    with Ring(tmp_path, SCRIPTS) as ring:
        asyncio.run(given_up(Rendering(ring)))
        assert ring.web.requests == []


@pytest.mark.parametrize(("after_s", "failures"), [(1.0, 0), (40.0, 1)])
def test_a_request_for_a_resource_ends_when_no_page_waits_for_it(tmp_path: Path, after_s: float, failures: int) -> None:
    async def given_up(rendering: Rendering) -> None:
        ring = rendering.ring
        ring.web.held = asyncio.Event()
        async with asyncio.timeout(120.0), asyncio.TaskGroup() as group:
            task = group.create_task(rendering.resources.get("https://cdn.test/a.js", "script", PAGE_ID, PAGE))
            await asyncio.sleep(0)
            group.create_task(ring.turns())
            await ring.web.asked(1)
            ring.fake_clock.advance(after_s)
            task.cancel()

    with Ring(tmp_path, SCRIPTS) as ring:
        asyncio.run(given_up(Rendering(ring)))
        facts = ring.frontier.facts(url_of("https://cdn.test/a.js"))
        assert (facts.failures, facts.requests, facts.in_flight) == (failures, 1, 0)
        assert not ring.archive.prerequisites


def test_a_request_goes_on_when_its_page_leaves_and_another_waits_for_it(tmp_path: Path) -> None:
    async def left(rendering: Rendering) -> Reply | Failure:
        ring = rendering.ring
        ring.web.held = asyncio.Event()
        async with asyncio.timeout(120.0), asyncio.TaskGroup() as group:
            first, second = (
                group.create_task(rendering.resources.get("https://cdn.test/a.js", "script", PAGE_ID, PAGE))
                for _ in range(2)
            )
            await asyncio.sleep(0)
            group.create_task(ring.turns())
            await ring.web.asked(1)
            first.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
            ring.web.held.set()
        return second.result()

    with Ring(tmp_path, SCRIPTS) as ring:
        assert outcome(asyncio.run(left(Rendering(ring)))) == 200


@pytest.mark.promise("Order and fairness", "Resources that never come do not keep browsers from other pages.")
@pytest.mark.parametrize("answers", [True, False], ids=["answers", "robots"])
def test_a_page_waits_for_a_slow_host_as_long_as_it_has_patience(tmp_path: Path, *, answers: bool) -> None:
    async def patient(rendering: Rendering, limits_s: Sequence[float]) -> Sequence[Reply | Failure | None]:
        ring = rendering.ring
        ring.web.held = asyncio.Event()
        found: list[Reply | Failure | None] = []
        for limit_s, name in zip(limits_s, "abc", strict=False):
            get = rendering.resources.get(f"https://{name}.test/a.js", "script", PAGE_ID, PAGE, limit_s)
            async with asyncio.TaskGroup() as group:
                task = group.create_task(get)
                await asyncio.sleep(0)
                turns = group.create_task(ring.turns())
                await ring.web.asked(len(ring.web.requests) + 1)
                ring.fake_clock.advance(6.0)
                done, _ = await asyncio.wait([task], timeout=2.0 if limit_s == math.inf else 60.0)
                found.append(task.result() if done else None)
                ring.web.held.set()
                turns.cancel()
                task.cancel()
            ring.web.held.clear()
        return found

    with Ring(tmp_path, obey=not answers) as ring:
        rendering = Rendering(ring)
        assert asyncio.run(patient(rendering, [5.0, math.inf])) == [SLOW, None]


def test_queued_urls_wait_while_only_prerequisite_fetches_are_lent(tmp_path: Path) -> None:
    text = reply(b"text", media_type="text/plain")  # It is not rendered.
    with Ring(tmp_path, {**SCRIPTS, "https://cdn.test/": text, "https://b.test/": text}) as ring:
        rendering = Rendering(ring)
        ring.seed("https://cdn.test/", "https://b.test/")
        ring.frontier.control.prerequisites_only = True
        assert [outcome(one) for one in rendering.get("https://cdn.test/a.js")] == [200]
        assert [request.url for request in ring.web.requests] == ["https://cdn.test/a.js"]
        ring.frontier.control.prerequisites_only = False
        assert ring.frontier.wake_at() == 0.0
        asyncio.run(ring.turns())
        assert ring.outcomes == {"https://cdn.test/": "fetched", "https://b.test/": "fetched"}
        assert ring.adds_up()


def test_a_host_whose_pages_wait_for_browsers_is_not_fetched_further(tmp_path: Path) -> None:
    text = reply(b"text", media_type="text/plain")  # It is not rendered.
    with Ring(tmp_path, {"https://a.test/": text, "https://b.test/": text}) as ring:
        pages = Rendering(ring).pages
        for _ in range(HOST_VISITS_MAX):
            pages._begin(url_of("https://a.test/x"))
        ring.crawl("https://a.test/", "https://b.test/")
        assert [request.url for request in ring.web.requests] == ["https://b.test/"]
        pages._end(url_of("https://a.test/x"))
        asyncio.run(ring.turns())
        assert [request.url for request in ring.web.requests] == ["https://b.test/", "https://a.test/"]


def test_only_whole_web_pages_are_rendered(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        pages = Rendering(ring).pages
        url = "https://a.test/"

        def wants(media_type: str = "text/html", body: bytes = b"<p>x", **more: object) -> bool:
            given = Reply(url, 200, (), body, "127.0.0.1", 0.0, 0.1, 10, media_type=media_type)
            given = msgspec.structs.replace(given, **more)
            return pages.wants(given, ring.stages.examiner.examine(given, 1))

        assert wants()
        assert wants("application/xhtml+xml")
        assert not wants("application/pdf")
        assert not wants(body=b"")
        assert not wants(truncated="length")
        assert not wants(url="ftp://a.test/")


def test_auto_starts_no_browser_for_pages_without_scripts_or_beyond_its_budget(tmp_path: Path) -> None:
    pages = {
        "https://a.test/": reply(b"<p>x"),
        "https://b.test/": reply(b"<div id=app></div><script src=/a.js></script>"),
    }
    with Ring(tmp_path, pages) as ring:
        budget = RenderBudget(0.3, 2, ring.clock.now())
        budget.charge(RenderBudget.AHEAD_S)
        Rendering(ring, Auto(RenderChoice(ring.epochs, Dice(1)), budget), program="/no/browser")
        ring.crawl(*pages)
        assert {row.url: (row.outcome, row.rendered, row.render_reason) for row in ring.rows} == {
            "https://a.test/": ("fetched", "", ""),
            "https://b.test/": ("fetched", "", "budget"),
        }
        assert ring.counters.totals.figures["rendering"] == {"pages_budget": 1}


API = "https://a.test/api"


def test_a_resource_carries_the_cookies_of_its_session_alone(tmp_path: Path) -> None:
    with Ring(tmp_path, {API: reply(b"{}"), **SCRIPTS}) as ring:
        rendering = WithCookies(ring)
        rendering.set_cookie("sid=1; HttpOnly")
        rendering.get(API, has_session=True)
        rendering.get(API)
        rendering.get("https://cdn.test/a.js", has_session=True)
        cookie = ("Cookie", "sid=1")
        assert [one.headers for one in ring.web.requests] == [(cookie,), (), ()]


def test_what_a_session_was_sent_is_not_for_the_next_one(tmp_path: Path) -> None:
    answers = [reply(name, headers=(("ETag", '"1"'),)) for name in (b"jo", b"kim", b"none")]
    with Ring(tmp_path, {API: answers}) as ring:
        rendering = WithCookies(ring)
        bodies = []
        for text, has_session in (("sid=1", True), ("sid=1", True), ("sid=2", True), ("sid=2", False)):
            rendering.set_cookie(text)
            [found] = rendering.get(API, has_session=has_session)
            assert isinstance(found, Reply)
            bodies.append(found.body)
        assert bodies == [b"jo", b"jo", b"kim", b"none"]
        assert all(name != "If-None-Match" for one in ring.web.requests for name, _ in one.headers)


def test_pages_with_and_without_a_session_do_not_share_a_request(tmp_path: Path) -> None:
    with Ring(tmp_path, {API: [reply(b"jo"), reply(b"none")]}) as ring:
        rendering = WithCookies(ring)
        rendering.set_cookie("sid=1")

        async def both() -> list[bytes]:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(rendering.resources.get(API, "fetch", PAGE_ID, PAGE, has_session=has_session))
                    for has_session in (True, False, True)
                ]
                while not all(task.done() for task in tasks):
                    await asyncio.sleep(0)
                    await ring.turns()
            return [found.body for task in tasks if isinstance(found := task.result(), Reply)]

        assert asyncio.run(both()) == [b"jo", b"none", b"jo"]
        assert ring.web.counts[API] == 2


def test_a_reply_to_a_request_without_the_session_does_not_end_it(tmp_path: Path) -> None:
    """A server that sees no cookie sets a new one, which belongs to nobody."""
    answer = reply(b"{}", headers=(("Set-Cookie", "sid=nobody"),))
    with Ring(tmp_path, {API: answer, "https://a.test/in": reply(b"{}", headers=(("Set-Cookie", "sid=2"),))}) as ring:
        rendering = WithCookies(ring)
        rendering.set_cookie("sid=1")
        rendering.get(API)
        assert rendering.sessions.headers(url_of(API), None, 0.0) == (("Cookie", "sid=1"),)
        rendering.get("https://a.test/in", has_session=True)
        assert rendering.sessions.headers(url_of(API), None, 0.0) == (("Cookie", "sid=2"),)
        shown = [value for one, *_ in ring.archive.prerequisites for name, value in one.headers if name == "Set-Cookie"]
        assert shown == ["sid=[redacted]"] * 2


class WithCredentials(VisitMiddleware):
    """Marks replies as the operator's rules do for requests to their place, whatever page needs it."""

    name = "credentials"

    def received(self, url: Url, reply: Reply, now: float) -> Reply:
        return msgspec.structs.replace(reply, authenticated=True)


def test_what_was_requested_with_credentials_is_for_pages_of_its_site_alone(tmp_path: Path) -> None:
    answer = reply(b"secret", headers=(("Cache-Control", "max-age=60"),))
    with Ring(tmp_path, {API: answer}) as ring:
        rendering = Rendering(ring)
        ring.with_feature(WithCredentials())
        assert [outcome(one) for one in rendering.get(API, via="https://b.test/")] == ["excluded"]
        assert [outcome(one) for one in rendering.get(API, via="https://www.a.test/")] == [200]
        assert [outcome(one) for one in rendering.get(API)] == [200]
        assert [outcome(one) for one in rendering.get(API, via="https://b.test/")] == ["excluded"]
        assert ring.web.counts[API] == 3
