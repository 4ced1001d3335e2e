"""Join: what address an href names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from ada_url import join_url, normalize_url

# Hrefs that resolve by cutting and gluing alone. Every character here is one that the WHATWG parser copies as it is
# into a path or a query; no segment begins with a dot or holds an escape, so none is a dot segment; no colon stands in
# the path, so none is a scheme; none begins with a slash, which could name another host. Steps up, `../`, stand apart.
_PLAIN = re.compile(
    r"((?:\.\./)*)"
    r"((?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*)?(?:\?[A-Za-z0-9._~/=&+:;,@!$()*-]*)?)"
    r"(?:#.*)?",
    re.DOTALL,
).fullmatch
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_WEB = ("http://", "https://")


def join(base: str, href: str) -> str | None:
    """Return the address that `href` names on a page at `base`, without its fragment; None when it names none.

    WHATWG URL, section 4.4, with UTF-8 as the encoding: white space around it and line breaks in it are dropped, scheme
    and host become lower case (hosts by IDNA), default ports and dot segments go. Never raises. About 1.6 µs.
    """
    try:
        url: str = join_url(base, href)
    except ValueError:
        mended_base, mended_href = _scalar(base), _scalar(href)
        changed = mended_base != base or mended_href != href
        return join(mended_base, mended_href) if changed else None
    return url[: url.index("#")] if "#" in url else url


def absolute(text: str) -> str | None:
    """Return an address that needs no base in the form that `join` gives, or None when it is not one. Never raises."""
    try:
        url: str = normalize_url(text)
    except ValueError:
        return None
    return url.partition("#")[0]


def join_all(base: str, hrefs: Sequence[str], encoding: str = "utf-8") -> list[str | None]:
    """Join each of a page's hrefs: what `join` says of each, in a third of the time where hrefs are plain (0.5 µs).

    `encoding` is the page's, as a name that Python knows: queries are written in it (WHATWG URL, section 4.4, query
    state), so that a server of 1998 finds what its page names. One that is unknown counts as UTF-8.
    """
    if not encoding.lower().startswith("utf"):
        hrefs = [href if href.isascii() else _encode_query(href, encoding) for href in hrefs]
    whole = absolute(base)
    if whole is None or not whole.startswith(_WEB):
        return [join(base, href) for href in hrefs]
    page = whole.partition("?")[0]
    directory = page[: page.rindex("/") + 1]
    above = {"": directory}
    joined: list[str | None] = []
    for href in hrefs:
        plain = _PLAIN(href)
        if plain is None:
            joined.append(join(whole, href))
            continue
        up, rest = plain.groups()
        if not up and (not rest or rest[0] == "?"):
            joined.append(page + rest if rest else whole)
            continue
        start = above.get(up)
        if start is None:
            start = above[up] = _climb(directory, len(up) // 3)
        joined.append(start + rest)
    return joined


def _climb(directory: str, steps: int) -> str:
    """Leave `steps` directories; the root is its own parent."""
    root = directory.index("/", 8) + 1
    end = len(directory)
    for _ in range(steps):
        if end == root:
            break
        end = directory.rindex("/", 0, end - 1) + 1
    return directory[:end]


def _encode_query(href: str, encoding: str) -> str:
    """Write what is not ASCII in the query as escapes of its bytes in `encoding`."""
    address, mark, fragment = href.partition("#")
    path, question, query = address.partition("?")
    try:
        # What the encoding lacks becomes a character reference, as in a form.
        query = _NOT_ASCII.sub(
            lambda run: quote(_scalar(run[0]), safe="", encoding=encoding, errors="xmlcharrefreplace"), query
        )
    except (LookupError, UnicodeError):
        return href
    return path + question + query + mark + fragment


def _scalar(text: str) -> str:
    """Replace lone surrogates, as the standard's conversion to scalar values does."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
