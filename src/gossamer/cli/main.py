"""Main: the table of commands, and one command line, carried out; a mistake is one line on standard error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException
from typer.models import CommandInfo

import gossamer
from gossamer.cli.arguments import made_plain
from gossamer.cli.crawl import CarryOut, with_port
from gossamer.cli.job import CrawlRequest
from gossamer.cli.output import Exit, complain, epilog
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.world.process import NOT_OURS

COMPLETE = "_GOSSAMER_COMPLETE"
"""Set by the completion scripts when they run the program to ask for words."""
SHELLS = ("bash", "zsh", "fish")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "crawl": ("crawl", "resume"),
    "inspecting": ("status", "metrics", "why", "report"),
    "pages": ("search", "changes", "robots", "export", "sample", "extract", "rank"),
    "shell": ("fetch", "shell"),
    "recipes": ("archive", "mirror", "corpus", "check"),
    "watching": ("watch",),
    "maintenance": ("scale", "verify", "restore", "forget", "cookies"),
    "control": (),
    "serving": ("serve", "mcp"),
    "configuring": ("init",),
    "demo": ("simweb", "demo", "conformance"),
    "simulating": ("simulate",),
}
"""Commands by the module beside this one that has them in its `commands`: only the one that is named is imported.
Those of `control` are the verbs.
"""
shell_commands = typer.Typer()


def status_of_command(arguments: Sequence[str], carry_out: CarryOut | None = None) -> int:
    """Run a command and return its exit status.

    A crawl is carried out by `carry_out`, in the process that crawls; in any other it goes to one, as it was typed.
    """
    try:
        if COMPLETE in os.environ:
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
        command: Callable[..., Any] = typer.main.get_command(tree(arguments[:1]))
        status = command(
            with_port(arguments),
            prog_name="gossamer",
            standalone_mode=False,
            obj=carry_out or partial(_elsewhere, arguments),
        )
    except TyperException as error:
        from gossamer.cli.arguments import one_line

        complain(one_line(error))
        return Exit.REFUSED
    except ConfigError as error:
        complain(str(error))
        return Exit.REFUSED
    except CrawlFailedError as error:
        complain(str(error))
        return Exit.FAILED
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.FINISHED
    except SystemExit as error:  # What typer makes of a reader that has seen enough, as in `| head`.
        if isinstance(error.__context__, BrokenPipeError):
            return Exit.FINISHED
        raise
    except OSError as error:  # The machine's refusal: what it says is what there is to know.
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return Exit.REFUSED if error.errno in NOT_OURS else Exit.FAILED
    return status if isinstance(status, int) else 0


def tree(words: Sequence[str] = ()) -> typer.Typer:
    """Return the commands; where `words` name one, that alone: to make all of them takes long."""
    named = [module for module, names in COMMANDS.items() if set(words) & set(names)]
    if words and not named:
        from gossamer.model.verbs import VERBS

        named = ["control"] if any(name in words for name, verb in VERBS.items() if verb.changes) else []
    made = typer.Typer(
        help="A polite, crash-safe, fast web crawler.",
        add_completion=False,
        no_args_is_help=False,
        pretty_exceptions_enable=False,
        epilog=epilog(),
    )
    made.callback(invoke_without_command=True)(top)
    made.registered_commands += [
        one for module in named or COMMANDS for one in _commands(module) if not named or one.name in words
    ]
    if not named:  # Help, a mistake, or a command of several words.
        from gossamer.cli.configuring import config_commands
        from gossamer.cli.identity import commands as identity_commands
        from gossamer.cli.segment import commands as segment_commands

        made.registered_commands += shell_commands.registered_commands
        made.add_typer(made_plain(config_commands), name="config")
        made.add_typer(made_plain(identity_commands), name="identity")
        made.add_typer(made_plain(segment_commands), name="segment")
    return made_plain(made)


def _commands(module: str) -> Iterator[CommandInfo]:
    commands: typer.Typer = import_module(f"gossamer.cli.{module}").commands
    yield from commands.registered_commands


def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Print help when no command is given."""
    if version:
        typer.echo(gossamer.__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@shell_commands.command("completion")
def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="Shell: bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise ConfigError(f"completion {shell}: expected {', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    typer.echo(get_completion_script(prog_name="gossamer", complete_var=COMPLETE, shell=shell))


def _elsewhere(arguments: Sequence[str], request: CrawlRequest) -> int:
    from gossamer.cli.supervisor import carried_out

    return carried_out(arguments[arguments.index(request.command) :])
