"""Credentials: header values that are sent only to some origins, and that no output shows."""

import os
import re
from pathlib import Path
from typing import Final

from gossamer.model.errors import ConfigError
from gossamer.url.join import absolute
from gossamer.url.url import USER_INFO, split
from gossamer.world.inputs import open_input

REDACTED: Final = "[redacted]"
OPEN_HEADERS: Final = frozenset({"user-agent", "accept", "accept-language", "accept-encoding"})
"""Headers in rules whose values are not secret."""
REFERENCE_BYTES_MAX: Final = 64 * 1024
"""Largest size of a file with one secret."""
_REFERENCE = re.compile(r"(env|file):(.+)", re.DOTALL)
_PROXY = re.compile(
    r"(?:(?P<scheme>https?|socks5h?)://)?(?P<user>(?:[!$&()*+,.0-9:;=A-Z_~-]|%(?:[2-6][0-9A-F]|7[0-9A-E]|[89A-F]"
    r"[0-9A-F]))*@)?(?:\[[0-9a-f:.]+\]|[^\s:/@\[\]?#]+)(?::(?P<port>[0-9]{1,5}))?/?",
    re.IGNORECASE,
)
"""Matches the URL of a proxy. Where it is redacted, a password with other characters would not be recognized."""
_CREDENTIAL = re.compile(
    r"auth(?!or(?!i))|cookie|token|secret|passw|credential|session|signature|(?:api|access|private)[-_]?key",
    re.IGNORECASE,
)


def is_credential(name: str) -> bool:
    """Return whether a header or an option with this name carries a secret."""
    return _CREDENTIAL.search(name) is not None


def is_reference(value: str) -> bool:
    """Return whether a value refers to a secret elsewhere: `env:NAME` or `file:PATH`."""
    return _REFERENCE.fullmatch(value) is not None


def reveal(value: str, key: str) -> str:
    """Return the secret that a value is or refers to. In a file it is the first line. Raises ConfigError: the variable
    is not set, or the file cannot be read; the message names `key`.
    """
    reference = _REFERENCE.fullmatch(value)
    if reference is None:
        return value
    kind, name = reference.groups()
    if kind == "env":
        if name not in os.environ:
            raise ConfigError(f"{key}: the environment variable {name} is not set; set it before you start the crawl")
        return os.environ[name]
    try:
        with open_input(Path(name)) as file:
            return file.read(REFERENCE_BYTES_MAX).decode("utf-8").partition("\n")[0].strip()
    except OSError as error:
        raise ConfigError(f"{key}: cannot read {name}: {error.strerror}; name a file that you can read") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{key}: {name} is not UTF-8; save it as UTF-8") from None


def proxy_of(value: str, key: str, *, is_new: bool = False) -> str:
    """Check the URL of a proxy, and return it unchanged; empty: no proxy. Raises ConfigError: it is not a proxy's URL,
    or that of a new crawl has neither scheme nor port; the message has `key` but not the value, which may contain a
    password.
    """
    match = _PROXY.fullmatch(value)
    is_bare = match is not None and match["scheme"] is None and bool(match["user"] or (is_new and not match["port"]))
    if value and (match is None or is_bare or not 1 <= int(match["port"] or 1) <= 65_535):
        says = f"{key} is not the URL of a proxy; write http://HOST:PORT, https://, socks5:// or socks5h://"
        if "@" in value:
            says += "; with a password http://USER:PASSWORD@HOST:PORT, its special characters as %XX"
        raise ConfigError(says)
    return value


def redact_user_info(text: str) -> str:
    """Return a text with the user names and passwords of its URLs redacted."""
    return USER_INFO.sub(f"{REDACTED}@", text)


def origin_of(url: str) -> str:
    """Return the origin of a URL, `scheme://host[:port]`, default port left out; empty if it has none."""
    parts = split(absolute(url) or "")
    if parts is None:
        return ""
    return f"{parts.scheme}://{parts.host}" + (f":{parts.port}" if parts.port else "")
