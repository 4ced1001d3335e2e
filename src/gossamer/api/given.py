"""Given: checks the arguments of a program before they are used; an error is one line."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from gossamer.config import Config
from gossamer.config.flags import BY_NAME, FLAGS, Options, rename_options
from gossamer.config.sections import key_of
from gossamer.config.synonyms import equivalent_of, missing_attribute, synonyms
from gossamer.config.toml import to_toml
from gossamer.model.errors import ConfigError
from gossamer.options import Section

Call = TypeVar("Call", bound=Callable[..., object])


class SuggestsAttributes:
    """Base of classes whose error about a missing attribute names ours, if other libraries use that name for it."""

    _others: ClassVar[str]
    """The table of their attributes in `synonyms.toml`."""
    if not TYPE_CHECKING:  # A type checker would take any attribute, and any operation.

        def __getitem__(self, _: object = None) -> NoReturn:
            said = synonyms().operations[self._others]
            raise TypeError(f"{type(self).__name__!r} object is read in another way; {said}")

        __len__ = __next__ = __contains__ = __reversed__ = __getitem__

        def __bool__(self) -> bool:
            return True

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # The property exists, and raised this error.
                return object.__getattribute__(self, name)
            raise missing_attribute(self, name, self._others)


def refuse_loop(says: str) -> Callable[..., NoReturn]:
    """Return a method that refuses the wrong form of loop or context, and `says` the right one. A context needs both
    methods: the second is looked up before the first is called.
    """

    def refuse(*_: object) -> NoReturn:
        raise TypeError(says)

    return refuse


def directory_of(given: object, name: str = "directory") -> Path:
    """Return the path of a directory that is given as a text or a path. Raises ConfigError: it is something else."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or "\0" in path or not path:
        raise ConfigError(f'{name} is {_shorten(given)}: name a directory, such as "crawl"')
    return Path(path)


def seeds_of(given: object, name: str = "seeds", example: str = "https://example.org/") -> tuple[str, ...]:
    """Return seeds that are given as one text or any number of texts; whether they are URLs is checked elsewhere.
    Sources too, with their `name` and an `example`. Raises ConfigError: they are something else.
    """
    if isinstance(given, str | os.PathLike):
        return (os.fspath(given),)
    if str(given).startswith(("http://", "https://")):
        return (str(given),)
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray | Mapping):
        raise ConfigError(f'{name} is {_shorten(given)}: give an address, or a list of them: ["{example}"]')
    # Objects of yarl, httpx or furl are texts of addresses; any other text that an object has is none.
    found = tuple(str(one) if str(one).startswith(("http://", "https://")) else one for one in given)
    for seed in found:
        if not isinstance(seed, str | os.PathLike):
            raise ConfigError(f'{name} holds {_shorten(seed)}: each is a text, such as str(url) or "{example}"')
    return tuple(os.fspath(seed) for seed in found)


def sets_of(given: object) -> list[str]:
    """Return keys and values as `--set` takes them. Raises ConfigError: they are no mapping of dotted names."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise ConfigError(f'settings is {_shorten(given)}: give keys with values, such as {{"crawl.commit_s": 2.0}}')
    for key, value in given.items():
        if not isinstance(key, str) or "." not in key:
            meant = in_python(equivalent_of(key, as_option=False)) if isinstance(key, str) else ""
            if isinstance(value, Mapping):
                meant = f'write {{"{key}.{next(iter(value), "KEY")}": …}}'
            expected = f"expected section.key{meant and '; '}{meant or ', such as crawl.commit_s'}"
            raise ConfigError(f"settings has the key {_shorten(key)}: {expected}")
    return [f"{key}={'none' if value is None else to_toml(plain_value(key, value))}" for key, value in given.items()]


def plain_value(name: str, given: Any) -> Any:
    """Return a program's value in the form of options: without types of numpy and pandas, patterns, members of an enum,
    sets and generators. Raises ConfigError: it is an object of another kind; `name` is that of the option.
    """
    if isinstance(given, re.Pattern | Enum):
        return given.pattern if isinstance(given, re.Pattern) else plain_value(name, given.value)
    if callable(numbers := getattr(given, "tolist", None)):
        return numbers()
    if isinstance(given, Mapping):
        return {key: plain_value(name, value) for key, value in given.items()}
    if isinstance(given, list | tuple | AbstractSet | Iterator):
        return [plain_value(name, value) for value in given]
    if given is None or isinstance(given, str | int | float | Decimal | timedelta | os.PathLike | Section):
        return given
    raise ConfigError(f"{name} is {_shorten(given)}: give a text, a number, True or False, or a list or dict of these")


def with_options(call: Call) -> Call:
    """Return a callable with its `**options` named in signature and docstring, as `help` and editors show them."""
    own = inspect.signature(call)
    fixed = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint.__forward_arg__)
        for name, hint in Options.__annotations__.items()
    ]
    call.__signature__ = own.replace(parameters=[*fixed, *named])  # type: ignore[attr-defined]
    said = {flag.name: flag.help.replace(" (repeatable)", "") for flag in FLAGS if flag.name in Options.__annotations__}
    lines = [f"    {name}: {rename_options(text, _NAMES)}" for name, text in said.items()]
    call.__doc__ = "\n".join([inspect.cleandoc(call.__doc__ or ""), "", "Options:", *lines])
    return call


@contextmanager
def check_keywords(options: Mapping[str, object]) -> Iterator[None]:
    """Check the types of a program's options, and replace options (`--max-pages`) in errors by its keywords
    (`max_pages`). Times and sizes may be texts with their units. Raises ConfigError: a text that a command line would
    have for a number, or a switch that is neither True nor False.
    """
    for name, value in options.items():
        flag = BY_NAME.get(name)
        if flag is not None and value is not None:
            key = key_of(flag.key)
            is_text = flag.kind is int and isinstance(value, str) and not key.unit
            if key.read and str(value).isalpha():  # A word for a number, such as `auto`.
                continue
            if is_text or (flag.kind is bool and not isinstance(value, bool)):
                expected = "a whole number" if is_text else "True or False"
                raise ConfigError(f"{name} {json.dumps(value, default=str)[:60]}: expected {expected}")
    try:
        yield
    except ConfigError as error:
        hint = 'no seeds: give an address, or a list of them: ["https://example.org/"]'
        raise ConfigError(hint if str(error).startswith("no seeds") else in_python(str(error))) from None


_NAMES = {flag.option: flag.name for flag in FLAGS} | {"set": "settings"}
_WORDS = frozenset(("batch", "continuous", "offline", "prefix", "host", "domain", "never", "always"))
_TYPED = re.compile(
    r"`[^`]*+`|\bgossamer [a-z][^;,)]*+|--set (?:'([\w.]++)=([^']++)'|([\w.]++)=([^\s;,)]++))"
    r"|(?:--([a-z][a-z-]*+)|(?<!\S)-o)(?: (?!-)([^\s;,)]++))?"
)
"""Matches a command, which stays; a key with its value; or an option, with the word behind it."""


def in_python(text: str) -> str:
    """Return an error with options as a program gives them: `mode="offline"` for `--mode offline`."""
    return _TYPED.sub(_argument, text)


def _argument(match: re.Match[str]) -> str:
    key = match[1] or match[3]
    if key:
        value = match[2] or match[4]
        return f'settings={{"{key}": {value.title() if value in ("true", "false") else value}}}'
    if match[0][0] != "-":
        return match[0]
    option = match[5] or "output"
    word = match[6] or ""
    flag = next((one for one in FLAGS if one.option == option), None)
    shown = _NAMES.get(option, f"--{option}")
    if flag is not None and match.start() > 0:
        if flag.kind is bool and not match.string.endswith("and ", 0, match.start()):  # "json and quiet exclude" …
            shown += "=True"
        elif word and (word in _WORDS or not word.islower() or option in ("seeds", "output")):
            value = word if word.isupper() or word.isdecimal() else f'"{word}"'
            return f'settings={{"{flag.key}": {value}}}' if option == "seeds" else f"{shown}={value}"
    return " ".join(filter(None, (shown, word)))


def require_config(given: object) -> None:
    """Raise ConfigError for a value that is neither None nor a configuration."""
    if given is not None and not isinstance(given, Config):
        raise ConfigError(
            f"config is {_shorten(given)}: give what gossamer.config.configure returns, such as "
            'configure(Path("gossamer.toml")), or give keys as settings={"crawl.commit_s": 2.0}'
        )


def require_callable(given: object, name: str, *, may_wait: bool = False) -> None:
    """Raise ConfigError for a value that is neither None nor callable; unless it `may_wait`, also for one to await."""
    if given is not None and (not callable(given) or (not may_wait and inspect.iscoroutinefunction(given))):
        raise ConfigError(f"{name} is {_shorten(given)}: give a function{' without async' * callable(given)}")


def _shorten(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}…"
