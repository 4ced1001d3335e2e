"""Main: the table of commands; runs one command line. A mistake is one line on standard error."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException
from typer.models import CommandInfo

import gossamer
from gossamer.cli.arguments import CommandGroup, check_words, make_plain, one_line
from gossamer.cli.crawl import CarryOut, with_port
from gossamer.cli.job import CrawlRequest
from gossamer.cli.output import Exit, complain, epilog
from gossamer.cli.stored import with_local
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.model.verbs import VERBS
from gossamer.world.files import NO_ROOM, write_refusal
from gossamer.world.process import NOT_OURS

COMPLETE = "_GOSSAMER_COMPLETE"
"""Set by the completion scripts when they run the program to ask for words."""
SHOWN_CHARACTERS = 200
"""Characters that are shown of a path that is too long for the system."""
SHELLS = ("bash", "zsh", "fish")
COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Crawl": {
        "crawl": ("crawl", "Start a crawl in a new directory."),
        "resume": ("crawl", "Continue a crawl after a stop or a crash."),
        "import": ("importing", "Import the archives of any crawler as a crawl."),
        "login": ("login", "Log in by hand in a browser, and crawl with its cookies."),
        "demo": ("demo", "Crawl a synthetic web on this machine and print a report."),
    },
    "Inspect": {
        "status": ("inspecting", "Show the status of a crawl."),
        "why": ("inspecting", "Explain the state of one URL."),
        "report": ("inspecting", "Print the statistics of a crawl."),
        "changes": ("exporting", "List changed pages, and changed fields of items, by time."),
        "robots": ("exporting", "Show what changed in a robots.txt."),
        "search": ("pages", "Search the full text of a crawl."),
        "metrics": ("inspecting", "Print the metrics of a running crawl (Prometheus)."),
        "serve": ("serving", "Serve the dashboard and the JSON API."),
        "mcp": ("serving", "Serve crawls to language models."),
    },
    "Recipes": {
        "archive": ("recipes", "Crawl a site with its embeds into a WACZ package."),
        "mirror": ("recipes", "Crawl a site into files that open without a network."),
        "corpus": ("recipes", "Crawl a site into Markdown and Parquet."),
        "check": ("recipes", "Crawl a site, and list its faults."),
        "watch": ("watching", "Crawl a site continuously, and report changes."),
    },
    "One page": {
        "fetch": ("shell", "Fetch one page as a crawl does, and print it."),
        "shell": ("shell", "Fetch one page as a crawl does, and explore it."),
    },
    "Control": {
        **{
            verb: ("control", VERBS[verb].says)
            for verb in ("pause", "unpause", "stop", "seed", "exclude", "release", "set", "host")
        },
        "scale": ("maintenance", "Change the number of shards of a crawl."),
    },
    "Export and keep": {
        "export": ("exporting", "Export a crawl to other formats."),
        "extract": ("exporting", "Extract items from the archived pages of a crawl."),
        "verify": ("maintenance", "Check a crawl's files for loss and damage."),
        "checkpoint": ("control", VERBS["checkpoint"].says),
        "restore": ("maintenance", "Restore a crawl from a checkpoint into a new directory."),
        "forget": ("maintenance", "Remove pages from all files of a crawl, and keep them out."),
        "cookies": ("maintenance", "Print the cookies of a stopped crawl in Netscape format."),
    },
    "Rounds and samples": {
        "segment": ("segment", "Build and inspect segments for offline crawls."),
        "sample": ("pages", "Sample pages of a random-walk crawl near-uniformly."),
        "rank": ("pages", "Compute the PageRank of all URLs that a crawl found."),
    },
    "Identify": {"identity": ("identity", "Manage the keys that sign requests, and publish who crawls.")},
    "Configure": {
        "init": ("configuring", "Write a configuration file that explains its keys."),
        "config": ("configuring", "Check and show configurations."),
        "completion": ("main", "Print the completion script of a shell."),
    },
    "Test": {
        "simweb": ("demo", "Serve a synthetic web on loopback."),
        "conformance": ("demo", "Test the crawler against every behavior of the synthetic web."),
        "simulate": ("simulating", "Simulate a crawl: the real frontier on a modelled web."),
    },
}
"""Commands by task, as the help and docs/reference/commands.md list them: each with the module beside this one that has
it in its `commands`, and its help line. Only the module of the command that is named is imported, and none to list them
all: so these modules import at their top what they need.
"""
GROUPS: Mapping[str, str] = {"config": "config_commands", "identity": "commands", "segment": "commands"}
"""Commands of two words, by the first one: what the commands are called in their module."""
commands = typer.Typer()


def status_of_command(arguments: Sequence[str], carry_out: CarryOut | None = None) -> int:
    """Run a command and return its exit status.

    A crawl is carried out by `carry_out`, in the process that crawls; in any other it goes to one, as it was typed.
    """
    try:
        if COMPLETE in os.environ:
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
        check_words(arguments)
        command: Callable[..., Any] = typer.main.get_command(tree(_first(list(arguments))))
        with with_local(arguments) as words:
            work = carry_out or partial(_elsewhere, arguments)
            status = command(with_port(words), prog_name="gossamer", standalone_mode=False, obj=work)
    except TyperException as error:
        named = [one for one in _first(list(arguments)) if not one.startswith("-")]
        complain(one_line(error, " ".join(("gossamer", *named)), [one.partition("=")[0] for one in arguments]))
        return Exit.REFUSED
    except ConfigError as error:
        for line in error.lines:
            complain(line)
        return Exit.REFUSED
    except CrawlFailedError as error:
        complain(str(error))
        return Exit.FAILED
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.FINISHED
    except SystemExit as error:  # typer raises this if a reader went away, as in `| head`.
        if isinstance(error.__context__, BrokenPipeError):
            return Exit.FINISHED
        raise
    except UnicodeEncodeError as error:  # A path, of the current directory for example: all other texts were decoded.
        complain(f"{error.object} is no text in UTF-8; rename the directory, or work in another")
        return Exit.REFUSED
    except OSError as error:
        complain(refusal_of(error))
        is_gone = error.errno == errno.ENOENT and not error.filename
        is_ours = not (error.errno in (*NOT_OURS, errno.ENAMETOOLONG, errno.ELOOP) or is_gone)
        return Exit.FAILED if is_ours else Exit.REFUSED
    return status if isinstance(status, int) else 0


def refusal_of(error: OSError) -> str:
    """Return the system's refusal with the file, and what to do where a right is missing."""
    if not error.filename:
        if error.errno in NO_ROOM and error.strerror == os.strerror(error.errno or 0):  # Else it names what is full.
            return f"cannot write the output: {error.strerror}; make room there, or write it elsewhere"
        if error.errno == errno.ENOENT:  # Only `getcwd` names no file.
            return "the current directory was removed; change to one that exists"
        return error.strerror or str(error)
    if error.errno == errno.EROFS:
        return write_refusal(error, error.filename)
    if error.errno == errno.ENAMETOOLONG:
        return f"{str(error.filename)[:SHOWN_CHARACTERS]}…: {error.strerror}; name a shorter one"
    advice = "; run this as its owner, or have them permit it" if error.errno in NOT_OURS else ""
    advice = "; a link in it leads to itself: put the directory in its place" if error.errno == errno.ELOOP else advice
    return f"{error.filename}: {error.strerror}{advice}"


def tree(words: Sequence[str] | None = None) -> typer.Typer:
    """Return the commands with all their options; of the one that `words` begin with, that alone. Where they name
    none, for help or a mistake, all without options, and nothing is imported.
    """
    made = typer.Typer(
        help="A polite, crash-safe, fast web crawler.",
        add_completion=False,
        no_args_is_help=False,
        pretty_exceptions_enable=False,
        epilog=epilog(),
    )
    made.callback(invoke_without_command=True)(top)
    word = "".join(words[:1]) if words is not None else None
    found = {name: place for names in COMMANDS.values() for name, place in names.items()}
    chosen = {name: module for name, (module, _) in found.items() if word in (None, name)}
    made.registered_commands += [_command(name, module) for name, module in chosen.items() if name not in GROUPS]
    for name in [one for one in GROUPS if one in chosen]:
        group = getattr(import_module(f"gossamer.cli.{chosen[name]}"), GROUPS[name])
        made.add_typer(make_plain(group), name=name)
    if not chosen:
        made.registered_commands += [CommandInfo(name, callback=top, help=says) for name, (_, says) in found.items()]
    make_plain(made)
    made.info.cls = type("CommandTree", (CommandGroup,), {"tasks": COMMANDS})
    return made


def _command(name: str, module: str) -> CommandInfo:
    commands: typer.Typer = import_module(f"gossamer.cli.{module}").commands
    return next(one for one in commands.registered_commands if one.name == name)


def _first(arguments: Sequence[str]) -> Sequence[str]:
    """Return the words that may name the command: the typed ones, also during completion by the shell."""
    if COMPLETE in os.environ:
        typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
        return typed.split()[1:2]
    return arguments[1:2] if arguments[:1] == ["--"] else arguments[:1]


def top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False
) -> None:
    """Print help when no command is given."""
    if version:
        typer.echo(gossamer.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@commands.command("completion")
def completion(
    shell: Annotated[
        str, typer.Argument(metavar="SHELL", help="Shell: bash, zsh or fish.", autocompletion=lambda: SHELLS)
    ],
) -> None:
    """Print the completion script of a shell."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise ConfigError(f"completion {shell}: expected {', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    typer.echo(get_completion_script(prog_name="gossamer", complete_var=COMPLETE, shell=shell))


def _elsewhere(arguments: Sequence[str], request: CrawlRequest) -> int:
    from gossamer.cli.supervisor import run_supervised

    return run_supervised(arguments[arguments.index(request.command) :])
