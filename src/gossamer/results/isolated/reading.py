"""Reading: what the process that reads archives does: questions in, answers out, within limits of the kernel."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import msgspec

from gossamer.assembly.schemes import namer_for
from gossamer.config.gather import reopen
from gossamer.model import archived
from gossamer.model.errors import ConfigError
from gossamer.model.outcomes import WITH_CONTENT
from gossamer.model.pages import PLAIN_TYPES, RENDERINGS, Page
from gossamer.model.verbs import ConflictError, MissingError
from gossamer.model.words import iso_time
from gossamer.results.export.bodies import ArchivedPage, Means, RecordBodies, RecordPlace
from gossamer.results.export.browse import ArchivedVisit, Browsed, comparison_of, items_in
from gossamer.results.export.export import inputs_of, tables_of
from gossamer.results.export.opening import crawl_in, export_means
from gossamer.results.export.work import ExportPiece
from gossamer.results.isolated import reads
from gossamer.results.isolated.questions import answer_questions
from gossamer.stages.archive.schema import ITEMS
from gossamer.stages.process.charset import to_utf8
from gossamer.stages.process.elements import is_xml
from gossamer.stages.process.embeds import CSS, SVG
from gossamer.stages.process.html import HTML_TYPES
from gossamer.stages.process.rewriting import rewritten

ADDRESSES_MAX = 4_000
"""Addresses of one page that are looked up."""
HOPS_MAX = 10
NOT_ARCHIVED = "missing"
"""Where addresses lead of which nothing is archived; the address is the query."""
UNKNOWN = "application/octet-stream"
REWRITTEN = (CSS, SVG)
TEXTS = frozenset((*PLAIN_TYPES, "text/csv", "text/vtt", "application/json"))
"""Media types shown as plain text, beside XML other than SVG."""
SHOWN = ("image/", "audio/", "video/")
"""Media types that browsers show beside pages and text, without a plug-in."""
SCRIPTS = ("javascript", "ecmascript")


def answer_reads() -> None:
    """Answer until the pool closes."""
    answer_questions(reads.READING, reads.ArchiveQuestion, _answer)


def _answer(asked: reads.ArchiveQuestion) -> msgspec.Struct:
    directory = Path(asked.directory)
    with tempfile.TemporaryDirectory(prefix="gossamer-read-") as folder:
        match asked.question:
            case reads.ReadVersions():
                return _versions(directory, asked.question, Path(folder))
            case reads.ReadItems():
                return _items(directory, asked.question, Path(folder))
            case reads.ReadHost(host):
                with Browsed(_tables(directory, ["pages"], Path(folder))["pages"], Path(folder)) as pages:
                    return pages.history(host.lower())
            case reads.ReadComparison():
                return _comparison(directory, asked.question, Path(folder))
            case reads.ReadReplay():
                return _replay(directory, asked.question, Path(folder))


def _tables(directory: Path, names: list[str], folder: Path) -> dict[str, list[ExportPiece]]:
    return inputs_of(crawl_in(directory), names, folder).tables


def _items(directory: Path, asked: reads.ReadItems, folder: Path) -> archived.ItemList:
    crawl = crawl_in(directory)
    names = [name for name in tables_of(crawl, "parquet", "") if name.startswith(ITEMS)]
    try:
        return items_in(inputs_of(crawl, names, folder).tables, asked.kind, asked.limit, asked.offset, folder)
    except LookupError:
        raise MissingError(f"{directory.name} has no items {asked.kind}") from None


def _comparison(directory: Path, asked: reads.ReadComparison, folder: Path) -> archived.Comparison:
    earlier = Path(asked.earlier)
    before = _tables(earlier, ["pages"], folder / "earlier")["pages"]
    after = _tables(directory, ["pages"], folder / "later")["pages"]
    names = (earlier.resolve().name, directory.resolve().name)
    return comparison_of(names, before, after, asked.change, asked.limit, asked.offset, folder)


def _versions(directory: Path, asked: reads.ReadVersions, folder: Path) -> archived.PageVersions:
    named = namer_for(reopen(directory / "crawl.toml")).name_typed(asked.url)
    if named is None:
        raise ConfigError(f"{asked.url[: archived.CHARACTERS_MAX]} is not an address that can be visited")
    with Browsed(_tables(directory, ["pages"], folder)["pages"], folder) as pages:
        visits, total = pages.versions(named.key)
    found = []
    before = ""
    for visit in reversed(visits):
        has_content = visit.outcome in WITH_CONTENT or (visit.outcome == "http_error" and visit.body_bytes > 0)
        content = ""
        if visit.outcome in WITH_CONTENT and visit.digest:
            content = "same" if visit.digest == before else "changed"
            if not before:
                content = "first"
            before = visit.digest
        found.append(
            archived.PageVersion(
                at=iso_time(visit.at / 1e6, "microseconds"), outcome=visit.outcome, status=visit.status,
                content=content,
                digest=visit.digest if content else "", body_bytes=visit.body_bytes,
                title=visit.title[:archived.CHARACTERS_MAX],
                replay=reads.seal(asked.secret, _place(asked.crawl, visit)) if has_content and visit.place else "",
            )
        )  # fmt: skip
    # The oldest one of more is there to compare with.
    return archived.PageVersions(url=asked.url, versions=tuple(reversed(found))[: archived.VERSIONS_MAX], total=total)


def _place(crawl: str, visit: ArchivedVisit, *, is_within: bool = False) -> reads.ReplayPlace:
    assert visit.place is not None
    original = visit.original
    return reads.ReplayPlace(
        crawl, visit.url, visit.at, visit.media_type, (visit.place.file, visit.place.offset, visit.place.length),
        (original.file, original.offset, original.length) if original is not None else None, is_within,
        visit.rendered in RENDERINGS,
    )  # fmt: skip


def _replay(directory: Path, asked: reads.ReadReplay, folder: Path) -> reads.Replayed:
    means = export_means(reopen(directory / "crawl.toml"))
    place = asked.place
    original = RecordPlace(*place.original) if place.original is not None else None
    with RecordBodies(directory / "warc", means.decode) as bodies:
        record = RecordPlace(*place.place)
        page = bodies.page(ArchivedPage(record, original, place.url, place.media_type, is_rendered=place.is_rendered))
    if page is None:
        raise MissingError("The archive has no content of this version.")
    if len(page.body) > reads.REPLAY_BYTES_MAX:
        raise ConflictError(
            f"This version has {len(page.body):,} bytes, more than the {reads.REPLAY_BYTES_MAX:,} shown here."
        )
    kind = page.media_type
    if kind in HTML_TYPES or kind in REWRITTEN:
        shown = "text/html; charset=utf-8" if kind in HTML_TYPES else kind
        return reads.Replayed(shown, _rewrite(directory, page, asked, means, folder))
    if asked.is_part and not kind.endswith(SCRIPTS):  # A browser knows images and fonts by their first bytes.
        return reads.Replayed(kind or UNKNOWN, page.body)
    if kind in TEXTS or is_xml(kind):
        return reads.Replayed("text/plain; charset=utf-8", to_utf8(page.body, page.charset)[0])
    if not kind.startswith(SHOWN):
        kind = kind or "content without a media type"
        raise ConflictError(f"{kind}, {len(page.body):,} bytes: not shown here. `gossamer export` writes it to a file.")
    return reads.Replayed(kind, page.body)


def _rewrite(directory: Path, page: Page, asked: reads.ReadReplay, means: Means, folder: Path) -> bytes:
    """Return a page whose addresses lead to the versions nearest in time, or nowhere."""
    addresses: set[str] = set()

    def note(url: str) -> str:
        if len(addresses) < ADDRESSES_MAX:
            addresses.add(url)
        return url

    rewritten(page, note, is_still=True)
    found: dict[str, str] = {}
    if addresses:
        with Browsed(_tables(directory, ["pages"], folder)["pages"], folder) as pages:
            found = _nearest(addresses, asked, pages, means.key_of)
    return rewritten(page, lambda url: found.get(url) or f"{NOT_ARCHIVED}?{quote(url)}", is_still=True)


def _nearest(urls: set[str], asked: reads.ReadReplay, pages: Browsed, key_of: Callable[[str], str]) -> dict[str, str]:
    """Return the paths of addresses that the archive has, redirects followed."""
    found: dict[str, str] = {}
    left = {url: key_of(url) for url in urls}
    for _ in range(HOPS_MAX):
        visits = pages.nearest({key for key in left.values() if key}, asked.place.at)
        moved = {}
        for url, key in left.items():
            visit = visits.get(key)
            if visit is not None and visit.redirect_to and visit.outcome == "redirected":
                moved[url] = key_of(visit.redirect_to)
            elif visit is not None and visit.place is not None:
                found[url] = reads.seal(asked.secret, _place(asked.place.crawl, visit, is_within=True))
        left = moved
        if not left:
            break
    return found
