"""Archives: several archives used as one, in order."""

import asyncio
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

from gossamer.model.errors import ComponentFailedError, is_mistake
from gossamer.model.pages import Archived, EpochRow, Visited
from gossamer.model.visits import Reply
from gossamer.ports import Archive, EpochArchive, PrerequisiteArchive
from gossamer.world.files import NO_ROOM


class FollowerTask(NamedTuple):
    """Work on one finished file. `next` of its follower returns it again until it is settled."""

    make: Callable[[], Any]
    """Does the work, and returns the result for `settle`. Blocks; for a thread."""
    settle: Callable[[Any], None]
    """Enters the result; takes effect with the next commit. Runs on the loop, like `next`."""
    frees_disk: bool = True
    """Whether the commit after `settle` removes files; if so, commit before the next task."""


class Following:
    """Makes something of finished files, one after another."""

    def next(self) -> FollowerTask | None:
        """Return the task for the oldest such file, or None."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what is open: nothing by default. Blocks."""


FOLLOW_S = 1.0
"""Interval of checks for finished logs."""


class Followers:
    """Several followers as one: each in turn while it has tasks, one task at a time, in a thread."""

    def __init__(self, followers: Sequence[Following]) -> None:
        self._followers = tuple(followers)
        self._begun: tuple[FollowerTask, asyncio.Future[Any]] | None = None

    async def run(self, is_held: Callable[[], object]) -> None:
        """Do tasks while the crawl goes on, until cancelled."""
        while True:
            await asyncio.sleep(FOLLOW_S)
            if not is_held():  # A conversion needs room before it gives some back.
                await self.step()

    async def step(self) -> FollowerTask | None:
        """Do the next task and return it, or None when there is no task."""
        if self._begun is None:
            found = self.next()
            if found is None:
                return None
            self._begun = (found, asyncio.get_running_loop().run_in_executor(None, found.make))
        task, making = self._begun
        # A thread cannot be cancelled: after a cancellation, the next caller waits for it and settles its result.
        result = await asyncio.shield(making)
        self._begun = None
        task.settle(result)
        return task

    async def wait(self) -> None:
        """Wait for the thread that still writes; its result is dropped."""
        if self._begun is not None:
            _, making = self._begun
            self._begun = None
            await asyncio.wait([making])
            if not making.cancelled():
                making.exception()

    def next(self) -> FollowerTask | None:
        """Return the next task."""
        return next((task for follower in self._followers if (task := follower.next()) is not None), None)

    def close(self) -> None:
        """Close all files. Blocks: an index first finishes its merges."""
        for follower in self._followers:
            follower.close()


class Archives:
    """Passes each attempt to every archive: our own first, since the WARC archive fills in the row's place.

    A component that raises ends the crawl (`ComponentFailedError`): the open epoch does not count then, for any
    archive, and `resume` fetches its pages again.
    """

    def __init__(self, own: Sequence[Archive], components: Sequence[tuple[str, Archive]] = ()) -> None:
        """`components` are the operator's, each with the name that the configuration gives."""
        self._own = tuple(own)
        self._components = tuple(components)
        every = [*self._own, *(component for _, component in self._components)]
        self._of_epochs = [archive for archive in every if isinstance(archive, EpochArchive)]
        self._of_prerequisites = [archive for archive in every if isinstance(archive, PrerequisiteArchive)]
        self._names = {id(component): name for name, component in self._components}
        self._closed = False
        self.failure: ComponentFailedError | None = None
        """Error of the first component that failed in `close`: raise it once everything else is saved."""

    def add(self, visited: Visited) -> Archived:
        """Return where the first archive that keeps responses put this one. Raises OSError: the disk is full;
        ComponentFailedError: a component failed.
        """
        place = Archived()
        for archive in self._own:
            place = _first(place, archive.add(visited))
        for name, component in self._components:
            with _blaming(name, f"add ({visited.row.url})"):
                place = _first(place, component.add(visited))
        return place

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Pass a reply to the archives that keep such replies. After `close` it is dropped: no page waits for it.
        Raises OSError: the disk is full; ComponentFailedError: a component failed.
        """
        if not self._closed:
            for archive in self._of_prerequisites:
                with self._blaming_component(archive, f"add_prerequisite ({reply.url})"):
                    archive.add_prerequisite(reply, via, link_type)

    def add_epoch(self, row: EpochRow) -> None:
        """Pass the row of a commit to those archives that keep such rows."""
        if not self._closed:
            for archive in self._of_epochs:
                with self._blaming_component(archive, "add_epoch"):
                    archive.add_epoch(row)

    def cut(self) -> None:
        """Write what is buffered to the journals. After `close` nothing is buffered. Raises OSError: the disk is full;
        ComponentFailedError: a component failed.
        """
        if self._closed:
            return
        for archive in self._own:
            archive.cut()
        for name, component in self._components:
            with _blaming(name, "cut"):
                component.cut()

    def finish_segments(self) -> None:
        """Finish our growing files and begin new ones: a checkpoint copies finished files once."""
        for archive in self._own:
            archive.close()

    def close(self) -> None:
        """Finish all archives, once: the commit that follows makes the files final. If a component fails, the others
        are finished all the same, and the error is in `failure`.
        """
        if self._closed:
            return
        self.finish_segments()
        for name, component in self._components:
            try:
                with _blaming(name, "close"):
                    component.cut()
                    component.close()
            except ComponentFailedError as error:
                self.failure = self.failure or error
        self._closed = True

    def _blaming_component(self, archive: object, what: str) -> AbstractContextManager[None]:
        name = self._names.get(id(archive))
        return nullcontext() if name is None else _blaming(name, what)


def _first(place: Archived, other: Archived | None) -> Archived:
    return place if place.warc_file or other is None or not other.warc_file else other


@contextmanager
def _blaming(name: str, what: str) -> Iterator[None]:
    """Raise an exception of a component as an error that names it, except for a full disk."""
    try:
        yield
    except BaseException as error:
        if not is_mistake(error):
            raise
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise
        line = f"components.archives: {name} failed in {what}: {type(error).__name__}: {error}"
        raise ComponentFailedError(line, "".join(traceback.format_exception(error))) from error
