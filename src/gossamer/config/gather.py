"""Gather: file, options and `--set` become one checked configuration, later ones over earlier ones."""

import json
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from gossamer.config.flags import BY_NAME, Flag
from gossamer.config.footprint import fit_budget
from gossamer.config.lists import read_text
from gossamer.config.mend import TRUTHS, lines_of
from gossamer.config.presets import by_mode, preset_values
from gossamer.config.sections import Config, conflicts, key_of, keys, keys_named, sections
from gossamer.config.seeds import with_segments
from gossamer.config.synonyms import argument_for, equivalent_of, synonyms
from gossamer.config.toml import NESTED, line_numbers, read_origins, read_value, to_toml
from gossamer.model.errors import ConfigError, OtherFormatError
from gossamer.model.product import FORMAT, LOCK, __version__
from gossamer.model.words import shell_word
from gossamer.options import Mistake, OptionsError, convert, keys_of, nearest
from gossamer.quantities import plain_decimal, plain_digits, read_float
from gossamer.stages.fetch.credentials import is_reference, proxy_of
from gossamer.stages.fetch.options import RequestRule
from gossamer.url.url import drop_user_info

_LAST = "progress"
"""Last section of each file that a version has written for a crawl of this format."""
CERTIFICATES = frozenset(name for name, one in keys_of(RequestRule).items() if one.key.path)
"""Keys of a rule for requests that are paths."""
DROPPED = frozenset(("cluster.object_store_bytes", "memory.huge_pages"))
"""Keys of earlier versions, which have no effect: files of their crawls hold them."""

Values = dict[str, object]
"""Values by dotted key; a top-level name that is no table keeps its name."""


def configure(
    file: Path | None = None,
    *,
    options: Mapping[str, object] | None = None,
    sets: Iterable[str] = (),
    seeds: Sequence[str] = (),
) -> Config:
    """Return the configuration made of a TOML file, options by keyword name, and `section.key=value` texts.

    Options that are None are not set. A later source overrides an earlier one; `seeds` are added to those of the file.
    All sources override the preset, which the file or the option `preset` names. Raises ConfigError: one line that
    names the place, the error, and the fix.
    """
    values: Values = {}
    origins: dict[str, str] = {}
    options = dict(options or {})
    given = {}
    preset = options.pop("preset", None)
    if file is not None:
        text = read_text(file)
        given = _flatten(_parse(text, file))
        named = given.pop("preset", None)
        preset = preset or named
    if preset is not None:
        new = preset_values(str(preset))
        _take(values, origins, new, dict.fromkeys(new, f"preset {preset}"), Path())
    if file is not None:
        _take(values, origins, given, _places(file, text, given), file.parent)
        origins |= _places_within(file, text)
    listed = values.get("seeds.urls", [])
    listed = listed if isinstance(listed, list) else []
    if seeds and listed == values.get("seeds.urls", []):  # What is no list is refused below.
        values["seeds.urls"] = [*listed, *map(drop_user_info, seeds)]
        origins["seeds.urls"] = "arguments"
    config = _finish(values, origins, options, sets)
    _check_proxies(config)
    return with_segments(config, file, [text for text in listed if text not in seeds])


def _check_proxies(config: Config) -> None:
    """Raise ConfigError if a proxy is no good. Only the crawl reads what secrets refer to, and checks that."""
    rules = config.request.rules
    proxies = {"fetch.proxy": config.fetch.proxy} | {f'request."{at}": proxy': one.proxy for at, one in rules.items()}
    pooled = [(f"proxies.urls.{label}", url) for label, urls in config.proxies.urls.items() for url in urls]
    for key, proxy in (*proxies.items(), *pooled):
        if not is_reference(proxy):
            proxy_of(proxy, key, is_new=True)


def reopen(file: Path, *, options: Mapping[str, object] | None = None, sets: Iterable[str] = ()) -> Config:
    """Return the configuration that `effective_toml` wrote, with changes on top.

    Values keep their recorded origin; the origin of values that were added to the file is their line. Raises
    ConfigError: as `configure`; there is no file, or its crawl's state is no directory; or it was emptied or cut:
    limits and scope would be forgotten.
    """
    if not file.exists():
        directory = file.parent
        says = f"{directory} holds no crawl (it has no {file.name})"
        raise ConfigError(says if directory.exists() else f"no directory {directory}")
    require_state(file.parent)
    text = read_text(file)
    config = reopen_text(text, str(file), options=options, sets=sets)
    require_whole(text, str(file))
    return config


def require_state(directory: Path) -> None:
    """Raise ConfigError if a crawl's state is there and is no directory."""
    state = (directory / LOCK).parent
    if os.path.lexists(state) and not state.is_dir():
        raise ConfigError(
            f"{state} is not a directory: put the crawl's own in its place, or restore a checkpoint "
            "(docs/how-to/checkpoints.md)"
        )


def require_whole(text: str, name: str) -> None:
    """Raise ConfigError if a crawl's configuration was emptied or cut; `name` is that of its file."""
    tables = re.findall(r"^\[(\w+)\]", text, re.MULTILINE)
    if _LAST not in tables:
        what = f"ends early (the section [{_LAST}] is missing)" if tables else "is empty"
        raise ConfigError(
            f"{name} {what}, as a power cut or a full disk leaves files: put a sound copy in its place, such as a "
            "checkpoint's (docs/how-to/checkpoints.md)"
        )


def reopen_text(
    text: str, name: str, *, options: Mapping[str, object] | None = None, sets: Iterable[str] = ()
) -> Config:
    """Return `reopen` of a file's text; errors call the file `name`."""
    file = Path(name)
    values, origins = _read_values(text, file)
    config = _finish(values, origins, None, ())
    recorded = read_origins(text)
    defaults = Config()
    kept = {
        key: recorded.get(key, place)
        for key, place in origins.items()
        if "." in key and (key in recorded or config.value(key) != defaults.value(key))
    }
    changed = _finish(values, kept, options, sets)
    if changed.output.directory != config.output.directory:
        raise ConfigError("output.directory: a crawl stays where it is; stop it, and move its directory as it is")
    if changed.cluster.workers != config.cluster.workers:
        workers = changed.cluster.workers
        scale = f"`gossamer scale {shell_word(file.parent)} --workers {workers}`"
        how = f"{scale} makes it {workers}, then resume it"
        if config.state.checkpoint_uri:  # Its running shards alone can move partitions.
            how = f"resume it as it is, and use {scale} while it runs"
        raise ConfigError(f"cluster.workers: this crawl has {config.cluster.workers}; {how}")
    return changed


def _read_values(text: str, file: Path) -> tuple[Values, dict[str, str]]:
    values: Values = {}
    origins: dict[str, str] = {}
    new = _flatten(_parse(text, file))
    _take(values, origins, new, _places(file, text, new), file.parent)
    return values, origins


def _argument_meant(name: str) -> str:
    """Return the remedy for an argument in Python, after `; `; empty if none is known."""
    if said := synonyms().arguments.get(name):
        return f"; {said}"
    if same := keys_named(name):
        return f"; settings takes the key {' or '.join(sorted(same))}"
    return nearest(name, (*BY_NAME, "settings", "config"), argument_for(name))


def _finish(
    values: Values, origins: dict[str, str], options: Mapping[str, object] | None, sets: Iterable[str]
) -> Config:
    values = dict(values)
    origins = dict(origins)
    for flag, value in _given(options or {}):
        _take(values, origins, {flag.key: value}, {flag.key: f"--{flag.option}"}, Path())
    wrong: list[str] = []
    for text in sets:
        try:
            new = _parse_assignment(text)
            _take(values, origins, new, dict.fromkeys(new, "--set"), Path())
        except ConfigError as error:
            wrong += error.lines
    try:
        config = _convert(values, origins)
    except ConfigError as error:
        wrong += error.lines
    if wrong:
        raise ConfigError(*wrong)
    return config


def _given(options: Mapping[str, object]) -> Iterator[tuple[Flag, object]]:
    """Yield the options that are given, each with the value that it sets. Raises ConfigError: an option does not exist,
    or excludes another one.
    """
    switches: dict[str, str] = {}
    for name, value in options.items():
        if value is None or value == () or value == []:
            continue
        if name not in BY_NAME:
            raise ConfigError(f"no option {name!r}{_argument_meant(name)}")
        flag = BY_NAME[name]
        if flag.kind is not bool:
            yield flag, value
        elif value is not False:
            other = switches.setdefault(flag.key, flag.option)
            if other != flag.option:
                raise ConfigError(f"--{other} and --{flag.option} exclude each other; give one of them")
            yield flag, flag.value


def _take(values: Values, origins: dict[str, str], new: Values, places: Mapping[str, str], here: Path) -> None:
    """Add new values, which are set at `places`; paths in them start at `here`."""
    origins |= places
    for key, value in new.items():
        one = key_of(key)
        if one.path == "component" or key.startswith("components."):
            value = _with_files(value, here)
        elif one.path:  # Relative paths start at their origin: the file's directory, or the command's current one.
            value = _absolute(value, here)
        elif one.secret:
            value = _referring(value, here)
        elif key == "seeds.urls" and isinstance(value, list | tuple):
            value = [drop_user_info(seed) if isinstance(seed, str) else seed for seed in value]
        values[key] = value


def _referring(value: object, here: Path) -> object:
    """Return a secret with the path of a `file:` reference made absolute, and those of certificates."""
    if isinstance(value, dict):
        return {
            name: _absolute(one, here) if name in CERTIFICATES else _referring(one, here) for name, one in value.items()
        }
    if isinstance(value, str) and value.startswith("file:"):
        return f"file:{(here / value.removeprefix('file:')).absolute()}"
    return value


def _with_files(value: object, here: Path) -> object:
    """Return names of components with their files (`mine.py:Mine`) as absolute paths: `resume` runs elsewhere."""
    if isinstance(value, dict):
        return {key: _with_files(one, here) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_files(one, here) for one in value]
    if isinstance(value, str) and value.partition(":")[0].endswith(".py"):
        return _absolute(value, here)
    return value


def _absolute(value: object, here: Path) -> object:
    if isinstance(value, list | tuple):
        return [_absolute(one, here) for one in value]
    if isinstance(value, str | Path) and str(value) not in {"", "-"}:
        return str((here / value).absolute())
    return value


def mistakes(file: Path) -> list[str]:
    """Return every mistake in a configuration file, a line each: the place, what is wrong, and how to fix it. Raises
    ConfigError: the file cannot be read, or is not TOML.
    """
    text = read_text(file)
    values, origins = _read_values(text, file)
    origins |= _places_within(file, text)
    values.pop("preset", None)
    found: list[str] = []
    wrong: frozenset[str] | None = None
    while wrong is None or wrong & values.keys():  # Some mistakes show when others are out of the way.
        values = {key: value for key, value in values.items() if key not in (wrong or ())}
        try:
            _convert(values, origins)
        except MistakesError as error:
            found += error.lines
            wrong = error.keys
        else:
            break
    return sorted(found, key=_line_number)


def _line_number(mistake: str) -> int:
    named = re.search(r" line (\d+): ", mistake)
    return int(named[1]) if named is not None else 0


class MistakesError(ConfigError):
    """Several mistakes of a configuration at once."""

    def __init__(self, lines: Sequence[str], keys: Collection[str]) -> None:
        """Take a line for each, and the dotted keys that they are about."""
        super().__init__(*lines)
        self.keys = frozenset(keys)


def nest(flat: Mapping[str, object]) -> dict[str, object]:
    """Return values by dotted key as tables of their sections."""
    tables: dict[str, object] = {}
    for key, value in flat.items():
        section, dot, name = key.partition(".")
        if not dot:
            tables[key] = value
            continue
        inner = tables.setdefault(section, {})
        if isinstance(inner, dict):
            inner[name] = value
    return tables


def _convert(values: Values, origins: dict[str, str]) -> Config:
    # By way of JSON: dates of TOML and paths are texts.
    values = {key: one.total_seconds() if isinstance(one, timedelta) else one for key, one in values.items()}
    text = json.dumps(nest(values), default=str, ensure_ascii=False)
    if (not text.isascii() or _ZERO.search(text)) and (mistake := _no_text(values, origins)) is not None:
        raise ConfigError(mistake)
    try:
        config = convert(Config, json.loads(text), with_units=True)
    except OptionsError as error:
        raise _as_lines(error.mistakes, origins, values) from error
    if found := list(conflicts(config)):
        raise _as_lines(found, origins, values)
    known = {key: place for key, place in origins.items() if "." in key and key in values}
    return fit_budget(by_mode(config.with_origins(known)))


def _as_lines(mistakes: Sequence[Mistake], origins: Mapping[str, str], values: Values) -> MistakesError:
    """Return mistakes as lines, with the keys that they are about; of a section that is wrong as a whole, all keys."""
    keys = {".".join(mistake.path[:2]) for mistake in mistakes}
    wrong = {key for key in values if key in keys or key.partition(".")[0] in keys}
    return MistakesError(lines_of(mistakes, origins), wrong)


_ZERO = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""Matches a zero byte in JSON."""


def _no_text(values: Values, origins: Mapping[str, str]) -> str | None:
    """Return the mistake of a value of a command line that is not UTF-8 or has a zero byte."""
    for key, value in values.items():
        text = json.dumps(value, default=str, ensure_ascii=False)
        wrong = "what is no text in UTF-8; write it in UTF-8"
        with suppress(UnicodeEncodeError):
            text.encode()
            wrong = "a zero byte; remove it" if _ZERO.search(text) else ""
        if wrong:
            place = origins.get(key, "")
            return f"{place if place.startswith('--') and place != '--set' else f'{place}: {key}'} holds {wrong}"
    return None


def _parse(text: str, file: Path) -> dict[str, object]:
    try:
        tables = tomllib.loads(text, parse_float=read_float)
    except ValueError as error:  # Also of a number with thousands of digits.
        said = str(error)
        begins = text.lstrip().startswith(("{", "<", "http:", "https:"))
        if begins or file.suffix.lower() in (".json", ".yaml", ".yml", ".cfg", ".ini", ".py"):
            raise ConfigError(f"{file} is not TOML, as configurations are; gossamer init writes an example") from error
        said = f"{said[:1].lower()}{said[1:]}"
        if twice := _TWICE(said):
            said = f"[{'.'.join(_NAMES.findall(twice[1]))}] is there twice{twice[2]}; write its keys below one heading"
        elif said.startswith("cannot overwrite a value"):
            said = f"a key is there twice{said.removeprefix('cannot overwrite a value')}; remove one of its lines"
        elif said.startswith("expected \"'"):  # The rest of the file has none: the last one is not closed.
            said = f"close the quotation mark in line {text.count(chr(10), 0, text.rindex(chr(39))) + 1}"
        else:
            said += _quote(text, error)
        raise ConfigError(f"{file} is not TOML: {said}") from error
    except RecursionError:
        raise ConfigError(f"{file}: {NESTED}") from None
    # Before any key: a newer version may have others. Crawls of versions without the line have the first format.
    if (found := tables.pop("format", 1)) != FORMAT:
        raise OtherFormatError(
            f"{file}: the crawl's directory has format {found!r}, and Gossamer {__version__} reads format {FORMAT}; "
            "use the version that made it, or a newer one"
        )
    return tables


_UNQUOTED = re.compile(r"\s*([\w.-]+)(?:\s*[=:]|\s++(?=\w))([\s\[]*)([^\s\"'\[\]{}#,][^\"'\[\]{}#,]*(?:,\d{3}\b)*)")
"""Matches a line that sets a key to a text without its quotation marks, perhaps the first of a list."""
_TWICE = re.compile(r"cannot declare \(([^)]+)\) twice(.*)").match
_NAMES = re.compile(r"'([^']*)'")
_ESCAPES = re.compile(r'\s*([\w.-]+)\s*=\s*+(\[\s*+)?"([^"\'\\]*+\\[^"\']*)"')
"""Matches a line with a backslash between quotation marks that read escapes, as in a path of Windows."""
_OTHERS = {r"\s*/[/*]": "a comment begins with #", r"[^#]*,\s*\}": "leave out the comma before }"}
"""Beginnings of lines that have habits of other formats, each with what to do."""
_NUMBER = re.compile(r"0*(\d+(?:\.\d+)?)").fullmatch
_NOTHING = frozenset(("null", "none", "nil", "undefined", "~"))
_TYPOGRAPHIC = "\u00ab\u00bb\u2018\u2019\u201a\u201c\u201d\u201e"
"""Quotation marks of word processors."""


def _quote(text: str, error: ValueError) -> str:
    """Return the remedy for a line of a file that is not TOML, as a clause; empty if none is known."""
    named = re.search(r"at line (\d+)", str(error))
    line = text.splitlines()[int(named[1]) - 1][:120] if named is not None else ""
    if found := _ESCAPES.match(line):
        shown = "'…'" if _HIDDEN.search(found[1]) else f"'{found[3]}'"
        return f"; write {found[1]} = " + (f"[{shown}]" if found[2] else shown)
    if hint := next((hint for begins, hint in _OTHERS.items() if re.match(begins, line)), ""):
        return f"; {hint}"
    if "unclosed array" in str(error).lower():
        return "; write a comma between the values of a list, and a ] behind them"
    if (found := _UNQUOTED.match(line)) is None:
        return "; close the quotation mark" if "illegal character" in str(error).lower() else ""
    key, bracket, value = found.groups()
    if re.match(r"[\d.]+\s+[^\w\s]", value):
        return "; a comment begins with #"
    typed = line[found.start(3) :].partition("#")[0].strip("[ ;")
    value = plain_decimal(typed) or value.strip().rstrip(";").strip(_TYPOGRAPHIC)
    whole = plain_digits(typed)
    if value.lower() in _NOTHING:
        return f"; leave {key} out for its default"
    if truth := TRUTHS.get(value.lower()):
        written = truth
    elif _HIDDEN.search(key):
        written = '"…"'
    else:
        number = _NUMBER(value.replace(",", ""))
        written = whole.lstrip("0") or (number[1] if number else to_toml(value))
    return f"; write {key} = " + (f"[{written}]" if "[" in bracket else written)


def _flatten(tables: Mapping[str, object]) -> Values:
    flat: Values = {}
    for section, table in tables.items():
        if isinstance(table, dict) and table:
            flat.update({f"{section}.{name}": value for name, value in table.items()})
        else:
            flat[section] = table
    return {key: value for key, value in flat.items() if key not in DROPPED}


_HIDDEN = re.compile(r"pass|secret|token|auth|cookie|key|bearer", re.IGNORECASE)  # Keys whose values are not shown.
_KEY = re.compile(r"\w+\.\w+")
_QUOTED = re.compile(r'(\w+)\."([^"]+)"(?:\.(\w+))?')
"""Matches a key with a name in quotation marks."""


def _parse_assignment(text: str) -> Values:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals and (begun := _KEY.match(key)) and begun[0] in keys():
        raise ConfigError(f"--set {key}: write --set {begun[0]}={key[begun.end() :].lstrip(': ') or 'VALUE'}")
    if not equals or "." not in key:
        raise ConfigError(f"--set{key and f' {key}'}: write --set section.key=value{_suggest_key(key)}")
    if quoted := _QUOTED.fullmatch(key):  # As a file has it: host."example.org"
        section, name, within = quoted.groups()
        if within:
            raise ConfigError(
                f"--set {key}: write all keys of the place at once: --set '{section}.{name}={{{within} = …}}'"
            )
        key = f"{section}.{name}"
    try:
        given = read_value(value, f"--set {key}")
    except ValueError as error:
        if value.strip().startswith(("[", "{")) and not _takes_text(key):
            meant = _quote(f"{key} = {value}", error)
            raise ConfigError(f"--set {key}: {value.strip()} is not TOML: {error}{meant}") from None
        return {key: value.strip()}  # A bare word is a text: --set scope.scope=host
    # So is what looks like a number where only a text can be: --set fetch.tls_min=1.0
    return {key: value.strip() if _takes_text(key) and not isinstance(given, str | list | dict | None) else given}


def _takes_text(key: str) -> bool:
    section, _, name = key.partition(".")
    known = keys_of(sections()[section]) if section in sections() else {}
    return name in known and (known[name].type is str or bool(known[name].choices))


def _suggest_key(name: str) -> str:
    """Return which key a name without section stands for, as a clause; nothing if that is not known."""
    same = keys_named(name)
    found = f"the key is {' or '.join(same)}" if same else equivalent_of(name, as_option=False)
    return f"; {found}" if found else ""


def _places(file: Path, text: str, keys: Iterable[str]) -> dict[str, str]:
    """Return where a file sets each key: its line, else the line that opens the section."""
    lines = line_numbers(text)
    places: dict[str, str] = {}
    for key in keys:
        section = key.partition(".")[0]
        line = (lines.get(key) if section in sections() else None) or lines.get(section)
        places[key] = f"{file} line {line}" if line else str(file)
    return places


def _places_within(file: Path, text: str) -> dict[str, str]:
    """Return where a file sets what is inside the value of a key, such as a field of an item."""
    return {name: f"{file} line {line}" for name, line in line_numbers(text).items() if name.count(".") > 1}
