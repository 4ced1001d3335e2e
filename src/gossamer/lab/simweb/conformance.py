"""Conformance: behaviour by behaviour, what a right crawl does, and what a crawl was seen to do.

The server's own log is the evidence, so any crawler can be judged; where its outcomes by address are known they are
compared as well.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

import msgspec

from gossamer.lab.simweb.behaviors import BEHAVIORS, Behavior
from gossamer.lab.simweb.behaviors.links import PRIVATE_PATHS
from gossamer.lab.simweb.behaviors.traps import SPENT_MAX, kind_of
from gossamer.lab.simweb.hosts import WebHost, populate
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.truth import Expected, TruthWalk
from gossamer.lab.simweb.web import Web
from gossamer.options import convert

UNASKED = frozenset(("robots_denied", "dns_error", "connect_error", "robots_unreachable", "host_closed"))
"""Outcomes of addresses that are never asked for, or need not be."""
SHOWN_MAX = 3
SEEDS_TRIED_MAX = 1_000
CLOSED = frozenset(("robots_deny_all", "robots_500", "robots_stall"))


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    behaviour: str
    expected: str
    seen: str
    right: bool


class _Asked(msgspec.Struct, frozen=True):
    """One host, how often each of its paths was requested, and what each of its pages must end with."""

    host: WebHost
    origin: str
    counts: Counter[str]
    pages: dict[str, Expected]

    def of(self, behaviour: Behavior) -> dict[str, Expected]:
        """Return its pages that show a behaviour."""
        return {path: each for path, each in self.pages.items() if _is_of(path, self.host, behaviour)}


def showcase(**changes: object) -> SimwebOptions:
    """Return options of a web with every behaviour, each on a host that robots.txt does not close. About 50 ms."""
    for seed in range(1, SEEDS_TRIED_MAX):
        options = _showing_all({"seed": seed, **changes})
        hosts = [host for host in populate(options) if host.robots not in CLOSED]
        if all(any(_shows(host, each) for host in hosts) for each in BEHAVIORS if each.kind != "robots"):
            return options
    raise AssertionError("no seed shows all behaviours apart")


def _showing_all(changes: dict[str, object]) -> SimwebOptions:
    names = [each.name for each in BEHAVIORS]
    given: dict[str, object] = {
        "hosts": len(names) + 2, "pages": 400, "links_per_page": 10.0, "behaviours": tuple(names),
        "shares": dict.fromkeys(names, 1e-6), "oversized_bytes": 24_000_000, "drip_s": 0.2, "crawl_delay_s": 0.5,
        "retry_after_s": 1, "slow_s_median": 0.05,
    }  # fmt: skip
    return convert(SimwebOptions, {**given, **changes})


def conformance(
    web: Web, walked: TruthWalk, log: Sequence[Logged], outcomes: Mapping[str, str] | None = None
) -> list[Row]:
    """Return a row for each behaviour that the web shows.

    `walked` is what a right crawl with the same seeds and scope ends with (`Truth.walk`), `outcomes` how the addresses
    ended by the crawler's own account, where it gives one.
    """
    asked = {host.name: _Asked(host, web.front(host)[:-1], Counter(), {}) for host in web.hosts}
    for one in log:
        if one.host in asked:
            asked[one.host].counts[one.path] += 1
    by_origin = {one.origin: one.pages for one in asked.values()}
    for url, expected in walked.pages.items():
        origin, slash, path = url[7:].partition("/")
        if f"http://{origin}" in by_origin:
            by_origin[f"http://{origin}"][slash + path] = expected
    named = [(behaviour, [one for one in asked.values() if _shows(one.host, behaviour)]) for behaviour in BEHAVIORS]
    return [_row(behaviour, where, walked, outcomes, web) for behaviour, where in named if where]


def table(rows: Iterable[Row]) -> str:
    """Return the rows as text, in columns."""
    lines = [("behaviour", "expected", "seen", "")]
    lines += [(row.behaviour, row.expected, row.seen, "" if row.right else "WRONG") for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        f"{name:<{widths[0]}}  {expected:<{widths[1]}}  {seen:<{widths[2]}}  {wrong}".rstrip()
        for name, expected, seen, wrong in lines
    )


def _row(behaviour: Behavior, some: list[_Asked], walk: TruthWalk, outcomes: Mapping[str, str] | None, web: Web) -> Row:
    needed = found = 0
    wrong: list[str] = []
    for one in some:
        faults = _faults(one, behaviour, outcomes)
        asked_for = [path for path, expected in one.of(behaviour).items() if expected.outcome not in UNASKED]
        needed += len(asked_for)
        found += sum(path not in faults for path in asked_for)
        wrong += [f"{path} {fault}" for path, fault in faults.items()]
        wrong += [f"{path} asked for, which nothing names" for path in _find_unnamed(one, behaviour, walk, web)]
    expected_text = f"{behaviour.right}: {needed} pages"
    seen = f"{found} pages"
    if (most := SPENT_MAX.get(behaviour.name)) is not None:
        spent = sum(count for one in some for path, count in one.counts.items() if kind_of(path) == behaviour.name)
        expected_text += f", at most {most:,} endless ones"
        seen += f", {spent:,} endless ones"
        wrong += ["too many"] if spent > most else []
    if wrong:
        seen += f"; {len(wrong)} wrong: {'; '.join(sorted(wrong)[:SHOWN_MAX])}"
    return Row(behaviour.name, expected_text, seen, not wrong)


def _faults(one: _Asked, behaviour: Behavior, outcomes: Mapping[str, str] | None) -> dict[str, str]:
    """Return the fault of each page that is not as it must be."""
    spelled = Counter[str]()
    for path, count in one.counts.items():
        spelled[unquote(path)] += count
    faults = {}
    for path, expected in one.of(behaviour).items():
        count = one.counts[path]
        if not count or behaviour.name == "spellings":
            count = spelled[unquote(path)]  # It was asked for as it was written.
        outcome = "" if outcomes is None else outcomes.get(one.origin + path, "missing")
        if not _count_is_right(expected, count):
            faults[path] = f"asked for {count} times"
        elif outcome == "missing" and not expected.allows("host_closed") and expected.outcome != "robots_denied":
            faults[path] = "has no outcome"
        elif outcome not in ("", "missing") and not expected.allows(outcome):
            faults[path] = f"is {outcome}, not {expected.outcome}"
    return faults


def _find_unnamed(one: _Asked, behaviour: Behavior, walked: TruthWalk, web: Web) -> Iterator[str]:
    """Yield requested paths to which no page that may be followed links."""
    pages = one.of(behaviour)
    for path in one.counts:
        known = path in pages or unquote(path) in pages or one.origin + path in walked.optional
        if _is_of(path, one.host, behaviour) and not (known or kind_of(path) or web.stands(path)):
            yield path


def _count_is_right(expected: Expected, count: int) -> bool:
    if expected.outcome == "robots_denied":
        return count == 0
    if expected.outcome in UNASKED:
        return True
    return count == 1 if expected.once else count >= 1


def _shows(host: WebHost, behaviour: Behavior) -> bool:
    match behaviour.kind:
        case "robots":
            return host.robots == behaviour.name
        case "host":
            return {"slow": host.slow, "compressed": host.compressed, "mirror": host.mirror_of >= 0}[behaviour.name]
        case _:
            return behaviour.name in host.behaviors and host.mirror_of < 0


def _is_of(path: str, host: WebHost, behaviour: Behavior) -> bool:
    """Return whether a path shows a behaviour: pages of some are below `/NAME/`, all others are the host's."""
    if behaviour.kind in ("pages", "trap"):
        return path.startswith(f"/{behaviour.name}/")
    own = path[1:].partition("/")[0]
    return own not in host.behaviors or own == "private" or path in PRIVATE_PATHS
