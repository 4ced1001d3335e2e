"""Names for scope's tests."""

from __future__ import annotations

from gossamer.model.links import Link
from gossamer.url.join import absolute
from gossamer.url.name import Namer
from gossamer.url.url import Url


def named(text: str) -> Url:
    whole = absolute(text)
    assert whole is not None
    url = Namer().name(whole)
    assert url is not None
    return url


def linked(text: str, link_type: str = "anchor", depth: int = 1, hops: int = 0) -> Link:
    return Link(named(text), link_type, depth, hops)
