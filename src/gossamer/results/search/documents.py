"""Documents: the indexed fields of a page."""

import re
from collections.abc import Iterator

import msgspec
import pyarrow as pa

from gossamer.model.pages import PLAIN_TYPES, Visited
from gossamer.stages.archive.schema import TIME, column_of, schema_of

INDEXED_TYPES = frozenset(("text/html", "application/xhtml+xml", *PLAIN_TYPES))
DOCUMENT = "document"
"""`text_method` of text that a module found in a file that is no page."""
HEAD_BYTES = 2_048
"""Beginning of a page in which its language is searched."""
_LANG = re.compile(rb"<html\b[^<>]{0,500}?\blang\s*+=\s*+[\"']?([A-Za-z]{2,3})\b", re.IGNORECASE)
_TAG = re.compile(r"\s*([A-Za-z]{2,3})\b")


class IndexedPage(msgspec.Struct, frozen=True, array_like=True):
    """One page to be indexed."""

    key: str
    """The canonical form of its URL: a page that is fetched again replaces its earlier version."""
    url: str
    host: str
    site: str
    title: str
    text: str
    language: str
    """Two or three letters in lower case, as the page says; empty when it does not."""
    anchors: str
    """Texts of the links to it; known only if the index is made from the archive."""
    at: int
    """Microseconds since 1970, UTC."""
    emphasis: str = ""
    """Its headings and bold text."""


SCHEMA = schema_of(IndexedPage, {"at": TIME})
"""Of the texts that wait to be indexed."""


def document_of(visited: Visited) -> IndexedPage | None:
    """Return the document of an attempt, None when it brought no text; of a page that is gone one without address."""
    row = visited.row
    at = round(row.fetched_at * 1_000_000)
    if row.change == "vanished":
        return IndexedPage(row.key, "", "", "", "", "", "", "", at)
    findings = visited.findings
    content = visited.content
    if row.outcome != "fetched" or findings is None or content is None:
        return None
    if row.media_type not in INDEXED_TYPES and findings.text_method != DOCUMENT:
        return None
    headers = visited.reply.headers if visited.reply is not None else ()
    language = language_of(content.body, headers) or str(findings.columns.get("language") or "")
    fields = (row.key, row.url, row.host, row.site, row.title, findings.text, language, "", at, findings.emphasis)
    return IndexedPage(*fields)


def language_of(body: bytes, headers: tuple[tuple[str, str], ...]) -> str:
    """Return the language that a page claims: of its `html` element, else of Content-Language."""
    if found := _LANG.search(body[:HEAD_BYTES]):
        return found[1].decode("ascii").lower()
    for name, value in headers:
        if name.lower() == "content-language" and (match := _TAG.match(value)):
            return match[1].lower()
    return ""


def batch_of(documents: list[IndexedPage]) -> pa.RecordBatch:
    """Return documents as one batch. Text that is no Unicode loses those marks alone."""
    columns = zip(*map(msgspec.structs.astuple, documents), strict=True)
    arrays = [column_of(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def documents_of(batch: pa.RecordBatch) -> Iterator[IndexedPage]:
    """Yield the documents of a batch. One that an earlier version wrote lacks the last columns."""
    names = [name for name in SCHEMA.names if name in batch.schema.names]
    columns = [batch[name] if name != "at" else batch[name].cast("int64") for name in names]
    for values in zip(*(column.to_pylist() for column in columns), strict=True):
        yield IndexedPage(*values)
