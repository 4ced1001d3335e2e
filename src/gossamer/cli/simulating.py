"""Simulating: the command `simulate`: a crawl of a modelled web in simulated time."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from typer import Option, Typer, echo

from gossamer.cli.arguments import Json, Sets, quantity_of
from gossamer.cli.directory import write_file
from gossamer.cli.output import complain
from gossamer.lab.simulate.arguments import explicit_keys, number, options_of, revisits_of
from gossamer.lab.simulate.figure import as_html, as_svg
from gossamer.lab.simulate.presets import PRESETS
from gossamer.lab.simulate.revisits import compare_policies, heading
from gossamer.lab.simulate.sensitivity import as_table, sensitivity_of
from gossamer.lab.simulate.simulation import beyond_of
from gossamer.lab.simulate.simulation import simulate as run
from gossamer.lab.simulate.text import as_text
from gossamer.model.errors import ConfigError
from gossamer.options import to_table

commands = Typer()
FIGURES = (".html", ".svg")
WHOLE = {"pages", "shards", "seed", "scale", "shards_simulated", "pages_simulated"}
PRESET = "web2025"
SENSITIVITY_PAGES = 30_000
"""Pages of each of the simulations that `--sensitivity` makes, about, where `--simulated-pages` does not say."""
_MACHINE = dict.fromkeys(("machine.price_per_hour", "machine.cpu_us_per_page"), "")
UNITS = {"time_s_max": "seconds", "politeness.delay_s_min": "seconds", **_MACHINE}
SPELT = {
    "time_s_max": "max-time",
    "politeness.preset": "politeness",
    "politeness.delay_s_min": "delay",
    "machine.price_per_hour": "price-hour",
    "machine.cpu_us_per_page": "cpu-page-us",
    "shards_simulated": "simulated-shards",
    "pages_simulated": "simulated-pages",
}
"""Options by the key that they set, where they are spelt otherwise."""


@commands.command("simulate")
def simulate(
    preset: Annotated[
        str | None, Option("--preset", metavar="NAME", help="Published crawl or web to simulate; web2025 by default.")
    ] = None,
    revisits: Annotated[bool, Option("--revisits", help="Simulate revisits of changing pages by each policy.")] = False,
    pages: Annotated[str | None, Option("--pages", metavar="N", help="Stop after this many pages.")] = None,
    shards: Annotated[str | None, Option("--shards", metavar="N", help="Number of shards.")] = None,
    seed: Annotated[
        str | None, Option("--seed", metavar="N", help="Random seed: the same seed gives the same result.")
    ] = None,
    max_time: Annotated[
        str | None, Option("--max-time", metavar="S", help="Stop after this simulated time, such as 30d.")
    ] = None,
    politeness: Annotated[
        str | None, Option("--politeness", metavar="PRESET", help="Preset: polite, gentle, broad, weak or own.")
    ] = None,
    delay: Annotated[str | None, Option("--delay", metavar="S", help="Minimum delay for every host.")] = None,
    price_hour: Annotated[
        str | None, Option("--price-hour", metavar="X", help="Price of one machine per hour.")
    ] = None,
    cpu_page_us: Annotated[
        str | None, Option("--cpu-page-us", metavar="US", help="CPU time per page, in microseconds.")
    ] = None,
    scale: Annotated[str | None, Option("--scale", metavar="K", help="Simulate one host in K.")] = None,
    simulated_pages: Annotated[
        str | None,
        Option("--simulated-pages", metavar="N", help="Approximate number of pages to simulate without --scale."),
    ] = None,
    simulated_shards: Annotated[
        str | None,
        Option("--simulated-shards", metavar="N", help="Number of shards to simulate; the rest is extrapolated."),
    ] = None,
    figure: Annotated[
        Path | None, Option("--figure", metavar="FILE", help="Write a chart to an .html or .svg file.")
    ] = None,
    sensitivity: Annotated[
        bool, Option("--sensitivity", help="Change each assumption alone; print hours and cost, by effect.")
    ] = False,
    sets: Sets = None,
    as_json: Json = False,
    list_presets: Annotated[bool, Option("--list-presets", help="List the presets.")] = False,
) -> int:
    """Simulate a crawl: the real frontier on a modelled web."""
    if list_presets:
        for name, published in PRESETS.items():
            echo(f"{name:<15} {published.what}")
        return 0
    options = {
        "shards": shards,
        "time_s_max": max_time,
        "politeness.preset": politeness,
        "politeness.delay_s_min": delay,
        "machine.price_per_hour": price_hour,
        "machine.cpu_us_per_page": cpu_page_us,
        "scale": scale,
        "pages_simulated": simulated_pages,
        "shards_simulated": simulated_shards,
    }
    if revisits:
        others = {"preset": preset, "figure": figure, "sensitivity": sensitivity or None, **options}
        return _revisits(pages, seed, others, sets or (), as_json=as_json)
    options |= {"pages": pages, "seed": seed}
    if sensitivity:
        if figure is not None:
            raise ConfigError("--figure: goes without --sensitivity; leave out one of them")
        return _sensitivity(preset or PRESET, options, sets or (), as_json=as_json)
    return _simulate(preset or PRESET, options, sets or (), figure, as_json=as_json)


def _sensitivity(preset: str, options: Mapping[str, str | None], sets: Sequence[str], *, as_json: bool) -> int:
    """Simulate a crawl once for each changed assumption, and print what each does to hours and cost.

    Raises:
        ConfigError: something that the operator can correct; nothing was simulated.
    """
    chosen = options_of(preset, {"pages_simulated": SENSITIVITY_PAGES} | _values(options), sets)
    found = sensitivity_of(chosen, _tell if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    echo(msgspec.json.encode(found) if as_json else as_table(found), nl=as_json)
    return 0


def _simulate(
    preset: str, options: Mapping[str, str | None], sets: Sequence[str], figure: Path | None, *, as_json: bool
) -> int:
    """Simulate a crawl and print its progress; `options` are texts by dotted key.

    Raises:
        ConfigError: a mistake that the operator can fix; nothing was simulated.
    """
    _check_figure(figure)
    values = _values(options)
    chosen = options_of(preset, values, sets)
    given = explicit_keys(values, sets)
    if beyond := beyond_of(chosen):
        complain(beyond)
    result = run(chosen, _tell if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if figure is not None:
        text = as_svg(result) if figure.suffix == ".svg" else as_html(result, chosen, given)
        write_file(figure, text, "--figure")
    echo(result.as_json() if as_json else as_text(result, chosen, given), nl=as_json)
    return 0


def _revisits(
    pages: str | None, seed: str | None, others: Mapping[str, object], sets: Sequence[str], *, as_json: bool
) -> int:
    """Simulate revisits of changing pages, and print the result of each policy as soon as it is known.

    Raises:
        ConfigError: a mistake that the operator can fix; nothing was simulated.
    """
    if strange := [name for name, value in others.items() if value is not None]:
        raise ConfigError(f"--{SPELT.get(strange[0], strange[0])}: goes without --revisits; leave out one of them")
    values = {
        f"changing.{name}": number(text, f"--{name}")
        for name, text in (("pages", pages), ("seed", seed))
        if text is not None
    }
    options = revisits_of(values, sets)
    rows = compare_policies(options, chosen="revisit.policy" in explicit_keys(values, sets))
    if as_json:
        echo(msgspec.json.encode({"options": to_table(options, defaults=True), "policies": list(rows)}))
        return 0
    echo(heading(options))
    for row in rows:
        echo(row.line)
    return 0


def _check_figure(figure: Path | None) -> None:
    if figure is None:
        return
    if figure.suffix not in FIGURES:
        raise ConfigError(f"--figure {figure}: expected a name that ends in .html or .svg")
    if not figure.absolute().parent.is_dir():
        raise ConfigError(f"--figure {figure}: there is no directory {figure.parent}; make it, or name another")


def _values(options: Mapping[str, str | None]) -> dict[str, object]:
    return {key: _number(key, text) for key, text in options.items() if text is not None}


def _number(key: str, text: str) -> object:
    option = "--" + SPELT.get(key, key)
    if key in WHOLE:
        return number(text, option)
    return quantity_of(option, text, UNITS[key]) if key in UNITS else text


def _tell(share: float) -> None:
    sys.stderr.write(f"\rsimulating: {min(share, 1.0):.0%}")
    sys.stderr.flush()
