"""Door: how an application is reached, as the configuration has it."""

from __future__ import annotations

from pathlib import Path

from gossamer.config.sections import ConsoleOptions
from gossamer.console.app import Door
from gossamer.console.operations import Bounds
from gossamer.console.server import is_local
from gossamer.console.token import token_of


def door_of(state: Path, options: ConsoleOptions, hook_bytes_max: int = 0) -> Door:
    """Return the door of what keeps its token in `state`. Raises ConfigError: it cannot be kept."""
    bounds = Bounds(options.body_bytes_max, options.request_s_max)
    return Door(token_of(state), is_local(options.address), bounds, hook_bytes_max)
