"""Rendering: renders pages in a browser, and fetches their resources through the gates of each host.

A resource is a prerequisite fetch, like a robots.txt, but it must be permitted by robots.txt, the exclusion list and
traps like a page: when it is first needed, and again at its host's turn. The reply is archived, and cached for other
pages as far as its server permits. With `crawl.render` = `auto`, `choice.py` chooses the pages. This module is
imported only if pages are rendered.
"""

import asyncio
import math
import re
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec
from xxhash import xxh3_64_hexdigest

from gossamer.engine.counters import Telemetry
from gossamer.engine.examine import Examined, Examiner
from gossamer.engine.optional import BrowserRendering, NoOthers, ShardExchange
from gossamer.features.render.cache import ResourceCache
from gossamer.features.render.choice import BUDGET, FOR_SAMPLE, Place, RenderBudget, RenderChoice, gains_text, place_of
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.page import Dom, PageError, Supply
from gossamer.features.render.renderer import Renderer
from gossamer.features.render.session import PageSession, SiteSessions
from gossamer.model.links import EMBED, SCRIPT, Found, Link, Prerequisite, Verdict
from gossamer.model.modules import ModuleError
from gossamer.model.pages import PARTIAL, RENDERED, Findings, PageCapture, Rendered
from gossamer.model.visits import NOT_MODIFIED, Content, Failure, Headers, Reply, Request
from gossamer.model.words import iso_time
from gossamer.ports import PrerequisiteArchive, VisitMiddleware
from gossamer.stages.frontier.host import UNREAD
from gossamer.stages.frontier.scheduler import HostControl
from gossamer.stages.process.html import HTML_TYPES
from gossamer.stages.process.scripted import ANCHORS_MANY, signal_of, text_bytes
from gossamer.stages.scope.chain import Chain
from gossamer.url.name import REQUEST_MARK, Namer
from gossamer.url.url import Url

POLL_S: Final = 0.2
"""Interval of checks whether the robots.txt for a resource has arrived, and whether its host is slow."""
SLOW_AGAIN_S: Final = 1.0
"""A page waits no longer than this for a resource after one that did not come within `render.settle_s_max`."""
BOM: Final = b"\xef\xbb\xbf"
"""Prefix of a rendered page, which is UTF-8 even if its headers and markup say otherwise (WHATWG Encoding)."""
PICTURE_TYPES: Final = {"view": "image/png", "thumbnail": "image/jpeg"}
HOST_VISITS_MAX: Final = 4
"""Visits of one host that wait for browsers, or are in them; one, while half of `render.waiting_max` wait."""
SLOW: Final = Failure("timeout", "its host does not send it within render.settle_s_max")
_TEMPLATE: Final = re.compile(r"(?:\{|%7B){2}|\$(?:\{|%7B)", re.IGNORECASE)
"""In addresses that scripts of the page fill in: `{{…}}`, `${…}`."""


class Gates(msgspec.Struct, frozen=True):
    """Checks that a resource passes before it is requested."""

    namer: Namer
    chain: Chain
    judge: Callable[[Url, float], Verdict]
    control: HostControl
    sessions: SiteSessions | None = None
    exchange: ShardExchange = NoOthers()


class Wanted(msgspec.Struct, eq=False):
    """A resource that is being requested."""

    url: Url
    kind: str
    page_id: str
    via: str
    """Address of the page that needs the resource."""
    sent: Headers
    """Headers that its browser sends."""
    has_session: bool
    session: str
    conditions: Headers
    began: float
    answer: asyncio.Future[Reply | Failure]
    over: asyncio.Future[Reply | Failure | None]
    """The result for other pages that need the resource too; None if the first page no longer waits."""
    limit: asyncio.Timeout | None = None
    """Time limit of its request, once that was sent."""
    others: int = 0
    """Further pages that wait for it."""
    is_sent: bool = False


class PageResources(VisitMiddleware):
    """Provides resources: from the cache, or by one request for all waiting pages."""

    name = "rendering"

    def __init__(
        self, gates: Gates, store: PrerequisiteArchive, examiner: Examiner, telemetry: Telemetry, options: RenderOptions
    ) -> None:
        self.namer = gates.namer
        self._gates = gates
        self.served: set[asyncio.Task[None]] = set()
        self.control = gates.control
        self._archive = store
        self.examiner = examiner
        self._clock = telemetry.clock
        self._counters = telemetry.counters
        self._options = options
        self._cache = ResourceCache(options.cache_bytes_max, options.fresh_s)
        self._wanted: dict[str, Wanted] = {}
        """Resources in flight by URL, bounded by the pages that are rendered and the requests of each."""

    # ---- for pages

    def session_of(self, page: Url) -> PageSession | None:
        """Return the session for a page; None if its site has none."""
        sessions = self._gates.sessions
        if sessions is None or sessions.jar(page.site) is None:
            return None
        return PageSession(page, sessions, self.namer.name, self._clock.now)

    async def get(
        self, text: str, kind: str, page_id: str, via: str, patience_s: float = math.inf, *, has_session: bool = False,
        sent: Headers = (),
    ) -> Reply | Failure:  # fmt: skip
        """Return a resource for a page, decoded, or why there is none. Its host may be slow for `patience_s`."""
        url = self.namer.name(text)
        if url is None:
            return Failure("unsupported", "its URL cannot be requested")
        while (other := self._wanted.get(url.text)) is not None:
            is_same = other.session == _digest(self._headers(url, has_session=has_session))
            is_same = is_same and (other.via, other.sent) == (via, sent)
            other.others += is_same
            if (found := await asyncio.shield(other.over)) is not None and is_same:
                self._counters.add("rendering", "resources_reused", 1)
                return found
        session = _digest(self._headers(url, has_session=has_session))
        entry = self._cache.find(url.text, session, sent)
        if entry is not None and entry.fresh_until > self._clock.now() and self._is_for(entry.reply, via, url):
            self._counters.add("rendering", "resources_reused", 1)
            return entry.reply
        conditions = entry.conditions if entry is not None else ()
        future = asyncio.get_running_loop().create_future
        began = self._clock.now()
        wanted = Wanted(url, kind, page_id, via, sent, has_session, session, conditions, began, future(), future())
        self._wanted[url.text] = wanted
        result: Reply | Failure | None = None
        try:
            async with asyncio.timeout(self._options.resource_s_max):
                result = await self._fetch(url, wanted, patience_s)
        except TimeoutError:
            result = Failure("timeout", "its host has no turn within render.resource_s_max")
        finally:
            del self._wanted[url.text]
            # A request that others wait for answers the next of them.
            if wanted.limit is not None and not (wanted.answer.done() or (wanted.others and result is None)):
                with suppress(RuntimeError):  # The request has ended.
                    wanted.limit.reschedule(asyncio.get_running_loop().time())
            wanted.over.set_result(result)
        return result

    async def _fetch(self, url: Url, wanted: Wanted, patience_s: float) -> Reply | Failure:
        rejected = self._gates.chain.rejects_resource(Link(url, EMBED, 0, referrer=wanted.via))
        if rejected:
            return Failure("excluded", f"the filter `{rejected}` rejects it")
        is_ours = self._gates.exchange.has(url)
        if is_ours and (refused := await self._wait_permission(url, wanted, patience_s)) is not None:
            return refused
        # The shard that keeps a host's delay checks its rules, too.
        origin = url if is_ours else self.namer.name(wanted.via) or url
        about = f"{wanted.kind} {wanted.page_id} {msgspec.json.encode(wanted.sent).decode()}"
        fetch = Prerequisite(origin, url, owner=self.name, subject=about, is_about_origin=False)
        now = self._clock.now()
        if not (self.control.run_prerequisite(fetch, now) if is_ours else self._gates.exchange.run_prerequisite(fetch)):
            return Failure("host_closed", "its host cannot be requested now")
        while not (await asyncio.wait((wanted.answer,), timeout=POLL_S))[0]:
            if self._is_slow(url, wanted, patience_s):
                return SLOW
        return wanted.answer.result()

    def serve(self, prerequisite: Prerequisite, answer: Callable[[Prerequisite, Reply | Failure, bytes], None]) -> None:
        """Get a resource for a page of another shard, as for a page of this one."""

        async def get() -> None:
            kind, page_id, sent = prerequisite.subject.split(" ", 2)
            found = await self.get(
                prerequisite.url.text, kind, page_id, prerequisite.origin.text, self._options.settle_s_max,
                sent=msgspec.json.decode(sent, type=Headers),
            )  # fmt: skip
            answer(prerequisite, found, found.body if isinstance(found, Reply) else b"")

        task = asyncio.create_task(get())
        self.served.add(task)
        task.add_done_callback(self.served.discard)

    def is_delayed(self, page_id: str) -> bool:
        """Return whether a page waits because of the delay of a host."""
        now = self._clock.now()
        return any(one.page_id == page_id and self._free_at(one.url) > now for one in self._wanted.values())

    def _free_at(self, url: Url) -> float:
        """Return when the delay of a host ends; that of another shard's host is for that shard to know."""
        return self.control.free_at(url) if self._gates.exchange.has(url) else math.inf

    def _is_slow(self, url: Url, wanted: Wanted, patience_s: float) -> bool:
        """Return whether a host has let a page wait too long, its delay not included."""
        return self._clock.now() - max(wanted.began, self._free_at(url)) > patience_s

    async def _wait_permission(self, url: Url, wanted: Wanted, patience_s: float) -> Failure | None:
        """Wait until a resource may be requested; return why it may not."""
        while True:
            if self._is_slow(url, wanted, patience_s):
                return SLOW
            now = self._clock.now()
            verdict = self._gates.judge(url, now)
            if verdict.allowed:
                return None
            if verdict.outcome:
                return Failure(verdict.outcome, verdict.reason)
            if verdict.wait_until - now > self._options.resource_s_max:
                return Failure("robots_unreachable", verdict.reason)
            if verdict.prerequisite is not None and not verdict.park:
                # A license at another origin, which another shard may own: pages wait for it, resources do not.
                return Failure("robots_unreachable", verdict.reason)
            if verdict.prerequisite is not None and not self.control.is_parked(url):
                self.control.park(url, now)
                if not self.control.run_prerequisite(verdict.prerequisite, now):
                    self.control.unpark(url, now)
                    return Failure("host_closed", "its host cannot be requested now")
            await self._clock.sleep_until(now + POLL_S)

    # ---- for the ring

    def refused(self, prerequisite: Prerequisite, now: float) -> Failure | None:
        """Return why a resource must not be requested at its host's turn; None if it may be."""
        if prerequisite.url.text not in self._wanted:
            return Failure("timeout", "no page waits for it any more")
        verdict = self._gates.judge(prerequisite.url, now)
        if verdict.allowed:
            return None
        return Failure(verdict.outcome or "robots_unreachable", verdict.reason)

    def fetch(self, prerequisite: Prerequisite, request: Request, now: float) -> Request:
        wanted = self._wanted.get(prerequisite.url.text)
        headers: Headers = ()
        if wanted is not None:
            own = self._headers(wanted.url, has_session=wanted.has_session)
            headers = wanted.sent + (wanted.conditions if _digest(own) == wanted.session else ()) + own
            wanted.session = _digest(own)
            wanted.is_sent = True
        return msgspec.structs.replace(request, headers=headers, body_bytes_max=self._options.resource_bytes_max)

    def is_without_session(self, url: Url) -> bool:
        """Return whether the request that was sent for a URL has no session: then its reply changes none."""
        wanted = self._wanted.get(url.text)
        return wanted is not None and wanted.is_sent and not wanted.has_session

    def _headers(self, url: Url, *, has_session: bool) -> Headers:
        sessions = self._gates.sessions
        return sessions.headers(url, None, self._clock.now()) if has_session and sessions is not None else ()

    def bound(self, prerequisite: Prerequisite, limit: asyncio.Timeout) -> None:
        """End the request for a resource when no page waits for it any more."""
        if (wanted := self._wanted.get(prerequisite.url.text)) is not None:
            wanted.limit = limit

    def answered(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float) -> None:
        wanted = self._wanted.get(prerequisite.url.text)
        kind = prerequisite.subject.partition(" ")[0]
        reply = result if isinstance(result, Reply) else result.came
        is_ours = self._gates.exchange.has(prerequisite.url)
        if reply is not None and is_ours:
            self._counters.add("rendering", "resources_requested", 1)
            page_id, via = (wanted.page_id, wanted.via) if wanted is not None else ("", "")
            ours = msgspec.structs.replace(reply, page_id=page_id, resource_type=kind)
            self._archive.add_prerequisite(ours, via, kind)
        if wanted is None or wanted.answer.done():
            return  # Its page no longer waits.
        if isinstance(result, Reply):
            read = msgspec.structs.replace(result, body=body)
            result = self._accept(prerequisite.url, wanted, result, now) if is_ours else read
        wanted.answer.set_result(result)

    def _is_for(self, reply: Reply, via: str, url: Url) -> bool:
        """Return whether a page may have a reply: one to a request with credentials is for its own site alone."""
        page = self.namer.name(via)
        return not reply.authenticated or (page is not None and page.site == url.site)

    def _accept(self, url: Url, wanted: Wanted, reply: Reply, now: float) -> Reply | Failure:
        if not self._is_for(reply, wanted.via, url):
            return Failure("excluded", "it was requested with credentials, which are not for pages of other sites")
        if reply.status == NOT_MODIFIED and wanted.conditions:
            confirmed = self._cache.confirm(url.text, reply, now, wanted.session, wanted.sent)
            return confirmed or Failure("protocol_error", "304 for what is not held any more")
        if reply.file is not None or reply.truncated:
            return Failure("too_large", "it is longer than render.resource_bytes_max")
        body = self.examiner.content(reply, url.fingerprint).body
        if len(body) > self._options.resource_bytes_max:
            return Failure("too_large", "it is longer than render.resource_bytes_max")
        reply = msgspec.structs.replace(reply, body=body, request_head=b"")
        self._cache.store(url.text, reply, now, wanted.session, wanted.sent)
        return reply


class Auto(msgspec.Struct, frozen=True):
    """Dependencies of `crawl.render` = `auto`."""

    choice: RenderChoice
    budget: RenderBudget


class PageRendering(BrowserRendering):
    """Renders the pages of a shard: all of them, or those that `auto` chooses."""

    is_on = True

    def __init__(
        self,
        options: RenderOptions,
        renderer: Renderer,
        resources: PageResources,
        telemetry: Telemetry,
        auto: Auto | None = None,
    ) -> None:
        self._options = options
        self._renderer = renderer
        self._examiner = resources.examiner
        self._clock = telemetry.clock
        self._counters = telemetry.counters
        self._auto = auto
        self._samples: dict[tuple[str, str, str], asyncio.Event] = {}
        """Events of pages whose rendering decides about others, by `RenderChoice.sample_key`; set at its end."""
        self.resources = resources
        self._counted_s = 0.0
        self._visits: Counter[str] = Counter()
        self._parked: set[str] = set()

    @property
    def visits(self) -> int:
        """Visits that wait for a browser or a sample, or are in a browser, and resources for other shards."""
        return self._visits.total() + len(self.resources.served)

    @property
    def is_full(self) -> bool:
        """Whether no more pages are fetched until a browser is free."""
        return self._visits.total() >= self._options.waiting_max + self._options.browsers

    def wants(self, reply: Reply, examined: Examined) -> bool:
        """Return whether a page may be rendered: a complete web page that was fetched by an ordinary request."""
        content = examined.content
        is_whole = not (content.truncated or content.error or reply.truncated or examined.skipped)
        is_ordinary = reply.url.startswith(("http://", "https://")) and REQUEST_MARK not in reply.url
        is_short = 0 < content.body_bytes <= self._options.dom_bytes_max
        return is_whole and is_ordinary and is_short and reply.media_type in HTML_TYPES

    async def render(self, url: Url, reply: Reply, examined: Examined) -> Examined:
        """Return the page as rendered; as it was before if rendering fails or the page is not chosen."""
        if self._auto is None:
            return await self._render(url, reply, examined)
        anchors = sum([one.link_type == "anchor" for one in examined.findings.links[: 2 * ANCHORS_MANY]])
        signal = signal_of(examined.content.body, anchors)
        if signal is None:
            return examined
        return await self._render_if_useful(url, reply, examined, place_of(url, signal), self._auto)

    async def _render_if_useful(self, url: Url, reply: Reply, examined: Examined, place: Place, auto: Auto) -> Examined:
        """Render a page if a gain is likely, and learn from the result. Waits for pages that decide about it."""
        choice = auto.choice
        await self._wait_sample(choice, url, place)
        reason = choice.choose(place)
        is_blind = reason == FOR_SAMPLE and not place.signal
        if reason and not auto.budget.allows(self._clock.now(), self._visits.total(), sample=is_blind):
            reason = BUDGET
        if reason:
            self._counters.add("rendering", f"pages_{reason}", 1)
        if reason in ("", BUDGET):
            return msgspec.structs.replace(examined, render_reason=reason)
        key = choice.sample_key(place)
        over = asyncio.Event()
        if key is not None:
            self._samples[key] = over
        try:
            found = await self._render(url, reply, examined)
            choice.learn(place, self._links_gained(examined, found), gains_text=self._gains_text(examined, found))
        finally:
            if key is not None and self._samples.get(key) is over:
                del self._samples[key]
            over.set()
        return msgspec.structs.replace(found, render_reason=reason)

    def _begin(self, url: Url) -> None:
        """Note a visit that waits. Of a host with too many of them, no further page is fetched meanwhile."""
        self._visits[url.host] += 1
        most = HOST_VISITS_MAX if self._visits.total() < self._options.waiting_max / 2 else 1
        if self._visits[url.host] >= most and not self.resources.control.is_parked(url):
            self.resources.control.park(url, self._clock.now(), UNREAD)
            self._parked.add(url.host)

    def _end(self, url: Url) -> None:
        self._visits -= Counter((url.host,))  # Without those that are zero.
        if url.host in self._parked and self._visits[url.host] < HOST_VISITS_MAX:
            self._parked.discard(url.host)
            if not self.resources.control.is_parked(url):  # For its robots.txt.
                self.resources.control.unpark(url, self._clock.now())

    async def _wait_sample(self, choice: RenderChoice, url: Url, place: Place) -> None:
        """Wait while another page is rendered that decides about this one."""
        if not self._samples:
            return
        self._begin(url)
        try:
            async with asyncio.timeout(self._options.page_s_max):
                while (key := choice.sample_key(place)) is not None and (sample := self._samples.get(key)) is not None:
                    await sample.wait()
        except TimeoutError:
            return  # Decide without its result.
        finally:
            self._end(url)

    def _links_gained(self, before: Examined, after: Examined) -> list[int]:
        """Return the fingerprints of the links that rendering added: addresses with equal keys are one link."""
        if after.rendered is None:
            return []
        name = self.resources.namer.name
        texts = {one.url for one in before.findings.links}
        sent = {url.fingerprint for text in texts if (url := name(text)) is not None}
        added = _new_links(before.findings, after.findings)
        found = [url.fingerprint for text in added if (url := name(text)) is not None]
        return [one for one in found if one not in sent]

    def _gains_text(self, before: Examined, after: Examined) -> bool:
        if after.rendered is None:
            return False
        main = before.findings.text
        rendered = after.findings.text
        if main or rendered:
            return gains_text(len(main.encode()), len(rendered.encode()))
        return gains_text(text_bytes(before.content.body), text_bytes(after.rendered.html))

    async def _render(self, url: Url, reply: Reply, examined: Examined) -> Examined:
        page_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{reply.url} {reply.started_at!r}"))
        slow_s = self._options.settle_s_max

        async def get(text: str, kind: str, has_session: bool, sent: Headers) -> Reply | Failure:
            nonlocal slow_s
            found = await self.resources.get(text, kind, page_id, reply.url, slow_s, has_session=has_session, sent=sent)
            slow_s = min(SLOW_AGAIN_S, slow_s / 2) if found == SLOW else slow_s
            return found

        self._begin(url)
        try:
            body = examined.content.body
            if (file := examined.content.file) is not None:
                with file.open() as reader:
                    body = reader.read()
            document = msgspec.structs.replace(reply, body=body)
            supply = Supply(get, lambda: self.resources.is_delayed(page_id), self.resources.session_of(url))
            dom = await self._renderer.render(document, supply, url.host)
        except PageError as error:
            self._counters.add("rendered", error.reason)
            return msgspec.structs.replace(examined, rendering=error.reason, rendering_error=str(error))
        finally:
            self._end(url)
            self._count_cpu()
        html = dom.html.encode()
        seen = self._examiner.process_again(reply, Content(BOM + html), url.fingerprint, dom.url)
        seen.findings.links += [Found(target, SCRIPT) for target in dom.leads_to]
        gained = len(_new_links(examined.findings, seen.findings))
        add_sent(seen.findings, examined.findings)
        self._counters.add("rendered", PARTIAL if dom.cut else RENDERED)
        self._counters.add("rendering", "links_gained", gained)
        for reason, count in dom.refused.items():
            self._counters.add("rendering", f"refused_{reason}", count)
        return msgspec.structs.replace(
            seen,
            errors=[*seen.errors, *(ModuleError(*one) for one in dom.errors)],
            ran=[*seen.ran, *dom.ran],
            sent=examined.content,
            rendering=PARTIAL if dom.cut else RENDERED,
            rendering_error=dom.cut,
            rendered=Rendered(html, page_id, self._records(reply, dom, page_id)),
            links_gained=gained,
        )

    def _records(self, reply: Reply, dom: Dom, page_id: str) -> tuple[PageCapture, ...]:
        found = [PageCapture(name, PICTURE_TYPES[name], picture) for name, picture in dom.pictures]
        if "pageinfo" in self._options.page_records:
            answers = {reply.url: (reply.status, reply.media_type, "document"), **dom.answers}
            urls = {url: {"status": code, "mime": mime, "type": kind} for url, (code, mime, kind) in answers.items()}
            at = iso_time(reply.started_at, "milliseconds", "+00:00")
            about = {"pageid": page_id, "urls": urls, "url": reply.url, "ts": at}
            found.append(PageCapture("pageinfo", "application/json", msgspec.json.encode(about)))
        return tuple(found)

    def _count_cpu(self) -> None:
        used_s = self._renderer.cpu_s - self._counted_s
        self._counted_s = self._renderer.cpu_s
        self._counters.add("rendering", "cpu_s", used_s)
        if self._auto is not None:
            self._auto.budget.charge(used_s)

    def cut(self, now: float) -> None:
        if self._auto is not None:
            self._auto.choice.cut(now)

    async def close(self) -> None:
        for task in self.resources.served:
            task.cancel()
        await self._renderer.close()


def _digest(headers: Headers) -> str:
    return xxh3_64_hexdigest(msgspec.json.encode(headers)) if headers else ""


def _new_links(sent: Findings, rendered: Findings) -> list[str]:
    """Return the addresses of links that a page has only when rendered, each once."""
    known = {one.url for one in sent.links}
    return [url for url in dict.fromkeys(one.url for one in rendered.links) if url not in known]


def add_sent(findings: Findings, sent: Findings) -> None:
    """Add what a page had as sent: statements, which scripts cannot revoke, and links that they removed, as Google does
    (M. Splitt, 2021-03-24), except for those of templates.
    """
    known = {one.url for one in findings.links}
    findings.links += [one for one in sent.links if one.url not in known and not _TEMPLATE.search(one.url)]
    findings.nofollow = findings.nofollow or sent.nofollow
    findings.noindex = findings.noindex or sent.noindex
    findings.statements += [one for one in sent.statements if one not in findings.statements]
