"""Useless: addresses that only show again, in another order or as a form, what others show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from gossamer.model.links import Link

USELESS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Apache's listings in another order, of versions 2 and 1.3; nginx's fancyindex uses the former with &.
        "listing_order": r"/\?(?:C=[NMSD][;&]O=[AD]|O=[AD][;&]C=[NMSD]|[NMSD]=[AD])$",
        # MediaWiki: sources, histories and forms of a page.
        "wiki_actions": r"[?&](?:action=(?:edit|history|raw|info|delete|protect|submit|watch)|oldid=|diff=|redlink=1)",
        # WordPress: the form that answers a comment, on a page that is there without it.
        "reply_forms": r"[?&](?:replytocom|like_comment)=",
        # Buttons that hand the page on to others.
        "share_links": r"[?&]share=(?:facebook|twitter|x|email|reddit|linkedin|tumblr|pinterest|pocket|telegram)\b",
    }
)
"""Kinds of address that only show again what others show."""

USELESS_DEFAULT: Final = ("listing_order",)


class UselessPath:
    """Addresses that only show again what others show: the kinds of `USELESS` that are named."""

    name = "useless_path"
    keys = ("useless_paths",)
    by_place = False

    def __init__(self, kinds: Sequence[str]) -> None:
        self._patterns = {kind: re.compile(USELESS[kind]) for kind in USELESS if kind in kinds}
        self._any = re.compile("|".join(one.pattern for one in self._patterns.values()) or "(?!)").search

    def rejects(self, link: Link) -> bool:
        text = link.url.text
        # All kinds are told by the query.
        return "?" in text and self._any(text) is not None

    def detail(self, link: Link) -> str:
        return next((f"of the kind {kind}" for kind, one in self._patterns.items() if one.search(link.url.text)), "")
