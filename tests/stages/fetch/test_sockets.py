"""Tests of the sockets that libcurl waits for, with real sockets, epoll and event loops."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from typing import Any

import pycurl
import pytest

from gossamer.stages.fetch.driver import EpollSockets, LoopSockets
from gossamer.world.loop import loop_factory

KINDS = [
    LoopSockets,
    pytest.param(EpollSockets, marks=pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux")),
]
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two connected sockets that do not block: ours and the server's."""
    ours, server = socket.socketpair()
    with ours, server:
        ours.setblocking(False)
        yield ours, server


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop like that of a crawl."""

    @wraps(test)
    def run(**given: Any) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(test(**given))

    return run


async def turns() -> None:
    """Let the event loop poll several times."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", KINDS)
@in_loop
async def test_events_that_are_waited_for_come_and_others_do_not(kind: type[LoopSockets], pair: Pair) -> None:
    ours, server = pair
    came: list[tuple[int, int]] = []
    sockets = kind(asyncio.get_running_loop(), lambda fd, events: came.append((fd, events)))
    fd = ours.fileno()
    sockets.watch(fd, pycurl.POLL_IN)
    await turns()
    assert came == [], "nothing was sent, and it could be written all the time"
    server.send(b"x")
    await turns()
    assert set(came) == {(fd, pycurl.CSELECT_IN)}
    came.clear()
    sockets.watch(fd, pycurl.POLL_OUT)
    await turns()
    assert set(came) == {(fd, pycurl.CSELECT_OUT)}, "what can be read is not waited for any more"
    came.clear()
    sockets.watch(fd, pycurl.POLL_INOUT)
    await turns()
    assert {bit for _, events in came for bit in (1, 2) if events & bit} == {pycurl.CSELECT_IN, pycurl.CSELECT_OUT}
    assert fd in sockets.watched
    sockets.leave(fd)
    came.clear()
    await turns()
    assert came == []
    assert fd not in sockets.watched
    sockets.close()


@pytest.mark.parametrize("kind", KINDS)
@in_loop
async def test_a_socket_that_stays_serves_again(kind: type[LoopSockets], pair: Pair) -> None:
    ours, server = pair
    came: list[int] = []
    sockets = kind(asyncio.get_running_loop(), lambda fd, _: came.append(fd))
    fd = ours.fileno()
    for round_number in range(3):
        sockets.watch(fd, pycurl.POLL_IN)
        server.send(b"x")
        await turns()
        assert fd in came, f"round {round_number}"
        ours.recv(1)
        sockets.leave(fd, stays=True)
        if round_number:
            server.send(b"unexpected")  # It wakes the loop once, and is not passed on.
            came.clear()
            await turns()
            assert came == []
            ours.recv(10)
    sockets.close()


@pytest.mark.parametrize("kind", KINDS)
@in_loop
async def test_a_closed_socket_is_not_mistaken_for_the_next_one_with_its_number(kind: type[LoopSockets]) -> None:
    """libcurl closes a connection that it kept without a word, and the system gives its number to the next one."""
    came: list[int] = []
    sockets = kind(asyncio.get_running_loop(), lambda fd, _: came.append(fd))
    for stays in (True, False):
        ours, server = socket.socketpair()
        number = ours.fileno()
        sockets.watch(number, pycurl.POLL_IN)
        sockets.leave(number, stays=stays)
        ours.close()
        other, its_server = socket.socketpair()
        assert other.fileno() == number, "the lowest number that is free"
        its_server.send(b"x")
        await turns()
        assert came == []
        sockets.watch(number, pycurl.POLL_IN)
        await turns()
        assert number in came
        sockets.leave(number)
        came.clear()
        for one in (server, other, its_server):
            one.close()
    sockets.close()


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux")
@in_loop
async def test_a_connection_that_its_server_closed_wakes_the_loop_once(pair: Pair) -> None:
    ours, server = pair
    sockets = EpollSockets(asyncio.get_running_loop(), lambda *_: pytest.fail("nothing is waited for"))
    sockets.watch(ours.fileno(), pycurl.POLL_IN)
    sockets.leave(ours.fileno(), stays=True)
    server.close()
    await turns()
    assert sockets._epoll.poll(0) == [], "it is registered no more"
    sockets.close()
