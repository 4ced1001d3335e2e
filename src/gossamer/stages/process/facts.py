"""Facts: metadata in a page's markup about its content: when it was published, by whom, under which license."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from gossamer.stages.process.zones import mail_date, without_zone

OBJECTS_MAX = 500
"""Objects of a page's JSON-LD that are examined."""
TIMES_MAX = 50
"""`time` elements that are examined."""
BYLINE_MAX = 500
TYPES_MAX = 50
_PUBLISHED = (
    "article:published_time", "datepublished", "citation_publication_date", "parsely-pub-date", "dc.date.issued",
    "dcterms.issued", "dcterms.created", "dc.date", "date", "pubdate", "publish-date", "sailthru.date",
)  # fmt: skip
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified")
_AUTHORS = ("author", "article:author", "citation_author", "dc.creator", "dcterms.creator", "parsely-author", "byl")
_LICENSES = ("license", "dc.rights", "dcterms.license", "dcterms.rights")
MEANING = frozenset((*_PUBLISHED, *_MODIFIED, *_AUTHORS, *_LICENSES, "og:locale"))
"""Names of `meta` elements that `facts` knows, in lower case."""
_ISO = re.compile(
    r"(\d{4})([-/]?)(\d{2})\2(\d{2})(?!\d)(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_HALF_DAY = re.compile(r"\b(\d{1,2})(:\d{2}(?::\d{2})?)\s?([ap])\.?m\b\.?", re.IGNORECASE | re.ASCII)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_IN_WORDS = re.compile(
    rf"(?:(\d{{1,2}})\.? )?({'|'.join(_MONTHS)})[a-z]{{0,6}}\.?(?: (\d{{1,2}}))?,? (\d{{4}})", re.IGNORECASE | re.ASCII
)
"""A date in English: the month as a word is never taken for the day."""
_MEANS_PUBLISHED = re.compile(r"datepublished|\b(?:published|pubdate|(?:entry|post)[-_]date)\b")
_MEANS_MODIFIED = re.compile(r"datemodified|\b(?:updated|modified)\b")
_MEDIA = frozenset(("VideoObject", "AudioObject", "ImageObject", "MediaObject", "Clip"))
_ARTICLES = ("Article", "Posting", "Review", "Recipe", "Report")
"""Types of pages of which a video or an image is a part, so that its dates are not theirs."""
COMMONS = re.compile(r"https?://creativecommons\.org/(?:licenses|publicdomain)/[a-z+-]+/[0-9.]+", re.IGNORECASE)
_LOCAL = re.compile(r"^.*[/#:]", re.DOTALL)
_BY = re.compile(r"^by\s+", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)

COLUMNS: Mapping[str, str] = {
    "published": "time",
    "modified": "time",
    "byline": "text",
    "license": "text",
    "schema_types": "texts",
}
"""What `facts` may find, and of which kind it is."""


class Linked(NamedTuple):
    """Metadata from the links of a page."""

    license: str = ""
    """Target of a link with `rel=license`."""
    author: str = ""
    """Text of a link with `rel=author`."""
    commons: str = ""
    """The Creative Commons license that it links to, if there is only one."""


def facts(
    blocks: Sequence[object],
    metas: Mapping[str, str],
    linked: Linked = Linked(),  # noqa: B008 - a value that never changes
    times: Sequence[Mapping[str, str]] = (),
) -> dict[str, object]:
    """Return the columns for which a page has values: from JSON-LD first, then from `meta` elements, then from links
    and `time` elements.

    `blocks` are its JSON-LD blocks, `metas` its meta elements by name, `times` the attributes of its `time` elements.
    """
    held = list(_objects(blocks))
    of_elements = _times(times)
    media = [one for one in held if not _MEDIA.isdisjoint(_types([one]))]
    others = [one for one in held if one not in media] if media else held
    published = _first(_dates(others, "datePublished", "dateCreated"), map(metas.get, _PUBLISHED))
    modified = _first(_dates(others, "dateModified"), map(metas.get, _MODIFIED))
    published = published or of_elements.get("published")
    if published is None and not any(name.endswith(_ARTICLES) for name in _types(others)):
        published = _first(_dates(media, "datePublished", "uploadDate", "dateCreated"), iter(()))
    author = next((_clean(one) for one in map(metas.get, _AUTHORS) if one and _clean(one)), "")
    found: dict[str, object] = {
        "published": published or of_elements.get("only"),
        "modified": modified or of_elements.get("modified"),
        "byline": _byline(held) or author or _clean(linked.author),
        "license": linked.license
        or _license(held)
        or next((one for one in map(metas.get, _LICENSES) if one), "")
        or linked.commons,
        "schema_types": list(dict.fromkeys(_types(held)))[:TYPES_MAX],
    }
    return {name: value for name, value in found.items() if value}


def moment(written: str) -> datetime | None:
    """Parse a time: ISO 8601 (also with slashes or without separators), the format of e-mail, or a day in English, also
    with a time of day such as `10:30 PM`. None for anything else, such as `01/02/2024`. Without a zone: UTC.
    """
    written, stated = without_zone(_HALF_DAY.sub(_of_whole_day, written.strip()[:60]))
    found = _ISO.match(written)
    words = _IN_WORDS.fullmatch(written)
    try:
        if found is not None:
            zone = (found[6] or "Z").replace("Z", "+00:00")
            time = datetime.fromisoformat(f"{found[1]}-{found[3]}-{found[4]}T{found[5] or '00:00'}{zone}")
        elif words is not None and (words[1] is None) != (words[3] is None):
            time = datetime(int(words[4]), _MONTHS.index(words[2].lower()) + 1, int(words[1] or words[3]), tzinfo=UTC)
        else:
            time = mail_date(written)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
    if stated is not None or time.tzinfo is None:
        time = time.replace(tzinfo=stated or UTC)
    return time if 1970 < time.year < 2100 else None


def _of_whole_day(found: re.Match[str]) -> str:
    hour = int(found[1])
    return f"{hour if hour > 12 else hour % 12 + 12 * (found[3] in 'pP'):02}{found[2]}"


def _times(times: Sequence[Mapping[str, str]]) -> dict[str, datetime]:
    """Return the dates of `time` elements with a known meaning, or as `only` that of a page that has no other.

    An element that means both, as themes have it for an entry that was not changed, yields to one that means one.
    """
    found: dict[str, datetime] = {}
    both: datetime | None = None
    every: set[str] = set()
    for one in times[:TIMES_MAX]:
        time = moment(one.get("datetime", ""))
        if time is None:
            continue
        every.add(one["datetime"])
        meant = f"{one.get('itemprop', '')} {one.get('class', '')}".lower()
        is_modified = _MEANS_MODIFIED.search(meant) is not None
        is_published = "pubdate" in one or _MEANS_PUBLISHED.search(meant) is not None
        if is_modified and is_published:
            both = both or time
        elif is_modified or is_published:
            found.setdefault("modified" if is_modified else "published", time)
    if both is not None:
        found = {"published": both, "modified": both, **found}
    if not found and len(every) == 1:
        only = moment(every.pop())
        return {"only": only} if only is not None else {}
    return found


def _first(written: Iterator[str], metas: Iterator[str | None]) -> datetime | None:
    for one in (*written, *metas):
        time = moment(one) if one else None
        if time is not None:
            return time
    return None


def _objects(blocks: Sequence[object]) -> Iterator[dict[str, object]]:
    """Yield the objects of JSON-LD that describe the page: those at the top and in graphs, and what these are about."""
    waiting: list[object] = list(reversed(blocks))
    for _ in range(OBJECTS_MAX):
        if not waiting:
            return
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(reversed(one[:OBJECTS_MAX]))
        elif isinstance(one, dict):
            yield one
            waiting.extend(one[key] for key in ("mainEntity", "mainEntityOfPage", "@graph") if key in one)


def _dates(held: Sequence[dict[str, object]], *names: str) -> Iterator[str]:
    return (value for name in names for one in held if (value := _value(one.get(name))))


def _value(written: object, *keys: str) -> str:
    """Return a value of JSON-LD as text: itself, the first of a list, or what an object holds under the first key."""
    if isinstance(written, list):
        written = written[0] if written else None
    if isinstance(written, dict):
        written = next((written[key] for key in (*keys, "@value") if written.get(key)), None)
        written = written[0] if isinstance(written, list) and written else written
        written = written.get("@value") if isinstance(written, dict) else written
    return written if isinstance(written, str) else ""


def _types(held: Sequence[dict[str, object]]) -> Iterator[str]:
    for one in held:
        value = one.get("@type")
        for name in value if isinstance(value, list) else (value,):
            if isinstance(name, str) and (local := _LOCAL.sub("", name)):
                yield local[:80]


def _byline(held: Sequence[dict[str, object]]) -> str:
    for one in held:
        value = one.get("author")
        names = [_name(author) for author in (value if isinstance(value, list) else [value])[:20]]
        if any(names):
            return ", ".join(dict.fromkeys(name for name in names if name))[:BYLINE_MAX]
    return ""


def _name(author: object) -> str:
    return _clean(_value(author, "name"))


def _clean(name: str) -> str:
    name = _BY.sub("", " ".join(name.split()))
    return "" if _ADDRESS.match(name) else name[:BYLINE_MAX]


def _license(held: Sequence[dict[str, object]]) -> str:
    return next((value for one in held if (value := _value(one.get("license"), "url", "@id"))), "")
