"""Lines: the operator's text files, one thing a line, read with a line number for every complaint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gossamer.model.errors import ConfigError

LINE_CHARACTERS_MAX = 65_536


def lines_of(path: Path, holding: str = "", bytes_max: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the lines that hold something; memory does not grow with the file.

    `holding` says in the message what was sought in it.

    Raises:
        ConfigError: the file cannot be read, is no UTF-8, is longer than `bytes_max`, or has a line without end.
    """
    try:
        if bytes_max is not None and path.stat().st_size > bytes_max:
            raise ConfigError(f"{path} has more than {bytes_max >> 20} MiB; shorten it")
        with path.open(encoding="utf-8-sig", errors="strict") as lines:
            for number, line in enumerate(lines, 1):
                # A comment is a line, or what follows a space: patterns and URLs may hold a #.
                text = f" {line.strip()}".partition(" #")[0].strip()
                if len(text) > LINE_CHARACTERS_MAX:
                    raise ConfigError(f"{path} line {number}: longer than {LINE_CHARACTERS_MAX} characters")
                if text:
                    yield number, text
    except OSError as error:
        what = f"{holding} from {path}" if holding else str(path)
        raise ConfigError(f"cannot read {what}: {error.strerror}; name a file that you can read") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
