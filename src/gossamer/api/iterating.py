"""Iterating: a crawl that a plain `for` loop reads, and the tables of a crawl as other libraries know them."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Unpack
from weakref import WeakSet

from gossamer.api.base import ran_before
from gossamer.api.crawler import Crawler
from gossamer.api.given import SuggestsAttributes, directory_of, in_python, refuse_loop, with_options
from gossamer.api.page import CrawledPage
from gossamer.config import Config
from gossamer.config.flags import Options
from gossamer.model.errors import ConfigError
from gossamer.world.loop import loop_factory

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

END_S_MAX = 10.0
"""Longest wait for the thread of a crawl that has ended."""


class Tables(SuggestsAttributes):
    """The tables of a crawl, running or not, as they are at its last commit."""

    _others = "crawl"

    def __init__(self, directory: str | Path) -> None:
        """Take the crawl's directory. Nothing is read before a table is."""
        self.directory = directory_of(directory)

    def __repr__(self) -> str:
        return f"<Tables of {self.directory}: pages, links, table(NAME)>"

    @property
    def pages(self) -> Table:
        """One row for each attempt."""
        return self.table("pages")

    @property
    def links(self) -> Table:
        """One row for each link."""
        return self.table("links")

    def table(self, name: str) -> Table:
        """Return any table by its name, such as `items/offer`."""
        return Table(self.directory, name)


class Table(SuggestsAttributes):
    """One table of a crawl. Each call reads the whole table into memory."""

    _others = "table"

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name

    def __repr__(self) -> str:
        return f"<Table {self._name} of {self._directory}: to_pandas(), to_polars(), to_arrow(), to_duckdb()>"

    def to_arrow(self, where: str = "") -> pa.Table:
        """Return the rows as an Arrow table; with `where`, an SQL condition (DuckDB) over the columns, those that meet
        it. Raises ConfigError: there is no such crawl or table, or the condition is not valid SQL; DamagedError: a file
        of the table is not what was written.
        """
        import pyarrow as pa  # noqa: PLC0415 - a crawl need not load it

        from gossamer.results.export.export import inputs_of, tables_of  # noqa: PLC0415
        from gossamer.results.export.opening import crawl_in  # noqa: PLC0415
        from gossamer.results.export.source import RowSource  # noqa: PLC0415

        crawl = crawl_in(self._directory)
        tables_of(crawl, "parquet", self._name)
        with tempfile.TemporaryDirectory(prefix="gossamer-table-") as folder:
            source = RowSource(inputs_of(crawl, [self._name], Path(folder)).tables[self._name], where, self._name)
            return pa.Table.from_batches([batch for _, batch in source.batches()], schema=source.schema)

    def to_pandas(self, where: str = "") -> Any:
        """Return the rows as a DataFrame of pandas. Raises ConfigError as `to_arrow`, and where pandas is missing."""
        _require("pandas", "to_pandas")
        return self.to_arrow(where).to_pandas()

    def to_polars(self, where: str = "") -> Any:
        """Return the rows as a DataFrame of polars. Raises ConfigError as `to_arrow`, and where polars is missing."""
        return _require("polars", "to_polars").from_arrow(self.to_arrow(where))

    def to_duckdb(
        self, where: str = "", connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of DuckDB, in a database of its own or `connection`. Raises as `to_arrow`."""
        import duckdb  # noqa: PLC0415

        return (connection or duckdb.connect(":memory:")).from_arrow(self.to_arrow(where))


def _require(package: str, what: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise ConfigError(f"{what} needs the package {package}: pip install {package}") from error


class Crawl(Tables):
    """A crawl in a thread of this process, read by `for page in crawl`; also where a loop runs, as in a notebook.

    Pages come as from `Crawler`. Leaving the loop ends the crawl as `stop` does; `Crawler.resume` continues it.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler.directory)
        self.crawler = crawler
        """The crawler that runs; its `config` is the effective one."""
        self._is_read = False

    def __repr__(self) -> str:
        return repr(self.crawler).replace("Crawler", "Crawl", 1)

    def __reduce__(self) -> NoReturn:
        self.crawler.__reduce__()

    def status(self) -> dict[str, Any]:
        """Return counts, rates and state, also after the loop."""
        return self.crawler.status()

    if not TYPE_CHECKING:  # A type checker refuses the wrong form itself.
        __aiter__ = __await__ = __aenter__ = __aexit__ = __enter__ = __exit__ = refuse_loop(
            "gossamer.crawl is read by `for page in gossamer.crawl(...)`; a coroutine uses `async with "
            "gossamer.Crawler(...) as crawler`, and `async for page in crawler` in it"
        )

    def __iter__(self) -> Iterator[CrawledPage]:
        """Crawl, and yield each page after its commit. A second Ctrl-C does not wait for requests under way. Raises
        ConfigError: it was read before, the directory is in use, or a seed is not a URL; OSError: the disk refused;
        everything up to the last commit is saved.
        """
        reading = self._read()
        _OPEN.add(reading)
        return reading

    def _read(self) -> Generator[CrawledPage, None, None]:
        if self._is_read:
            raise ran_before(self.directory)
        self._is_read = True
        loop = loop_factory()()
        thread = threading.Thread(target=loop.run_forever, name="gossamer-crawl", daemon=True)
        thread.start()

        async def following() -> CrawledPage | None:
            return await anext(pages, None)

        async def on_exit(error: BaseException | None) -> None:
            try:
                await self.crawler.__aexit__(type(error) if error is not None else None, error, None)
            finally:
                await loop.shutdown_asyncgens()
                await loop.shutdown_default_executor()

        def end(error: BaseException | None) -> None:
            ending: Future[None] | None = None
            interrupt: KeyboardInterrupt | None = None
            while ending is None or not ending.done():
                try:
                    ending = ending or asyncio.run_coroutine_threadsafe(on_exit(error), loop)
                    wait([ending])
                except KeyboardInterrupt as again:
                    interrupt = again
                    loop.call_soon_threadsafe(partial(self.crawler.stop, now=True))
            loop.call_soon_threadsafe(loop.stop)
            thread.join(END_S_MAX)
            loop.close()
            if interrupt is not None:
                raise interrupt
            ending.result()

        try:
            asyncio.run_coroutine_threadsafe(self.crawler.__aenter__(), loop).result()
            pages = aiter(self.crawler)
            while (page := asyncio.run_coroutine_threadsafe(following(), loop).result()) is not None:
                yield page
        except BaseException as error:
            if isinstance(error, ConfigError):  # Of a part that names the options of the command line.
                error.args = tuple(map(in_python, error.args))
            end(error)
            raise
        end(None)


_OPEN: WeakSet[Generator[CrawledPage, None, None]] = WeakSet()
"""Loops that have not ended."""


def _close_open() -> None:
    for reading in list(_OPEN):
        with suppress(ValueError):  # Another thread reads it.
            reading.close()


threading._register_atexit(_close_open)  # type: ignore[attr-defined]  # noqa: SLF001 - `atexit` is too late to commit


@with_options
def crawl(
    seeds: Iterable[str] | str = (),
    *,
    output: str | Path = "crawl",
    config: Config | None = None,
    settings: Mapping[str, object] | None = None,
    or_resume: bool = False,
    **options: Unpack[Options],
) -> Crawl:
    """Prepare a crawl that a plain `for` loop reads; the arguments are those of `Crawler`. It begins with the loop.
    Raises ConfigError: as `Crawler`.
    """
    return Crawl(Crawler(seeds, output=output, config=config, settings=settings, or_resume=or_resume, **options))
