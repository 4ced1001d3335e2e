"""Outcomes: what becomes of a visit's result: digest, record, links that lead on, the URL finished or queued again.

Like `crawl.ring` it neither waits nor asks for the time: `settle` takes a result, and `document` what a page that has
to be examined came to.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Sequence

import msgspec

from gossamer.crawl.examine import Examined
from gossamer.crawl.history import attempt_row, digest_text, page_record
from gossamer.crawl.logs import Logs
from gossamer.crawl.revisiting import NOT_MODIFIED
from gossamer.crawl.ring import Retries
from gossamer.crawl.stages import Stages
from gossamer.crawl.tally import Tally
from gossamer.frontier.host import Lease
from gossamer.model.errors import CrawlFailedError
from gossamer.model.links import ANNOUNCING, EMBED, NOT_SEED, SEED_ARGUMENT, Found, Link
from gossamer.model.revisits import Held
from gossamer.model.visits import Again, Failure, Findings, Original, PageRow, Reply, Visit, Visited
from gossamer.process.links import redirect_target
from gossamer.url.url import Url

REDIRECTS = frozenset((301, 302, 303, 307, 308))
AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Statuses that may be gone next time."""
DISK_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG))


class Outcomes:
    """Every attempt ends here, once: in a row, an archive record, a page record and a count."""

    def __init__(self, stages: Stages, retries: Retries, logs: Logs, tally: Tally) -> None:
        self._stages = stages
        self._retries = retries
        self._logs = logs
        self._tally = tally

    def reconfigure(self, retries: Retries) -> None:
        """Go by other options from now on."""
        self._retries = retries

    def settle(self, lease: Lease, result: Reply | Failure, now: float, held: Held | None = None) -> list[Link] | None:
        """End a visit by what its request brought; return the links that lead on from it, None where the reply is a
        document that must be examined first. `held` is what the request was conditional on.
        """
        if isinstance(result, Failure):
            self.failure(lease, result, now)
            return []
        if result.status == NOT_MODIFIED and held is not None:
            self._not_modified(lease, result, held, now)
            return []
        if result.status in REDIRECTS and (target := self._target(result)) is not None:
            return self._redirect(lease, result, target, now)
        if result.status in AGAIN and self._retries.left(visit_of(lease)):
            self._again(lease, result, now)
            return []
        if not 200 <= result.status < 300:
            self._http_error(lease, result, now)
            return []
        if self._is_unwanted(self.visit(lease), result):
            self._unwanted(lease, result, now)
            return []
        return None

    def _not_modified(self, lease: Lease, reply: Reply, held: Held, now: float) -> None:
        """What we have is what the page is: the record says so and refers to it (WARC 1.1, section 6.7.3)."""
        visit = self.visit(lease)
        row = self._reply_row(visit, reply, "not_modified")
        row.digest = digest_text(self._stages.digest_algorithm, held.payload) if held.payload else ""
        self._conclude(lease, Visited(visit.url, row, reply, revisit_of=held.original, digest=held.payload), now)

    def failure(self, lease: Lease, failure: Failure, now: float) -> None:
        """No reply, or not a whole one: another attempt, or the end. What came is kept and not looked into."""
        visit, came = self.visit(lease), failure.came
        if came is None or self._is_unwanted(visit, came):
            row = attempt_row(visit, failure.outcome, failure.started_at or now)
            row.ip, row.fetch_s, row.wire_bytes = failure.ip, failure.fetch_s, failure.wire_bytes
            visited = Visited(visit.url, row)
        else:
            row = self._reply_row(visit, came, failure.outcome)
            visited = self._digested(visit, came, row)
        row.error = failure.error
        self._logs.info(failure.outcome, url=visit.url.text, error=failure.error, attempt=visit.attempt)
        self._conclude(lease, visited, now, self._retried(lease, failure.error, now) if failure.retry else None)

    def _retried(self, lease: Lease, error: str, now: float) -> Again | None:
        # With the hops of this very entry, as in `_redirect`: those of a shorter way would make a loop endless.
        return self._retries.after(visit_of(lease), error, now)

    def _again(self, lease: Lease, reply: Reply, now: float) -> None:
        """A server in trouble: kept as it is, asked again later."""
        visit = self.visit(lease)
        row = self._reply_row(visit, reply, "http_error")
        row.error = f"HTTP {reply.status}"
        self._logs.info("http_error", url=visit.url.text, error=row.error, attempt=visit.attempt)
        self._conclude(lease, self._digested(visit, reply, row), now, self._retried(lease, row.error, now))

    def _redirect(self, lease: Lease, reply: Reply, target: Url, now: float) -> list[Link]:
        """A redirect is a link: its target goes through the whole ring, unless it is this very entry's next hop."""
        visit, stages = self.visit(lease), self._stages
        row = self._reply_row(visit, reply, "redirected")
        row.redirect_to = target.text
        visited = self._digested(visit, reply, row, [Found(target.text, "redirect")], [target.key])
        seed = self._seed(visit)
        if seed:
            self.widen(visit.url, target, seed)
        if target.key == visit.url.key:
            hops = visit_of(lease).hops  # Of this very entry: a shorter way to it must not make a loop endless.
            link = Link(target, "redirect", visit.depth, hops, visit.url.text, seed)
            # Where the entry was ours, so is its next hop, whatever host the operator's rules take for the same.
            few = hops < stages.chain.hops_max
            within = few and stages.chain.explain(link) in {None, *stages.chain.by_place}
            if not few:
                row.error = f"it redirects once more, to {target.text}: at most {stages.chain.hops_max} are followed"
            self._conclude(lease, visited, now, Again(target, now, 1, hops + 1) if within else None)
            return []
        self._conclude(lease, visited, now)
        kind = visit.link_type if visit.link_type in (EMBED, *ANNOUNCING) else "redirect"
        link = Link(target, kind, visit.depth, visit.hops + 1, visit.url.text, seed)
        if link.hops > stages.chain.hops_max and (stages.exchange is None or stages.exchange.has(target)):
            stages.history.stop(link)
        return [link]

    def _seed(self, visit: Visit) -> int:
        """Return how a visit's URL is a seed, if it is one: also one that was queued as an ordinary link before."""
        pending_scope = self._stages.pending_scope
        return visit.seed or (pending_scope.seed(visit.url) if pending_scope is not None else NOT_SEED)

    def widen(self, url: Url, target: Url, seed: int) -> None:
        """Bring into scope where a seed redirects, as far as its kind allows, and tell people and other shards."""
        note = self.widen_here(url, target, seed)
        if note:
            self._tally.note(note)
            if self._stages.exchange is not None:
                self._stages.exchange.widened(url, target, seed)

    def widen_here(self, url: Url, target: Url, seed: int) -> str | None:
        """Do the same in this shard alone; return what people are told, None when nothing changed."""
        stages = self._stages
        note = stages.roots.redirected(url, target, from_argument=seed == SEED_ARGUMENT)
        if note and stages.pending_scope is not None:
            stages.pending_scope.widened(target, stages.chain, stages.namer)
        return note

    def _http_error(self, lease: Lease, reply: Reply, now: float) -> None:
        """An error that another attempt would not change."""
        visit = self.visit(lease)
        row = self._reply_row(visit, reply, "http_error")
        row.error = f"HTTP {reply.status}"
        if reply.status in REDIRECTS:  # Otherwise it would have been one.
            row.error += " without a Location that can be visited"
        self._logs.info("http_error", url=row.url, error=row.error, attempt=visit.attempt)
        self._conclude(lease, self._digested(visit, reply, row), now, outlinks=self._kept_outlinks([]))

    def document(self, lease: Lease, reply: Reply, examined: Examined | None, now: float) -> list[Link]:
        """End the visit of a document by what is in it, None where a process died of it; return its links to follow."""
        visit, url, stages = self.visit(lease), lease.url, self._stages
        row = self._reply_row(visit, reply, "fetched")
        if examined is None:
            row.outcome, row.error = "process_crashed", "a process died of it twice; archived unparsed"
            self._logs.info(row.outcome, url=url.text, error=row.error)
            self._conclude(lease, self._digested(visit, reply, row), now)
            return []
        self._describe(examined, row)
        visited = self._digested(visit, reply, row)
        links = self._linked(visit, examined.findings, visited)
        visited.content, visited.findings = examined.content, examined.findings
        follow = stages.copies.judge(visit, examined.content, links, row)
        if not visit.revisit:  # A page that is seen twice is nobody's sign of a trap.
            stages.trapping.fetched(url, examined.content, row)
        links = self._followed(reply, examined, row, links)
        links = self._named(visit, examined.findings, links)
        self._conclude(lease, visited, now, outlinks=self._kept_outlinks(links))
        if examined.findings.announcement is not None and stages.hints is not None:
            stages.hints.heard(url, examined.findings.announcement, reply.headers, now)
        if stages.hubs is not None:
            stages.hubs.found(url, examined.findings.links, now)
        return links if follow else []

    def _is_unwanted(self, visit: Visit, reply: Reply) -> bool:
        """Say whether a reply is a document of a type that is not wanted."""
        fetched = 200 <= reply.status < 300
        return fetched and visit.link_type not in ANNOUNCING and self._stages.chain.unwanted(reply) is not None

    def _unwanted(self, lease: Lease, reply: Reply, now: float) -> None:
        """Content of a type that is not wanted: its headers are kept and its body is not, however much of it came."""
        visit = self.visit(lease)
        reply = msgspec.structs.replace(reply, body=b"", file=None, truncated="unspecified")
        row = self._reply_row(visit, reply, "unsupported")
        row.error = f"the filter `media_type` rejects {reply.media_type}"
        self._logs.info(row.outcome, url=visit.url.text, error=row.error)
        self._conclude(lease, self._digested(visit, reply, row), now)

    def _followed(self, reply: Reply, examined: Examined, row: PageRow, links: list[Link]) -> list[Link]:
        """Return a page's links where its language is wanted, and none where it is not."""
        found_out = examined.findings.columns.get("language")
        language = found_out if isinstance(found_out, str) else ""
        spoken = self._stages.chain.leads_nowhere(reply, examined.content.body, language)
        if spoken is None:
            return links
        examined.findings.nofollow = True  # For whoever reads the tables.
        row.error = row.error or f"the filter `language` rejects {spoken}: its links are not followed"
        return []

    def _named(self, visit: Visit, findings: Findings, links: list[Link]) -> list[Link]:
        """Return those links that their page may name: a sitemap speaks for whom it may alone."""
        hints, told = self._stages.hints, findings.announcement
        if hints is None:
            return links
        if told is not None:
            return hints.admitted(visit.url, visit.link_type, visit.depth, told, links)
        return hints.feeds(links) if hints.wants_feeds else links

    def _describe(self, examined: Examined, row: PageRow) -> None:
        """Write into a page's row what was found in it, and count and log what failed."""
        content, findings = examined.content, examined.findings
        self._tally.processed(examined.ran, examined.errors, row.url)
        row.body_bytes = content.body_bytes
        if findings.announcement is not None:
            row.error = findings.announcement.error
        row.truncated = row.truncated or content.truncated
        row.error = content.error or row.error
        row.title, row.text_method = findings.title, findings.text_method
        row.charset = findings.charset or row.charset
        for error in examined.errors:
            self._logs.critical("module_failed", url=row.url, error_text=str(error))

    def _linked(self, visit: Visit, findings: Findings, visited: Visited) -> list[Link]:
        """Name a page's links, hand them to the links table, and return those that may be followed, each once.

        An embed is part of its page, whatever that says of its links; an embed's own embeds count as hops, so that a
        chain of them ends. Of what lies beyond the scope only these lead on.
        """
        texts = list(dict.fromkeys([found.url for found in findings.links]))
        named = dict(zip(texts, self._stages.namer.names(texts), strict=True))
        links: dict[tuple[str, str], Link] = {}
        pending_scope = visit.link_type == EMBED and self._is_beyond(visit)
        embed_hops = visit.hops + 1 if visit.link_type == EMBED else 0
        for found in findings.links:
            url = named[found.url]
            if url is not None:
                visited.links.append(found)
                visited.link_keys.append(url.key)
                key = found.url, found.link_type
                if key in links:
                    continue
                if found.link_type == EMBED:
                    links[key] = Link(url, EMBED, visit.depth + 1, embed_hops, visit.url.text)
                elif not (found.nofollow or findings.nofollow or pending_scope):
                    links[key] = Link(url, found.link_type, visit.depth + 1, 0, visit.url.text)
        return list(links.values())

    def _is_beyond(self, visit: Visit) -> bool:
        """Say whether a page that was embedded would not have been ours otherwise."""
        return self._stages.chain.explain(Link(visit.url, "anchor", visit.depth, 0, visit.referrer)) is not None

    def _kept_outlinks(self, links: list[Link]) -> list[str]:
        chain = self._stages.chain
        if not chain.depth_limited:
            return []
        return [link.url.text for link in links if link.link_type != EMBED and chain.reason_but_depth(link) is None]

    def visit(self, lease: Lease) -> Visit:
        """Return the visit with the shortest way that is known by now: it may have waited long."""
        visit = visit_of(lease)
        way = self._stages.url_seen.way(visit.url)
        if way is None or way == (visit.depth, visit.hops):
            return visit
        return msgspec.structs.replace(visit, depth=min(way[0], visit.depth), hops=min(way[1], visit.hops))

    def _target(self, reply: Reply) -> Url | None:
        text = redirect_target(reply.url, reply.headers)
        return self._stages.namer.name(text) if text else None

    def _reply_row(self, visit: Visit, reply: Reply, outcome: str) -> PageRow:
        row = attempt_row(visit, outcome, reply.started_at)
        row.status, row.media_type, row.charset = reply.status, reply.media_type, reply.charset
        row.wire_bytes, row.body_bytes = reply.wire_bytes, reply.body_bytes
        row.truncated, row.ip, row.fetch_s = reply.truncated, reply.ip, reply.fetch_s
        return row

    def _digested(
        self, visit: Visit, reply: Reply, row: PageRow, links: list[Found] | None = None, keys: list[str] | None = None
    ) -> Visited:
        """The digest stage: whose payload is this? Empty bodies are nobody's copy."""
        digest = (
            hashlib.new(self._stages.digest_algorithm, reply.body, usedforsecurity=False).digest()
            if reply.file is None
            else reply.file.digest
        )
        row.digest = digest_text(self._stages.digest_algorithm, digest)
        original = None
        if reply.body_bytes and not reply.truncated:
            original = self._stages.content_seen.find(digest, visit.url)
        if original is not None and original.url != visit.url.text:
            row.duplicate_of = original.url
        return Visited(visit.url, row, reply, links or [], keys or [], original, digest)

    def _conclude(
        self, lease: Lease, visited: Visited, now: float, again: Again | None = None, outlinks: Sequence[str] = ()
    ) -> None:
        """Record the attempt and give the URL back: for good, or for another time. All or nothing is the commit's."""
        stages, row, visit = self._stages, visited.row, visit_of(lease)
        revisiting = stages.revisiting if again is None else None
        sight = revisiting.look(visit, visited) if revisiting is not None else None
        archived = stages.archive.add(visited)
        if self._logs.tells_visits:
            self._logs.debug("visited", url=row.url, outcome=row.outcome, status=row.status, fetch_s=row.fetch_s)
        reply = visited.reply
        if reply is not None and reply.body_bytes and not reply.truncated and visited.revisit_of is None:
            original = Original(row.url, reply.started_at, archived.record_id)
            stages.content_seen.remember(visited.digest, visit.url, original)
        stages.history.put(visit.url, page_record(row, final=again is None, outlinks=outlinks))
        seed = not self._tally.totals.seeds.any_fetched and self._seed(visit) != NOT_SEED
        if again is None:
            if revisiting is not None and sight is not None:
                revisiting.conclude(lease, visited, sight, archived, now)
            else:
                stages.frontier.finish(lease, row.outcome, now)
            if stages.pending_scope is not None and stages.pending_scope.is_open:
                stages.pending_scope.conclude(visit.url)
        else:
            stages.frontier.retry(lease, again, now)
        self._tally.ended(visited, seed=seed)

    def internal_error(self, lease: Lease, error: Exception, now: float) -> None:
        """An error of ours: it ends this page, and nothing else."""
        visit = visit_of(lease)
        row = attempt_row(visit, "internal_error", now)
        row.error = f"{type(error).__name__}: {error}"
        try:
            self._conclude(lease, Visited(visit.url, row), now)
        except Exception as again:  # noqa: BLE001 - see `Pipeline.turn`
            if is_fatal(again):
                self._tally.fatal(again)
            elif not lease.is_finished:  # Recording is what fails; the URL must end nevertheless.
                self._stages.frontier.finish(lease, "internal_error", now)


def visit_of(lease: Lease) -> Visit:
    """Return the visit that a lease carries."""
    visit = lease.visit
    assert visit is not None, "an errand where a visit was expected"
    return visit


def is_fatal(error: BaseException) -> bool:
    """Say whether an error is the disk's or a component's that the crawl cannot do without: it ends the crawl, and the
    page stays queued.
    """
    return isinstance(error, CrawlFailedError) or (isinstance(error, OSError) and error.errno in DISK_ERRORS)
