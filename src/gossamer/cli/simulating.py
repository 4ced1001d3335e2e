"""Simulating: `simulate`: a crawl of a modelled web in simulated time."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from gossamer.model.errors import ConfigError

FIGURES = (".html", ".svg")
WHOLE = {"pages", "shards", "seed", "scale", "shards_simulated", "pages_simulated"}
PRESET = "web2025"
NUMBERS = {"time_s_max", "politeness.delay_s_min", "machine.price_per_hour", "machine.cpu_us_per_page"}


def simulate(
    preset: str,
    options: Mapping[str, str | None],
    sets: Sequence[str],
    figure: Path | None,
    *,
    as_json: bool,
) -> int:
    """Simulate a crawl and print how it goes; `options` are texts by dotted key.

    Raises:
        ConfigError: something that the operator can mend; nothing was simulated.
    """
    from gossamer.lab.simulate.arguments import given_keys, options_of
    from gossamer.lab.simulate.figure import as_html, as_svg
    from gossamer.lab.simulate.simulation import simulate as run
    from gossamer.lab.simulate.text import as_text

    _check_figure(figure)
    values = {key: _number(key, text) for key, text in options.items() if text is not None}
    chosen = options_of(preset, values, sets)
    given = given_keys(values, sets)
    result = run(chosen, _tell if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if figure is not None:
        text = as_svg(result) if figure.suffix == ".svg" else as_html(result, chosen, given)
        try:
            figure.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot write {figure}: {error.strerror}; name another with --figure FILE") from error
    typer.echo(result.as_json() if as_json else as_text(result, chosen, given), nl=as_json)
    return 0


def revisits(
    pages: str | None, seed: str | None, others: Mapping[str, object], sets: Sequence[str], *, as_json: bool
) -> int:
    """Simulate revisits of pages that change, and print what each policy reaches as soon as it is known.

    Raises:
        ConfigError: something that the operator can mend; nothing was simulated.
    """
    from gossamer.lab.simulate.arguments import given_keys, number, revisits_of
    from gossamer.lab.simulate.revisits import heading, kept

    if strange := [name for name, value in others.items() if value is not None]:
        raise ConfigError(f"--{SPELT.get(strange[0], strange[0])}: goes without --revisits; leave out one of them")
    values = {
        f"changing.{name}": number(text, f"--{name}")
        for name, text in (("pages", pages), ("seed", seed))
        if text is not None
    }
    options = revisits_of(values, sets)
    rows = kept(options, chosen="revisit.policy" in given_keys(values, sets))
    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode({"options": options.model_dump(), "policies": list(rows)}))
        return 0
    typer.echo(heading(options))
    for row in rows:
        typer.echo(row.line)
    return 0


def presets() -> int:
    """Print the presets."""
    from gossamer.lab.simulate.presets import PRESETS

    for name, preset in PRESETS.items():
        typer.echo(f"{name:<15} {preset.what}")
    return 0


def _check_figure(figure: Path | None) -> None:
    if figure is None:
        return
    if figure.suffix not in FIGURES:
        raise ConfigError(f"--figure {figure}: expected a name that ends in .html or .svg")
    if not figure.absolute().parent.is_dir():
        raise ConfigError(f"--figure {figure}: there is no directory {figure.parent}; make it, or name another")


def _number(key: str, text: str) -> object:
    from gossamer.lab.simulate.arguments import number

    option = "--" + SPELT.get(key, key)
    if key in WHOLE:
        return number(text, option)
    if key in NUMBERS:
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"{option} {text}: expected a number") from None
    return text


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


def _tell(share: float) -> None:
    sys.stderr.write(f"\rsimulating: {min(share, 1.0):.0%}")
    sys.stderr.flush()
