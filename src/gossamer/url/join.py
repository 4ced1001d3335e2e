"""Join: what an href names, seen from its page."""

from __future__ import annotations

from ada_url import join_url


def join(base: str, href: str) -> str | None:
    """Return the absolute address of `href` seen from `base`, without fragment, or None if it cannot be parsed.

    WHATWG URL, basic parser with a base. About 1.5 µs.
    """
    try:
        joined: str = join_url(base, href)
    except ValueError:
        return None
    return joined.partition("#")[0]
