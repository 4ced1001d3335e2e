"""Means: what views need of other rooms to read a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gossamer.model.visits import Page
from gossamer.ports import Decoder

Text = Callable[[Page], str]
"""Makes text of a page whose content coding is removed."""
Content = Callable[[Page], tuple[str, str]]
"""Does the same, and says how it was found (`Findings.text_method`)."""


@dataclass(frozen=True, slots=True)
class Means:
    """Given by whoever assembles."""

    decoder: Decoder
    content_of: Content
    """The main content as Markdown."""
    text_of: Text
    """The visible text, as a crawl extracts it."""
