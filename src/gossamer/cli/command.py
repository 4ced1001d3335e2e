"""Command: one command line, carried out; mistakes are one line on standard error."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import typer
from typer.exceptions import TyperException

from gossamer.cli.exits import Exit, complain
from gossamer.cli.help import COMPLETE, made_plain
from gossamer.cli.main import CarryOut, app
from gossamer.cli.options import with_port
from gossamer.cli.order import Order
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.world.process import NOT_OURS


def status_of_command(arguments: Sequence[str], carry_out: CarryOut | None = None) -> int:
    """Run a command and return its exit status.

    An order is carried out by `carry_out`, in the process that crawls; in any other it goes to one, as it was typed.
    """
    try:
        if COMPLETE in os.environ:
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
        command: Callable[..., Any] = typer.main.get_command(_pruned(arguments))
        status = command(
            with_port(arguments),
            prog_name="gossamer",
            standalone_mode=False,
            obj=carry_out or partial(_elsewhere, arguments),
        )
    except TyperException as error:
        from gossamer.cli.mistakes import one_line

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


def _pruned(arguments: Sequence[str]) -> typer.Typer:
    """Return the tree with no branch but the command that is named first: to make all of them takes 15 ms."""
    named = [command for command in app.registered_commands if command.name in arguments[:1]]
    if not named:  # Help, a mistake, or a command of several words.
        return app
    pruned = typer.Typer(add_completion=False, no_args_is_help=False, pretty_exceptions_enable=False)
    pruned.registered_callback, pruned.registered_commands = app.registered_callback, named
    return made_plain(pruned)


def _elsewhere(arguments: Sequence[str], order: Order) -> int:
    from gossamer.cli.crawling import carried_out

    return carried_out(arguments[arguments.index(order.command) :])
