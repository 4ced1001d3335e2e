"""Rules: a robots.txt file, read for one product token (RFC 9309, sections 2.2 and 2.3.1).

Where the standard leaves a choice, the reading that asks less of the server is taken; `docs/robots.md` lists them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Self

from gossamer.robots.patterns import Matcher, pattern_of, target_of

BODY_BYTES_MAX = 512_000
SITEMAPS_MAX = 1_000

_AGENT = re.compile(rb"\*(?=\s|$)|[A-Za-z_-]+(?![\w.-])")
# As often misspelt; reading them as meant asks less of the server.
_KEYS = {
    b"user-agent": "agent",
    b"useragent": "agent",
    b"user agent": "agent",
    b"allow": "allow",
    b"disallow": "disallow",
    b"dissallow": "disallow",
    b"dissalow": "disallow",
    b"disalow": "disallow",
    b"diasllow": "disallow",
    b"disallaw": "disallow",
    b"crawl-delay": "delay",
    b"crawldelay": "delay",
    b"sitemap": "sitemap",
    b"site-map": "sitemap",
}


class Rules:
    """What one robots.txt says to us. Immutable once made."""

    def __init__(self, matcher: Matcher, crawl_delay_s: float | None, sitemaps: tuple[str, ...]) -> None:
        self._matcher = matcher
        self.crawl_delay_s = crawl_delay_s
        """Seconds between requests that it asks of us, or None."""
        self.sitemaps = sitemaps
        """Addresses of sitemaps as written, at most `SITEMAPS_MAX`."""

    @classmethod
    def parse(cls, body: bytes, product_token: str = "gossamer", bytes_max: int = BODY_BYTES_MAX) -> Self:  # noqa: S107
        """Read a file: any bytes are a robots.txt, at worst one without rules. Linear; about 0.5 µs a line."""
        named = _Groups()
        anybody = _Groups()
        sitemaps: list[str] = []
        token = product_token.lower().encode()
        seen_us = in_agents = just_agents = False
        current: list[_Groups] = []
        delayed: list[_Groups] = []
        for key, value in _records(cut(body, bytes_max)):
            if key == "agent":
                # A delay is another record, which ends no group of rules (section 2.2.4), but everybody writes it as
                # if it did: so it is for the agents named since the last record of either kind.
                if not in_agents:
                    current = []
                if not just_agents:
                    delayed = []
                in_agents = just_agents = True
                match = _AGENT.match(value)
                agent = match[0].lower() if match is not None else b""
                if agent == token:
                    seen_us = True
                    current.append(named)
                    delayed.append(named)
                elif agent == b"*":
                    current.append(anybody)
                    delayed.append(anybody)
            elif key == "sitemap":
                if value and len(sitemaps) < SITEMAPS_MAX:
                    sitemaps.append(value.decode("utf-8", "replace"))
            elif key == "delay":
                just_agents = False
                for group in delayed:
                    group.delay(value)
            else:
                in_agents = just_agents = False
                for group in current:
                    group.rule(value, allow=key == "allow")
        ours = named if seen_us else anybody
        return cls(Matcher(ours.rules), ours.crawl_delay_s, tuple(sitemaps))

    def allows(self, url_or_path: str) -> bool:
        """Say whether we may fetch this: an absolute URL, or a path with its query. About 1 µs for most files."""
        target = target_of(url_or_path)
        return target == "/robots.txt" or self._matcher.allows(target)


class _Groups:
    """All groups of one agent, merged (section 2.2.1)."""

    def __init__(self) -> None:
        self.rules: dict[str, bool] = {}
        """Pattern in its normal form: allowed. Of equal patterns Allow wins (section 2.2.2)."""
        self.crawl_delay_s: float | None = None

    def rule(self, value: bytes, *, allow: bool) -> None:
        pattern = pattern_of(value, allow=allow)
        if pattern is not None:
            self.rules[pattern] = self.rules.get(pattern, False) or allow

    def delay(self, value: bytes) -> None:
        match = re.match(rb"[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}", value)
        if match is not None:
            # Of several the longest asks least.
            self.crawl_delay_s = max(self.crawl_delay_s or 0.0, float(match[0]))


def cut(body: bytes, bytes_max: int) -> bytes:
    """Return what is read of a file: whole lines within the bound, in UTF-8, the byte order mark gone."""
    if body[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        body = body[: 2 * bytes_max].decode("utf-16", "replace").encode()
    body = body.removeprefix(codecs.BOM_UTF8).removeprefix(codecs.BOM_UTF8[:2])  # Also half of one.
    if len(body) <= bytes_max:
        return body
    end = max(body.rfind(b"\n", 0, bytes_max), body.rfind(b"\r", 0, bytes_max))
    return body[: end + 1]


def _records(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (kind, value) of the lines that mean something. A line ends with CR, LF or both."""
    for line in body.splitlines():
        line = line.partition(b"#")[0].strip()
        if not line:
            continue
        key, colon, value = line.partition(b":")
        kind = _KEYS.get(key.rstrip().lower()) if colon else None
        if kind is None:  # The colon may be forgotten.
            words = line.split()
            if len(words) == 2:
                kind, value = _KEYS.get(words[0].lower()), words[1]
        if kind is not None:
            yield kind, value.strip()
