"""Inputs: tables of crawls, or WARC files, in the given directories and files.

The processing modules turn the archives of any crawler into tables of pages and links. A WARC file does not say how a
page was found: unless an index knows, the page counts as a seed.
"""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from gossamer.assembly.modules import Reader, reader_of
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.model.links import Found
from gossamer.model.pages import Page
from gossamer.results.export.export import inputs_of
from gossamer.results.export.opening import crawl_in
from gossamer.results.export.source import TableFiles, naming, pieces_of, plain
from gossamer.results.export.work import ExportPiece as TablePiece
from gossamer.results.export.work import Progress
from gossamer.results.imports.capture import Capture, Refused, Room
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.sources import find_sources
from gossamer.results.offline.segment import rules_of
from gossamer.results.offline.work import BuildFolder, BuildInputs, BuildPiece
from gossamer.stages.archive.foreign import FaultCount
from gossamer.stages.archive.schema import LINKS, PAGES
from gossamer.url.join import absolute
from gossamer.url.name import Namer
from gossamer.world.files import publish
from gossamer.world.spill import Spills

_TABLES = "[!.]*.parquet"
_WARC_NAMES = ("[!.]*.warc", "[!.]*.warc.gz", "[!.]*.warc.zst")


def find_inputs(places: Sequence[Path], config: Config, folder: Path) -> BuildInputs:
    """Return the files to read, logs as Parquet in `folder`. Raises ConfigError: a place has none to read."""
    inputs = BuildInputs()
    for number, place in enumerate(places):
        if place.is_file():
            if not any(place.match(name) for name in _WARC_NAMES):
                raise ConfigError(f"{place} is neither a crawl's directory nor a WARC file (.warc, .warc.gz)")
            inputs.warcs.append(_warc(place))
        elif (place / "crawl.toml").exists():
            _add_crawl(inputs, place, config, folder / f"{number:03d}")
        elif place.is_dir():
            _add_files(inputs, place)
        else:
            raise ConfigError(f"there is no {place}; name directories of crawls, or WARC files")
    return inputs


def _add_crawl(inputs: BuildInputs, place: Path, config: Config, logs: Path) -> None:
    crawl = crawl_in(place)
    tables = inputs_of(crawl, ["pages", "links"], logs).tables
    foreign = rules_of(reopen(place / "crawl.toml").url) != rules_of(config.url)
    if crawl.running:
        inputs.running.append(str(place))
    inputs.pages += _pieces(tables["pages"], foreign=foreign)
    if tables["links"] or not (warcs := _warcs(place)):
        inputs.links += _pieces(tables["links"], foreign=foreign)
    else:  # A crawl that kept no table of links: they are in its pages.
        inputs.warcs += [msgspec.structs.replace(piece, links_only=bool(tables["pages"])) for piece in warcs]


def _add_files(inputs: BuildInputs, place: Path) -> None:
    pages = pieces_of(sorted((place / "pages").glob(_TABLES)))
    links = pieces_of(sorted((place / "links").glob(_TABLES)))
    if pages or links:
        for piece in pages:
            _require_table(piece.path, PAGES, _FOREIGN[0], ("url", "outcome"))
        for piece in links:
            _require_table(piece.path, LINKS, _FOREIGN[1], ("from_url", "to_url"))
        # By which rules its keys were made is unknown.
        inputs.pages += _pieces(pages, foreign=True)
        inputs.links += _pieces(links, foreign=True)
        return
    warcs = _warcs(place)
    if not warcs:
        raise ConfigError(f"{place} holds no crawl (no crawl.toml), no tables (pages/, links/) and no WARC files")
    inputs.warcs += warcs


def _require_table(path: str, schema: pa.Schema, needed: Sequence[str], filled: Sequence[str]) -> None:
    """Look at a table that another program may have written. Reads the columns of `filled`. Raises ConfigError: it
    lacks a column, has one of another type, or has no value where one is needed.
    """
    with naming(path), pq.ParquetFile(path) as file:
        there = file.schema_arrow
        for field in map(schema.field, needed):
            if field.name not in there.names:
                raise ConfigError(f"{path} lacks the column {field.name}; name a directory of tables of a crawl")
            kind = there.field(field.name).type
            if _kind(kind) != _kind(field.type):
                raise ConfigError(f"{path}: the column {field.name} is of {kind}; {plain(field.type)} is needed")
        for batch in file.iter_batches(columns=list(filled)):
            for name in filled:
                if batch[name].null_count:
                    raise ConfigError(f"{path} has rows without {name}; write it without them")


def _kind(kind: pa.DataType) -> str:
    kind = plain(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return "number" if pa.types.is_integer(kind) else "time" if pa.types.is_timestamp(kind) else str(kind)


def _pieces(pieces: Sequence[TablePiece], *, foreign: bool) -> list[BuildPiece]:
    return [BuildPiece(str(Path(one.path).absolute()), one.length, one.rows, foreign=foreign) for one in pieces]


def _warcs(place: Path) -> list[BuildPiece]:
    found = {path for folder in (place, place / "warc") for name in _WARC_NAMES for path in folder.glob(name)}
    return [_warc(path) for path in sorted(found)]


def _warc(path: Path) -> BuildPiece:
    return BuildPiece(str(path.absolute()), path.stat().st_size)


BODY_BYTES_MAX = 64_000_000
"""Of a body no more is read."""
ROWS_MAX = 20_000
"""Of links that wait for their row group."""
_PAGE_COLUMNS = (
    "url", "key", "fetched_at", "outcome", "status", "depth", "link_type", "redirect_to", "duplicate_of", "error",
    "attempt", "referrer",
)  # fmt: skip
_PAGES = pa.schema([*(PAGES.field(name) for name in _PAGE_COLUMNS), ("nofollow", pa.bool_())])
_FOREIGN = (
    ("url", "key", "fetched_at", "outcome", "status", "depth", "link_type", "redirect_to", "attempt"),
    ("from_url", "to_url", "to_key", "link_type", "nofollow"),
)
"""Columns that a build needs of tables of pages and of links that another program wrote."""
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


def read_warcs(work: BuildFolder, config: Config, namer: Namer, progress: Progress) -> None:
    """Make tables of the WARC files, one by one. About 0.3 ms a page. Raises ConfigError: a file is not WARC."""
    inputs = work.state.inputs
    assert inputs is not None
    if not inputs.warcs:
        return
    reader = reader_of(config)
    folder = work.folder / "tables"
    folder.mkdir(exist_ok=True)
    while work.state.position < len(inputs.warcs):
        number = work.state.position
        pages = folder / f"pages-{number:05d}.parquet.new"
        links = folder / f"links-{number:05d}.parquet.new"
        piece = inputs.warcs[number]
        with closing(TableFiles({"pages": (pages, _PAGES), "links": (links, LINKS)}, ROWS_MAX)) as tables:
            says = _read(Path(piece.path), tables, reader, namer)
        if not piece.links_only:
            inputs.pages.append(_publish_piece(pages))
        inputs.links.append(_publish_piece(links))
        if says:
            inputs.damaged.append(says)
        work.state.position += 1
        work.save()
        progress("WARC files", work.state.position, len(inputs.warcs))


def _publish_piece(new: Path) -> BuildPiece:
    """Give a finished table its name."""
    path = new.with_suffix("")
    publish(new, path)
    return BuildPiece(str(path.absolute()), path.stat().st_size, pq.read_metadata(path).num_rows)


def _read(path: Path, tables: TableFiles, reader: Reader, namer: Namer) -> str:
    """Fill the tables of a file; return a line about damaged records, empty if there are none."""
    if not path.stat().st_size:
        return ""
    faults = FaultCount(path)
    is_archive = False
    room = Room(Spills(path.parent, "sha1"), BODY_BYTES_MAX, BODY_BYTES_MAX)
    for source in find_sources([str(path)]):
        for item in captures_of(source, room):
            is_archive |= not isinstance(item, Refused)
            if isinstance(item, Capture):
                _take(item, tables, reader, namer)
            elif isinstance(item, Refused):
                faults.add(item.offset, item.reason)
    if not is_archive:
        raise ConfigError(f"{path} is no WARC file; name those of a crawler, or the directory of a crawl")
    return faults.says()


def _take(capture: Capture, tables: TableFiles, reader: Reader, namer: Namer) -> None:
    text = absolute(capture.url)
    url = namer.name(text) if text is not None else None
    if url is None:
        return
    page: dict[str, Any] = {
        "url": url.text, "key": url.key, "fetched_at": datetime.fromtimestamp(capture.fetched_at, UTC),
        "status": capture.status or None, "depth": None, "link_type": "", "redirect_to": "", "duplicate_of": "",
        "error": "", "attempt": 1, "referrer": "", "nofollow": False,
        "outcome": "fetched" if 200 <= capture.status < 300 else "http_error",
    }  # fmt: skip
    if capture.status in _REDIRECTS and (target := reader.redirect_target(url.text, capture.headers)) is not None:
        page["outcome"], page["redirect_to"] = "redirected", target
        _add_link(tables, namer, url.text, Found(target, "redirect"))
    elif page["outcome"] == "fetched" and capture.kind != "revisit":
        reply = replace(capture.reply(), url=url.text)
        content = reader.decoder.decode(reply)
        findings = reader.find(Page(url.text, reply.media_type, reply.charset, reply.headers, content.body))
        page["nofollow"] = findings.nofollow
        for link in findings.links:
            _add_link(tables, namer, url.text, link)
    tables.add("pages", [page[name] for name in _PAGES.names])


def _add_link(tables: TableFiles, namer: Namer, source: str, found: Found) -> None:
    if (target := namer.name(found.url)) is not None:  # In the order of `LINKS`.
        tables.add("links", (source, target.text, target.key, found.link_type, found.anchor_text, found.nofollow))
