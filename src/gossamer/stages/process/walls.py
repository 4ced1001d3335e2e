"""Walls: recognizes replies of bot protection instead of a page, pages that ask for consent first, and prices of pages.

The rules are data (`walls.toml`). A page about bot protection must not be taken for a wall: for a reply with success,
the whole title must match a rule, and the markup must have a mark of the same rule; or the page has no title except its
host's name, and is so small that nothing else fits beside the mark.
"""

import pkgutil
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Final, Self

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError
from gossamer.model.visits import first_values, lower_names

LOOKED_AT_BYTES_MAX: Final = 65_536
"""Beginning of a body that is examined, since a wall is a small page."""
SMALL_BYTES_MAX: Final = 8_192
PRICE_HEADERS: Final = ("crawler-price", "crawler-error", "payment-required", "www-authenticate")
"""Headers with the price of a page (402): Cloudflare's pay per crawl, x402, schemes such as L402."""
OFFER_CHARACTERS_MAX: Final = 1_000
CHALLENGE_HEADERS: Final = ("www-authenticate", "proxy-authenticate")
SUPPORTED_SCHEMES: Final = frozenset(("basic", "digest", "bearer"))
_QUOTED = re.compile(r'"(?>(?:[^"\\]|\\.)*)"?')
_SCHEME = re.compile(r"(?:\A|,)[ \t]*+([A-Za-z][A-Za-z0-9_-]{0,31}+)(?=[ \t]++[^ \t=,]|[ \t]*+(?:,|\Z))")
"""A name that no value follows, as one follows the names of parameters."""


class Wall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one product is recognized."""

    name: str
    source: str
    """Where its marks are documented or can be seen."""
    consent: bool = False
    """Whether it asks for consent: then the page is marked, but still a page."""
    headers: dict[str, str] = {}
    """By name in lower case: a pattern for the whole value. A match is enough, with any status."""
    titles: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    """Marks in the markup. In an error they are sufficient; in a page only together with a title."""
    only_titled: bool = False
    """Whether they are insufficient in an error, too: widgets that ordinary forms have."""
    small: tuple[str, ...] = ()
    """Marks that suffice in a page of at most `SMALL_BYTES_MAX` whose title is empty or a part of its address."""
    urls: tuple[str, ...] = ()
    """Prefixes of the addresses of its pages."""


@decodable
class _File(msgspec.Struct, forbid_unknown_fields=True):
    wall: tuple[Wall, ...] = ()


class Walls:
    """Recognizes walls. An ordinary page costs about 3 µs: its header names and its title are looked up."""

    def __init__(self, walls: Iterable[Wall]) -> None:
        """Compile the rules. Raises re.error if the pattern of a header is not valid."""
        self._headers: dict[str, list[tuple[re.Pattern[str], Wall]]] = {}
        self._titles: dict[str, list[Wall]] = {}
        self._body: list[tuple[bytes, Wall]] = []
        self._small: list[tuple[bytes, Wall]] = []
        self._urls: list[tuple[str, Wall]] = []
        for wall in walls:
            for name, pattern in wall.headers.items():
                self._headers.setdefault(name, []).append((re.compile(pattern, re.IGNORECASE), wall))
            for title in wall.titles:
                self._titles.setdefault(title.casefold(), []).append(wall)
            if not (wall.consent or wall.only_titled):
                self._body += [(mark.encode(), wall) for mark in wall.body]
            self._small += [(mark.encode(), wall) for mark in wall.small]
            self._urls += [(url, wall) for url in wall.urls]
        self._header_names = frozenset(self._headers)
        self._beginnings = tuple(url for url, _ in self._urls)

    @classmethod
    def read(cls, text: str, name: str) -> Self:
        """Read rules as TOML. Raises ConfigError, which names the file `name`."""
        try:
            return cls(msgspec.convert(tomllib.loads(text), _File).wall)
        except (ValueError, msgspec.ValidationError, re.error) as error:
            raise ConfigError(f"{name}: {error}; see process/walls.toml of the package for the form") from None

    @classmethod
    def ours(cls) -> Self:
        """Read the rules of the package. About 2 ms."""
        return cls.read((pkgutil.get_data("gossamer.stages.process", "walls.toml") or b"").decode(), "walls.toml")

    def in_headers(self, headers: Sequence[tuple[str, str]]) -> Wall | None:
        """Return the wall that the headers of a reply show, or None."""
        if not self._header_names.isdisjoint(first_values(headers)):
            for name, value in headers:
                for pattern, wall in self._headers.get(lower_names[name], ()):
                    if pattern.fullmatch(value.strip()):
                        return wall
        return None

    def in_error(self, body: bytes) -> Wall | None:
        """Return the wall that the body of an error is. About 20 µs for 10 KB."""
        beginning = body[:LOOKED_AT_BYTES_MAX]
        return next((wall for mark, wall in self._body if mark in beginning), None)

    def in_page(self, url: str, title: str, body: bytes) -> Wall | None:
        """Return the wall that a page is, by its address, its title or its markup."""
        if url.startswith(self._beginnings):
            return next(wall for beginning, wall in self._urls if url.startswith(beginning))
        for wall in self._titles.get(title.casefold(), ()):
            if any(mark.encode() in body[:LOOKED_AT_BYTES_MAX] for mark in wall.body):
                return wall
        if len(body) <= SMALL_BYTES_MAX and title.casefold() in url:
            return next((wall for mark, wall in self._small if mark in body), None)
        return None


def offer_of(headers: Iterable[tuple[str, str]]) -> str:
    """Return the price headers of a reply with status 402 as `name: value`, as sent."""
    offers = [f"{name.lower()}: {value}" for name, value in headers if name.lower() in PRICE_HEADERS]
    return "; ".join(offers)[:OFFER_CHARACTERS_MAX]


def login_of(headers: Iterable[tuple[str, str]]) -> str:
    """Describe the login that a 401 or 407 requires, by the schemes of its challenges (RFC 9110, section 11)."""
    values = [value[:OFFER_CHARACTERS_MAX] for name, value in headers if name.lower() in CHALLENGE_HEADERS]
    schemes = dict.fromkeys(scheme for value in values for scheme in _SCHEME.findall(_QUOTED.sub("", value)))
    if not schemes:
        return ""
    unsupported = "" if any(scheme.lower() in SUPPORTED_SCHEMES for scheme in schemes) else ", which is not supported"
    return f"it asks for a login with {' or '.join(schemes)}{unsupported}"
