"""Sensitivity: what a prediction owes to each assumption, which is changed alone, down and up.

The assumptions are data (`assumptions.toml`).
"""

import pkgutil
import tomllib
from collections.abc import Callable, Iterator
from math import log
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.presets import UNITS
from gossamer.lab.simulate.result import Ended, Limit, Simulated
from gossamer.lab.simulate.simulation import scale_of, simulate
from gossamer.lab.simulate.text import count
from gossamer.model.errors import ConfigError
from gossamer.options import convert, to_table
from gossamer.stages.frontier.options import politeness

CPU_KEYS = "machine.cpu_us_per_*"
_CPU = tuple(f"machine.cpu_us_per_{unit}" for unit in ("page", *UNITS))


class Assumption(NamedTuple):
    """One assumption, and the values between which it is not known."""

    keys: tuple[str, ...]
    change: Literal["times", "plus", "is"]
    low: float
    high: float

    @property
    def name(self) -> str:
        """Return the key, or what several keys have in common."""
        return self.keys[0] if len(self.keys) == 1 else CPU_KEYS

    def text(self, amount: float) -> str:
        """Return the change as people write it."""
        return {"times": f"x {amount:g}", "plus": f"{amount:+g}", "is": f"{amount:g}"}[self.change]


_ASSUMED = tomllib.loads((pkgutil.get_data("gossamer.lab.simulate", "assumptions.toml") or b"").decode())
ASSUMPTIONS = tuple(
    Assumption(_CPU if name == CPU_KEYS else (name,), change, low, high)
    for name, changes in _ASSUMED.items()
    for change, (low, high) in changes.items()
)


class Case(msgspec.Struct, frozen=True):
    """A prediction with one assumption changed."""

    change: str
    hours: float
    cost: float
    pages: float
    ended: Ended
    limit: Limit
    """The limit that held for the longest time."""


class SensitivityRow(msgspec.Struct, frozen=True):
    """An assumption and the predictions on either side."""

    assumption: str
    cases: tuple[Case, Case]
    effect: float
    """Largest factor between any two of the three times, the one of the prediction included."""


class Sensitivity(msgspec.Struct, frozen=True):
    """A prediction, and what each assumption does to it, the strongest first."""

    prediction: Case
    rows: tuple[SensitivityRow, ...]
    scale: float
    """Hosts that each simulated one stands for."""
    pages_simulated: int
    """In the prediction; about as many in each other case."""


def sensitivity_of(options: SimulateOptions, progress: Callable[[float], None] | None = None) -> Sensitivity:
    """Simulate a crawl once as assumed, and twice for each assumption; all at the scale of the first.

    Costs as much as 37 simulations, one after the other in this process. Raises ConfigError: the web is a synthetic
    one, whose hosts are not assumed.
    """
    if options.simweb is not None or options.web.giant_pages:
        raise ConfigError("--sensitivity: the hosts of this web are not assumed; use another --preset")
    scale, shards = scale_of(options)
    options = replace(options, scale=scale, shards_simulated=shards)
    whole = simulate(options)
    prediction = _case("as assumed", whole)
    rows = []
    for number, one in enumerate(ASSUMPTIONS):
        if progress is not None:
            progress(number / len(ASSUMPTIONS))
        low, high = (_case(one.text(amount), simulate(vary(options, one, amount))) for amount in (one.low, one.high))
        hours = [case.hours for case in (low, prediction, high)]
        rows.append(SensitivityRow(one.name, (low, high), max(hours) / max(min(hours), 1e-9)))
    rows.sort(key=lambda row: -log(max(row.effect, 1.0)))
    return Sensitivity(prediction, tuple(rows), whole.scale, whole.pages_simulated)


def vary(options: SimulateOptions, assumption: Assumption, amount: float) -> SimulateOptions:
    """Return the options with one assumption changed, and what follows from it."""
    values = to_table(options, defaults=True)
    values["politeness"]["delay_s_min"] = politeness(options.politeness).delay_s_min
    for key in assumption.keys:
        section, _, name = key.rpartition(".")
        held = values[section] if section else values
        before = held[name]
        if before is None:
            continue
        after = {"times": before * amount, "plus": before + amount, "is": amount}[assumption.change]
        held[name] = max(1, round(after)) if isinstance(before, int) else after
    if "politeness.delay_s_min" in assumption.keys:
        least = politeness(options.politeness).delay_s_max
        values["politeness"]["delay_s_max"] = max(least, values["politeness"]["delay_s_min"])
    values["web"]["pages"] = max(values["web"]["pages"], values["web"]["hosts"])
    values["shards_simulated"] = min(values["shards_simulated"], values["shards"])
    return convert(SimulateOptions, values)


def as_table(found: Sensitivity) -> str:
    """Return the table as lines: hours and cost on either side of each assumption, the strongest first."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Sensitivity) -> Iterator[str]:
    prediction = found.prediction
    yield f"As assumed: {_hours(prediction)} h, cost {prediction.cost:,.0f}, limited by {prediction.limit}"
    yield ""
    yield f"{'assumption':<30} {'effect':>7}  {'hours and cost with one value':<40} and with the other"
    for row in found.rows:
        low, high = (_cell(case, prediction) for case in row.cases)
        effect = "never" if any(_is_short(case, prediction) for case in row.cases) else f"{row.effect:.2f}x"
        yield f"{row.assumption:<30} {effect:>7}  {low:<40} {high}".rstrip()
    yield ""
    yield f"Simulated 1 of {found.scale:,.0f} hosts of a shard: {found.pages_simulated:,} pages a case."
    yield "An effect below that of the seed is one of the sample. `never`: no URL is left before the pages are fetched."
    yield "Cost is in proportion to machine.price_per_hour, traffic apart."


def _case(change: str, result: Simulated) -> Case:
    limits: list[Limit] = [*result.limits, "politeness"]
    return Case(change, result.time_s / 3600, result.cost, result.pages, result.ended, limits[0])


def _hours(case: Case) -> str:
    return f"{case.hours:,.1f}"


def _is_short(case: Case, prediction: Case) -> bool:
    return prediction.ended == "pages" and case.ended == "finished"


def _cell(case: Case, prediction: Case) -> str:
    if _is_short(case, prediction):
        return f"{case.change:>6}: never, {count(case.pages)} pages in all"
    return f"{case.change:>6}: {_hours(case):>7} {case.cost:>7,.0f} {case.limit}"
