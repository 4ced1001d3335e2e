"""Changes: what a crawl saw appear, change and vanish, whether it runs or not."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gossamer.archive.views.changes import Change, changes_of, versions_of
from gossamer.archive.views.export import inputs_of
from gossamer.assembly.schemes import namer_for
from gossamer.assembly.views import crawl_in
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.world.clock import WallClock

__all__ = ["Change", "changes"]

_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_UNIT_S = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


def changes(directory: Path, since: str = "", url: str = "") -> Iterator[Change]:
    """Yield what changed since an instant (ISO 8601, in UTC where it does not say; or a time ago, such as `12h`), in
    the order of time; with `url`, all attempts at that page since then.

    Raises:
        ConfigError: there is no crawl, or `since` is no time.
    """
    since_s = instant_of(since) if since else 0.0
    with tempfile.TemporaryDirectory(prefix="gossamer-changes-") as name:
        folder = Path(name)
        pieces = inputs_of(crawl_in(directory), ["pages"], folder).tables["pages"]
        config = reopen(directory / "crawl.toml")
        compared = config.revisit.change
        if not url:
            yield from (msgspec.structs.replace(one, compared=compared) for one in changes_of(pieces, since_s, folder))
            return
        named = namer_for(config).name(url)
        if named is None:
            raise ConfigError(f"--url {url}: it is not an address that can be visited")
        begin = f"{datetime.fromtimestamp(since_s, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        for one in versions_of(pieces, named.key, folder):
            if one.at >= begin:
                yield msgspec.structs.replace(one, compared=compared)


def instant_of(text: str) -> float:
    """Return the wall time that a text names: a date, a date with a time, or how long ago.

    Raises:
        ConfigError: it names none.
    """
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return WallClock().now() - float(ago[1]) * _UNIT_S[ago[2]]
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"--since {text}: expected a time such as 2026-01-31, 2026-01-31T12:00 or 12h (s, m, h, d, w ago)"
        ) from error
