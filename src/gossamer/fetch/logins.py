"""Logins: who we are to the hosts that want to know."""

from __future__ import annotations

import netrc
from typing import NamedTuple

from gossamer.model.errors import ConfigError


class Login(NamedTuple):
    """A name and its password. Neither is archived or logged."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Keep what is secret out of tracebacks."""
        return f"Login({self.user!r}, …)"


class Logins:
    """Logins by host, from a file in the form of netrc(5): a crawl's configuration, which is archived, only names it.

    The file's `default` is not used: a password is sent to the host that it was given for.
    """

    def __init__(self, path: str, anonymous: Login) -> None:
        """Read the file, if one is named. Raises ConfigError when it cannot be read."""
        self._anonymous = anonymous
        self._by_host: dict[str, Login] = {}
        if not path:
            return
        try:
            hosts = netrc.netrc(path).hosts
        except netrc.NetrcParseError as error:
            raise ConfigError(f"fetch.logins_file: {path}, line {error.lineno}: {error.msg}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"fetch.logins_file: {path} cannot be read: {error}") from None
        for host, (user, _, password) in hosts.items():
            if host != "default":
                self._by_host[host.lower()] = Login(user or "", password or "")

    def of(self, host: str) -> Login:
        """Return the login for a host, the anonymous one where none is named."""
        return self._by_host.get(host.lower(), self._anonymous)
