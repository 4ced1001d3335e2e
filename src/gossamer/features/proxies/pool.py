"""Pool: gives each request a proxy, and leaves out proxies that fail. No clock, no waiting, no I/O.

A site keeps its proxy, so that its sessions keep their address. Only a failure of the proxy itself changes it: what a
server answers (403, 429, Retry-After, a challenge) applies to the crawl, with any proxy.
"""

from collections.abc import Callable, Sequence
from typing import Final
from zlib import crc32

import msgspec

from gossamer.features.proxies.options import ProxiesOptions
from gossamer.model.links import ALLOWED, Verdict
from gossamer.model.visits import Reply, Request
from gossamer.ports import VisitMiddleware
from gossamer.url.url import Url

SITES_MAX: Final = 100_000
"""Sites whose proxy is remembered."""
UNANSWERED_MAX: Final = 2
"""Requests for a site that never answered, after which another proxy tries: this one may pass nothing on."""
GATEWAY_STATUSES: Final = frozenset((502, 504))
"""Statuses of a proxy that does not reach a site."""


class PooledProxy(msgspec.Struct):
    """A proxy, and whether it works."""

    url: str
    label: str
    failures: int = 0
    """In a row."""
    out_until: float = 0.0

    @property
    def shown(self) -> str:
        """Its label and its address, without credentials."""
        return f"{self.label} {self.url.rstrip('/').rpartition('@')[2].rpartition('//')[2]}"


class SiteProxy(msgspec.Struct):
    """The proxy of a site."""

    proxy: PooledProxy
    answered: bool = False
    """Whether the site answered through it."""
    requests: int = 0


class ProxyPool(VisitMiddleware):
    """Chooses proxies. 1 µs a request."""

    name = "proxies"

    def __init__(
        self, urls: Sequence[tuple[str, str]], options: ProxiesOptions, warn: Callable[[str, str], None]
    ) -> None:
        """`urls` are the labels and URLs of the proxies, with their secrets; `warn` gets the label and address of a
        proxy and a sentence about why it is left out, which is empty when it works again.
        """
        self._options = options
        self._warn = warn
        self._proxies = [PooledProxy(url, label) for label, url in urls]
        self._by_site: dict[tuple[str, str], SiteProxy] = {}
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
        if len(self._by_site) >= SITES_MAX:
            del self._by_site[next(iter(self._by_site))]
        kept = self._by_site.get((url.site, self._label(url.host)))
        if kept is None or kept.proxy is not proxy:
            kept = self._by_site[url.site, self._label(url.host)] = SiteProxy(proxy)
        kept.requests += 1
        return msgspec.structs.replace(request, proxy=proxy.url)

    def received(self, url: Url, reply: Reply, now: float) -> Reply:
        kept = self._by_site.get((url.site, self._label(url.host)))
        if kept is None:
            return reply
        proxy = kept.proxy
        kept.answered = kept.answered or reply.status not in GATEWAY_STATUSES
        if proxy.failures:
            proxy.failures = 0
            proxy.out_until = 0.0
            self._warn(proxy.shown, "")
        return reply

    def proxy_failed(self, url: Url, error: str, now: float) -> bool:
        kept = self._by_site.get((url.site, self._label(url.host)))
        if kept is not None and kept.proxy.out_until <= now:
            proxy = kept.proxy
            longest = self._options.retry_s_max
            proxy.out_until = now + min(self._options.retry_s_first * 2.0 ** min(proxy.failures, 20), longest)
            proxy.failures += 1
            self._warn(proxy.shown, f"the proxy {proxy.shown} is left out for a while: {error}")
        return self._choose(url, now).out_until <= now

    def _choose(self, url: Url, now: float) -> PooledProxy:
        """Return the proxy of a URL's site while it works, else another; if none works, the first to be tried again."""
        label = self._label(url.host)
        kept = self._by_site.get((url.site, label))
        if kept is not None and kept.proxy.out_until <= now and (kept.answered or kept.requests < UNANSWERED_MAX):
            return kept.proxy
        listed = [one for one in self._proxies if label in ("", one.label)]
        listed.sort(key=lambda one: crc32(f"{url.site} {one.url}".encode()))
        if kept is not None:  # The next one in turn.
            place = listed.index(kept.proxy) + 1
            listed = listed[place:] + listed[:place]
        return min(listed, key=lambda one: max(one.out_until - now, 0.0))

    def _label(self, host: str) -> str:
        """Return the label for a host; empty: any."""
        places = self._options.places
        if not places or host in places:
            return places.get(host, "")
        parts = host.split(".")
        return next((places[f".{end}"] for i in range(len(parts)) if f".{(end := '.'.join(parts[i:]))}" in places), "")
