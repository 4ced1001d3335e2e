"""Behaviors: what is done in a page after it has loaded, so that it shows more: as JavaScript, one step at a time."""

import pkgutil
from pathlib import Path
from typing import Final

import msgspec

from gossamer.model.errors import ConfigError

FILE_BYTES_MAX: Final = 1 << 20


def script(name: str) -> str:
    """Return a script of this package."""
    return (pkgutil.get_data("gossamer.features.render", name) or b"").decode().rstrip()


WHOLE: Final = script("whole.js") + "\n"
"""Is before each of the others, which use its functions."""
STEP: Final = WHOLE + script("step.js")
"""Is called in a world of its own, which the scripts of the page cannot change. Returns how much it did; it is called
again after a while, until that is nothing. `gossamer.html` is the document before its first route was opened, with the
routes behind it as sections; empty where none was."""
FRAME: Final = WHOLE + script("frame.js")
"""Is over when frames were drawn: observers of what is in view hear of it with a frame. If it scrolls, it goes to where
what is new on the page begins; the next time it brings that into view, a screen with each frame."""


class BehaviorFile(msgspec.Struct, frozen=True):
    """A behavior of the user."""

    name: str
    code: str


def behaviors_of(paths: tuple[str, ...]) -> tuple[BehaviorFile, ...]:
    """Read files of behaviors. Raises ConfigError: one cannot be read, or is too long."""
    return tuple(_behavior_of(path) for path in paths)


def _behavior_of(path: str) -> BehaviorFile:
    try:
        with Path(path).open("rb") as file:
            code = file.read(FILE_BYTES_MAX + 1)
        if len(code) > FILE_BYTES_MAX:
            raise ConfigError(f"render.behavior_files: {path} has more than {FILE_BYTES_MAX:,} bytes; shorten it")
        return BehaviorFile(Path(path).name, code.decode())
    except OSError as error:
        raise ConfigError(f"render.behavior_files: cannot read {path}: {error.strerror}; correct the path") from error
    except UnicodeDecodeError:
        raise ConfigError(f"render.behavior_files: {path} is not UTF-8; save it as UTF-8") from None
