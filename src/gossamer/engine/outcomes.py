"""Outcomes: applies a visit's result: digest, record, links to follow, the URL finished or queued again.

Like `engine.ring` it neither waits nor reads a clock: `settle` takes a result, and `document` an examined page.
"""

from collections.abc import Generator, Sequence

import msgspec

from gossamer.engine.counters import CrawlCounters
from gossamer.engine.examine import Examined
from gossamer.engine.history import attempt_row
from gossamer.engine.links import FoundLinks, PageLinks
from gossamer.engine.logs import Logs
from gossamer.engine.ring import Retries
from gossamer.engine.stages import Recorder, Stages
from gossamer.model.links import ANNOUNCING, EMBED, OUTLINK, SITEMAP_FILE, Found, Link, RevisitPlan, Visit
from gossamer.model.modules import INVALID
from gossamer.model.outcomes import UNCONNECTED
from gossamer.model.pages import Findings, PageRow, Visited, digest_text
from gossamer.model.visits import Failure, Reply
from gossamer.ports import Conclusion, ExaminedPage
from gossamer.stages.frontier.host import VisitLease
from gossamer.stages.process.links import redirect_fragment, redirect_target
from gossamer.stages.process.scripted import ANCHORS_FEW, signal_of
from gossamer.stages.process.walls import login_of, offer_of
from gossamer.stages.scope.roots import is_moved
from gossamer.url.url import Url

MULTIPLE_CHOICES = 300
REDIRECTS = frozenset((MULTIPLE_CHOICES, 301, 302, 303, 307, 308))
"""Statuses whose Location is visited; that of a 300 is the server's choice (RFC 9110, section 15.4.1)."""
AGAIN = frozenset((304, 408, 421, 425, 429, 500, 502, 503, 504, 511, *range(520, 525), 529))
"""Statuses that may differ in another attempt: a 304 here is that of a cache, and no condition asked for it; a 511 that
of a network that wants a login (RFC 6585, section 6); 520 to 524 and 529 are those of proxies whose origin does not
answer (developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors).
"""
REFUSALS = {402: "payment_required", 451: "legally_blocked"}
"""Statuses with their own outcomes (RFC 9110, section 15.5.3; RFC 7725)."""
ASKS_FOR_LOGIN = frozenset((401, 407))
CHALLENGES_MAX = 16
"""Digest challenges answered for one URL. A crash before the answer loses one, so that the URL gets another."""
SITEMAP_GATHER_S = 10.0
"""Delay before a sitemap is read again because another host refers to it, so that several hosts share one visit."""


class Outcomes:
    """Decides how each attempt ends, and what follows from it."""

    def __init__(self, stages: Stages, retries: Retries, logs: Logs, counters: CrawlCounters) -> None:
        self._stages = stages
        self._middlewares = stages.middlewares
        self.recorder = Recorder(stages, logs, counters)
        self._links = PageLinks(stages.namer, stages.chain, stages.hints)
        self._retries = retries
        self._logs = logs
        self._counters = counters

    def reconfigure(self, retries: Retries) -> None:
        """Apply new options."""
        self._retries = retries

    def settle(self, lease: VisitLease, result: Reply | Failure, now: float) -> list[Link] | Reply:
        """End a visit with its result; return the links to follow, or the reply if it is a document to be examined."""
        if isinstance(result, Failure):
            self.failure(lease, result, now)
            return []
        visit: Visit = lease.visit
        for settle in self._middlewares.settles:
            conclusion = settle(visit, result, now)
            if conclusion is not None:
                self._end(lease, result, conclusion, now)
                return []
        if result.status in REDIRECTS and (target := self._target(result)) is not None:
            return self._redirect(lease, result, target, now)
        if result.challenged and visit.attempt <= CHALLENGES_MAX:
            self._digest_challenged(lease, result, now)
            return []
        is_read = is_document(result)
        is_unwanted = is_read and self._is_unwanted(visit, result)
        if not is_read or (is_unwanted and result.status > MULTIPLE_CHOICES):
            visit = self.recorder.visit(lease)
            row = self._error_row(visit, result)
            again = self._plan_retry(lease, row.error, now) if result.status in AGAIN else None
            self.recorder.conclude(lease, self.recorder.digest(visit, result, row), now, again)
            return []
        if is_unwanted:
            self._conclude_unwanted(lease, result, now)
            return []
        return result

    def _end(self, lease: VisitLease, reply: Reply, conclusion: Conclusion, now: float) -> None:
        visit = self.recorder.visit(lease)
        row = self.recorder.reply_row(visit, reply, conclusion.outcome)
        row.error = conclusion.error
        for name, value in conclusion.columns.items():
            setattr(row, name, value)
        if row.error:
            self._logs.info(row.outcome, url=visit.url.text, error=row.error, attempt=visit.attempt)
        if not conclusion.was_acted_on:
            self._middlewares.note_unsent(lease.url)
        if conclusion.revisit_of is None:
            visited = self.recorder.digest(visit, reply, row)
        else:  # A revisit record refers to the archived version (WARC 1.1, section 6.7.3).
            if conclusion.digest:
                row.digest = digest_text(self._stages.digest_algorithm, conclusion.digest)
            visited = Visited(visit.url, row, reply, revisit_of=conclusion.revisit_of, digest=conclusion.digest)
        self.recorder.conclude(lease, visited, now, conclusion.again)
        if conclusion.then is not None:
            conclusion.then(now)

    def failure(self, lease: VisitLease, failure: Failure, now: float) -> None:
        """Conclude a visit without a complete reply: plan another, or end the URL. Archive what came, unexamined."""
        visit = self.recorder.visit(lease)
        came = failure.came
        if came is None or (is_document(came) and self._is_unwanted(visit, came)):
            row = attempt_row(visit, failure.outcome, failure.started_at or now)
            row.ip = failure.ip
            row.fetch_s = failure.fetch_s
            row.wire_bytes = failure.wire_bytes
            visited = Visited(visit.url, row)
        else:
            row = self.recorder.reply_row(visit, came, failure.outcome)
            visited = self.recorder.digest(visit, came, row)
        row.error = failure.error
        self._logs.info(failure.outcome, url=visit.url.text, error=failure.error, attempt=visit.attempt)
        self.recorder.conclude(lease, visited, now, self._next_try(lease, failure, now))

    def _next_try(self, lease: VisitLease, failure: Failure, now: float) -> RevisitPlan | None:
        visit = lease.visit
        if failure.again and self._middlewares.may_repeat(lease.url):
            return RevisitPlan(visit.url, now, visit.attempt, visit.hops, failure.error)
        if not failure.retry:
            return None
        elsewhere = lease.host.has_others and failure.outcome in UNCONNECTED
        return self._plan_retry(lease, failure.error, now, is_alone=failure.is_alone, elsewhere=elsewhere)

    def _plan_retry(
        self, lease: VisitLease, error: str, now: float, *, is_alone: bool = False, elsewhere: bool = False
    ) -> RevisitPlan | None:
        # With the hops of this entry, as in `_redirect`: the hops of a shorter path would make a loop endless.
        if not self._middlewares.may_repeat(lease.url):
            return None
        return self._retries.after(lease.visit, error, now, is_alone=is_alone, elsewhere=elsewhere)

    def _digest_challenged(self, lease: VisitLease, reply: Reply, now: float) -> None:
        """Conclude a digest challenge: its answer is a separate request, which passes every gate."""
        error = f"HTTP {reply.status}: the challenge is answered by the next request"
        again = RevisitPlan(lease.url, now, lease.visit.attempt + 1, lease.visit.hops, error)
        self._end(lease, reply, Conclusion("http_error", error, again, was_acted_on=False), now)

    def _redirect(self, lease: VisitLease, reply: Reply, target: Url, now: float) -> list[Link]:
        """Conclude a redirect: its target is a link that passes the whole ring, unless it is the entry's next hop."""
        visit = self.recorder.visit(lease)
        stages = self._stages
        row = self.recorder.reply_row(visit, reply, "redirected")
        row.redirect_to = target.text + redirect_fragment(reply.headers)
        stages.trapping.traps.count_redirect(visit.url)
        visited = self.recorder.digest(visit, reply, row, [Found(target.text, "redirect")], [target.key])
        seed = self.recorder.seed(visit)
        if seed and target.site != visit.url.site:
            self._counters.note_alike(f"redirect to {target.origin}/")
        if seed or (is_moved(visit.url, target) and stages.roots.contains(visit.url)):
            self.widen(visit.url, target, seed)
        if target.key == visit.url.key:
            hops = lease.visit.hops  # From this entry: a shorter path must not make a loop endless.
            link = Link(target, "redirect", visit.depth, hops, visit.url.text, seed)
            # If the entry was this shard's, so is its next hop, also on another host that host rules equate.
            has_hops_left = hops < stages.chain.hops_max
            is_followed = has_hops_left and stages.chain.explain(link) in {"", *stages.chain.by_place}
            if not has_hops_left:
                row.error = f"it redirects once more, to {target.text}: at most {stages.chain.hops_max} are followed"
                if reply.header("set-cookie") is not None and b"\r\ncookie:" not in reply.request_head.lower():
                    row.error += "; it sets a cookie, which cookies.enabled = true would keep"
            self.recorder.conclude(lease, visited, now, RevisitPlan(target, now, 1, hops + 1) if is_followed else None)
            return []
        self.recorder.conclude(lease, visited, now)
        if not self._middlewares.leads_on(lease.url, reply):
            return []
        keeps_type = visit.link_type in (EMBED, *ANNOUNCING)
        if visit.link_type == SITEMAP_FILE:
            keeps_type = stages.hints.leads_to(visit.url, target)
        if keeps_type:
            kind = visit.link_type
        else:
            kind = "redirect" if seed else stages.chain.effective_type("redirect", target)
        link = Link(target, kind, visit.depth, visit.hops + 1, visit.url.text, seed)
        if kind == SITEMAP_FILE and stages.hints.redirected(visit.url, target):
            self.read_again([link], now)
        if link.hops > stages.chain.hops_max and stages.exchange.has(target):
            stages.history.stop(link)
        return [link]

    def read_again(self, sitemaps: Sequence[Link], now: float) -> None:
        """Fetch this shard's sitemaps again that were read before they had authority over all hosts."""
        stages = self._stages
        for link in sitemaps:
            if not stages.exchange.has(link.url):
                continue  # The shard that owns it reads it.
            if stages.ending.is_continuous or not stages.chain.explain(link):
                stages.ending.visit_again(link, now, now + SITEMAP_GATHER_S)

    def widen(self, url: Url, target: Url, seed: int) -> None:
        """Add the target of a seed's redirect to the scope, as the kind of seed allows; notify operator and shards."""
        note = self.widen_here(url, target, seed)
        if note:
            self._counters.note(note)
            self._stages.exchange.send_root(url, target, seed)

    def widen_here(self, url: Url, target: Url, seed: int) -> str | None:
        """Widen this shard's scope without telling the others; return a note if it changed."""
        stages = self._stages
        note = stages.roots.widen(url, target, seed)
        if note:
            stages.pending_scope.widen(target, stages.chain, stages.namer)
        return note

    def _error_row(self, visit: Visit, reply: Reply) -> PageRow:
        row = self.recorder.reply_row(visit, reply, REFUSALS.get(reply.status, "http_error"))
        row.error = f"HTTP {reply.status}"
        if reply.status in REDIRECTS:  # A redirect without a target.
            row.error += " without a Location that can be visited"
        if row.outcome == "payment_required":
            row.offer = offer_of(reply.headers)
            row.error += f": {row.offer}" if row.offer else ""
        elif reply.status in ASKS_FOR_LOGIN and (login := login_of(reply.headers)):
            row.error += f": {login}"
        self._logs.info(row.outcome, url=row.url, error=row.error, attempt=visit.attempt)
        return row

    def is_page(self, lease: VisitLease, reply: Reply, examined: Examined) -> bool:
        """Return whether a document is the page that was requested."""
        visit = lease.visit
        row = self.recorder.reply_row(visit, reply, "fetched")
        return self._middlewares.is_page(ExaminedPage(visit, reply, examined.content, examined.findings, row))

    def links_in_slices(self, lease: VisitLease, examined: Examined) -> Generator[None, None, FoundLinks]:
        """Return the links of a document that is not concluded yet. Yields where other work may run."""
        return self._links.collect_in_slices(self.recorder.visit(lease), examined.findings)

    def document(
        self, lease: VisitLease, reply: Reply, examined: Examined, now: float, found: FoundLinks | None = None
    ) -> list[Link]:
        """End the visit of an examined document; return the links to follow. `found` has all its links, if known."""
        visit = self.recorder.visit(lease)
        url = lease.url
        stages = self._stages
        is_error = reply.status > MULTIPLE_CHOICES
        row = self._error_row(visit, reply) if is_error else self.recorder.reply_row(visit, reply, "fetched")
        if examined.died:
            crashed = Conclusion("process_crashed", "a process died of it twice; archived unparsed")
            self._end(lease, reply, crashed, now)
            return []
        if self._is_skipped_late(visit, reply, examined):
            examined = Examined(examined.content, Findings(), [], [], skipped=True)
            found = None
        document = ExaminedPage(lease.visit, reply, examined.content, examined.findings, row, not examined.skipped)
        for settle in self._middlewares.documents:
            conclusion = settle(document, now)
            if conclusion is None:
                continue
            if conclusion.keeps_body:
                self._end(lease, reply, conclusion, now)
                return []
            return self._withhold(lease, reply, examined, row, conclusion, now)
        self._describe(examined, row)
        visited = self.recorder.digest(visit, reply, row)
        found = self._links.collect(visit, examined.findings, found)
        links = found.follow
        visited.links = found.mentions
        visited.link_keys = found.keys
        visited.content = examined.content
        visited.findings = examined.findings
        if (rendered := examined.rendered) is not None:
            visited.rendered = rendered
            visited.reply = msgspec.structs.replace(reply, page_id=rendered.page_id, resource_type="document")
        seed = self.recorder.seed(visit)
        links = self._links_of_seed(visit, seed, found, examined)
        follow = stages.copies.judge(visit, examined.content, links, row)
        if seed and row.title:
            original = stages.namer.name(row.duplicate_of) if row.duplicate_of else None
            if original is None or original.site != url.site:
                self._counters.note_alike(f"have one page ({row.digest})")
        if not visit.revisit:  # A revisit is no evidence of a trap.
            stages.trapping.note_page(url, examined.content, row, self._first_address(visit))
        if stages.chain.judges_language:
            links = self._links.in_wanted_language(reply, examined, row, links)
        links = self._links.admit(visit, examined.findings, row, links, seed)
        self.recorder.conclude(
            lease, visited, now, outlinks=self._links.outlinks(links) if stages.chain.depth_limited else ()
        )
        return links if follow else []

    def _is_skipped_late(self, visit: Visit, reply: Reply, examined: Examined) -> bool:
        """Return whether copies are not processed, and the original was concluded while the page was examined."""
        stages = self._stages
        if stages.copies.processes_all or examined.skipped or stages.rendering.is_on or visit.link_type in ANNOUNCING:
            return False
        return stages.copies.is_skipped_copy(visit.url, examined.content, reply.truncated)

    def _first_address(self, visit: Visit) -> Url:
        """Return the address from which redirects led to a page. Reads a record for each of them."""
        url = visit.url
        referrer = visit.referrer
        for _ in range(visit.hops):
            source = self._stages.namer.name(referrer)
            if source is None:
                break
            record = self._stages.history.get(source)
            if not record.redirect_to:
                break
            url = source
            referrer = record.referrer
        return url

    def _links_of_seed(self, visit: Visit, seed: int, found: FoundLinks, examined: Examined) -> list[Link]:
        """Return a page's links. A refresh of a seed's page, or of its redirect's target, counts as a redirect."""
        if not seed:
            return found.follow
        stages = self._stages
        url = visit.url
        refresh = self._refresh(visit, found)
        is_within = stages.roots.contains(url)
        links = len(found.follow)
        if links < ANCHORS_FEW and not stages.rendering.is_on and signal_of(examined.content.body, links) is not None:
            self._counters.totals.seeds.scripted = url.text
        if is_within and examined.findings.announcement is not None:
            root = stages.namer.name(url.origin + "/")
            if root is not None:
                self.widen(url, root, seed)  # The directory of a sitemap or a feed says nothing about its pages.
        if refresh is None:
            if not is_within:
                self._counters.note_elsewhere(visit.referrer, url.text)
            return found.follow
        self.widen(url, refresh.url, seed)
        led = Link(refresh.url, "meta_refresh", visit.depth, visit.hops + 1, url.text, seed)
        return [led if link is refresh else link for link in found.follow]

    def _refresh(self, visit: Visit, found: FoundLinks) -> Link | None:
        """Return the link by which a page refreshes to another one, if hops are left. It may still be an outlink."""
        named = zip(found.mentions, found.keys, strict=True)
        key = next((key for one, key in named if one.link_type == "meta_refresh"), visit.url.key)
        if key == visit.url.key or visit.hops >= self._stages.chain.hops_max:
            return None
        kinds = ("meta_refresh", OUTLINK)
        return next((link for link in found.follow if link.url.key == key and link.link_type in kinds), None)

    def _withhold(
        self, lease: VisitLease, reply: Reply, examined: Examined, row: PageRow, conclusion: Conclusion, now: float
    ) -> list[Link]:
        """End the visit of a page of which only the headers are kept, and the links followed."""
        visit = self.recorder.visit(lease)
        findings = examined.findings
        self._counters.count_modules(examined.ran, examined.errors, row.url, findings.matched)
        row.outcome = conclusion.outcome
        row.error = conclusion.error
        row.truncated = "unspecified"
        row.body_bytes = 0
        self._logs.info(row.outcome, url=row.url, error=row.error)
        reply = msgspec.structs.replace(reply, body=b"", file=None, truncated="unspecified")
        links = self._links.collect(visit, findings).follow
        links = self._links.admit(visit, findings, row, links, self.recorder.seed(visit))
        self.recorder.conclude(
            lease, self.recorder.digest(visit, reply, row), now, outlinks=self._links.outlinks(links)
        )
        return links

    def _is_unwanted(self, visit: Visit, reply: Reply) -> bool:
        """Return whether a document is of an unwanted type, or of a page outside the scope."""
        if visit.link_type in ANNOUNCING:
            return False
        return visit.link_type == OUTLINK or bool(self._stages.chain.reject_reply(reply))

    def _conclude_unwanted(self, lease: VisitLease, reply: Reply, now: float) -> None:
        """Conclude unwanted content: its headers are kept, but no part of its body."""
        error = f"the filter `media_type` rejects {reply.media_type}"
        if lease.visit.link_type == OUTLINK:
            error = "only its status was requested: it is outside the scope"
        reply = msgspec.structs.replace(reply, body=b"", file=None, truncated="unspecified")
        self._end(lease, reply, Conclusion("unsupported", error), now)

    def _describe(self, examined: Examined, row: PageRow) -> None:
        """Write a page's findings into its row; count and log errors."""
        content = examined.sent or examined.content
        findings = examined.findings
        row.rendered = examined.rendering
        row.links_gained = examined.links_gained
        row.render_reason = examined.render_reason
        self._counters.count_modules(examined.ran, examined.errors, row.url, findings.matched)
        row.body_bytes = content.body_bytes
        if findings.announcement is not None:
            row.error = findings.announcement.error
        row.truncated = row.truncated or content.truncated
        row.error = content.error or row.error
        if examined.rendering_error:
            says = "rendered in part" if examined.rendered is not None else "not rendered"
            row.error = row.error or f"{says}: {examined.rendering_error}"
        row.title = findings.title
        row.text_method = findings.text_method
        row.charset = findings.charset or row.charset
        for error in examined.errors:
            if error.kind == INVALID:
                self._logs.info("field_invalid", url=row.url, field=error.module, error=error.error)
            else:
                self._logs.critical("module_failed", str(error), url=row.url)

    def _target(self, reply: Reply) -> Url | None:
        text = redirect_target(reply.url, reply.headers)
        return self._stages.namer.name(text) if text else None


def is_document(reply: Reply) -> bool:
    """Return whether a reply that is not followed is read: a success, or the content of a redirect. Browsers show it if
    there is no Location; that of a 300 is the list of links to choose from (RFC 9110, section 15.4.1).
    """
    if reply.status in REDIRECTS and (reply.body_bytes or reply.header("refresh")):
        return reply.status == MULTIPLE_CHOICES or not (reply.header("location") or "").strip()
    return 200 <= reply.status < MULTIPLE_CHOICES
