"""Mail: text and links of messages (RFC 5322, MIME) and of archives of them (mbox, RFC 4155), within bounds."""

from collections.abc import Iterator, Sequence
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import EmailPolicy
from typing import BinaryIO

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.charset import to_utf8
from gossamer.stages.process.documents import COLUMNS, CUT, DAMAGED, Gathered, add_html, add_plain, gather
from gossamer.stages.process.options import TypedModule

MESSAGE_BYTES_MAX = 4_000_000
"""Bytes of one message that are read."""
MESSAGES_MAX = 10_000
PARTS_MAX = 200
"""Parts of one message that are read, attachments included."""
BOUNDARIES_MAX = 50
"""Multiparts of one message, since each boundary is compared with each line."""
HEADER_CHARACTERS_MAX = 2_000
"""Length of one header: the standard library's parsers take quadratic time, and recurse as deep as the header nests."""
_LINE_BYTES_MAX = 1 << 16
_SHOWN = ("From", "To", "Date", "Subject")


class _Policy(EmailPolicy):
    """Headers as objects, none longer than `HEADER_CHARACTERS_MAX`."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        return super().header_source_parse(["".join(sourcelines)[:HEADER_CHARACTERS_MAX]])


_POLICY = _Policy()


class Mail(TypedModule):
    """Finds the text of e-mail: for each message sender, recipients, date and subject, then its body, as plain text if
    it has one, else from its HTML. Attachments are left out. About 2 ms a message.
    """

    name = "mail"
    media_types = ("message/rfc822", "application/mbox")
    isolated = True
    columns = COLUMNS

    def process(self, page: Page, findings: Findings) -> None:
        def read(file: BinaryIO, found: Gathered) -> None:
            for number, raw in enumerate(_messages(file, found, archive=page.media_type == "application/mbox")):
                if number >= MESSAGES_MAX:
                    found.outcome = CUT
                    break
                try:
                    _take(raw, found, first=number == 0)
                except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
                    found.outcome = DAMAGED  # The standard library raises any of these for headers without sense.

        gather(read, page, findings, self._options)


def _messages(file: BinaryIO, found: Gathered, *, archive: bool) -> Iterator[bytes]:
    """Yield the messages of a file, with the escapes of mbox undone; long messages are cut."""
    held: list[bytes] = []
    size = 0
    after_empty = True
    while line := found.unpack(file.readline(_LINE_BYTES_MAX)):
        if archive and after_empty and line.startswith(b"From "):
            if held:
                yield b"".join(held)
            held = []
            size = 0
        elif size + len(line) <= MESSAGE_BYTES_MAX:
            held.append(line[1:] if archive and line.startswith(b">") and line.lstrip(b">")[:5] == b"From " else line)
            size += len(line)
        else:
            found.outcome = CUT
        after_empty = not line.strip()
    if held:
        yield b"".join(held)


def _take(raw: bytes, found: Gathered, *, first: bool) -> None:
    if raw.count(b"boundary=") + raw.count(b"message/rfc822") > BOUNDARIES_MAX:
        found.outcome = CUT
        raw = raw.partition(b"\n\n")[0]
    message = message_from_bytes(raw, policy=_POLICY)
    assert isinstance(message, EmailMessage)
    headers = {name: _header(message, name) for name in _SHOWN}
    if first:
        found.fact("title", headers["Subject"])
        found.fact("byline", headers["From"])
        found.fact("published", headers["Date"])
    for name, value in headers.items():
        if value:
            found.add(f"{name}: {value}\n")
    bodies = [part for part, _ in zip(message.walk(), range(PARTS_MAX), strict=False) if _is_text(part)]
    for part in [part for part in bodies if part.get_content_subtype() == "plain"] or bodies:
        text = _content(part)
        if part.get_content_subtype() == "html":
            add_html(text.encode("utf-8", "replace"), found)
        else:
            add_plain(text, found)


def _header(message: EmailMessage, name: str) -> str:
    """Return a header in one line; empty if it cannot be parsed."""
    try:
        return " ".join(str(message[name] or "")[:1_000].split())
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return ""


def _is_text(part: object) -> bool:
    return (
        isinstance(part, EmailMessage)
        and part.get_content_type() in ("text/plain", "text/html")
        and part.get_content_disposition() != "attachment"
    )


def _content(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    return to_utf8(data, part.get_content_charset(""))[0].decode("utf-8", "replace")
