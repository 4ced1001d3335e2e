"""Inputs: what the directories and files that are given hold: tables of crawls, or WARC files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from gossamer.archive.views.export import inputs_of
from gossamer.archive.views.source import Source, pieces_of
from gossamer.archive.views.work import Piece as TablePiece
from gossamer.assembly.views import crawl_in
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.offline.segment import rules_of
from gossamer.offline.work import Inputs, Piece

_WARC_NAMES = ("*.warc", "*.warc.gz", "*.warc.zst", "*.warc.lz4")


def found_in(places: Sequence[Path], config: Config, folder: Path) -> Inputs:
    """Return the files to read; logs of crawls that died become Parquet files in `folder`.

    Raises:
        ConfigError: a place holds nothing that can be read.
    """
    inputs = Inputs()
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


def source_of(pieces: Sequence[Piece]) -> Source:
    """Return the rows of some files as one stream."""
    return Source([TablePiece(piece.path, piece.length, piece.rows) for piece in pieces])


def _add_crawl(inputs: Inputs, place: Path, config: Config, logs: Path) -> None:
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


def _add_files(inputs: Inputs, place: Path) -> None:
    pages, links = pieces_of(place / "pages"), pieces_of(place / "links")
    if pages or links:
        # Made by whoever: by which rules its keys were made nobody knows.
        inputs.pages += _pieces(pages, foreign=True)
        inputs.links += _pieces(links, foreign=True)
        return
    warcs = _warcs(place)
    if not warcs:
        raise ConfigError(f"{place} holds no crawl (no crawl.toml), no tables (pages/, links/) and no WARC files")
    inputs.warcs += warcs


def _pieces(pieces: Sequence[TablePiece], *, foreign: bool) -> list[Piece]:
    return [Piece(str(Path(one.path).absolute()), one.length, one.rows, foreign) for one in pieces]


def _warcs(place: Path) -> list[Piece]:
    found = {path for folder in (place, place / "warc") for name in _WARC_NAMES for path in folder.glob(name)}
    return [_warc(path) for path in sorted(found)]


def _warc(path: Path) -> Piece:
    return Piece(str(path.absolute()), path.stat().st_size)
