"""Sample: pages of a walk, drawn so that all pages of the walked web have nearly the same chance.

A walk meets popular pages much more often than others, so each page that it met is drawn with one over its chance to be
met as its weight (Henzinger and others 2000, who took the page's PageRank on what was walked, or its visits, for that
chance). A page is met by following a link: a walker at q takes each of q's d links with the probability (1 - r) / d.
Over the whole walk that makes, in the mean, the sum over all q that link to it of v(q) · (1 - r) / d(q) arrivals, where
v(q) are the visits that q can expect; call it λ, and 1 - exp(-λ) is the chance that there was one. Beginning anew meets
no page that was not met before, so it does not count.

The visits that a page had are more than it could expect, for pages that had none are not among them: of n visits we
take the mean of a Poisson distribution whose zeros are unseen, and for n = 1 Good's 2 N2 / N1 (1953), N1 and N2 being
the pages visited once and twice.

What remains: popular pages are still somewhat too frequent, for we see them by links from popular pages; and where a
sample is a large part of what was met, it cannot be other than what was met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import expm1, log1p

import msgspec

from gossamer.frontier.walked import all_pages
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url
from gossamer.world.dice import Dice

ARRIVALS_MIN = 1e-3
"""A page that no known link leads to was a seed, or its link was not kept: there must be some chance."""
ITERATIONS = 12
"""More than enough: each divides the error by three at least."""


class Drawn(msgspec.Struct, frozen=True):
    """A page of the sample."""

    url: str
    visits: int
    """How often walkers were there."""
    weight: float
    """One over its chance to be met by the walk, the mean page's being 1: for estimates over all that was walked."""


def sample(
    epochs: Epochs, size: int, restart_share: float, name_url: Callable[[str], Url | None], dice: Dice
) -> list[Drawn]:
    """Draw `size` different fetched pages, or all where there are fewer. Take far fewer than were fetched.

    Three passes over all that was walked: about 1 µs a link, and 200 bytes of memory for each page that is linked to.
    """
    arrivals: dict[int, float] = {}
    once = _expected_of_one(epochs)
    for _, page in all_pages(epochs):
        visits = once if page.visits <= 1 else _expected_of(page.visits)
        for text in page.links:
            url = name_url(text)
            if url is not None:
                expected = visits * (1.0 - restart_share) / len(page.links)
                arrivals[url.fingerprint] = arrivals.get(url.fingerprint, 0.0) + expected
    # The largest of these keys are a weighted sample without replacement (Efraimidis and Spirakis 2006).
    keyed: list[tuple[float, float, str, int]] = []
    total = 0.0
    for fingerprint, page in all_pages(epochs):
        if page.outcome == "fetched":
            weight = -1.0 / expm1(-max(arrivals.get(fingerprint, 0.0), ARRIVALS_MIN))
            total += weight
            keyed.append((log1p(-dice.uniform(0.0, 1.0)) / weight, weight, page.url, page.visits))
    keyed.sort(reverse=True)
    mean = total / len(keyed) if keyed else 1.0
    return [Drawn(url, visits, weight / mean) for _, weight, url, visits in keyed[:size]]


def _expected_of_one(epochs: Epochs) -> float:
    counts = Counter(min(page.visits, 3) for _, page in all_pages(epochs) if page.outcome)
    return min(1.0, 2.0 * max(counts[2], 1) / max(counts[1], 1))


def _expected_of(visits: int) -> float:
    """Return the λ for which λ / (1 - exp(-λ)) is `visits`, at least 2."""
    expected = float(visits)
    for _ in range(ITERATIONS):
        expected = -visits * expm1(-expected)
    return expected
