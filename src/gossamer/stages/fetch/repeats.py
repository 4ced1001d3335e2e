"""Repeats: which failed requests are sent once more as the same attempt, and which hosts need the tolerant reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import pycurl
from msgspec.structs import replace

from gossamer.model.visits import Failure
from gossamer.stages.fetch.tolerant import TolerantTransfer
from gossamer.stages.fetch.transfers import NO_STATUS_LINE, breaks_h2, is_ill_chunked, is_partial

if TYPE_CHECKING:
    from gossamer.model.visits import Reply
    from gossamer.stages.fetch.connections import End
    from gossamer.stages.fetch.transfer import Transfer

TOLERANT_REPLIES: Final = 50
"""Replies of a host that the tolerant reader reads after one that libcurl refused: others may be fit for libcurl, which
keeps connections and speaks HTTP/2."""
HOSTS_MAX: Final = 10_000
"""Recent hosts of each kind of behavior: about 1.5 MB each."""
BAD_REQUEST: Final = 400
_REPEATABLE: Final = ("GET", "HEAD")
_REFUSED: Final = frozenset(
    {pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY, pycurl.E_BAD_CONTENT_ENCODING, 100}
)

_Value = TypeVar("_Value")


class Repeats:
    """Knows, with a bound, the URLs whose failure asked for the same request again, and the hosts whose replies libcurl
    refused. An ordinary request costs three comparisons.
    """

    def __init__(self) -> None:
        self._odd: dict[str, int] = {}
        """By host: how many more replies are read by the tolerant reader."""
        self._urls: dict[str, bool] = {}
        self._close: dict[str, bool | None] = {}
        """Hosts that answered 400 over a kept connection: whether a new one helped; None: not known yet."""

    def is_next(self, url: str) -> bool:
        """Return whether a request is the repetition that its failure asked for; the next one is not."""
        return bool(self._urls) and self._urls.pop(url, False)

    def needs_new(self, authority: str) -> bool:
        """Return whether a host takes one request a connection."""
        return bool(self._close) and self._close.get(authority) is True

    def judge_reply(self, transfer: Transfer, authority: str, reply: Reply, *, is_repeat: bool) -> Reply | Failure:
        """Return a reply. A host's first 400 that ends a kept connection asks for the same request over a new one: some
        servers take all that follows the first request of a connection for a bad one.
        """
        is_bad = reply.status == BAD_REQUEST and (reply.header("connection") or "").lower() == "close"
        if is_repeat and self._close.get(authority, False) is None:
            note(self._close, authority, not is_bad)
        kept = is_bad and not transfer.is_new and reply.http_version.startswith("1") and not is_repeat
        if not kept or transfer.request.method not in _REPEATABLE or self._close.get(authority) is not None:
            return reply
        note(self._close, authority, None)
        note(self._urls, reply.url, True)
        error = "HTTP 400 over a kept connection; it is requested again over a new one"
        return Failure(
            "http_error", error, ip=reply.ip, started_at=reply.started_at, fetch_s=reply.fetch_s, came=reply, again=True
        )

    def needs_tolerance(self, authority: str) -> bool:
        """Return whether the tolerant reader reads the next reply of a host; count the reply."""
        left = self._odd.get(authority, 0) if self._odd else 0
        if left > 1:
            self._odd[authority] = left - 1
        elif left:
            del self._odd[authority]
        return left > 0

    def judge(self, transfer: Transfer, authority: str, failure: Failure, end: End, *, is_repeat: bool) -> Failure:
        """Return a failure, which asks for the same request once more if the tolerant reader may read the reply, if it
        is one for HTTP/1.1 alone, or if a kept connection was closed instead of an answer (RFC 9112, section 9.3.1).
        """
        request = transfer.request
        is_refused = not isinstance(transfer, TolerantTransfer) and is_refused_reply(transfer, failure, end)
        if is_refused:
            note(self._odd, authority, TOLERANT_REPLIES)
        closed = transfer.stopped == "resend" and not transfer.was_refused
        may_succeed = is_refused or closed or breaks_h2(end)
        if not may_succeed or is_repeat or request.method not in _REPEATABLE:
            return failure
        note(self._urls, request.url, True)
        return replace(failure, again=True)


def is_refused_reply(transfer: Transfer, failed: Failure, end: End) -> bool:
    """Return whether libcurl refused the head or the framing of a reply, which a more tolerant reader may read."""
    if transfer.stopped:
        return False
    if is_partial(end):
        return any(line[:18].lower() == b"transfer-encoding:" for line in transfer.head)
    return bool(end.code in _REFUSED or is_ill_chunked(*end) or (not end.code and failed.error == NO_STATUS_LINE))


def note(hosts: dict[str, _Value], authority: str, value: _Value) -> None:
    """Keep a value for a host, in place of that of the oldest one where there are too many."""
    hosts[authority] = value
    if len(hosts) > HOSTS_MAX:
        del hosts[next(iter(hosts))]
