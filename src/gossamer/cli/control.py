"""Control: the commands that act on a running crawl, through the socket in its directory."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
from typer import Argument, Option, Typer, echo

from gossamer import api
from gossamer.api.asking import NotRunningError, ask_crawl
from gossamer.cli.arguments import Directory
from gossamer.cli.job import is_maintained
from gossamer.cli.output import harmless
from gossamer.cli.status_text import line_of, state_of
from gossamer.config.toml import read_assignment, to_toml
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.status import read_status
from gossamer.model.verbs import VERBS, InvalidError, Verb, read
from gossamer.model.words import shell_word
from gossamer.world.process import DirectoryLock

commands = Typer()
DEADLINE_S = 30.0
BEGIN_S_MAX = 5.0
"""Longest wait for a crawl that holds its directory to listen."""
PAUSE_S = 0.05
STALLED = "state/stalled.json"


@commands.command("seed", help=VERBS["seed"].says)
def seed(directory: Directory, urls: Annotated[list[str], Argument(metavar="URL", help="Seeds to add.")]) -> int:
    """Check seeds and add them."""
    from gossamer.config.seeds import seed as checked

    return act(directory, "seed", urls=[checked(url) for url in urls])


@commands.command("release", help=VERBS["release"].says)
def release(
    directory: Directory, name: Annotated[str, Argument(metavar="NAME", help="A trap as `status` names it, or a host.")]
) -> int:
    """Release traps: in the crawl itself while it runs, else in its store."""
    try:
        found = mapping(ask(directory, "release", {"name": name}))
    except NotRunningError:
        found = api.release_of(directory, name)
    echo(pairs_text(found))
    return 0


@commands.command("set", help=VERBS["set"].says)
def set_keys(
    directory: Directory,
    assignments: Annotated[
        list[str] | None, Argument(metavar="KEY=VALUE", help="New values; without any, list the keys that can change.")
    ] = None,
) -> int:
    """Change keys; without any, list those that can change."""
    texts = assignments or []
    arguments = {"assignments": texts} if texts else {}
    again = " ".join(f"--set {shell_word(text.partition('=')[0].strip())}=…" for text in texts)
    answer = _change(directory, "set", arguments, again, lambda: api.check_assignments(directory, texts))
    live = answer.get("live")
    if isinstance(live, Mapping):
        for key, value in live.items():
            echo(harmless(f"{key}={value}"))
        return 0
    return _show_changes(answer)


@commands.command("host", help=VERBS["host"].says)
def set_host(
    directory: Directory,
    host: Annotated[str, Argument(metavar="HOST", help="Host name, such as example.org.")],
    assignments: Annotated[
        list[str], Argument(metavar="KEY=VALUE", help="delay_s, per_host or pages; the value none removes one.")
    ],
) -> int:
    """Change the settings of one host; the value none removes one."""
    values = dict(
        read_assignment(text, f"{text!r}: write delay_s=5, per_host=2 or pages=100, or none as the value")
        for text in assignments
    )
    fields = {"host": host, "values": values}
    kept = {key: value for key, value in values.items() if value is not None}
    check = lambda: api.check_assignments(directory, [f"host.{host}={to_toml(kept)}"])  # noqa: E731
    return _show_changes(_change(directory, "host", fields, f"--set 'host.{host}={{…}}'", check))


def _command(name: str, verb: Verb) -> Callable[..., int]:
    """Return the command of a verb, with an argument or option for each field of its request."""

    def command(directory: Path, **fields: object) -> int:
        return act(directory, name, **fields)

    directory = Parameter("directory", Parameter.POSITIONAL_OR_KEYWORD, annotation=Directory)
    fields = [_parameter(field) for field in msgspec.structs.fields(verb.takes)]
    command.__signature__ = Signature([directory, *fields])  # type: ignore[attr-defined]
    return command


def _parameter(field: msgspec.structs.FieldInfo) -> Parameter:
    kind, *about = get_args(field.type)
    said = [one.description for one in about if isinstance(one, msgspec.Meta) and one.description]
    if field.required:
        argument = Argument(metavar=field.name.removesuffix("s").upper(), help=said[0])
        shown: Any = Annotated[list[str] if get_origin(kind) is tuple else kind, argument]
        return Parameter(field.name, Parameter.KEYWORD_ONLY, annotation=shown)
    shown = Annotated[kind, Option(f"--{field.name}", help=said[0])]
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=shown)


def act(directory: Path, verb: str, **arguments: object) -> int:
    """Send a verb to a running crawl, and print its answer."""
    try:
        answer = ask(directory, verb, arguments)
    except NotRunningError as error:
        raise _not_running(directory, error, "continues it") from error
    if isinstance(answer, Mapping):
        # Verbs that change the crawl's state answer with its status.
        status = read_status(answer) if "state" in answer else None
        echo(f"{state_of(status)}; {line_of(status)}" if status is not None else pairs_text(answer))
    elif answer is not None:
        echo(harmless(answer))
    return 0


def _change(
    directory: Path, verb: str, arguments: Mapping[str, object], instead: str, check: Callable[[], None]
) -> Mapping[str, object]:
    """Return a running crawl's answer. For one that does not run, `check` first raises the request's own mistakes."""
    try:
        return mapping(ask(directory, verb, arguments))
    except NotRunningError as error:
        check()
        raise _not_running(directory, error, f"{instead} continues it so" if instead else "continues it") from error


def _not_running(directory: Path, error: NotRunningError, how: str) -> ConfigError:
    """Return the mistake of a command for a crawl that does not run; `how` ends the sentence about `resume`."""
    if is_maintained(directory):
        return ConfigError(f"another command works on {directory}; repeat this one when it is done")
    return ConfigError(f"{error}; gossamer resume {shell_word(directory)} {how}")


def _show_changes(answer: Mapping[str, object]) -> int:
    changes = answer.get("changed")
    for change in changes if isinstance(changes, list) else ():
        echo(harmless(f"{change['key']}: {change['before'] or 'none'} → {change['after'] or 'none'}"))
    if not changes:
        echo("nothing changes: it has that value already")
    return 0


class SilentError(ConfigError):
    """A crawl listens but does not answer."""


def ask(
    directory: Path, verb: str, arguments: Mapping[str, object] | None = None, *, deadline_s: float = DEADLINE_S
) -> object:
    """Send one request to the crawl that runs in `directory` and return its answer.

    One that begins or ends is waited for: its process holds the directory and does not listen. Raises NotRunningError:
    no crawl listens there; ConfigError: the request is invalid, the crawl refused it, or did not answer within
    `deadline_s`.
    """
    try:
        read(verb, arguments or {})
    except InvalidError as error:
        raise ConfigError(str(error)) from error
    request = {"verb": verb, **(arguments or {})}
    begins_by = time.monotonic() + BEGIN_S_MAX
    while True:
        try:
            answer = asyncio.run(ask_crawl(directory, request, deadline_s))
        except NotRunningError as error:
            is_over = not isinstance(error.__cause__, OSError) or time.monotonic() > begins_by
            if is_over or not is_held(directory):
                from gossamer.config.gather import require_state  # Only a crawl that does not answer needs it.

                require_state(directory)
                raise
            time.sleep(PAUSE_S)
        else:
            break
    if answer.get("kind") == "overdue":
        raise SilentError(str(answer["error"]))
    if not answer["ok"]:
        raise ConfigError(" ".join(str(answer.get("error", "refused")).split()))
    return answer.get("result")


def is_held(directory: Path) -> bool:
    """Return whether a process holds a crawl's directory, also one that does not listen yet or any more, or will hold
    it: a supervisor starts it again at once, except while a command works on the crawl.
    """
    try:
        if DirectoryLock.is_held(directory / LOCK):
            return True
        return DirectoryLock.is_held(directory) and not is_maintained(directory)
    except OSError:
        return False


def mapping(answer: object) -> Mapping[str, object]:
    """Return an answer that must be an object. Raises ConfigError when the crawl speaks another version."""
    if not isinstance(answer, Mapping):
        raise ConfigError("the crawl that runs there is of another version; use the one that started it")
    return answer


def pairs_text(found: Mapping[str, object]) -> str:
    """Return names and values, one per line; lists and objects follow their name, indented."""
    width = max((len(str(name)) for name in found), default=0)
    lines = []
    for name, value in found.items():
        if value is None or value in ("", [], {}):
            continue
        if isinstance(value, list):
            lines.append(f"{name}:")
            lines += [f"  {_inline(item)}" for item in value]
        elif isinstance(value, Mapping) and value.keys() == {"spent", "of"}:
            lines.append(f"{harmless(name):<{width}}  {value['spent']} of {value['of']} spent")
        elif isinstance(value, Mapping):
            lines.append(f"{name}:")
            lines += [f"  {line}" for line in pairs_text(value).splitlines()]
        else:
            lines.append(f"{harmless(name):<{width}}  {_inline(value)}")
    return "\n".join(lines)


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{harmless(name)} {harmless(item)}" for name, item in value.items() if item not in (None, ""))
    return harmless(value)


def why_silent(directory: Path) -> str:
    """Return a sentence about a crawl whose loop does not answer."""
    process = _process(directory)
    if process and _state(process) == "T":
        return f"its process {process} is stopped (SIGSTOP, or Ctrl-Z): kill -CONT {process} lets it go on"
    try:
        stalled = json.loads((directory / STALLED).read_bytes())
        stood_s = time.time() - float(stalled["since"])
        where = str(stalled["stack"]).strip().splitlines()
    except (OSError, ValueError, KeyError, TypeError):
        return "try again"
    at = where[-2].strip() if len(where) > 1 else "somewhere"
    return f"its event loop has been stalled for {stood_s:.0f} s, at {at}; {directory / STALLED} has details"


def _process(directory: Path) -> int:
    try:
        return int((directory / LOCK).read_text() or 0)
    except (OSError, ValueError):
        return 0


def _state(process: int) -> str:
    """Return a process's state as Linux names it: R, S, D, T …"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


_written = {one.name for one in commands.registered_commands}
for _name, _verb in VERBS.items():
    if _verb.changes and _verb.is_whole and _name not in _written:
        commands.command(_name, help=_verb.says)(_command(_name, _verb))
