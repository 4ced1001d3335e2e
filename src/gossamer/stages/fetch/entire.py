"""Entire: whether a body is complete although its connection, or its length, says otherwise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gossamer.stages.fetch.decoding import content_codings, is_complete
from gossamer.stages.fetch.headers import Head, parse_head
from gossamer.stages.fetch.transfers import is_partial, is_reset, is_stream_failure, is_unclosed

if TYPE_CHECKING:
    from gossamer.stages.fetch.connections import End
    from gossamer.stages.fetch.transfer import Transfer

_END_TAG = re.compile(rb"</html\s*+>(?>(?:\s|<!--.*?-->)*)\Z", re.IGNORECASE | re.DOTALL)
_TAIL_BYTES: Final = 1_024
_LENGTH: Final = "content-length"
_LENGTHS: Final = frozenset({_LENGTH, "transfer-encoding"})
"""With one of these headers, the end of the connection does not mark the end of the body."""


def is_whole(transfer: Transfer, end: End) -> bool:
    """Return whether a reply is complete although its connection, whose end is the body's, did not end well.

    By RFC 9112, section 9.8, a body is incomplete if TLS ends without its alert. Many servers never send this alert,
    and browsers accept such bodies; without TLS there would be no difference. A reset connection may have lost its last
    bytes, so then the content itself must show its end. So must a body that is shorter than its Content-Length, or has
    no last chunk: some servers send the length of the page before its compression, or count characters. HTTP/2 marks
    the end of each body, but proxies reset the stream (CANCEL) in its place when the server behind them closes late.
    """
    if not end.code or transfer.stopped or transfer.head_is_cut:
        return False
    head = parse_head(transfer.head)
    if head is None:
        return False
    if is_stream_failure(transfer, end):
        length = next((value for name, value in head.headers if name.lower() == _LENGTH), None)
        return _shows_its_end(head, transfer) if length is None else length == str(transfer.body_bytes)
    if not (is_unclosed(end) or is_reset(end) or is_partial(end)) or not head.http_version.startswith("1"):
        return False
    framed = {name.lower() for name, _ in head.headers} & _LENGTHS
    if is_partial(end) or (framed == {_LENGTH} and content_codings(head.headers)):
        return _shows_its_end(head, transfer)
    return not framed and (is_unclosed(end) or _shows_its_end(head, transfer))


def _shows_its_end(head: Head, transfer: Transfer) -> bool:
    """Return whether a redirect, a compressed body or an HTML page is complete by its own format."""
    codings = content_codings(head.headers)
    if codings and transfer.file is None:
        return bool(transfer.body) and is_complete(codings, bytes(transfer.body))
    return head.is_redirect or _END_TAG.search(transfer.body[-_TAIL_BYTES:]) is not None
