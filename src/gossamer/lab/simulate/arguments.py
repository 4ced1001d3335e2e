"""Arguments: a preset, options and `key=value` texts become checked options; mistakes in one line."""

import json
from collections.abc import Iterable, Mapping

from gossamer.config.gather import nest
from gossamer.config.toml import read_assignment
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.presets import OF_DRAWN_HOSTS, PRESETS, SYNTHETIC, synthetic_web
from gossamer.lab.simulate.revisits import RevisitsOptions
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.model.errors import ConfigError
from gossamer.options import OptionsError, Section, convert, keys_of, nearest, to_table

SIMWEB = "simweb."
Values = dict[str, object]
"""By dotted key."""


def options_of(
    preset: str = "", values: Mapping[str, object] | None = None, sets: Iterable[str] = ()
) -> SimulateOptions:
    """Return the options of a simulation: those of a preset, overridden by `values` and then `sets`. Raises
    ConfigError: one line that names the error and the fix.
    """
    given = _put_together(values or {}, sets)
    if preset and preset not in PRESETS:
        raise ConfigError(f"--preset {preset}: expected one of {', '.join(PRESETS)}{nearest(preset, PRESETS)}")
    _refuse_unknown(given, settable_keys())
    merged: Values = {"preset": preset, **(PRESETS[preset].values if preset else {})}
    try:
        merged |= _synthetic_values(preset, given)
        others = {key: value for key, value in given.items() if not key.startswith(SIMWEB)}
        return convert(SimulateOptions, nest(merged | others), with_units=True)
    except OptionsError as error:
        raise ConfigError(_one_line(error)) from error


def revisits_of(values: Mapping[str, object], sets: Iterable[str] = ()) -> RevisitsOptions:
    """Return the options of simulated revisits. Raises ConfigError: one line that names the error and the fix."""
    given = _put_together(values, sets)
    _refuse_unknown(given, settable_keys(RevisitsOptions))
    try:
        default = to_table(RevisitsOptions(), defaults=True)
        merged = {section: default[section] | one for section, one in nest(given).items() if isinstance(one, dict)}
        return convert(RevisitsOptions, default | merged, with_units=True)
    except OptionsError as error:
        raise ConfigError(_one_line(error)) from error


def _synthetic_values(preset: str, given: Values) -> Values:
    """Return what a preset of a synthetic web says of that web, as the operator changed it."""
    changes = {key.removeprefix(SIMWEB): value for key, value in given.items() if key.startswith(SIMWEB)}
    synthetic = SYNTHETIC.get(preset)
    if synthetic is None:
        if changes:
            names = ", ".join(SYNTHETIC)
            raise ConfigError(f"{SIMWEB}{next(iter(changes))}: only with --preset {names}")
        return {}
    for key in given:
        if key in OF_DRAWN_HOSTS:
            raise ConfigError(
                f"{key}: the hosts of --preset {preset} are its synthetic web's; set keys of simweb instead"
            )
    seed = given.get("seed", 1)
    web = synthetic(seed if isinstance(seed, int) else 1)
    try:
        return synthetic_web(convert(SimwebOptions, to_table(web) | changes, with_units=True))
    except OptionsError as error:
        raise ConfigError(_one_line(error, SIMWEB)) from error


def explicit_keys(values: Mapping[str, object], sets: Iterable[str]) -> frozenset[str]:
    """Return the dotted keys that an operator gave."""
    return frozenset(_put_together(values, sets))


def settable_keys(options: type[Section] = SimulateOptions) -> list[str]:
    """Return every dotted key that can be set."""
    keys = []
    for name, one in keys_of(options).items():
        if isinstance(one.type, type) and issubclass(one.type, Section):
            keys += [f"{name}.{inner}" for inner in keys_of(one.type)]
        elif name == "simweb":
            keys += [f"{SIMWEB}{inner}" for inner in keys_of(SimwebOptions)]
        elif name != "preset":
            keys.append(name)
    return keys


def _put_together(values: Mapping[str, object], sets: Iterable[str]) -> Values:
    given = {key: value for key, value in values.items() if value is not None}
    for text in sets:
        advice = f"--set {text}: write --set section.key=value, such as --set web.hosts=1e6"
        given |= [read_assignment(text, advice)]
    return given


def _refuse_unknown(given: Mapping[str, object], known: list[str]) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"no key {key}{nearest(key, known)}; docs/reference/simulate.md lists them")


def _one_line(error: OptionsError, section: str = "") -> str:
    mistake = error.mistakes[0]
    message = mistake.message
    key = section + ".".join(mistake.path)
    if message.startswith("expected "):
        return f"{key} is {json.dumps(mistake.given, default=str)}: {message}"
    return f"{key}.{message}" if key else message
