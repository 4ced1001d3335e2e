"""What each assumption of the preset web2025 does to its prediction, halved and doubled, as the simulator measures it.

`python benchmarks/assumptions.py` writes the table of docs/explanation/simulation.md. Some ten minutes of one core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gossamer.lab.simulate.arguments import options_of, settable_keys
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.presets import ASSUMED, source_of
from gossamer.lab.simulate.simulation import simulate
from gossamer.options import to_table

PAGE = Path(__file__).parents[1] / "docs/explanation/simulation.md"
BEGIN = "<!-- measured: assumptions -->"
END = "<!-- end of the measured table -->"
PRESET = "web2025"
SHARDS = {12: 4_000, 192: 400}
"""On one machine, where the processors limit, and on twelve, where politeness does; with one of how many hosts."""
DAYS_MAX = 60
SAME = 0.02
"""Smaller differences are those of the sample (another seed gives up to 1.1 %)."""

OTHERWISE: Mapping[str, tuple[object, ...]] = {
    "web.seed_hosts": (500_000, 250_000),
    "web.slow_share": (0.1, 0.3),
    "web.slow_s_median": (5.0, 10.0),
    "web.robots": (False,),
    "web.denied_host_share": (0.05, 0.1),
    "web.crawl_delay_share": (0.05, 0.1),
    "web.giant_pages": (),
    "web.giant_fetch_s": (),
    "machine.price_per_gb_sent": (0.05, 0.1),
    "machine.price_per_gb_month": (0.01, 0.02),
    "web.https_share": (0.45, 1.0),
    "seen.backend": ("diskmerge", "bloom"),
}
"""Values in place of half and double, for keys that are 0, a word, or a share that cannot be doubled."""
ALONG: Mapping[str, Mapping[str, object]] = {
    "web.slow_share": {"web.slow_s_median": 5.0},
    "web.slow_s_median": {"web.slow_share": 0.1},
    "web.slow_sigma": {"web.slow_share": 0.1, "web.slow_s_median": 5.0},
    "web.crawl_delay_s": {"web.crawl_delay_share": 0.1},
    "web.crawl_delay_share": {"web.crawl_delay_s": 100.0},
}
"""What must be so for a key to matter: the prediction that it is compared with has the same."""


class Outcome(NamedTuple):
    """A prediction: how long a billion pages take, and what they cost."""

    hours: float
    cost: float
    limit: str
    is_whole: bool
    """Whether there were that many pages."""


def assumed_keys() -> list[str]:
    """Return the keys of the preset whose values have no source."""
    options = _options({})
    keys = [key for key in settable_keys() if source_of(options, key) == ASSUMED and _is_shown(key)]
    return [key for key in keys if _value(options, key) is not None]


def table_lines() -> Iterator[str]:
    """Measure, and yield the lines of the table."""
    heads = [f"{count} shards: {what}" for count in SHARDS for what in ("first", "second")]
    yield f"| key | assumed | tried | {' | '.join(heads)} |"
    yield f"| --- | ---: | ---: | {' | '.join(['---:'] * len(heads))} |"
    before = {count: _predict(count, {}) for count in SHARDS}
    whole = [f"{one.hours:.1f} h, {one.cost:,.0f}, {one.limit}" for one in before.values()]
    yield f"| as assumed | | | {whole[0]} | | {whole[1]} | |"
    for seed in (2, 3):
        cells = [_cell(_predict(count, {"seed": seed}), before[count]) for count in SHARDS]
        yield f"| `seed`, for scale | 1 | {seed} | {cells[0]} | | {cells[1]} | |"
    for key in assumed_keys():
        yield _row(key, before)


def _row(key: str, before: Mapping[int, Outcome]) -> str:
    along = ALONG.get(key, {})
    value = _value(_options({}), key)
    tried = OTHERWISE[key] if key in OTHERWISE else _around(value)
    cells = []
    for count in SHARDS:
        base = _predict(count, along) if along else before[count]
        found = [_cell(_predict(count, {**along, key: one}), base) for one in tried]
        cells += [*found, *[""] * (2 - len(found))]
    note = ", ".join(f"`{name}` = {_text(one)}" for name, one in along.items())
    named = f"`{key}`" + (f" (with {note})" if note else "")
    return f"| {named} | {_text(value)} | {'; '.join(map(_text, tried)) or 'nothing'} | {' | '.join(cells)} |"


def _around(value: object) -> tuple[object, ...]:
    assert isinstance(value, int | float), value
    assert value, "say what to try"
    if isinstance(value, int):
        return max(1, value // 2), value * 2
    return value / 2, value * 2


def _cell(found: Outcome, before: Outcome) -> str:
    if not found.is_whole:
        return f"not in {DAYS_MAX} days"
    time = found.hours / before.hours
    cost = found.cost / before.cost
    says = "same" if abs(time - 1) < SAME else f"{time:.2f}"
    if abs(cost - time) >= SAME:
        says += f", cost {cost:.2f}"
    return says if found.limit == before.limit else f"{says}, {found.limit}"


def _predict(shards: int, changes: Mapping[str, object]) -> Outcome:
    # A crawl that comes to an end of its web never fetches that many pages, and takes long to simulate.
    options = {"shards": shards, "scale": SHARDS[shards], "time_s_max": DAYS_MAX * 86_400.0, **changes}
    result = simulate(_options(options))
    return Outcome(result.time_s / 3600, result.cost, next(iter(result.limits)), result.ended == "pages")


def _options(changes: Mapping[str, object]) -> SimulateOptions:
    return options_of(PRESET, changes)


def _is_shown(key: str) -> bool:
    section = key.partition(".")[0]
    return section in ("web", "machine", "exchange") or key in SHOWN


SHOWN = ("frontier.active_hosts_max", "frontier.active_hosts_bytes_max", "seen.backend")


def _value(options: SimulateOptions, key: str) -> object:
    found: object = to_table(options, defaults=True)
    for part in key.split("."):
        assert isinstance(found, dict)
        found = found.get(part)
    return found


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.10g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    lines = []
    for line in table_lines():
        print(line, flush=True)
        lines.append(line)
    text = PAGE.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text("\n".join([f"{before}{begin}\n", *lines, f"\n{end}{after}"]), encoding="utf-8")
