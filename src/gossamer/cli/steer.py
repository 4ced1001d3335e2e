"""Steer: `set` and `host`: a running crawl's configuration changes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from gossamer.cli.ask import mapping
from gossamer.cli.control import NotRunningError, ask
from gossamer.cli.directory import require_crawl
from gossamer.cli.words import harmless
from gossamer.model.errors import ConfigError


def set_keys(directory: Path, assignments: Sequence[str]) -> int:
    """Change live keys and print what changed; without any, print those that there are."""
    arguments = {"assignments": list(assignments)} if assignments else {}
    answer = _asked(directory, "set", arguments, " ".join(f"--set {text}" for text in assignments))
    live = answer.get("live")
    if isinstance(live, Mapping):
        for key, value in live.items():
            typer.echo(harmless(f"{key}={value}"))
        return 0
    return _told(answer)


def set_host(directory: Path, host: str, assignments: Sequence[str]) -> int:
    """Change what is agreed with one host and print what changed."""
    values = dict(_assigned(text) for text in assignments)
    return _told(_asked(directory, "host", {"host": host, "values": values}, f"--set 'host.{host}={{…}}'"))


def _asked(directory: Path, verb: str, arguments: Mapping[str, object], instead: str) -> Mapping[str, object]:
    require_crawl(directory)
    try:
        return mapping(ask(directory, verb, arguments))
    except NotRunningError as error:
        raise ConfigError(f"{error}; gossamer resume {directory} {instead}".rstrip() + " continues it so") from error


def _told(answer: Mapping[str, object]) -> int:
    changes = answer.get("changed")
    for change in changes if isinstance(changes, list) else ():
        typer.echo(harmless(f"{change['key']}: {change['before'] or 'none'} → {change['after'] or 'none'}"))
    if not changes:
        typer.echo("nothing changes: it is so already")
    return 0


def _assigned(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{text}: write delay_s=5, per_host=2 or pages=100, or none as the value")
    if value.strip() == "none":
        return key.strip(), None
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value
