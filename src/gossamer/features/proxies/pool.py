"""Pool: gives each request a proxy, and leaves out proxies that fail. No clock, no waiting, no I/O.

A site keeps its proxy, so that its sessions keep their address. Only a failure of the proxy itself changes it: what a
server answers (403, 429, Retry-After, a challenge) applies to the crawl, with any proxy.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Final
from zlib import crc32

import msgspec

from gossamer.features.proxies.options import ProxiesOptions
from gossamer.model.links import ALLOWED, Verdict
from gossamer.model.status import FailingProxy
from gossamer.model.visits import Reply, Request
from gossamer.ports import VisitMiddleware
from gossamer.url.url import Url

SITES_MAX: Final = 100_000
"""Sites whose proxy is remembered."""
UNANSWERED_MAX: Final = 2
"""Requests for a site that never answered, after which another proxy tries: this one may pass nothing on."""


class PooledProxy(msgspec.Struct):
    """A proxy, and whether it works."""

    url: str
    label: str
    shown: str
    """Its label and its address, without credentials."""
    failures: int = 0
    """In a row."""
    failing_since: float = 0.0
    error: str = ""
    out_until: float = 0.0


class SiteRoute(msgspec.Struct):
    """How requests to a site go out."""

    proxy: PooledProxy
    unanswered: float = 0.0
    """Requests through that proxy; minus infinity once the site answered."""
    changes: int = 0
    """How often it got another proxy."""


class ProxyPool(VisitMiddleware):
    """Chooses proxies. 1 µs a request."""

    name = "proxies"

    def __init__(
        self,
        urls: Sequence[tuple[str, str]],
        options: ProxiesOptions,
        warn: Callable[[str, str], None],
        add: Callable[[str, str, int], None],
    ) -> None:
        """`urls` are the labels and URLs of the proxies, with their secrets; `warn` gets the label and address of a
        proxy and a sentence about why it is left out, which is empty when it works again; `add` counts answers and
        failures of each.
        """
        self._options = options
        self._warn = warn
        self._add = add
        shown = [f"{label} {url.rstrip('/').rpartition('@')[2].rpartition('//')[2]}" for label, url in urls]
        self._proxies = [PooledProxy(url, label, one) for (label, url), one in zip(urls, shown, strict=True)]
        for one in shown:
            add("proxy_answers", one, 0)
        self._routes: dict[tuple[str, str], SiteRoute] = {}
        """By site and label."""

    def judge(self, url: Url, now: float) -> Verdict:
        if not url.text.startswith("http"):
            return Verdict(outcome="unsupported", reason="only http and https go through the proxies")
        until = self._choose(url, now).out_until
        if until > now:
            return Verdict(wait_until=until, reason="its proxies have failed, and are left out for a while")
        return ALLOWED

    def route(self, url: Url, request: Request, now: float) -> Request:
        proxy = self._choose(url, now)
        label = self._label(url.host)
        found = self._routes.get((url.site, label))
        if found is None:
            if len(self._routes) >= SITES_MAX:
                del self._routes[next(iter(self._routes))]
            found = self._routes[url.site, label] = SiteRoute(proxy)
        elif found.proxy is not proxy:
            found.proxy = proxy
            found.unanswered = 0.0
            found.changes += 1
        found.unanswered += 1.0
        count = sum(label in ("", one.label) for one in self._proxies)
        return msgspec.structs.replace(request, proxy=proxy.url, untried=found.changes + 1 < count)

    def received(self, url: Url, reply: Reply, now: float) -> Reply:
        found = self._route_of(url)
        if found is None:
            return reply
        if reply.status < 500:  # Errors may be the proxy's own: Squid answers 503.
            found.unanswered = -inf
        self._add("proxy_answers", found.proxy.shown, 1)
        if found.proxy.failures:
            found.proxy.failures = 0
            found.proxy.out_until = 0.0
            self._warn(found.proxy.shown, "")
        return reply

    def proxy_failed(self, url: Url, error: str, now: float) -> bool:
        found = self._route_of(url)
        if found is not None and (proxy := found.proxy).out_until <= now:
            longest = self._options.retry_s_max
            proxy.out_until = now + min(self._options.retry_s_first * 2.0 ** min(proxy.failures, 20), longest)
            proxy.failing_since = proxy.failing_since if proxy.failures else now
            proxy.failures += 1
            proxy.error = error
            self._add("proxy_failures", proxy.shown, 1)
            self._warn(proxy.shown, f"the proxy {proxy.shown} is left out for a while: {error}")
        return self._choose(url, now).out_until <= now

    def failing(self, now: float) -> list[FailingProxy]:
        """Return the proxies that are left out now."""
        return [
            FailingProxy(proxy=one.shown, since=one.failing_since, until=one.out_until, reason=one.error)
            for one in self._proxies
            if one.out_until > now
        ]

    def _choose(self, url: Url, now: float) -> PooledProxy:
        """Return the proxy of a URL's site while it works, else another; if none works, the first to be tried again."""
        label = self._label(url.host)
        found = self._routes.get((url.site, label))
        if found is not None and found.proxy.out_until <= now and found.unanswered < UNANSWERED_MAX:
            return found.proxy
        listed = [one for one in self._proxies if label in ("", one.label)]
        listed.sort(key=lambda one: crc32(f"{url.site} {one.url}".encode()))
        place = listed.index(found.proxy) + 1 if found is not None else 0  # The next one in turn.
        return min(listed[place:] + listed[:place], key=lambda one: max(one.out_until - now, 0.0))

    def _route_of(self, url: Url) -> SiteRoute | None:
        return self._routes.get((url.site, self._label(url.host)))

    def _label(self, host: str) -> str:
        """Return the label for a host; empty: any."""
        places = self._options.places
        if not places or host in places:
            return places.get(host, "")
        parts = host.split(".")
        return next((places[f".{end}"] for i in range(len(parts)) if f".{(end := '.'.join(parts[i:]))}" in places), "")
