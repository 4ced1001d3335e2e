"""Stored: commands that read a crawl whose checkpoints are in an object store, as if its directory were here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from gossamer.cli.output import complain

WRITTEN = frozenset(("-o", "--output", "--against"))
SCHEMES = ("s3://", "gs://", "az://", "file://")
STATE_ONLY = frozenset(("status", "why", "cookies"))
"""Commands that read no table."""
READING = STATE_ONLY | {"changes", "export", "mcp", "rank", "report", "sample", "search", "segment", "serve", "verify"}


@contextmanager
def with_local(arguments: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give the words of a command with a crawl's directory in place of the URI of its checkpoints, while the context
    lasts: its state and tables are brought there. WARC files stay in the store, of which readers fetch ranges, unless
    a package of whole files is made. `--set` gives the options of the store.

    Raises:
        ConfigError: there is no checkpoint.
        CrawlFailedError: objects that `verify` looked for are missing or damaged.
    """
    words = list(arguments)
    after = enumerate(pairwise(words), 1)
    place = next((number for number, (last, word) in after if word.startswith(SCHEMES) and last not in WRITTEN), 0)
    if not place or words[0] not in READING:
        yield arguments
        return
    from gossamer.api.restoring import restore_of

    uri = words[place]
    sets = [words[number + 1] for number, word in enumerate(words[:-1]) if word == "--set"]
    words = [word for last, word in zip(["", *words], words, strict=False) if "--set" not in (last, word)]

    def is_wanted(name: str) -> bool:
        return words[0] not in STATE_ONLY and ("wacz" in words or not name.startswith("warc/"))

    with TemporaryDirectory(prefix="gossamer-stored-") as folder:
        directory = Path(folder) / (uri.rstrip("/").rpartition("/")[2] or "crawl")
        deep = "--deep" in words if words[0] == "verify" else None
        complain("from " + restore_of([uri], directory, sets, is_wanted, deep).partition(" is restored from ")[2])
        built = ["--build", "--quiet"] if words[0] == "search" else []
        yield [*(str(directory) if word == uri else word for word in words), *built]
