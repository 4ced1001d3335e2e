"""Arguments: those that many commands take, their help, and the one-line errors of a command line."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context, Option, Typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from gossamer.cli.directory import holds_crawl, require_crawl
from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word


def assignments() -> list[str]:
    """Return the beginnings of all assignments, for a shell to offer."""
    from gossamer.config.sections import keys

    return [f"{key}=" for key in keys()]


def existing_crawl(context: Context, directory: Path) -> Path:
    """Return a directory that holds a crawl. Raises ConfigError: this one does not."""
    if not context.resilient_parsing:  # A shell asks for words to complete.
        require_crawl(directory)
    return directory


Place = Annotated[Path, Argument(metavar="DIR", help="The crawl's directory.")]
"""A directory, or the URI of a store."""
Directory = Annotated[Path, Argument(metavar="DIR", help="The crawl's directory.", callback=existing_crawl)]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, Option("--quiet", help="Show errors only.")]
_SET = Option("--set", metavar="KEY=VALUE", help="Set any configuration key (repeatable).", autocompletion=assignments)
Sets = Annotated[list[str] | None, _SET]
ConfigFile = Annotated[Path | None, Option("--config", "-c", metavar="FILE", help="Read a TOML configuration file.")]
PresetName = Annotated[str | None, Option("--preset", metavar="NAME", help="Start from a set of values: whitelist.")]
UNREADABLE = re.compile(r"'([^']+)' is not readable")
"""Matches what the parser says of a path that this user may not read."""
HELP = {"help_option_names": ["-h", "--help"]}


def _cast_value(param: Any, ctx: Any, value: Any) -> Any:
    """Return the typed value of a parameter, or its default. Raises ConfigError: another option, or no path."""
    several = param.multiple or param.nargs == -1
    words = [str(one) for one in (value if several else [value])] if value is not None else []
    _require_values(param, words, ctx.command)
    for word in words if param.type.name == "path" else ():
        if not word:
            raise ConfigError("a path is empty, as that of a variable that is not set; name a file or directory")
        if word.startswith(("http://", "https://")):
            names = [one.metavar for one in ctx.command.params if one.param_type_name == "argument"]
            order = f"; write {ctx.command_path} {' '.join(names)}" if len(names) > 1 else ""
            raise ConfigError(f"{word} is an address, and a path of this machine is expected{order}")
    if param.type.name in ("int", "float") and words:
        numbers = [quantity_of(param.opts[0], one, "whole" if param.type.name == "int" else "") for one in words]
        value = numbers if several else numbers[0]
    return type(param).type_cast_value(param, ctx, value)


def _require_values(param: Any, values: Iterable[str], command: Any) -> None:
    """Raise ConfigError if an option took the place of another one's value."""
    for value in values:
        short = next((one for one in param.opts if len(one) == 2), "")
        if short and value.startswith("="):
            raise ConfigError(f"{short}{value}: write {short} {value[1:]}")
        is_path = value.startswith("--") and param.metavar in ("PATH", "FILE", "DIR")
        if is_path or (value.startswith("-") and any(value in other.opts for other in command.params)):
            if param.param_type_name == "argument":
                raise ConfigError(f"{value} stands behind --, where every word is an argument; write options before it")
            option = " or ".join(param.opts)
            raise ConfigError(f"{option} has no value before {value}; write {param.opts[0]} {param.metavar or 'VALUE'}")


class _CheckedCommand:
    """What is given for its parameters is checked."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its arguments and options."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            param.type_cast_value = partial(_cast_value, param)
        return params


class CommandGroup(_CheckedCommand, TyperGroup):
    """Commands by their names."""

    tasks: Mapping[str, Collection[str]] = {}
    """Names of commands by their task, as the help lists them; none: in one list."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each task with their help lines."""
        columns = max(map(len, self.commands))
        for task, names in (self.tasks or {"Commands": self.commands}).items():
            found = [(f"{name:{columns}}", self.commands[name].get_short_help_str(100)) for name in names]
            with formatter.section(task):
                formatter.write_dl(found)


class Command(_CheckedCommand, TyperCommand):
    """A command whose help names arguments and options without the types of the code."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of its usage line: `[SEED]...` for any number of an argument that may be missing."""
        pieces = [self.options_metavar or ""]
        for one in self.get_params(ctx):
            if one.param_type_name == "argument":
                word = one.metavar if one.required else f"[{one.metavar}]"
                pieces.append(f"{word}..." if one.nargs == -1 else word)
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write two lists: arguments and options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            found = [one.get_help_record(ctx) for one in self.get_params(ctx) if one.param_type_name == kind]
            records = [(record[0].partition(" <")[0], record[1]) for record in found if record is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


DIRECTORY_FIRST = frozenset(("exclude", "host", "release", "robots", "search", "set"))
"""Commands with a directory and words that may be anything."""
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"
_DASHED = re.compile(f"([{_DASHES}-]*[{_DASHES}][{_DASHES}-]*)([A-Za-z][\\w-]*)").match
"""Matches an option that begins with a dash of a word processor."""
_AT_HOME = re.compile(r"(?:-o|[\w.-]+=)?~/").match


def check_words(words: Sequence[str]) -> None:
    """Raise ConfigError for what word processors, scripts of Windows and quoted paths make of a command line, and for
    a crawl's directory that comes last.
    """
    command, *plain = [word for word in words if not word.startswith("-")] or [""]
    if command in DIRECTORY_FIRST and plain[1:] and holds_crawl(Path(plain[-1])) and not Path(plain[0]).exists():
        ordered = " ".join(map(shell_word, (plain[-1], *plain[:-1])))
        raise ConfigError(f"the directory comes first; write gossamer {command} {ordered}")
    for word in words:
        if word == "--":
            return
        if word.endswith("\r"):
            raise ConfigError(
                f"{word[:-1]!r} has a carriage return after it; save the script with the line ends of Unix (LF)"
            )
        if "\u00a0" in word and word[:1] == "-":
            raise ConfigError(f"{word!r} has a no-break space, as texts of the web do; type a space in its place")
        if dashed := _DASHED(word):
            dash = "-" if len(dashed[2]) == 1 else "--"
            raise ConfigError(f"{word} begins with a typographic dash; type {dash}{dashed[2]}")
        if _AT_HOME(word):
            path = word[word.index("~/") + 2 :]
            raise ConfigError(
                f'{word}: the shell replaces ~ only at the beginning of a word without quotes; write "$HOME/{path}"'
            )


def make_plain(app: Typer) -> Typer:
    """Return a tree of commands, each of which shows its help as `Command` does."""
    for command in app.registered_commands:
        command.cls = Command
        command.context_settings = HELP
    app.info.cls = CommandGroup
    app.info.context_settings = HELP
    app.rich_markup_mode = None
    return app


def quantity_of(option: str, text: str, unit: str) -> float:
    """Return the seconds, bytes, number or `whole` number that an option names. Raises ConfigError: it names none."""
    from gossamer.quantities import WORDS, read_quantity, whole_number

    found = whole_number(text, "") if unit == "whole" else read_quantity(text, unit)
    if found is None or not abs(found) < (inf if unit == "seconds" else 2**63):
        raise ConfigError(f"{option} {text}: expected {WORDS[unit]}")
    return found


def bytes_of(memory: str) -> int:
    """Return the bytes that `--memory` names. Raises ConfigError: it names none."""
    return int(quantity_of("--memory", memory, "bytes"))


ADDRESS = re.compile(r"https?://|www\.|[^/\s]+\.(?:[a-z]{2,}[:/]|(?:com|net|org)\Z)", re.IGNORECASE)
"""Beginning of an address that was typed in place of a command. `crawl.toml` does not match."""
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.+)\)").match
CHOICE = re.compile(r"Invalid value for '([^']+)': .*?'([^']*)' is not one of (.+)")
"""The parser's message about a word that is not among a parameter's choices."""


def one_line(error: TyperException, command: str = "gossamer", typed: Sequence[str] = ()) -> str:
    """Return a parser's complaint as one line that names the command and the nearest thing that is right. `command` is
    the one that was typed, with the words `typed` without `=…`: some complaints do not say.
    """
    context = getattr(error, "ctx", None)
    command = str(getattr(context, "command_path", command))
    message = " ".join(error.format_message().split())
    option = getattr(error, "option_name", None)
    # The parser only has messages; there is no type for an unknown command.
    if option and message.startswith("No such option"):
        return _no_option(option, command, context, typed)
    if message.startswith("No such command"):
        known = list(getattr(getattr(context, "command", None), "commands", {}))
        return _no_command(message.split("'")[1], command, known)
    if chosen := CHOICE.match(message):
        name, word, words = chosen.groups()
        known = words.rstrip(".").replace("'", "").split(", ")
        return f"{name} {word}: expected {', '.join(known)}{near(word, known)}"
    if closed := UNREADABLE.search(message):
        return f"you may not read {closed[1]}; run this as its owner, or have them permit it"
    message = message.rstrip(".")
    if extra := _EXTRA(message):
        if command.endswith(" serve") and extra[1].isdecimal():
            return f"{extra[1]}: a port is given by an option; write {command} DIR --port {extra[1]}"
        message = f"too many arguments: {extra[1]}"
    needed = [one for one in getattr(getattr(context, "command", None), "params", []) if one.required]
    words = [one.metavar if one.param_type_name == "argument" else f"{one.opts[-1]} {one.metavar}" for one in needed]
    is_missing = message.startswith(("Missing argument", "Missing option"))
    advice = f"write {' '.join([command, *words])}" if is_missing and words else f"{command} --help says more"
    return f"{message[:1].lower()}{message[1:]}; {advice}"


def _no_option(option: str, command: str, context: Any, typed: Sequence[str]) -> str:
    names = [name for parameter in context.command.params for name in parameter.opts] if context else []
    known = [*(name for name in names if name.startswith("-")), "--help"]
    # Of `-max-pages` the parser reports a letter.
    joined = [one for one in typed if one[:1] == "-" != one[1:2] and option[1:] in one]
    option = next((one for one in joined if near(one, known)), option)
    at_resume = _at_resume(option) if command.endswith(" resume") else ""
    found = at_resume or _other_option(option, known, command) or _of_crawl(option, command, typed)
    if command.endswith(" search") and option[1] != "-" and option not in typed:
        found = "; before words to leave out write --: gossamer search DIR -- WORD -WITHOUT"
    return f"no option {option} for {command}{found}{_lists(found, command)}"


def _no_command(name: str, command: str, known: Sequence[str]) -> str:
    if ADDRESS.match(name):
        scheme = "" if "://" in name else "https://"
        return f"{name} is no command; gossamer crawl {scheme}{name} crawls it, gossamer --help lists the commands"
    found = _command_for(name, known, command) or near(name, known)
    return f"no command {name!r}{found}{_lists(found, command)}"


def near(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for a misprint, or nothing."""
    from gossamer.options import nearest

    written = {one.lstrip("-"): one for one in known}  # Dashes would make short options alike.
    return nearest(name.lstrip("-"), written, write=written.__getitem__)


def _other_option(option: str, known: Collection[str], command: str) -> str:
    """Return what to type instead: what another program means by the option, or else a similar name."""
    misprint = near(option, known)
    meant = meaning(option, known, command)
    named = misprint.removeprefix("; did you mean ").rstrip("?")
    return misprint if not meant or (misprint and meant.startswith(f"; use {named}")) else meant


def _command_for(name: str, known: Collection[str], command: str) -> str:
    """Return what to type instead of a command of another program, or nothing."""
    from gossamer.config.synonyms import synonyms

    words = synonyms().commands if "crawl" in known else synonyms().of.get(command.partition(" ")[2], {})
    found = words.get(name.lower(), "")
    if found in known:
        return f"; did you mean {found}?"
    return f"; {found}" if found else ""


def meaning(option: str, known: Collection[str], command: str) -> str:
    """Return what to type instead of an option of another program, or nothing if the command does not take it."""
    from gossamer.config.synonyms import equivalent_of, synonyms

    others = synonyms()
    word = option.lstrip("-").partition("=")[0]
    if clause := others.of.get(command.partition(" ")[2], {}).get(word):
        return f"; {clause}"
    found = equivalent_of(word, as_option=True) if "--set" in known else others.clauses.get(word, "")
    if "--set" not in known and not found.startswith("gossamer "):  # What names another command holds for all.
        found = ""
    if " " in command and "--max-pages" not in known:  # It prints lines.
        found = found or others.of["any"].get(word, "")
    first = found.removeprefix("use ").partition(" ")[0]
    return f"; {found}" if found and (not first.startswith("--") or first in known) else ""


def _at_resume(option: str) -> str:
    """Return the remedy for an option that only the start of a crawl has; empty if none."""
    from gossamer.config.flags import FLAGS

    if option in ("-c", "--config"):
        return "; the crawl has its configuration in DIR/crawl.toml: edit that, or use --set KEY=VALUE"
    for flag in FLAGS:
        if option in (f"--{flag.option}", f"-{flag.short}") and flag.key.startswith("scope."):
            value = f'["{flag.metavar}"]' if flag.many else flag.metavar
            return f"; use --set '{flag.key}={value}'"
    return ""


def _of_crawl(option: str, command: str, typed: Sequence[str]) -> str:
    """Return what to type where an option or an address is given without a command, or nothing."""
    from gossamer.config.flags import FLAGS

    if command != "gossamer":
        return ""
    seed = next(filter(ADDRESS.match, typed), "")
    for flag in FLAGS:
        if option in (f"--{flag.option}", f"-{flag.short}"):
            return f"; it follows a command: gossamer crawl {seed or 'SEED'} {option} {flag.metavar}".rstrip()
    return f"; options follow a command: gossamer crawl {seed} [OPTIONS]" if seed else ""


def _lists(found: str, command: str) -> str:
    return f"{'' if found.endswith('?') else ';'} {command} --help lists them"
