"""Base: what `Crawler` and `ClusterCrawler` have in common."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, cast

from gossamer.api.feeding import check_segments
from gossamer.api.given import (
    SuggestsAttributes,
    check_keywords,
    plain_value,
    refuse_loop,
    require_callable,
    require_config,
    seeds_of,
)
from gossamer.api.page import wait_for_end
from gossamer.api.verbs import Asking
from gossamer.assembly.home import IMPORTS, refuse_maintained
from gossamer.config import Config, configure
from gossamer.config.flags import BY_NAME, Options
from gossamer.config.gather import reopen
from gossamer.config.lists import check_lists
from gossamer.config.live import FILE
from gossamer.config.seeds import check_seeds
from gossamer.engine.logs import log_crash as log_crash  # noqa: PLC0414 - for the commands
from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word

if TYPE_CHECKING:
    from gossamer.api.callbacks import Callbacks, MentionReceiver
    from gossamer.engine.logs import Logs


class BaseCrawler(SuggestsAttributes, ABC):
    """A crawl that is run once. As a context it runs until the context ends."""

    _others = "crawler"

    def _begin(self, directory: Path, config: Config) -> None:
        self.directory = directory
        self.config = config
        """The effective configuration."""
        self.stays_paused = False
        """Whether a pause outlives its process, which died or was restarted by a command."""
        self.starts_again = False
        """Whether its process is to start it again once it has stopped."""
        self.callbacks: Callbacks | None = None
        """Receiver of requests from hubs; None while nothing runs, and in a crawl without subscriptions."""
        self.mentions: MentionReceiver | None = None
        """Receiver of notices of links; None while nothing runs, and in a crawl that accepts none."""
        self._listeners: list[Callable[[str], None]] = []
        self._asking = Asking(self.status)
        self._logs: Logs | None = None
        """Those of the crawl while it runs."""
        self._task: asyncio.Task[Any] | None = None
        self._was_raised = False
        """Whether the iterator has reported the end."""
        self._has_run = False

    @abstractmethod
    def status(self, *, detail: bool = False) -> dict[str, Any]:
        """Return counts, rates and state."""

    @abstractmethod
    def stop(self, *, now: bool = False, again: bool = False) -> None:
        """End the crawl: finish what is in flight and commit; with `now`, commit and go; with `again`, start again."""

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        """Answer a request as the control socket does: with `ok` and `result`, or `error` and `kind`. Never raises."""
        return await self._asking.ask(request)

    if not TYPE_CHECKING:  # A type checker refuses the wrong form itself.
        __iter__ = __await__ = __enter__ = __exit__ = refuse_loop(
            "a Crawler runs in `async with gossamer.Crawler(...) as crawler`, and `async for page in crawler` "
            "reads it; a plain `for` reads gossamer.crawl(...)"
        )

    def __repr__(self) -> str:
        state = self.status()
        return f"<{type(self).__name__} {self.directory}: {state['state']}, {state.get('pages', 0)} pages>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a crawl is not copied, pickled or sent to a process; gossamer.Tables({str(self.directory)!r}) can be"
        )

    def on_note(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with each sentence for people. Exceptions that it raises are logged."""
        require_callable(callback, "callback")
        self._listeners.append(callback)

    def log_error(self, error: Exception) -> None:
        """Log an internal error outside the crawl, such as one of the console's server."""
        if self._logs is not None:
            self._logs.critical("console_failed", error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self.stop(now=kind is not None and issubclass(kind, asyncio.CancelledError))
        failed = await wait_for_end(self._task, lambda: self.stop(now=True))
        if kind is None and failed is not None and not self._was_raised:
            raise failed  # If both fail, the caller sees its own error.

    def _tell(self, sentence: str) -> None:
        for listener in self._listeners:
            try:
                listener(sentence)
            except Exception as error:  # noqa: BLE001 - a listener's mistake is not that of the page it hears of
                if self._logs is not None:
                    self._logs.critical("listener_failed", error, note=sentence)

    def _configure(self, config: Config) -> None:
        self.config = config

    def _require_loop(self) -> None:
        """Raise ConfigError: no loop of asyncio runs, as in trio, or this crawler has run before."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            trio = "under trio, read gossamer.crawl(...) in a thread: trio.to_thread.run_sync"
            raise ConfigError(f"a Crawler runs in asyncio; {trio}") from None
        if self._has_run:
            raise ran_before(self.directory, type(self).__name__)


def config_for(
    directory: Path, seeds: object, config: Config | None, sets: Sequence[str], options: Options, *,
    resuming: bool, or_resume: bool = False,
) -> Config:  # fmt: skip
    """Return the configuration of a new crawl, or of the one in `directory`: changed, or with `or_resume` as it is.
    Raises ConfigError: a mistake that the operator can fix; also if there is no crawl to resume, or one already.
    """
    require_config(config)
    others = set(seeds_of(seeds)).difference(config.seeds.urls, [config.seeds.file]) if config is not None else ()
    if config is not None and (others or sets or options):  # They would be dropped in silence.
        raise ConfigError("config replaces seeds, settings and options: give them to configure(), or leave config out")
    given = {name: plain_value(name, one) if name in BY_NAME else one for name, one in options.items()}
    options = cast("Options", given)  # One that no option has is named later.
    stored = directory / FILE
    if resuming:
        if not stored.exists():
            raise ConfigError(f"{directory} holds no crawl (it has no crawl.toml)")
        refuse_maintained(directory)
        if (directory / IMPORTS).exists():
            from gossamer.results.imports.progress import refuse_half_imported  # noqa: PLC0415 - of imports alone

            refuse_half_imported(directory)
        with check_keywords(options):
            return config if config is not None else reopen(stored, options=options, sets=sets)
    if stored.exists() and not or_resume:
        raise already_there(directory)
    if directory.is_file():
        raise ConfigError(f"output {directory} is a file: name a directory")
    with check_keywords(options):
        if config is None:
            config = configure(options={**options, "output": str(directory)}, sets=sets, seeds=seeds_of(seeds))
        if stored.exists():
            begun = reopen(stored)
            if (config.crawl.mode, config.seeds) != (begun.crawl.mode, begun.seeds):
                raise ConfigError(f"{directory} holds a crawl of other seeds: name another output")
            return begun
        check_lists(config)
        check_seeds(config)
        check_segments(config)
    return config


def ran_before(directory: Path, name: str = "Crawler") -> ConfigError:
    """Return the error for a crawl that is run or read for the second time. `name` is that of a class."""
    there = f"Tables({str(directory)!r}).pages has its pages, and {name}.resume({str(directory)!r}) continues it"
    return ConfigError(f"this crawl was read before; {there}")


def already_there(directory: Path) -> ConfigError:
    """Return the error for a new crawl in a directory that has one."""
    resume = f"`gossamer resume {shell_word(directory)}`, or or_resume=True in Python,"
    return ConfigError(f"{directory} already holds a crawl; {resume} continues it")
