"""Causes: faults grouped by what they have in common: the page that links, the host that fails, the folder."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from gossamer.model.words import counted
from gossamer.results.export.faults import KINDS, SEVERITIES, SiteFault
from gossamer.url.name import host_of

SHARING_MIN = 10
"""Pages that link to one URL from which on their template is the likely cause."""
OF_LINKS = frozenset((
    "broken_link", "redirect_loop", "redirect_chain", "missing_fragment", "invalid_link",
    "redirect_permanent", "redirect_to_https", "missing_alt", "not_reached", "not_checked",
))  # fmt: skip
"""Kinds whose pages are those to mend."""

Common = Literal["template", "page", "host", "folder", "one"]


class _CauseMark(NamedTuple):
    """A cause that faults of one kind can share."""

    kind: str
    common: Common
    place: str


class Cause(msgspec.Struct, frozen=True):
    """Faults of one kind that one change is likely to mend."""

    kind: str
    common: Common
    place: str
    """The page that links, the host, the folder, or the URL itself."""
    faults: list[SiteFault]

    def __str__(self) -> str:
        """Describe the cause, as `425 links from https://example.org/a`."""
        number = len(self.faults)
        if self.common == "one":
            pages = self.faults[0].pages if self.kind in OF_LINKS else []
            more = f" and {counted(len(pages) - 1, 'other page')}" if len(pages) > 1 else ""
            return f"{self.place}, on {pages[0]}{more}" if pages else self.place
        noun = "image" if self.kind == "missing_alt" else "link" if self.kind in OF_LINKS else "page"
        origin = "on" if noun == "image" else "from"
        relations = {"template": "that many pages share, such as", "page": origin, "host": "to", "folder": "in"}
        return f"{counted(number, noun)} {relations[self.common]} {self.place}"


def causes_of(faults: Iterable[SiteFault]) -> list[Cause]:
    """Return causes by severity, then those of most links or pages first. The cost grows with the pages listed."""
    faults = list(faults)
    uses = Counter(mark for fault in faults for mark in _marks(fault))
    groups: dict[_CauseMark, list[SiteFault]] = {}
    for fault in faults:
        # Of marks with as many faults the first counts: where to mend says more than where it leads.
        mark = max(_marks(fault), key=lambda one: (one.common == "template", uses[one]))
        groups.setdefault(mark, []).append(fault)
    order = {kind: number for number, kind in enumerate(KINDS)}
    found = [
        Cause(*(mark if len(members) > 1 else _CauseMark(mark.kind, "one", members[0].url)), members)
        for mark, members in groups.items()
    ]
    return sorted(found, key=lambda one: (*_rank(one), order[one.kind], one.place))


def _rank(cause: Cause) -> tuple[bool, int, int]:
    """Return the rank by which causes are sorted. Where the start was not checked, nothing says more."""
    severity = KINDS[cause.kind].severity
    links = sum(len(one.pages) if one.pages and one.kind in OF_LINKS else 1 for one in cause.faults)
    return cause.kind != "seed_not_checked", [*SEVERITIES, ""].index(severity), -links


def faults_by_page(faults: Iterable[SiteFault]) -> dict[str, list[SiteFault]]:
    """Return the faults of each page to mend, the pages with most faults first."""
    found: dict[str, list[SiteFault]] = {}
    for fault in faults:
        for page in (fault.pages if fault.kind in OF_LINKS else ()) or (fault.url,):
            found.setdefault(page, []).append(fault)
    return dict(sorted(found.items(), key=lambda one: (-len(one[1]), one[0])))


def _marks(fault: SiteFault) -> Iterator[_CauseMark]:
    kind = fault.kind
    if kind in OF_LINKS and len(fault.pages) >= SHARING_MIN:
        yield _CauseMark(kind, "template", fault.pages[0])
    elif kind in OF_LINKS:
        yield from (_CauseMark(kind, "page", page) for page in fault.pages)
        host = host_of(fault.url)
        if host and all(host_of(page) != host for page in fault.pages[:1]):
            yield _CauseMark(kind, "host", f"{host}: {fault.detail.partition(':')[0].partition(',')[0]}")
    before, _, after = fault.url.partition("?")[0].partition("://")
    if kind not in OF_LINKS or after.count("/") > 1:  # All links lead below the root.
        yield _CauseMark(kind, "folder", f"{before}://{after.rpartition('/')[0]}/")
    yield _CauseMark(kind, "one", fault.url)


def summary(counts: Counter[str]) -> str:
    """Return counts by severity, as `3 errors, 1 warning, 0 notices`."""
    return ", ".join(counted(counts[one], one) for one in ("error", "warning", "notice"))
