"""Search: queries a crawl's full-text index, and makes it from the archive. Needs gossamer[search]."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from gossamer.api.given import directory_of
from gossamer.assembly.home import lock_directory
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import SearchResults
from gossamer.results.export.bodies import Texts
from gossamer.results.export.export import MEMORY_BYTES
from gossamer.results.export.opening import crawl_in, export_means
from gossamer.results.export.work import Share
from gossamer.results.search.build import IndexBuilt, build
from gossamer.results.search.folder import indexes_of, no_index
from gossamer.results.search.query import search
from gossamer.results.search.question import SearchQuestion


def search_of(
    directory: str | Path, query: str, *, limit: int = 10, host: str = "", site: str = "", language: str = ""
) -> SearchResults:
    """Return the pages that answer a query best, also of a running crawl. The search runs in this process. Raises
    ConfigError: the crawl has no index, or the query passes a bound (`results/search/question.py`); DamagedError: a
    file of the index is missing, or is not what was written.
    """
    directory = directory_of(directory)
    folders = indexes_of(directory)
    if not folders:
        raise ConfigError(no_index(directory))
    return search(folders, SearchQuestion(query, limit, host, site, language))


def build_index_of(
    directory: Path,
    *,
    memory_bytes_max: int = MEMORY_BYTES,
    advance: Callable[[int, int], None] = lambda _done, _rows: None,
    texts_of: Texts | None = None,
    target: Path | None = None,
    share: Share | None = None,
) -> IndexBuilt:
    """Make a crawl's index from its archive, or finish one that was begun. `texts_of` finds texts of pages; None: this
    process does. With `share`, make the index of that part of the crawl, at `target`. Raises ConfigError: there is no
    crawl, or one that runs keeps its index itself; OSError: the disk is full; another call goes on.
    """
    crawl = crawl_in(directory, is_shared=share is not None)
    config = reopen(directory / "crawl.toml")
    if crawl.running and config.search.enabled:
        raise ConfigError(f"{directory} crawls and keeps its own index meanwhile; ask that, or build when it has ended")
    heap_bytes = config.search.memory_bytes_max
    memory_bytes_max = max(memory_bytes_max - heap_bytes, 0)
    with ExitStack() as stack:
        if not crawl.running and share is None:  # No other process may start to write there.
            stack.callback(lock_directory(directory, 0.0).release)
        means = replace(export_means(config), texts_of=texts_of)
        return build(crawl, means, heap_bytes, memory_bytes_max, advance, target, share)
