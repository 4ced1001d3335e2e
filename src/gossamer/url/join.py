"""Join: resolves an href to an address."""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from ada_url import join_url, normalize_url

# Hrefs that can be resolved by cutting and joining strings. The WHATWG parser copies each character here unchanged into
# a path or a query. No segment starts with a dot or has an escape, so none is a dot segment. No path has a colon, so
# none is a scheme. There is one slash at the start, since two would name a host.
_PLAIN = re.compile(
    r"(/|(?:\.\./)*)"
    r"((?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*+/)*(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*)?(?:\?[A-Za-z0-9._~/=&+:;,@!$()*-]*)?)"
    r"(?:#.*)?",
    re.DOTALL,
).fullmatch
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_WEB = ("http://", "https://")
WHOLE_MAX = 4_096
WHOLE_CHARACTERS_MAX = 256
"""Number and length of cached absolute hrefs: navigation repeats on every page."""
ORIGINS_MAX = 1024
"""Cached origins of pages that are in the form that `join` returns: a host's pages come one after another."""


def join(base: str, href: str) -> str | None:
    """Return the address that `href` means on a page at `base`, without its fragment; None if it is not valid.

    WHATWG URL, section 4.4, with UTF-8 as the encoding: white space around it and line breaks in it are removed, scheme
    and host become lower case (hosts by IDNA), default ports and dot segments are removed. Never raises. About 1.6 µs.
    """
    try:
        url: str = join_url(base, href)
    except ValueError:
        mended_base = _scalar(base)
        mended_href = _scalar(href)
        changed = mended_base != base or mended_href != href
        return join(mended_base, mended_href) if changed else None
    return url[: url.index("#")] if "#" in url else url


def location_of(values: Iterable[str]) -> str:
    """Return the href of a redirect from the values of its Location fields, decoded as latin-1; empty if none has one.

    As in browsers: empty fields do not count, so that an empty Location is no redirect to the same address; text is
    UTF-8, and bytes that are not UTF-8 are percent-encoded.
    """
    location = next((value for one in values if (value := one.strip("\t\n\f\r "))), "")
    try:
        return decode_address(location.encode("latin-1"))
    except UnicodeEncodeError:
        return location  # A protocol module has decoded it.


def decode_address(data: bytes) -> str:
    """Return text with addresses in it, as it was sent: UTF-8, or with each byte beyond ASCII percent-encoded."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _NOT_ASCII.sub(lambda run: quote(run[0].encode("latin-1")), data.decode("latin-1"))


def absolute(text: str) -> str | None:
    """Return an absolute address in the form that `join` returns; None if it is not valid. Never raises."""
    try:
        url: str = normalize_url(text)
    except ValueError:
        return None
    return url.partition("#")[0]


class Joiner:
    """Resolves the hrefs of one page as `join` does, in a third of the time if hrefs are plain (0.4 µs).

    `encoding` is the page's, as a name that Python knows: queries are encoded in it (WHATWG URL, section 4.4, query
    state), as servers of old pages expect. An unknown name means UTF-8.
    """

    def __init__(self, base: str, encoding: str = "utf-8") -> None:
        self._base = base if _is_normal(base) else absolute(base) or base
        self._encoding = "" if encoding.lower().startswith("utf") else encoding
        self._page = ""
        self._starts: dict[str, str] = {}
        """Beginnings of joined addresses by what leads up or to the root; empty: there is no fast path."""
        if self._base.startswith(_WEB):
            page = self._page = self._base.partition("?")[0]
            self._starts = {"": page[: page.rindex("/") + 1], "/": page[: page.index("/", 8) + 1]}

    def join(self, href: str) -> str | None:
        """Return the address that `href` means, without its fragment; None if it is not valid. Never raises."""
        plain = _PLAIN(href) if self._starts else None
        if plain is None:
            if self._encoding and not href.isascii():
                href = _encode_query(href, self._encoding)
            # Independent of the base, except that a base with another scheme may not be a valid address.
            is_whole = self._starts and href.startswith(_WEB) and len(href) <= WHOLE_CHARACTERS_MAX
            return _whole(href) if is_whole else join(self._base, href)
        up, rest = plain.groups()
        if not up and (not rest or rest[0] == "?"):
            return self._page + rest if rest else self._base
        if up not in self._starts:
            self._starts[up] = _climb(self._starts[""], len(up) // 3)
        return self._starts[up] + rest


def _is_normal(base: str) -> bool:
    """Return whether an address is certainly in the form that `join` returns: 1 µs, a full parse takes 8."""
    if not base.startswith(_WEB):
        return False
    slash = base.find("/", 8)
    if slash < 0 or "#" in base:
        return False
    path = _PLAIN(base, slash)
    return path is not None and path[1] == "/" and _is_origin(base[:slash])


@lru_cache(maxsize=WHOLE_MAX)
def _whole(href: str) -> str | None:
    return join(href, href)


@lru_cache(maxsize=ORIGINS_MAX)
def _is_origin(origin: str) -> bool:
    return absolute(origin + "/") == origin + "/"


def _climb(directory: str, steps: int) -> str:
    """Go up `steps` directories; the root is its own parent."""
    root = directory.index("/", 8) + 1
    end = len(directory)
    for _ in range(steps):
        if end == root:
            break
        end = directory.rindex("/", 0, end - 1) + 1
    return directory[:end]


def _encode_query(href: str, encoding: str) -> str:
    """Escape the non-ASCII characters of the query as their bytes in `encoding`."""
    address, mark, fragment = href.partition("#")
    path, question, query = address.partition("?")
    try:
        # A character that the encoding lacks becomes a character reference, as in a form.
        query = _NOT_ASCII.sub(
            lambda run: quote(_scalar(run[0]), safe="", encoding=encoding, errors="xmlcharrefreplace"), query
        )
    except (LookupError, UnicodeError):
        return href
    return path + question + query + mark + fragment


def _scalar(text: str) -> str:
    """Replace lone surrogates, as the standard's conversion to scalar values does."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
