"""Token: what whoever changes something must know. It lies in a file that only its owner can read."""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from gossamer.model.errors import ConfigError

FILE = "console.token"
CHANCE_BYTES = 24
MODE = 0o600
TOKEN = re.compile(rb"[A-Za-z0-9_-]{32,64}")
LENGTH_MAX = 128


def token_of(state: Path) -> str:
    """Return the token in the directory `state`, made where there is none.

    One that others could read, that is not ours, or that is cut short is replaced.

    Raises:
        ConfigError: it cannot be written.
    """
    path = state / FILE
    try:
        return _kept(path) or _made(path)
    except OSError as error:
        raise ConfigError(f"cannot keep a token in {path}: {error.strerror}; see that it can be written") from error


def _kept(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        about = os.fstat(file)
        is_ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077
        text = os.read(file, LENGTH_MAX).strip() if is_ours else b""
        return text.decode() if TOKEN.fullmatch(text) else ""
    finally:
        os.close(file)


def _made(path: Path) -> str:
    """Make it aside, and give it its name where nobody else did meanwhile: two that begin at once have one token."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    token = secrets.token_urlsafe(CHANCE_BYTES)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    try:
        os.write(file, token.encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
    with suppress(FileExistsError):
        os.link(aside, path)
    aside.unlink()
    return _kept(path) or token
