"""Seeds: what the operator types, made an address or a clear word about what is wrong with it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from gossamer.model.errors import ConfigError
from gossamer.url.join import absolute
from gossamer.url.name import host_of
from gossamer.url.parts import drop_user_info

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!\d)").match
_LOCAL = re.compile(r"localhost\b|\d+(\.\d+){3}\b|\[").match
_COLONLESS = re.compile("(https?)/+(.*)", re.IGNORECASE).fullmatch
_SHOWN_CHARACTERS_MAX = 200
_ON_REQUEST = frozenset(("ftp", "ftps", "gopher", "file"))
"""Schemes that have a protocol module and are visited where the operator says so."""


def seed_url(text: str, schemes: Sequence[str] | None = ("http", "https")) -> str:
    """Return a seed as an absolute address without fragment, user name and password: these are never sent in it.

    Raises ConfigError with one line that says how to fix it.

    `schemes` are those that can be visited; None: any will do. A byte order mark, left where files were joined, is no
    part of an address.
    """
    text = text.strip("\ufeff \t\r\n\f\v")
    text = drop_user_info(text)
    shown = ascii(text[:_SHOWN_CHARACTERS_MAX])
    if not text:
        raise ConfigError("an empty seed: give an address such as https://example.org/")
    scheme = _SCHEME(text)
    if scheme is None:
        raise ConfigError(f"the seed {shown} has no scheme; {_suggestion(text)}")
    if schemes is not None and scheme[1].lower() not in schemes:
        hint = _hint(scheme[1].lower(), text[scheme.end() :], schemes)
        raise ConfigError(f"the seed {shown} has the scheme {scheme[1].lower()!r}; {hint}")
    url = absolute(text)
    if url is None or host_of(url, schemes) is None:
        raise ConfigError(f"the seed {shown} is not an address: its host or its port cannot be; check it for misprints")
    return url


def _hint(scheme: str, rest: str, schemes: Sequence[str]) -> str:
    if scheme in _ON_REQUEST:
        wanted = ",".join(f'"{name}"' for name in (*schemes, scheme))
        return f"--set 'scope.schemes=[{wanted}]' has it visited"
    near = difflib.get_close_matches(scheme, schemes, n=1, cutoff=0.5)
    return f"did you mean {near[0]}:{rest} ?" if near else f"those visited are {', '.join(schemes)} (scope.schemes)"


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
