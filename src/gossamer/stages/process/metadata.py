"""Metadata: a page's machine-readable metadata, and counts of its elements, as in Mercator's tag counter.

Open Graph, JSON-LD, canonical address, description, dates, license.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice

from gossamer.model.pages import Findings, Page
from gossamer.stages.process import bylines, facts
from gossamer.stages.process.html import HTML_TYPES, HtmlDocument, document_of
from gossamer.stages.process.jsonld import roots
from gossamer.stages.process.links import Base, base_href, collapse_spaces
from gossamer.stages.process.options import TypedModule
from gossamer.stages.process.scan import attributes, automaton, text_of
from gossamer.stages.process.scripted import signal_of
from gossamer.stages.process.walk import ElementWalk

PROPERTIES_MAX = 200
"""Open Graph properties kept of one page."""
BLOCKS_MAX = 50
"""JSON-LD blocks kept of one page."""
_PREFIXES = ("og:", "article:", "book:", "profile:", "music:", "video:", "twitter:")
_WALK = ElementWalk(("html", "time"))
_OF_DATES = (
    r"""(?:date|datum|publish|modified|dc(?:terms)?:|post(?:ed)?-on|class=["']?(?:age|timeago|relativetime)\b)"""
)
_MAY_BE_DATED = automaton(rf"(?i)<[a-z][^<>]*{_OF_DATES}[^<>]*>").finditer
"""Finds the tags that `_DATED` may match, in a tenth of its time."""
_DATED = re.compile(
    rf"<(?!(?:meta|link|input|body|a|img|svg)\b)([a-zA-Z][a-zA-Z0-9-]*+)(?=[^<>]*?(?i:{_OF_DATES}))([^<>]*+)>".encode()
).match
"""Matches a tag, except for `time`, that may say that its element has a date."""
_TEXT_BYTES_MAX = 500
"""Length of an element that may be a date."""
_TIMES = frozenset(("time", "relative-time", "time-ago"))
"""The element of a time, and those of GitHub's that a script fills."""
_AGE = frozenset(("age", "timeago", "relativetime", "DateTime"))
"""Classes of elements whose text may be how long ago their title is."""
_TYPED = {"og_type": "og:type", "og_image": "og:image", "og_site_name": "og:site_name"}
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}")
"""A language that a pragma states: a list states none (HTML standard, section 4.2.5.3)."""
_JSON_LD = re.compile(r"[\t\n\f\r ]*application/ld\+json[\t\n\f\r ]*(?:;.*)?", re.IGNORECASE | re.DOTALL)


class Metadata(TypedModule):
    """Reads well-formed metadata of pages for search engines and social networks.

    The columns: `description`; `canonical`, absolute; `declared_language` (`html lang`); `open_graph`, one JSON object
    of properties to lists of values, and of it `og_type`, `og_image` (absolute) and `og_site_name`; `json_ld`, one JSON
    list of the page's blocks as they stand; `script_signal`, what says that the page lacks what scripts would add
    (`process.scripted`); and the columns of `process.facts`.
    """

    name = "metadata"
    media_types = HTML_TYPES
    columns = {  # noqa: RUF012 - declared once, never changed
        "description": "text",
        "canonical": "text",
        "declared_language": "text",
        "open_graph": "json",
        **dict.fromkeys(_TYPED, "text"),
        "json_ld": "json",
        **facts.COLUMNS,
        "script_signal": "text",
    }

    def process(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        columns = findings.columns
        elements = document.markup.elements
        graph: dict[str, list[str]] = {}
        metas: dict[str, list[str]] = {}
        base = Base(page.url, base_href(elements), document.charset)
        language: re.Match[str] | None = None
        for tag, found in elements:
            if tag == "meta":
                if language is None and (found.get("http-equiv") or "").strip().lower() == "content-language":
                    language = _LANGUAGE.fullmatch((found.get("content") or "").strip())
                content = found.get("content") or found.get("datetime") or ""
                for name in dict.fromkeys(_names(found)):
                    self._meta(name, content, graph, columns)
                for key in dict.fromkeys(map(facts.bare, _names(found))):
                    if key in facts.MEANING and len(held := metas.setdefault(key, [])) < bylines.AUTHORS_MAX:
                        held.append(collapse_spaces(content, self._options.title_bytes_max))
            elif tag == "link" and found.get("rel"):
                self._relation((found["rel"] or "").lower().split(), found.get("href") or "", base, columns)
        self._set_open_graph(graph, base, columns)
        times: list[Mapping[str, str]] = []
        blocks = self._read_json_ld(document.utf8(), columns, times)
        if language is not None:
            columns.setdefault("declared_language", language[0])
        if signal := signal_of(document.utf8(), len(document.markup.anchors)):
            columns["script_signal"] = signal
        licenses = self._read_anchors(document, base, str(columns.get("license", "")))
        site = str(columns.get("og_site_name", ""))
        columns.update(facts.facts(blocks, metas, licenses, times, page, bylines.Heading(document), site))

    def _relation(self, relations: list[str], href: str, base: Base, columns: dict[str, object]) -> None:
        for name in ("canonical", "license"):
            if href and name in relations and name not in columns:
                joined = base.join(href)
                if joined is not None and len(joined) <= self._options.url_bytes_max:
                    columns[name] = joined

    def _read_anchors(self, document: HtmlDocument, base: Base, licensed: str) -> tuple[str, str]:
        """Return the first license of an anchor with `rel=license`, and the one of Creative Commons if there is one."""
        commons: dict[str, str] = {}
        for href, rel, _ in document.markup.anchors:
            relations = rel.lower().split() if rel else ()
            if "license" in relations:
                licensed = licensed or base.join(href) or ""
            if "creativecommons.org/" in href and (found := facts.COMMONS.match(href)):
                commons.setdefault(found[0].lower().replace("http:", "https:"), found[0] + "/")
        return licensed, next(iter(commons.values())) if len(commons) == 1 else ""

    def _set_open_graph(self, graph: dict[str, list[str]], base: Base, columns: dict[str, object]) -> None:
        if graph:
            columns["open_graph"] = graph
        described = (("description", "og:description"), ("description", "twitter:description"))
        for column, name in (*_TYPED.items(), *described):
            value = next(filter(None, graph.get(name, ())), "")
            value = base.join(value) or "" if value and column == "og_image" else value
            if value:
                columns.setdefault(column, value)

    def _meta(self, name: str, content: str, graph: dict[str, list[str]], columns: dict[str, object]) -> None:
        if name == "description" and content.strip():
            columns.setdefault("description", collapse_spaces(content, self._options.title_bytes_max))
        elif name.startswith(_PREFIXES) and len(name) <= 64 and len(graph) < PROPERTIES_MAX:
            values = graph.setdefault(name, [])
            if len(values) < PROPERTIES_MAX:
                values.append(collapse_spaces(content, self._options.title_bytes_max))

    def _read_json_ld(self, body: bytes, columns: dict[str, object], times: list[Mapping[str, str]]) -> list[object]:
        def note_element(name: str, found: Mapping[str, str], at: int) -> None:
            if name == "html" and (language := (found.get("lang") or found.get("xml:lang") or "").strip()):
                columns.setdefault("declared_language", language[:35])
            elif name != "html" and len(times) < facts.TIMES_MAX and (name in _TIMES or facts.may_be_date(found)):
                if name not in _TIMES and name != "abbr" and not _AGE.intersection(found.get("class", "").split()):
                    found = {key: value for key, value in found.items() if key != "title"}
                times.append({**found, "": _text_at(body, at, name)})

        blocks = json_ld(body, self._options.text_bytes_max, note_element)
        if blocks:
            columns["json_ld"] = blocks
        return blocks


def _names(found: Mapping[str, str | None]) -> list[str]:
    """Return the names of a `meta` element: those of its `property`, its `name`, or else `itemprop` or `http-equiv`."""
    names = [*(found.get("property") or "").split(), (found.get("name") or "").strip()]
    return [one.lower() for one in names if one] or [
        (found.get("itemprop") or found.get("http-equiv") or "").strip().lower()
    ]


def _text_at(body: bytes, at: int, name: str) -> str:
    """Return the text of a short element that begins at a place; empty for a longer one."""
    piece = body[at : at + _TEXT_BYTES_MAX]
    end = piece.lower().find(b"</" + name.encode())
    return " ".join(text_of(piece[:end]).split()) if end > 0 else ""


def json_ld(
    body: bytes, bytes_max: int, seen: Callable[[str, Mapping[str, str], int], None] | None = None
) -> list[object]:
    """Return the JSON-LD blocks of a page in UTF-8 that can be read (`process.jsonld`), as long as `bytes_max` in all.
    `seen` is called with name, attributes and the place after the tag of each element that may have dates. Linear.
    """
    blocks: list[object] = []
    for name, found, start, end in _WALK.over(body):
        if name == "script" and _JSON_LD.fullmatch(found.get("type", "")) and end - start <= bytes_max:
            blocks += islice(roots(body[start:end]), BLOCKS_MAX - len(blocks))
            bytes_max -= end - start
            if len(blocks) == BLOCKS_MAX:
                break
        elif name and seen is not None:
            seen(name, found, start)
        elif seen is not None:
            for place in _MAY_BE_DATED(body, start, end):
                if (tag := _DATED(body, place.start())) is not None:
                    seen(tag[1].decode().lower(), attributes(body, tag.start(2))[0], tag.end())
    return blocks


TAGS_MAX = 500
"""Different names counted on one page; ordinary pages have some forty."""
_START = re.compile(rb"<([a-zA-Z][^\t\n\f\r />]{0,63})")
_TAG_WALK = ElementWalk(())


class TagCounter(TypedModule):
    """Counts start tags into the table `tags`, most frequent first. About 3 µs a KB."""

    name = "tags"
    media_types = HTML_TYPES
    columns = {"tag_count": "int"}  # noqa: RUF012 - declared once, never changed
    tables = {"tags": {"tag": "text", "count": "int"}}  # noqa: RUF012 - as above

    def process(self, page: Page, findings: Findings) -> None:
        body = document_of(page, self._options).utf8()
        counts: Counter[bytes] = Counter()
        named: Counter[str] = Counter()
        for step in _TAG_WALK.over(body):
            if step.name:
                named[step.name] += 1
            else:
                counts.update(_START.findall(body, step.start, step.end))
        for name, count in counts.items():
            named[name.decode("utf-8", "replace").lower()] += count
        findings.columns["tag_count"] = named.total()
        findings.rows["tags"] = [{"tag": name, "count": count} for name, count in named.most_common(TAGS_MAX)]
