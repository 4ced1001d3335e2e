"""Answers: what came of looking a host up, and how archives keep it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from gossamer.model.visits import Failure, Reply


class Records(NamedTuple):
    """What name servers know about a host."""

    addresses: tuple[str, ...]
    ttl_s: float
    """The shortest of all records in the answers, aliases included."""
    lines: tuple[str, ...] = ()
    """The answers as a zone file has them (RFC 1035, section 5), aliases included."""


def reply_of(host: str, records: Records, asked_at: float, answered_at: float) -> Reply:
    """Return what name servers answered as archives keep it: text/dns, RFC 4027, below the date, as Heritrix has it."""
    date = f"{datetime.fromtimestamp(asked_at, UTC):%Y%m%d%H%M%S}"
    body = "".join(f"{line}\n" for line in (date, *records.lines)).encode("utf-8", "replace")
    return Reply(
        f"dns:{host}", 1, (), body, "", asked_at, answered_at - asked_at, len(body), media_type="text/dns"
    )  # fmt: skip


def failed(error: str, *, retry: bool) -> Failure:
    """A name that leads nowhere: the fault of the host, never of one URL."""
    return Failure("dns_error", f"name resolution: {error}", retry=retry, host_level=True)
