"""Errands: robots.txt fetched through the gates of whatever host its redirects lead to."""

from __future__ import annotations

from gossamer.crawl.logs import Logs
from gossamer.crawl.permit import Permit
from gossamer.crawl.router import Router
from gossamer.model.visits import Errand, Failure, Reply
from gossamer.ports import HostControl, Namer


class Errands:
    """Takes what a robots.txt request brought: the next hop, or an answer that lets the waiting host go on."""

    def __init__(
        self, permit: Permit, hosts: HostControl, namer: Namer, logs: Logs, router: Router | None = None
    ) -> None:
        self._permit = permit
        self._hosts = hosts
        self._namer = namer
        self._logs = logs
        self._router = router

    def answer(self, errand: Errand, body: bytes, result: Reply | Failure, now: float) -> None:
        """Follow a redirect as another errand, or tell the gate and wake the host that waits."""
        if self._router is not None and not self._router.has(errand.origin):
            self._router.answer_errand(errand, result, body)
            return
        robots = self._permit.robots
        target = robots.answer(errand, result, body, now)
        while target is not None:
            url = self._namer.name(target)
            refused = Failure("robots_unreachable", f"robots.txt redirects to {target}, which cannot be asked")
            may = url is None or not self._permit.excludes(url)
            if url is not None and may and self._run(Errand(errand.origin, url, errand.hops + 1), now):
                return
            target = robots.answer(errand, refused, b"", now)
        if isinstance(result, Failure) or result.status >= 400:
            why = result.error if isinstance(result, Failure) else f"HTTP {result.status}"
            self._logs.info("robots", url=errand.url.text, error=why)
        self._hosts.set_crawl_delay(errand.origin, robots.crawl_delay_s(errand.origin), now)
        said = robots.verdict(errand.origin, now)
        if (
            said.kind == "wait" and not said.alone
        ):  # Noted now, not at the next URL's turn: a crash between would forget it.
            self._hosts.rest(errand.origin, said.until, said.reason, now)
        self._hosts.unpark(errand.origin, now)

    def _run(self, errand: Errand, now: float) -> bool:
        if self._router is None or self._router.has(errand.url):
            return self._hosts.run_errand(errand, now)
        return self._router.run_errand(errand)
