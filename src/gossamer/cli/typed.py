"""Typed: a command line of `crawl` or `resume` that holds no mistake, read without typer.

To import typer and make its options takes 0.023 s of a crawl's start. The table of flags is the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from gossamer.cli.job import CrawlRequest
from gossamer.config.flags import FLAGS, Flag

SERVE_PORT = "8817"
_SET = Flag("set", "", str, "", many=True)
_OWN: Mapping[str, Sequence[Flag]] = {
    "crawl": (
        _SET,
        Flag("config", "", str, "", short="c"),
        Flag("preset", "", str, ""),
        Flag("or-resume", "", bool, ""),
    ),
    "resume": (_SET,),
}
"""Options of a command that set no single key, as `cli/crawl.py` has them for typer."""


def with_port(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which `--serve` has a value: its port may be left out."""
    found = list(arguments)
    for at, word in enumerate(arguments):
        if word == "--":
            break
        if word == "--serve" and not "".join(arguments[at + 1 : at + 2]).isdigit():
            found[at] = f"--serve={SERVE_PORT}"
    return found


def request_of(words: Sequence[str]) -> CrawlRequest | None:
    """Return what a command line requests; None where only typer can tell, or can say what is wrong."""
    command = words[0] if words else ""
    if command not in _OWN:
        return None
    flags = [*_OWN[command], *(flag for flag in FLAGS if flag.resumable or command == "crawl")]
    found = _values(with_port(words[1:]), flags)
    if found is None:
        return None
    options, places = found
    sets = cast("list[str] | None", options.pop("set")) or ()
    if command == "resume":
        return CrawlRequest("resume", options, sets, directory=Path(places[0])) if len(places) == 1 else None
    file, or_resume = options.pop("config"), bool(options.pop("or_resume"))
    path = None if file is None else Path(str(file))
    return CrawlRequest("crawl", options, sets, seeds=places or (), file=path, or_resume=or_resume)


def _values(words: Sequence[str], flags: Sequence[Flag]) -> tuple[dict[str, object], list[str]] | None:
    """Return the value of each flag by its name, and the other words."""
    known = {f"--{flag.option}": flag for flag in flags} | {f"-{flag.short}": flag for flag in flags if flag.short}
    values: dict[str, object] = {flag.name: False if flag.kind is bool else None for flag in flags}
    places: list[str] = []
    left = iter(words)
    for word in left:
        if word[:1] != "-":
            places.append(word)
            continue
        name, equals, value = word.partition("=")
        flag = known.get(name)
        if flag is None or (equals and (flag.kind is bool or name[:2] != "--")):
            return None
        if flag.kind is bool:
            values[flag.name] = True
            continue
        value = value if equals else next(left, "")
        before = values[flag.name]
        if not value or value[0] == "-" or (before is not None and not flag.many):
            return None
        values[flag.name] = [*cast("list[str]", before or []), value] if flag.many else value
    return values, places
