"""Archives: the archives of any crawler become the tables of a crawl, for Python programs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Unpack

from gossamer.api.given import check_keywords, directory_of, require_callable, require_config, sets_of, with_options
from gossamer.api.importing import import_archives as run_import
from gossamer.api.iterating import Tables
from gossamer.config import Config, configure
from gossamer.config.flags import Options
from gossamer.model.errors import ConfigError
from gossamer.results.imports.importing import ImportRequest, ImportStatus

Show = Callable[[ImportStatus], object]


class Import(Tables):
    """An import that is done: the tables of its directory, and what was found in the archives."""

    def __init__(self, directory: Path, status: ImportStatus, pending: int) -> None:
        super().__init__(directory)
        self.status = status
        """Counts: `captures`, `left_out` by reason, `refused` records and `first_refused`."""
        self.pending = pending
        """URLs that pages link to and the archives do not hold: `Crawler.resume` fetches them."""


@with_options
def import_archives(
    sources: Iterable[str | Path] | str | Path,
    *,
    output: str | Path = "crawl",
    seeds: Iterable[str] | str = (),
    copy: bool = False,
    statuses: Iterable[int] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    on_progress: Show | None = None,
    config: Config | None = None,
    settings: Mapping[str, object] | None = None,
    **options: Unpack[Options],
) -> Import:
    """Import WARC, WACZ, ARC and HAR files into the directory `output`. Blocks, also where a loop runs.

    An interrupted import is finished by the same call; each record is imported once. With `copy`, no archive is read
    in place later. `statuses`, `since` and `until` choose captures by HTTP status and time. `on_progress` is called
    about twice a second, in another thread.

    Raises:
        ConfigError: an argument is wrong, a source leads to nothing, or the directory holds a crawl.
        OSError: the disk refuses; what was committed stays.
    """
    directory = directory_of(output, "output")
    require_config(config)
    require_callable(on_progress, "on_progress")
    names = _names_of(sources)
    statuses = list(statuses) if isinstance(statuses, Iterable) else statuses
    if not isinstance(statuses, Iterable) or not all(type(status) is int for status in statuses):
        raise ConfigError(f"statuses is {statuses!r}: give HTTP statuses, such as [200]")
    request = ImportRequest(
        (), copies=copy, judges_scope=options.get("scope") is not None, statuses=frozenset(statuses),
        since=seconds_of(since, "since", 0.0), until=seconds_of(until, "until", float("inf")),
    )  # fmt: skip
    with check_keywords(options):
        if config is None:
            chosen = [seeds] if isinstance(seeds, str) else list(seeds)
            config = configure(options={**options, "output": str(directory)}, sets=sets_of(settings), seeds=chosen)
        status, pending = _run(names, directory, config, request, on_progress)
    return Import(directory, status, pending)


def seconds_of(given: datetime | str | None, name: str, default: float) -> float:
    """Return seconds since 1970 of a date, or of a date and a time; in UTC if it names no zone."""
    if given is None:
        return default
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} {given}: expected a date such as 2026-01-31 or 2026-01-31T12:00:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _names_of(sources: object) -> list[str]:
    many = [sources] if isinstance(sources, str | os.PathLike) or not isinstance(sources, Iterable) else list(sources)
    if not many or not all(isinstance(one, str | os.PathLike) for one in many):
        raise ConfigError(f'sources is {sources!r}: give archives, folders or addresses, such as ["site.warc.gz"]')
    return [str(os.fspath(one)) for one in many if isinstance(one, str | os.PathLike)]


def _run(
    names: list[str], directory: Path, config: Config, request: ImportRequest, show: Show | None
) -> tuple[ImportStatus, int]:
    """Import in a thread with a loop, and return the counts. Ctrl-C ends it after the current record."""
    done: Future[tuple[ImportStatus, int]] = Future()
    stop = asyncio.Event()
    loop = asyncio.new_event_loop()
    last = ImportStatus()

    def note(status: ImportStatus) -> None:
        nonlocal last
        last = status
        if show is not None:
            show(status)

    def work() -> None:
        try:
            _, pending = loop.run_until_complete(run_import(names, directory, config, request, note, stop))
            done.set_result((last, pending))
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
            done.set_exception(error)
        finally:
            loop.close()

    thread = Thread(target=work, name="gossamer-import")
    thread.start()
    try:
        return done.result()
    except KeyboardInterrupt:
        if not done.done():
            loop.call_soon_threadsafe(stop.set)
        raise
    finally:
        thread.join()
