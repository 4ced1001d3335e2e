"""Stored: commands that read a crawl whose checkpoints are in an object store, as if its directory were here."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO, cast

from gossamer.cli.output import complain
from gossamer.model.errors import ConfigError, CrawlFailedError

WRITTEN = frozenset(("-o", "--output", "--against"))
FLAGS = frozenset(("--json", "--quiet", "-q", "--deep"))
"""Options without a value."""
SCHEMES = ("s3://", "gs://", "az://", "file://")
STATE_ONLY = frozenset(("status", "why", "cookies"))
"""Commands that read no table."""
READING = STATE_ONLY | {
    "changes", "export", "mcp", "rank", "report", "robots", "sample", "search", "segment", "serve", "verify",
}  # fmt: skip


@contextmanager
def with_local(arguments: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words of a command with a crawl's directory in place of the URI of its checkpoints. For the context,
    its state and tables are copied there. WARC files stay in the store, and readers fetch ranges of them, unless whole
    files are packaged. `--set` gives the options of the store. Raises ConfigError: there is no checkpoint;
    CrawlFailedError: objects that `verify` looked for are missing or damaged.
    """
    words = list(arguments)
    place = _place_of_crawl(words)
    options = {word.partition("=")[0] for word in words}
    builds = words[:1] == ["search"] and "--build" in options
    if not place or words[0] not in READING or "--cluster" in options or builds:  # Each share brings its part.
        yield arguments
        return
    from gossamer.api.restoring import restore_of
    from gossamer.api.shares import bring_index

    if words[0] == "rank" and options.isdisjoint(("-o", "--output")):
        raise ConfigError("rank: of a crawl in a store, name the file to write with -o FILE")
    uri = words[place]
    needs_warcs = words[0] == "robots" or any("wacz" in word.removeprefix("--to=").split(",") for word in words)
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--set=") else [word])]
    sets = [words[number + 1] for number, word in enumerate(words[:-1]) if word == "--set"]
    words = [word for last, word in zip(["", *words], words, strict=False) if "--set" not in (last, word)]

    def is_wanted(name: str) -> bool:
        return words[0] not in STATE_ONLY and (needs_warcs or not name.startswith("warc/"))

    name = uri.rstrip("/").rpartition("/")[2] or "crawl"
    with TemporaryDirectory(prefix="gossamer-stored-") as folder, _rename(f"{folder}/{name}", uri):
        directory = Path(folder, name)
        if words[0] == "search" and (made := bring_index(uri.rstrip("/"), directory, tuple(sets))):
            complain(f"from {uri}: index of {made}")
            yield [str(directory) if word == uri else word for word in words]
            return
        deep = "--deep" in words if words[0] == "verify" else None
        complain("from " + restore_of([uri], directory, sets, is_wanted, deep).partition(" is restored from ")[2])
        built = ["--build", "--quiet"] if words[0] == "search" else []
        yield [*(str(directory) if word == uri else word for word in words), *built]


@contextmanager
def _rename(folder: str, uri: str) -> Iterator[None]:
    """Print the URI of the crawl in place of its temporary directory `folder`, also in errors."""
    streams = [cast("TextIO", _RenamingStream(out, folder, uri)) for out in (sys.stdout, sys.stderr)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            yield
        except (ConfigError, CrawlFailedError) as error:
            error.args = tuple(str(one).replace(folder, uri) for one in error.args)
            if isinstance(error, ConfigError):
                error.lines = tuple(line.replace(folder, uri) for line in error.lines)
            raise


class _RenamingStream:
    """A stream that prints a URI in place of a directory."""

    def __init__(self, out: TextIO, folder: str, uri: str) -> None:
        self._out = out
        self._folder = folder
        self._uri = uri

    def write(self, text: str) -> int:
        """Write text; return its length."""
        return self._out.write(text.replace(self._folder, self._uri))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def uri_of(path: Path) -> str:
    """Return the URI that was typed where a path is expected; empty: a path was."""
    scheme, mark, rest = str(path).partition(":/")
    if not mark or f"{scheme}://" not in SCHEMES:
        return ""
    return f"{scheme}:///{rest}" if scheme == "file" else f"{scheme}://{rest}"


def _place_of_crawl(words: Sequence[str]) -> int:
    """Return the number of the word that names a crawl in a store; 0 if there is none: then a later URI is a page's."""
    for number, (last, word) in enumerate(pairwise(words), 1):
        if word.startswith(SCHEMES) and last not in WRITTEN:
            return number
        if words[0] in READING and last not in WRITTEN and word.lower().startswith(tuple(one[:-1] for one in SCHEMES)):
            raise ConfigError(f"{word}: a store is named as s3://BUCKET/PREFIX, gs://, az://, or file:///PATH")
        is_value = last.startswith("-") and last not in FLAGS
        if not (word.startswith("-") or is_value or last == "segment"):
            return 0
    return 0
