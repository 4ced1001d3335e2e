"""Seeds: what the operator types, made an address or a clear word about what is wrong with it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from gossamer.model.errors import ConfigError
from gossamer.url.join import absolute
from gossamer.url.name import host_of

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!\d)").match
_LOCAL = re.compile(r"localhost\b|\d+(\.\d+){3}\b|\[").match
_COLONLESS = re.compile("(https?)/+(.*)", re.IGNORECASE).fullmatch
_SHOWN_CHARACTERS_MAX = 200


def seed_url(text: str, schemes: Sequence[str] = ("http", "https")) -> str:
    """Return a seed as an absolute address without fragment. Raises ConfigError with one line that says how to mend.

    `schemes` are those that can be visited.
    """
    text = text.strip()
    shown = ascii(text[:_SHOWN_CHARACTERS_MAX])
    if not text:
        raise ConfigError("an empty seed: give an address such as https://example.org/")
    scheme = _SCHEME(text)
    if scheme is None:
        raise ConfigError(f"the seed {shown} has no scheme; {_suggestion(text)}")
    if scheme[1].lower() not in schemes:
        near = difflib.get_close_matches(scheme[1].lower(), schemes, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}:{text[scheme.end() :]} ?" if near else f"those visited are {', '.join(schemes)}"
        raise ConfigError(f"the seed {shown} has the scheme {scheme[1].lower()!r}; {hint}")
    url = absolute(text)
    if url is None or host_of(url) is None:
        raise ConfigError(f"the seed {shown} is not an address: its host or its port cannot be; check it for misprints")
    return url


def _suggestion(text: str) -> str:
    example = "give an address such as https://example.org/"
    if text.startswith("/") and not text.startswith("//"):
        return f"a path cannot be crawled: {example}"
    colonless = _COLONLESS(text)
    if colonless:
        scheme, rest = colonless.groups()
    else:
        rest = text.lstrip("/")
        scheme = "http" if _LOCAL(rest) else "https"
    whole = absolute(f"{scheme.lower()}://{rest}")
    return f"did you mean {whole} ?" if whole else example
