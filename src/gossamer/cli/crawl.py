"""Crawl: the commands `crawl` and `resume`, with an option for each flag of the configuration."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, TypeVar

from typer import Argument, Context, Option, Typer

from gossamer.cli.arguments import ConfigFile, Directory, PresetName, Sets
from gossamer.cli.job import CrawlRequest
from gossamer.cli.output import epilog
from gossamer.config.flags import FLAGS, Flag
from gossamer.model.errors import ConfigError
from gossamer.options import keys_of

commands = Typer()
Command = TypeVar("Command", bound=Callable[..., int])
CarryOut = Callable[[CrawlRequest], int]
"""Crawls, and returns the exit status."""
SERVE_PORT = "8817"
_LISTENING = re.compile(r"([\w.]*|\[[\w:]*\]):(\d+)").fullmatch
"""Matches an address with a port, as servers of other programs take."""


def with_port(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which `--serve` has a value: its port may be left out."""
    found = list(arguments)
    for at, word in enumerate(arguments):
        if word == "--":
            break
        if word == "--serve" and not "".join(arguments[at + 1 : at + 2]).isdigit():
            if address := _LISTENING("".join(arguments[at + 1 : at + 2])):
                raise ConfigError(
                    f"--serve {address[0]}: expected a port, as in --serve {address[2]}; --set console.address=IP "
                    "listens on another address than 127.0.0.1"
                )
            found[at] = f"--serve={SERVE_PORT}"
    return found


def with_parameters(made: Iterable[inspect.Parameter]) -> Callable[[Command], Command]:
    """Return a decorator that replaces a command's `**options` by the parameters `made`."""

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        fixed = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        command.__signature__ = inspect.Signature([*fixed, *made])  # type: ignore[attr-defined]
        return command

    return decorate


def with_flags(*only: str, resumable_only: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that replaces a command's `**options` by an option for each flag, or for those named.

    The command is called with each flag's name; without the flag, a switch is False and a value None.
    """
    flags = [flag for flag in FLAGS if (flag.resumable or not resumable_only) and (not only or flag.name in only)]
    return with_parameters(map(_parameter, flags))


def choices_of(key: str) -> tuple[str, ...]:
    """Return the words for a shell to offer as the value of a key, where it takes no others."""
    from gossamer.config.sections import sections

    section, _, name = key.partition(".")
    return keys_of(sections()[section])[name].choices


def _parameter(flag: Flag) -> inspect.Parameter:
    names = [f"--{flag.option}", *([f"-{flag.short}"] if flag.short else [])]
    option = Option(
        *names, help=flag.help, metavar=flag.metavar or None, show_default=False,
        autocompletion=lambda: choices_of(flag.key),
    )  # fmt: skip
    # Numbers come as text: the configuration checks them, wherever they come from.
    annotation: Any = list[str] | None if flag.many else str | None
    default = None
    if flag.kind is bool:
        annotation = bool
        default = False
    return inspect.Parameter(
        flag.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, option]
    )


@commands.command("crawl", epilog=epilog())
@with_flags()
def crawl(
    context: Context,
    urls: Annotated[
        list[str] | None, Argument(metavar="SEED", help="URLs to start from; segments for --mode offline.")
    ] = None,
    config: ConfigFile = None,
    preset: PresetName = None,
    or_resume: Annotated[
        bool, Option("--or-resume", help="Continue the crawl if the directory holds one that has not ended.")
    ] = False,
    recipe: Annotated[str, Option("--recipe", hidden=True)] = "",
    sets: Sets = None,
    **options: object,
) -> int:
    """Start a crawl in a new directory."""
    options["preset"] = preset
    wish = CrawlRequest("crawl", options, sets or (), seeds=urls or (), file=config, or_resume=or_resume, recipe=recipe)
    return _carry_out(context, wish)


@commands.command("resume", epilog=epilog())
@with_flags(resumable_only=True)
def resume(context: Context, directory: Directory, sets: Sets = None, **options: object) -> int:
    """Continue a crawl after a stop or a crash.

    Options given here replace those of the crawl from now on.
    """
    return _carry_out(context, CrawlRequest("resume", options, sets or (), directory=directory))


def _carry_out(context: Context, request: CrawlRequest) -> int:
    carry_out: CarryOut = context.obj
    return carry_out(request)
