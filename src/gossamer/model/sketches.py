"""Sketches: what a page's words come to, small enough to be remembered."""

from __future__ import annotations

import msgspec


class Sketch(msgspec.Struct, frozen=True, gc=False):
    """Says of two pages whether their words are the same, nearly the same, or new. Marks, digits and case count for
    nothing in it.
    """

    digest: int
    """Of all words in order: the normalised digest. Equal for pages that differ in numbers and markup alone."""
    simhash: int
    """64 bits of which near-duplicates share all but a few (Charikar 2002; Manku and others 2007)."""
    shingles: int
    """How many the page has; of few, a simhash says little."""
    lowest: tuple[int, ...] = ()
    """The least hashes of its distinct shingles, ascending (a bottom-k sketch: Cohen and Kaplan 2007)."""
