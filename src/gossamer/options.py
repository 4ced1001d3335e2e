"""Options: how sections of the configuration declare their keys, and how a table of values becomes a section.

All mistakes of a table are found at once. Other keys keep their defaults, so that only given values cost time.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from operator import ge, gt, le, lt
from sys import float_info
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from gossamer.quantities import WORDS, read_quantity, whole_number


class Key(msgspec.Struct, frozen=True, eq=False):
    """A key's purpose and constraints, as the annotation of its type: `Annotated[float, Key("Delay", ge=0)]`."""

    what: str = ""
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int = 0
    max_length: int | None = None
    pattern: str = ""
    """A regular expression that the whole text matches."""
    basic: bool = False
    """Operators set it: `gossamer init` writes it. Other keys are for experts."""
    live: bool = False
    """`gossamer set` takes it, and its value holds from the next commit on."""
    secret: bool = False
    """Its value may hold credentials. No output shows them."""
    path: Literal["", "read", "written", "replaced", "component"] = ""
    """Its value names files, and what the crawl does with them; replaced: it reads them again when others take their
    place. `component`: the value names components, some by the file that has them.
    """
    unit: Literal["", "seconds", "bytes"] = ""
    """The unit of its number, as its name says."""
    read: Callable[[Any], Any] | None = None
    """Returns what is converted in place of what was given; raises ValueError."""
    names: Callable[[str], object] | None = None
    """Raises ValueError for what cannot be a name in its table."""
    check: Callable[[Any], Any] | None = None
    """Returns the value to keep in place of the converted one; raises ValueError."""
    example: str = ""
    """How to write it, for errors about a table with names of the operator's."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of a section and of a rule in one. Its `__post_init__` checks keys together, and raises ValueError."""

    TEXT: ClassVar[str] = ""
    """The key that a text stands for, where one may be given in place of a table."""


class NamedSection(Section, frozen=True):
    """A section whose keys are names: its one field has all its rules. A rule that is None is not there."""


class DeclaredKey(NamedTuple):
    """A key as its section declares it."""

    name: str
    type: Any
    key: Key
    default: object
    """`msgspec.NODEFAULT`: it must be given."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that it takes, where it takes no others."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()


LISTED_MAX = 12
"""Keys that an error lists; sections of the configuration have more."""


class Mistake(NamedTuple):
    """One thing that is wrong with what was given."""

    path: tuple[str, ...]
    """The names that lead to it."""
    message: str
    """A clause that begins with `expected`, or a sentence that names the value; empty: there is no such key."""
    given: object
    known: tuple[str, ...] = ()
    """The keys that there are, where there is no such key."""

    def __str__(self) -> str:
        message = self.message
        if not message:
            listed = f"there are {', '.join(self.known)}" if 0 < len(self.known) <= LISTED_MAX else ""
            message = "there is no such key" + nearest(self.path[-1], self.known, listed)
        return ": ".join(filter(None, (".".join(self.path), message)))


class OptionsError(ValueError):
    """Mistakes of a table, all of them; as text it is the first."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__(str(mistakes[0]))
        self.mistakes = mistakes


NEAR = 0.76
"""Similarity of two words (difflib) from which on one is taken for a misprint of the other."""
SHORT = 4
NEAR_SHORT = 0.75
"""The same for words of at most `SHORT` characters, of which one is wrong."""
BEGINNING_MIN = 3
"""Characters from which on the beginning of a name is taken for it."""


def nearest(name: str, known: Iterable[str], otherwise: str = "", write: Callable[[str], str] = str) -> str:
    """Return `; did you mean …?` for a misprint or the beginning of one known name, which `write` puts as it is to be
    typed; else `; ` with the clause `otherwise`, if there is one.
    """
    folded = {one.lower(): one for one in known}
    name = name.lower()
    begins = [one for one in folded if len(name) >= BEGINNING_MIN and one.startswith(name)]
    cutoff = NEAR if len(name) > SHORT else NEAR_SHORT
    found = difflib.get_close_matches(name, folded, n=1, cutoff=cutoff) or (begins if len(begins) == 1 else [])
    hint = f"did you mean {write(folded[found[0]])}?" if found else otherwise
    return f"; {hint}" if hint else ""


_in_seconds = re.compile(r"(?!.*(?:bytes|per)_s).*_s(_(min|max|mean|first))?").fullmatch
_NUMBERS = (float, int, float | None, int | None)
SECONDS_MAX = 1e9
"""Largest value of a key in seconds, as its name says: 31 years. Clocks and libcurl refuse some larger ones."""
S = TypeVar("S", bound=Section)
_ANY = Key()


@cache
def keys_of(section: type[Section]) -> Mapping[str, DeclaredKey]:
    """Return the keys of a section by name, in order; nothing for one whose keys are names."""
    return {} if issubclass(section, NamedSection) else {one.name: one for one in _read_keys(section)}


@cache
def rules_key(section: type[NamedSection]) -> DeclaredKey:
    """Return the field with the rules of a section whose keys are names."""
    [rules] = _read_keys(section)
    return rules


def rule_type(section: type[NamedSection]) -> type[Section]:
    """Return what a rule is in a section whose keys are names."""
    return cast("type[Section]", get_args(rules_key(section).type)[1])


def _read_keys(section: type[Section]) -> Iterator[DeclaredKey]:
    for field in fields(section):
        if not field.name.startswith("_"):
            default = field.default if field.default_factory is NODEFAULT else field.default_factory()
            hint, key = split_annotation(field.type, _ANY)
            if _in_seconds(field.name):
                is_bounded = hint not in _NUMBERS or key.le is not None or key.lt is not None
                key = replace(key, unit="seconds", le=key.le if is_bounded else SECONDS_MAX)
            elif "bytes" in field.name:
                key = replace(key, unit="bytes")
            yield DeclaredKey(field.name, hint, key, default)


def rules_of(section: NamedSection) -> Mapping[str, Any]:
    """Return the rules of a section by name."""
    return cast("Mapping[str, Any]", getattr(section, rules_key(type(section)).name))


def to_table(value: object, *, defaults: bool = False) -> Any:
    """Return a section as `convert` takes it: what is not at its default, or with `defaults` all of it."""
    match value:
        case NamedSection():
            return to_table(rules_of(value), defaults=defaults)
        case Section():
            kept = ((one, getattr(value, one.name)) for one in keys_of(type(value)).values())
            return {one.name: to_table(own, defaults=defaults) for one, own in kept if defaults or own != one.default}
        case Mapping():
            return {name: to_table(one, defaults=defaults) for name, one in value.items()}
        case tuple():
            return [to_table(one, defaults=defaults) for one in value]
    return value


def words_of(hint: Any) -> tuple[str, ...]:
    """Return the words that a type takes in place of a value, such as `auto` of `int | Literal["auto"]`."""
    return tuple(word for one in get_args(hint) if get_origin(one) is Literal for word in get_args(one))


_BY_META = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")


@cache
def split_annotation(hint: Any, key: Key) -> tuple[Any, Key]:
    """Return a type without its annotation, and the key that it is annotated with, else `key`. The bounds of msgspec's
    `Meta`, with which requests are described, are those of a key.
    """
    if get_origin(hint) is not Annotated:
        return hint, key
    for one in hint.__metadata__:
        if isinstance(one, Key):
            key = one
        else:
            key = replace(key, **{name: at for name in _BY_META if (at := getattr(one, name)) is not None})
    return hint.__origin__, key


def convert(section: type[S], table: object, *, from_texts: bool = False, with_units: bool = False) -> S:
    """Return a section with the values of a table, as TOML or JSON has them. About 5 µs a value.

    With `from_texts` numbers and truths may be written out, as in the query of an address; `with_units` takes numbers
    as people write them, such as 1h30m, 512MiB and 1e6. Raises OptionsError: all mistakes.
    """
    conversion = _Conversion(from_texts=from_texts, with_units=with_units)
    made = conversion.section(table, section, ())
    if conversion.mistakes:
        raise OptionsError(conversion.mistakes)
    assert isinstance(made, section)
    return made


class _Conversion:
    """Makes values of what was given; what is wrong with a value becomes a mistake, and the value None."""

    def __init__(self, *, from_texts: bool, with_units: bool) -> None:
        self._from_texts = from_texts
        self._with_units = with_units
        self.mistakes: list[Mistake] = []

    def section(self, given: object, section: type[Section], path: tuple[str, ...]) -> object:
        if isinstance(given, section):
            return given
        if isinstance(given, str) and section.TEXT:
            given = {section.TEXT: given}
        if not isinstance(given, Mapping):
            several = ", which [NAME] begins: [[NAME]] begins a list" if isinstance(given, list) else ""
            self._wrong(path, f"expected {_WORDS[dict]}{several}", given)
            return None
        known = keys_of(section)
        before = len(self.mistakes)
        values = {}
        if issubclass(section, NamedSection):
            rules = rules_key(section)
            rows = {name: rule for name, rule in given.items() if rule is not None}
            values[rules.name] = self._value(rows, rules.type, rules.key, path)
        else:
            for name, value in given.items():
                if name in known:
                    values[name] = self._value(value, known[name].type, known[name].key, (*path, name))
                else:
                    self.mistakes.append(Mistake((*path, name), "", value, tuple(known)))
            for name in known:
                if known[name].default is NODEFAULT and name not in given:
                    self._wrong((*path, name), "it is missing; add it", None)
        return None if len(self.mistakes) > before else self._try_make(partial(section, **values), path, given)

    def _value(self, given: Any, hint: Any, key: Key, path: tuple[str, ...]) -> object:
        """Return a value of a type and within the bounds of its key."""
        hint, key = split_annotation(hint, key)
        before = len(self.mistakes)
        words: tuple[str, ...] = ()
        if get_origin(hint) in (UnionType, Union):
            words = words_of(hint)
            if given in words or (given is None and NoneType in get_args(hint)):
                return given
            kinds = [one for one in get_args(hint) if one is not NoneType]
            fits = (one for one in kinds if isinstance(given, _KINDS.get(get_origin(one) or one, ())))
            hint = next(fits, kinds[0])
        origin = get_origin(hint)
        given = self._read(given, hint, key)
        if key.read is not None:
            given = self._try_make(partial(key.read, given), path, given)
        if len(self.mistakes) > before:
            return None
        if hint is Any:
            return given
        if origin is None and issubclass(hint, Section):
            made = self.section(given, hint, path)
        elif expected := _expectation(given, hint, origin, key):
            self._wrong(path, f"expected {' or '.join((expected, *words))}", given)
            return None
        elif origin is tuple:
            [inner, _] = get_args(hint)
            made = tuple(self._value(one, inner, _ANY, (*path, str(at))) for at, one in enumerate(given))
        elif origin is dict:
            made = {name: self._entry(name, one, get_args(hint)[1], key, (*path, name)) for name, one in given.items()}
        else:
            made = float(given) if hint is float else given
        if key.check is not None and len(self.mistakes) == before:
            return self._try_make(partial(key.check, made), path, given)
        return made

    def _read(self, given: object, hint: Any, key: Key) -> object:
        """Return the number or truth that a text names, where one is expected; anything else as it is."""
        if self._with_units and hint in (int, float):
            if isinstance(given, str):
                number = (whole_number if hint is int else read_quantity)(given, key.unit)
                return given if number is None else number
            return int(given) if hint is int and isinstance(given, float) and given.is_integer() else given
        if self._from_texts and hint in (bool, int, float) and isinstance(given, str):
            with suppress(msgspec.ValidationError):
                return msgspec.convert(given, hint, strict=False)
        return given

    def _entry(self, name: str, given: Any, hint: Any, key: Key, path: tuple[str, ...]) -> object:
        if key.names is not None:
            self._try_make(partial(key.names, name), path, given)
        return self._value(given, hint, replace(_ANY, unit=key.unit), path)

    def _try_make(self, make: Callable[[], object], path: tuple[str, ...], given: object) -> object:
        try:
            return make()
        except ValueError as error:
            self._wrong(path, str(error), given)
            return None

    def _wrong(self, path: tuple[str, ...], message: str, given: object) -> None:
        self.mistakes.append(Mistake(path, message, given))


INTEGER_MAX = 2**63 - 1
_TABLE = '{NAME = "a"}'
_KINDS: Mapping[Any, tuple[type, ...]] = {
    bool: (bool,), int: (int,), float: (int, float), str: (str,), tuple: (tuple, list), dict: (Mapping,),
}  # fmt: skip
_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: 'a text, in quotes, such as "a"',
    tuple: 'a list, such as ["a", "b"]',
    dict: "a section of keys",
}
_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("ge", ge, "{} or more"), ("gt", gt, "more than {}"), ("le", le, "{} or less"), ("lt", lt, "less than {}"),
)  # fmt: skip


def _expectation(given: Any, hint: Any, origin: Any, key: Key) -> str:
    """Return what is expected in place of a value; empty if the value is right, apart from the values within it."""
    if origin is Literal:
        *others, last = map(repr, get_args(hint))
        inside = [one for one in get_args(hint) if isinstance(given, str) and one in given]
        meant = f"; did you mean {inside[0]!r}?" if inside else nearest(str(given), get_args(hint), write=repr)
        return "" if given in get_args(hint) else f"{', '.join(others)} or {last}{meant}"
    kind = origin or hint
    is_right: bool = isinstance(given, _KINDS[kind]) and (kind is bool or not isinstance(given, bool))
    if not is_right:
        words = WORDS[key.unit] if key.unit and kind in (int, float) else _WORDS[kind]
        if kind is dict and (key.example or get_args(hint)[1] is str):
            return f"{words}, such as {key.example or _TABLE}"
        return words.replace("a number", "a whole number") if kind is int else words
    if kind is int and abs(given) > INTEGER_MAX:  # What TOML and the store hold.
        return f"{INTEGER_MAX} or less" if given > 0 else f"{-INTEGER_MAX} or more"
    if kind is float and not abs(given) <= float_info.max:
        return "a finite number"
    if key.min_length and len(given) < key.min_length:
        return f"{_WORDS[kind].partition(',')[0]} that is not empty"
    if key.max_length is not None and len(given) > key.max_length:
        return f"{key.max_length} or less {'characters' if kind is str else 'entries'}"
    if key.pattern and not re.fullmatch(key.pattern, given):
        return f"a text that matches {key.pattern}"
    bounds = ((getattr(key, name), fits, text) for name, fits, text in _BOUNDS)
    return next((text.format(f"{at:.15g}") for at, fits, text in bounds if at is not None and not fits(given, at)), "")
