"""Which page gets the next free browser."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gossamer.features.render.page import PageError
from gossamer.features.render.renderer import FAILURES_MAX, TRUST_MIN, BrowserShares

SLOW_S = 4.0


class Pool:
    """Browsers whose pages end when the test says so."""

    def __init__(self, browsers: int) -> None:
        self.shares = BrowserShares(browsers)
        self.began: list[str] = []
        self._ends: dict[str, asyncio.Future[tuple[float, bool]]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def come(self, *pages: str, is_again: bool = False) -> None:
        """Have pages wait: `a1` is one of the host `a`."""
        for page in pages:
            self._ends[page] = asyncio.get_running_loop().create_future()
            self._tasks.append(asyncio.create_task(self._page(page, is_again=is_again)))
        await self._rest()

    async def end(self, page: str, held_s: float = 0.1, *, failed: bool = False) -> None:
        self._ends.pop(page).set_result((held_s, failed))
        await self._rest()

    async def pass_quickly(self, host: str, pages: int = TRUST_MIN) -> None:
        for number in range(pages):
            await self.come(f"{host}q{number}")
            await self.end(f"{host}q{number}")
        self.began.clear()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _page(self, page: str, *, is_again: bool) -> None:
        async with self.shares.turn(page[0], is_again=is_again) as share:
            self.began.append(page)
            held_s, failed = await self._ends[page]
            is_quick = held_s < SLOW_S and not failed
            share.note(held_s, asyncio.get_running_loop().time(), is_quick=is_quick, failed=failed)

    async def _rest(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


def run(browsers: int, scenario: Callable[[Pool], Awaitable[None]]) -> None:
    async def whole() -> None:
        pool = Pool(browsers)
        try:
            await scenario(pool)
        finally:
            await pool.close()

    asyncio.run(whole())


def test_a_host_alone_has_all_browsers() -> None:
    async def scenario(pool: Pool) -> None:
        await pool.come("a1", "a2", "a3")
        assert pool.began == ["a1", "a2"]
        await pool.end("a1", SLOW_S)
        assert pool.began == ["a1", "a2", "a3"]

    run(2, scenario)


def test_beside_others_a_host_has_one_browser_until_it_is_trusted() -> None:
    async def scenario(pool: Pool) -> None:
        await pool.come("a1", "b1")
        await pool.end("b1", SLOW_S)
        await pool.come("a2")
        assert pool.began == ["a1", "b1"]
        await pool.end("a1")
        await pool.end("a2", SLOW_S)
        await pool.pass_quickly("a")
        await pool.come("a3", "a4")
        assert pool.began[-2:] == ["a3", "a4"]

    run(2, scenario)


@pytest.mark.promise("Order and fairness", "A host whose pages hang does not keep the browsers from other hosts.")
def test_a_browser_is_left_to_hosts_with_quick_pages() -> None:
    async def scenario(pool: Pool) -> None:
        await pool.come("b0")
        await pool.end("b0", failed=True)
        await pool.pass_quickly("a")
        await pool.come("b1", "b2", "c1", "d1", "a1", "a2")
        assert pool.began == ["b1", "a1"]  # A trusted host takes what is kept for it.
        await pool.end("a1")
        assert pool.began == ["b1", "a1", "a2"]
        await pool.end("a2")
        assert pool.began == ["b1", "a1", "a2"]
        await pool.end("b1", SLOW_S)
        assert pool.began[-1] in ("c1", "d1")  # New hosts come before slow ones.

    run(2, scenario)


def test_a_page_that_failed_is_tried_again_when_no_other_waits() -> None:
    async def scenario(pool: Pool) -> None:
        await pool.come("a1")
        await pool.come("b1", is_again=True)
        await pool.come("c1", "d1")
        for page in ("a1", "c1", "d1"):
            await pool.end(page, SLOW_S)
        assert pool.began == ["a1", "c1", "d1", "b1"]

    run(1, scenario)


def test_the_host_is_next_whose_pages_have_held_browsers_for_the_shortest_time() -> None:
    async def scenario(pool: Pool) -> None:
        await pool.come("a1", "a2", "a3", "b1", "b2", "b3")
        for _ in range(5):
            page = pool.began[-1]
            await pool.end(page, 2.0 if page[0] == "a" else 1.0)
        assert "".join(page[0] for page in pool.began) in ("abbabb", "ababba", "abbaba")

    run(1, scenario)


def test_a_host_whose_pages_fail_in_a_row_gets_no_browser() -> None:
    async def scenario(pool: Pool) -> None:
        for number in range(FAILURES_MAX):
            await pool.come(f"a{number}")
            await pool.end(f"a{number}", SLOW_S, failed=True)
        with pytest.raises(PageError, match="in a row"):
            async with pool.shares.turn("a", is_again=False):
                pass
        await pool.come("b1")
        assert pool.began[-1] == "b1"

    run(2, scenario)


def test_pages_that_leave_give_their_browser_back() -> None:
    async def scenario(pool: Pool) -> None:
        await pool.come("a1", "b1")
        await pool.close()
        await pool.come("c1")
        assert pool.began[-1] == "c1"

    run(1, scenario)
