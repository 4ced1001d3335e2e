"""Simulating: the command `simulate`: a crawl of a modelled web in simulated time."""

import pkgutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated

import msgspec
from typer import Option, Typer, echo

from gossamer.cli.arguments import Json, Sets, quantity_of
from gossamer.cli.crawl import with_parameters
from gossamer.cli.directory import write_file
from gossamer.cli.output import Shown, complain
from gossamer.lab.simulate.arguments import explicit_keys, options_of, revisits_of
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
PRESET = "web2025"
SENSITIVITY_PAGES = 30_000
"""Pages of each of the simulations that `--sensitivity` makes, about, where `--simulated-pages` does not say."""


class KeyOption(msgspec.Struct, frozen=True):
    """An option that sets a key of the simulation."""

    option: str
    metavar: str
    help: str
    unit: str | None = None
    """The unit of its quantity; `whole`: it is a whole number; None: a word."""

    def parameter(self) -> Parameter:
        """Return it as a parameter of a command. Its value comes as text."""
        name = self.option.replace("-", "_")
        option = Option(f"--{self.option}", metavar=self.metavar, help=self.help)
        return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option])

    def value(self, text: str) -> object:
        """Return the value that a text names. Raises ConfigError: it names none."""
        return text if self.unit is None else quantity_of(f"--{self.option}", text, self.unit)


KEYS = msgspec.toml.decode(pkgutil.get_data("gossamer.cli", "simulating.toml") or b"", type=dict[str, KeyOption])
"""Options by the key that each one sets."""


@commands.command("simulate")
@with_parameters(one.parameter() for one in KEYS.values())
def simulate(
    preset: Annotated[
        str | None, Option("--preset", metavar="NAME", help="Published crawl or web to simulate; web2025 by default.")
    ] = None,
    revisits: Annotated[bool, Option("--revisits", help="Simulate revisits of changing pages by each policy.")] = False,
    figure: Annotated[
        Path | None, Option("--figure", metavar="FILE", help="Write a chart to an .html or .svg file.")
    ] = None,
    sensitivity: Annotated[
        bool, Option("--sensitivity", help="Change each assumption alone; print hours and cost, by effect.")
    ] = False,
    sets: Sets = None,
    as_json: Json = False,
    list_presets: Annotated[bool, Option("--list-presets", help="List the presets.")] = False,
    **options: str | None,
) -> int:
    """Simulate a crawl: the real frontier on a modelled web."""
    if list_presets:
        for name, published in PRESETS.items():
            echo(f"{name:<15} {published.what}")
        return 0
    named = ((key, one, options[one.option.replace("-", "_")]) for key, one in KEYS.items())
    values = {key: one.value(text) for key, one, text in named if text is not None}
    if revisits:
        others = {"preset": preset, "figure": figure, "sensitivity": sensitivity or None}
        return _revisits(others, values, sets or (), as_json=as_json)
    if sensitivity:
        if figure is not None:
            raise ConfigError("--figure: goes without --sensitivity; leave out one of them")
        return _sensitivity(preset or PRESET, values, sets or (), as_json=as_json)
    return _simulate(preset or PRESET, values, sets or (), figure, as_json=as_json)


def _sensitivity(preset: str, values: Mapping[str, object], sets: Sequence[str], *, as_json: bool) -> int:
    """Simulate a crawl once for each changed assumption, and print what each does to hours and cost. Raises
    ConfigError: something that the operator can correct; nothing was simulated.
    """
    chosen = options_of(preset, {"pages_simulated": SENSITIVITY_PAGES, **values}, sets)
    shown = Shown(sys.stderr, quiet=not sys.stderr.isatty())
    found = sensitivity_of(chosen, partial(_show_share, shown))
    shown.clear()
    echo(msgspec.json.encode(found) if as_json else as_table(found), nl=as_json)
    return 0


def _simulate(
    preset: str, values: Mapping[str, object], sets: Sequence[str], figure: Path | None, *, as_json: bool
) -> int:
    """Simulate a crawl and print its progress; `values` are by dotted key. Raises ConfigError: a mistake that the
    operator can fix; nothing was simulated.
    """
    _check_figure(figure)
    chosen = options_of(preset, values, sets)
    given = explicit_keys(values, sets)
    if beyond := beyond_of(chosen):
        complain(beyond)
    shown = Shown(sys.stderr, quiet=not sys.stderr.isatty())
    result = run(chosen, partial(_show_share, shown))
    shown.clear()
    if figure is not None:
        write_file(figure, as_svg(result) if figure.suffix == ".svg" else as_html(result, chosen, given), "--figure")
    echo(result.as_json() if as_json else as_text(result, chosen, given), nl=as_json)
    return 0


def _revisits(others: Mapping[str, object], values: Mapping[str, object], sets: Sequence[str], *, as_json: bool) -> int:
    """Simulate revisits of changing pages, and print the result of each policy as soon as it is known. Raises
    ConfigError: a mistake that the operator can fix; nothing was simulated.
    """
    given = [name for name, value in others.items() if value is not None]
    given += [KEYS[key].option for key in values if key not in ("pages", "seed")]
    if given:
        raise ConfigError(f"--{given[0]}: goes without --revisits; leave out one of them")
    options = revisits_of({f"changing.{name}": value for name, value in values.items()}, sets)
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


def _show_share(shown: Shown, share: float) -> None:
    shown.say(f"simulating: {min(share, 1.0):.0%}")
