"""Mistakes: what ends a command early, as one line on standard error and an exit status."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.cli.output import Exit, complain
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.world.process import NOT_OURS


def reported(work: Callable[[], int]) -> int:
    """Return the exit status of `work`; an error of the operator or of the machine becomes a line."""
    try:
        return work()
    except ConfigError as error:
        complain(str(error))
        return Exit.REFUSED
    except CrawlFailedError as error:
        complain(str(error))
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.FINISHED
    except OSError as error:  # The machine's refusal: what it says is what there is to know.
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return Exit.REFUSED if error.errno in NOT_OURS else Exit.FAILED
