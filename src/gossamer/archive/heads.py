"""HTTP heads as archives keep them: as sent, but readable by every tool."""

from __future__ import annotations

from http import HTTPStatus

from gossamer.model.visits import Reply

_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_PROTOCOLS = {"1.0": "http/1.0", "1.1": "http/1.1", "2": "h2", "2.0": "h2", "2.0-tls": "h2", "3": "h3", "3.0": "h3"}
_FRAMING = ("transfer-encoding", "content-length")


def protocol(reply: Reply) -> str:
    """Return the value of WARC-Protocol, by the names of IANA's ALPN registry; empty when unknown."""
    return _PROTOCOLS.get(reply.http_version, "")


def response_head(reply: Reply) -> bytes:
    """Return status line and headers in the order received, up to and with the empty line.

    The version is HTTP/1.1 also for h2 and h3, whose status lines no WARC reader knows and which send no reason
    phrase: the usual one stands there. Transfer-Encoding is renamed, since the stored body has none, and so is the
    Content-Length of a body that was cut: whoever replays it would wait for the rest.
    """
    version = "1.0" if reply.http_version == "1.0" else "1.1"
    reason = reply.reason
    if not reason and reply.http_version[:1] not in "01":
        reason = _PHRASES.get(reply.status, "")
    renamed = _FRAMING if reply.truncated else _FRAMING[:1]
    lines = [f"HTTP/{version} {reply.status:03d} {reason}"]
    for name, value in reply.headers:
        if name.lower() in renamed:
            name = f"X-Archive-Orig-{name}"
        lines.append(f"{name}: {value}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
        # A line break inside a value would make headers of its own, or end the head early.
        text = "\r\n".join([line.replace("\r", " ").replace("\n", " ") for line in lines])
    return (text + "\r\n\r\n").encode("latin-1", "replace")


def request_head(head: bytes) -> bytes:
    """Return the request's head with a version that every WARC reader knows, ended by an empty line."""
    line, separator, rest = head.partition(b"\r\n")
    if line.endswith((b" HTTP/2", b" HTTP/3", b" HTTP/2.0")):
        line = line[: line.rindex(b" ")] + b" HTTP/1.1"
    head = line + separator + rest
    return head if head.endswith(b"\r\n\r\n") else head.rstrip(b"\r\n") + b"\r\n\r\n"
