"""Sockets: waits for what libcurl waits for at its sockets."""

import asyncio
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pycurl

EVENTS_MAX: Final = 64  # At once. The others follow in the next iteration of the event loop.


class LoopSockets:
    """Sockets as readers and writers of the event loop: for systems without epoll."""

    def __init__(self, loop: asyncio.AbstractEventLoop, drive: Callable[[int, int], None]) -> None:
        """`drive` takes a descriptor and what came: CSELECT_IN, CSELECT_OUT, or both."""
        self._loop = loop
        self._drive = drive
        self.watched: dict[int, int] = {}
        """What is waited for, by descriptor."""

    def watch(self, fd: int, what: int) -> None:
        """Wait for POLL_IN, POLL_OUT or POLL_INOUT at a socket, and for nothing else."""
        self.leave(fd)
        self.watched[fd] = what
        if what & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._drive, fd, pycurl.CSELECT_IN)
        if what & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._drive, fd, pycurl.CSELECT_OUT)

    def leave(self, fd: int, *, stays: bool = False) -> None:
        """Wait for nothing at a socket. `stays`: it has no other descriptor, and probably serves another request."""
        if self.watched.pop(fd, 0):
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)

    def close(self) -> None:
        """Wait for nothing more."""
        for fd in list(self.watched):
            self.leave(fd)


class EpollSockets(LoopSockets):
    """Sockets in one epoll, which the loop watches: uvloop takes eight system calls to add and remove a reader. One
    that `stays` is removed at its next event, if it is not watched then. The kernel removes closed ones.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, drive: Callable[[int, int], None]) -> None:
        super().__init__(loop, drive)
        self._epoll = select.epoll()
        loop.add_reader(self._epoll.fileno(), self._pass_on)

    def watch(self, fd: int, what: int) -> None:
        self.watched[fd] = what
        events = (what & pycurl.POLL_IN and select.EPOLLIN) | (what & pycurl.POLL_OUT and select.EPOLLOUT)
        try:
            self._epoll.modify(fd, events)
        except FileNotFoundError:
            self._epoll.register(fd, events)

    def leave(self, fd: int, *, stays: bool = False) -> None:
        if self.watched.pop(fd, 0) and not stays:
            self._remove(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _pass_on(self) -> None:
        for fd, events in self._epoll.poll(0, EVENTS_MAX):
            what = self.watched.get(fd, 0)
            if not what:
                self._remove(fd)
                continue
            came = (events & ~select.EPOLLOUT and pycurl.CSELECT_IN) | (events & ~select.EPOLLIN and pycurl.CSELECT_OUT)
            self._drive(fd, came & what)

    def _remove(self, fd: int) -> None:
        with suppress(OSError):  # It is closed already.
            self._epoll.unregister(fd)


Sockets: Final = EpollSockets if sys.platform == "linux" else LoopSockets
