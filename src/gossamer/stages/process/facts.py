# ruff: noqa: RUF001 - months of many languages
"""Facts: metadata in a page's markup about its content: when it was published, by whom, under which license."""

import pkgutil
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import chain
from typing import Any

from gossamer.model.pages import Page
from gossamer.stages.process import bylines
from gossamer.stages.process.jsonld import listed, value_of
from gossamer.stages.process.scan import automaton
from gossamer.stages.process.zones import without_zone

OBJECTS_MAX = 500
"""Objects of a page's JSON-LD that are examined."""
TIMES_MAX = 50
"""`time` elements that are examined."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # Programs write it for a date that they lack.
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
TYPES_MAX = 50
_WRITTEN = tomllib.loads((pkgutil.get_data("gossamer.stages.process", "facts.toml") or b"").decode())
_METAS: dict[str, list[str]] = _WRITTEN["metas"]
MEANING = frozenset(chain.from_iterable(_METAS.values()))
"""Names of `meta` elements that `facts` knows, as `bare` makes them."""
_MARKS = str.maketrans("", "", ":.-_ ")
_ISO = re.compile(
    r"(\d{4})([-/]?)(\d{2})\2(\d{2})"
    r"(?:(?:[T ]\s*|(?=\d{6}(?!\d)))(\d{1,2}:?\d{2}(?::?\d{2})?)(?:\.\d+)?\s*(Z|[+-][012]\d:?\d{2})?|(?!\d))",
    re.ASCII,
)
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867, "民國": 1911, "民国": 1911}
_ERA = re.compile(rf"({'|'.join(_ERAS)}) ?(元|\d{{1,3}})(?= ?年)", re.ASCII)
_YEARS = range(1500, 2100)  # Below, they are of the Persian or the Islamic calendar, or stand for no date at all.
_HALF_DAY = re.compile(r"\b(\d{1,2})(:\d{2}(?::\d{2})?)\s?([ap])\.?m\b\.?", re.IGNORECASE | re.ASCII)
_CTIME = re.compile(r"\b(\d\d?) +(\d\d:\d\d:\d\d)( [A-Z]{2,5})? (\d{4})\b", re.ASCII)
"""Day, time, zone and year as the C library and Mailman write them."""
_MONTH_OF = {begin: number for number, begins in enumerate(_WRITTEN["months"], 1) for begin in begins.split("|")}
_MONTH = rf"({'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})[^\W\d_]{{0,8}}\.?"
_DAY = r"([0-3]?[0-9])(?:st|nd|rd|th|er|º|\.)?"
_BEFORE_TIME = r"(?:[\s,|·\u2013-]|\b(?:at|um|om|à|às|a las|saat|kl\b\.?|klo)(?!\w)){1,6}"
_TIME_OF_DAY = re.compile(rf"{_BEFORE_TIME}(?=[0-9]{{1,2}}:[0-9]{{2}})", re.IGNORECASE)
_HOUR = re.compile(r"(?<![\d.:])(\d{1,2})[h.](\d{2})(?![\d.])")
"""Finds a time of day as French, Portuguese and Nordic pages write it: `10h14`, `10.14`."""
_LEADING = re.compile(
    r"(?>(?:(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?|(?:last |first )?(?:published|posted"
    r"|updated|modified|created|written)|on|date)[.:,]{0,2}\s++)+)(?=\d|[a-z]{3,9}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})",
    re.IGNORECASE,
)
"""Days of the week and words that introduce a date."""
_LABEL_CHARACTERS_MAX = 150
"""Length of a text that may be a date and its label."""
_OF_PUBLISHING = r"(?:pub|publish(?:ed|ing)?|publication|entry|post(?:ed)?|article|news|story|blog|item|created?)"
_MEANS_PUBLISHED = re.compile(
    rf"\bpublished\b|date[-_]?(?:published|created)|\b(?:dc|dcterms):(?:date|created|issued)\b|(?:\b|[-_])pubdate"
    rf"|{_OF_PUBLISHING}[-_]?(?:post|pub|meta)?[-_]?(?:date|time)(?:\b|[-_])"
)
_MEANS_MODIFIED = re.compile(r"date[-_]?(?:modified|updated?)|\b(?:updated|modified)\b|dcterms:modified")
_MEANS_DATE = re.compile(
    r"(?<![\w-])(?:(?:[a-z]+[-_]+){0,3}(?:date|datum)(?:[-_]\w+)?|age|timeago|relativetime|datetime)(?![\w-])"
)
_OF_OTHERS = re.compile(r"comment|related|recent|teaser|widget|history|listing|event|copyright|birth|expir|start|end")
"""Names of elements whose date is not that of the page."""
_SAYS_MODIFIED = re.compile(r"updated|modified|revised|edited|aktualisiert|geändert|stand\b|à jour", re.IGNORECASE)
_PARTS = re.compile(r"\s[-\u2013\u2014|\u2022\u00b7\u22c5\u30fb]\s")
_LABELS = re.compile(
    r"\b(?:first|originally|published|posted|created|written|publication|date|submitted|on|at|the|by|min|mins|minutes?"
    r"|read|last|publi\w{1,4}|veröffentlicht|par|por|von|le|am|um|uhr|\w{3,6}di|\w{4,8}tag|mittwoch"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?|[ap]m|\w{2,3}t)\b|[\W\d]",
    re.IGNORECASE,
)
"""What a line has beside its date, and the name of an author."""
_NAME_WORDS_MAX = 2
_WEB_BEGINS = 1993
_SAYS_OTHER = re.compile(
    r"joined|registered|registriert|member|mitglied|dabei seit|inscri|born|release|version|volume|copyright|©|deadline"
    r"|expires|valid|effective|event|starts|check|review",
    re.IGNORECASE,
)
_UNDATED = frozenset(("Product", "CollectionPage", "ItemList", "Event", "SearchResultsPage", "ProfilePage"))
"""Types of pages whose only date is that of a part."""
_MEDIA = frozenset(("VideoObject", "AudioObject", "ImageObject", "MediaObject", "Clip"))
_ARTICLES = ("Article", "Posting", "Review", "Recipe", "Report")
"""Types of pages of which a video or an image is a part, so that its dates are not theirs."""
_YEAR = automaton(r"(?:19|2[05])\d\d|\xe5\xb9\xb4")
"""Of the Gregorian or the Buddhist calendar, or the sign after one of an era."""
_DAY_IN_PATH = re.compile(r"/((?:19|20)\d\d)[/-]([01]?\d)[/-]([0-3]?\d)(?=[/-][^/?#])", re.ASCII)
COMMONS = re.compile(r"https?://creativecommons\.org/(?:licenses|publicdomain)/[a-z+-]+/[0-9.]+", re.IGNORECASE)
_LOCAL = re.compile(r"^.*[/#:]", re.DOTALL)
COLUMNS: Mapping[str, str] = {
    "published": "time", "published_written": "text", "modified": "time", "byline": "text", "license": "text",
    "schema_types": "texts",
}  # fmt: skip
"""Columns of `facts`, with their kinds."""


def facts(
    blocks: Sequence[object],
    metas: Mapping[str, Sequence[str]],
    licenses: tuple[str, str],
    times: Sequence[Mapping[str, str]],
    page: Page,
    heading: bylines.Heading,
    site: str,
) -> dict[str, object]:
    """Return the columns for which a page has values: from JSON-LD first, then from `meta` elements, then from links
    and `time` elements.

    `blocks` are its JSON-LD blocks, `metas` its meta elements by name, `licenses` the target of a link with
    `rel=license` and the only Creative Commons license that is linked, `times` the attributes of its `time` elements,
    and of others that may have a date, with their text under the empty name, `site` the name of its site.
    A date more than a day after the fetch is that of an event, and neither published nor modified.
    """
    latest = datetime.fromtimestamp(page.fetched_at, UTC) + timedelta(days=1) if page.fetched_at else _NEVER
    held = list(_objects(blocks))
    of_elements = _times(times, latest)
    media = [one for one in held if not _MEDIA.isdisjoint(_types([one]))]
    others = _article_first([one for one in held if one not in media] if media else held)
    written = [*_dates(others, "datePublished", "dateCreated", "datePosted"), *_meta_values(metas, "published")]
    published = _first(written, latest)
    modified = _first((*_dates(others, "dateModified"), *_meta_values(metas, "modified")), latest)
    published = published or of_elements.get("published")
    if published is None and not any(map(_is_article, others)):
        published = _first(_dates(media, "datePublished", "uploadDate", "dateCreated"), latest)
    types = list(dict.fromkeys(_types(held)))[:TYPES_MAX]
    published = published or of_elements.get("only")
    if published is None:
        elsewhere = {time.date() for one in times if (time := moment(one.get("datetime", ""))) is not None}
        lines = _lines_for_date(page.url, heading)
        found_in = _dates_of_lines(lines, types, elsewhere if len(elsewhere) > 1 else set())
        of_lines = {name: time for name, time in found_in.items() if time <= latest}
        published = of_lines.get("published") or of_elements.get("first")
        modified = modified or of_elements.get("modified") or of_lines.get("modified")
    unread = next((one for one in written if moment(one) is None), "")
    byline = bylines.of_objects(_article_first(held)) or bylines.of_metas(
        [metas.get(name, ()) for name in _METAS["author"]]
    )
    sites = {site, *_organizations(held)}
    if not byline or byline in sites:
        author = bylines.of_page(heading, _without_days, is_article=_UNDATED.isdisjoint(types))
        byline = author if author and not (byline and author in sites) else byline
    found: dict[str, object] = {
        "published": published,
        "published_written": "" if published else unread[: bylines.BYLINE_MAX],
        "modified": modified or of_elements.get("modified"),
        "byline": byline,
        "license": licenses[0] or _license(held) or next(iter(_meta_values(metas, "license")), "") or licenses[1],
        "schema_types": types,
    }
    return {name: value for name, value in found.items() if value}


def bare(name: str) -> str:
    """Return the name of a `meta` element, in lower case, without the marks and the prefix that sites vary."""
    return name.translate(_MARKS).removeprefix("og")


def moment(written: str) -> datetime | None:
    """Parse a time: ISO 8601 (also with other separators, or without), the format of e-mail, a day in numbers or words
    (`_days`), also with a time of day. A Buddhist year is converted. None for anything else, such as `01/02/2024` or a
    Persian year. Without a zone: UTC.
    """
    written = _ERA.sub(lambda era: str(_ERAS[era[1]] + int(era[2].replace("元", "1"))), written.strip()[:80])
    leading = _LEADING.match(written)
    written = _CTIME.sub(r"\1 \4 \2\3", written[leading.end() if leading is not None else 0 :][:60])
    if (day := _days().match(written)) is not None and (iso := _as_iso(day)):
        rest = _HOUR.sub(r"\1:\2", written[day.end() :])
        if (words := _TIME_OF_DAY.match(rest)) is not None:
            rest = " " + rest[words.end() :]
        if not (day[1] or day[5]) and rest.strip() and not rest[1:2].isdigit():
            return None  # A range, or a sentence.
        written = iso + rest
    written, stated = without_zone(_HALF_DAY.sub(_of_whole_day, written))
    found = _ISO.match(written)
    try:
        if found is not None:
            zone = (found[6] or "Z").replace("Z", "+00:00")
            clock = found[5] or "00:00"
            clock = "0" * (clock[1] == ":") + clock
            time = datetime.fromisoformat(f"{found[1]}-{found[3]}-{found[4]}T{clock}{zone}")
        else:
            from email.utils import parsedate_to_datetime  # noqa: PLC0415 - 2 ms of a start

            time = parsedate_to_datetime(written)
        if time.year >= 2443:  # A Buddhist year; that of 1900, or later.
            time = time.replace(year=time.year - 543)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
    if stated is not None or time.tzinfo is None:
        time = time.replace(tzinfo=stated or UTC)
    return time if time.year in _YEARS and time != _EPOCH else None


@cache
def _days() -> re.Pattern[str]:
    """Return what finds a day in numbers or words, and takes no month in words for it. Made on first use: 2 ms."""
    return re.compile(
        r"(?<![A-Za-z0-9.:/-])(?:"
        r"([0-9]{4})(-|[/.] ?| ?[年년] ?)([0-9]{1,2})(?:\2| ?[月월] ?)([0-9]{1,2})(?: ?[日일]|\.(?!\d))?"
        r"|([0-9]{1,2})(?:\. ?([0-9]{1,2})\. ?|/([0-9]{1,2})/|-([0-9]{1,2})-)([0-9]{4})"
        rf"|{_DAY}[ -](?:(?:of|de|del) |d['’]|ב)?{_MONTH}(?:,? |-|,? del? )([0-9]{{4}})(?: ?\u0433\.)?"
        rf"|{_MONTH}[ -]{_DAY}(?:,? ?|-)([0-9]{{4}})|([0-9]{{4}})[.,]?[ -]{_MONTH}[ -]{_DAY}"
        r")(?!\.?\d)",
        re.IGNORECASE,
    )


def date_within(text: str) -> datetime | None:
    """Return the one day in a short text such as `By Ann on 6 May 2024`, with its time of day if that follows."""
    if len(text) > _LABEL_CHARACTERS_MAX:
        return None
    text = _CTIME.sub(r"\1 \4 \2\3", text)
    days = list(_days().finditer(text))
    if len({_as_iso(day) for day in days}) != 1:
        return None
    rest = _HOUR.sub(r"\1:\2", text[days[0].end() :])
    return moment(days[0][0] + (rest if _TIME_OF_DAY.match(rest) else ""))


def _without_days(text: str) -> str:
    """Return a short text with a mark between two parts in place of each day."""
    return _days().sub(" | ", text) if len(text) <= _LABEL_CHARACTERS_MAX else text


def _lines_for_date(url: str, heading: bylines.Heading) -> Iterator[str]:
    """Yield the lines around a page's heading, and the day in its address; they are read only if they are wanted."""
    if _YEAR.search(heading.piece) is not None:  # Most pages without a date have none there.
        yield from heading.lines
    if (day := _DAY_IN_PATH.search(url)) is not None:
        yield "-".join(day.groups())


def _is_unclear(text: str) -> bool:
    """Return whether a short text has a date that may be two days, such as `05/06/2024`."""
    day = _days().search(text[:_LABEL_CHARACTERS_MAX])
    return day is not None and not _as_iso(day)


def _dates_of_lines(lines: Iterable[str], types: Sequence[str], others: set[date]) -> dict[str, datetime]:
    """Return when a page was published and modified by the lines around its heading: a date with a label or a name.

    Each must be the only one with its meaning, except for those of `others`; one that is repeated is that of a list.
    Where one may be two days, those of other lines are of a list of such.
    """
    found: dict[str, list[datetime]] = {"published": [], "modified": []}
    for line in lines if _UNDATED.isdisjoint(types) else ():
        for part in _PARTS.split(line) if len(line) <= _LABEL_CHARACTERS_MAX else ():
            time = date_within(part)
            if time is None and _is_unclear(part):
                return {}
            if time is None or time.year < _WEB_BEGINS or _SAYS_OTHER.search(part) is not None:
                continue
            rest = _days().sub(" ", part)
            is_modified = _SAYS_MODIFIED.search(rest) is not None
            if len(_LABELS.sub(" ", rest).split()) <= _NAME_WORDS_MAX + is_modified:
                found["modified" if is_modified else "published"].append(time)
    chosen: dict[str, datetime] = {}
    for name, times in found.items():
        own = times if len({one.date() for one in times}) == 1 else [one for one in times if one.date() not in others]
        is_of_thread = bool(own) and own[0] == min(own) and own[0].time() != _EPOCH.time()
        if is_of_thread or (len({one.date() for one in own}) == 1 and len(own) <= 2):
            chosen[name] = own[0]
    return chosen


def _as_iso(found: re.Match[str]) -> str:
    """Return a day as ISO 8601 has it; empty for one whose month may be the day."""
    year, _, month, day, first, dotted, slashed, dashed, year_2, *words = found.groups()
    if first:
        year = year_2
        second = dotted or slashed or dashed
        is_american = not dotted and int(second) > 12
        if not (dotted or is_american or int(first) > 12 or first == second):
            return ""
        month = first if is_american else second
        day = second if is_american else first
    elif not year:
        day = words[0] or words[4] or words[8]
        year = words[2] or words[5] or words[6]
        month = str(_MONTH_OF[(words[1] or words[3] or words[7]).lower()])
    return f"{year}-{month:0>2}-{day:0>2}"


def _of_whole_day(found: re.Match[str]) -> str:
    hour = int(found[1])
    return f"{hour if hour > 12 else hour % 12 + 12 * (found[3] in 'pP'):02}{found[2]}"


def meaning_of(one: Mapping[str, str]) -> tuple[bool, bool]:
    """Return, by an element's attributes, whether its date is of publication, and whether of a modification."""
    meant = _meant(one)
    is_published = "pubdate" in one or _MEANS_PUBLISHED.search(meant) is not None
    return is_published, _MEANS_MODIFIED.search(meant) is not None


def may_be_date(one: Mapping[str, str]) -> bool:
    """Return, by an element's attributes, whether its date may be that of the page."""
    meant = _meant(one)
    return any(meaning_of(one)) or (_MEANS_DATE.search(meant) is not None and _OF_OTHERS.search(meant) is None)


def _meant(one: Mapping[str, str]) -> str:
    return f"{one.get('itemprop', '')} {one.get('property', '')} {one.get('class', '')}".lower()


def _times(times: Sequence[Mapping[str, str]], latest: datetime) -> dict[str, datetime]:
    """Return the dates of elements with a known meaning, or as `only` that of a page that has no other.

    An element that means both, as themes have it for an entry that was not changed, yields to one that means one. Of
    dates in texts, which lists of other pages have too, each must be the only one with its meaning.
    """
    found: dict[str, datetime] = {}
    both: datetime | None = None
    stated: dict[date, datetime] = {}
    seen: list[datetime] = []
    texts: dict[str, dict[date, datetime]] = {"published": {}, "modified": {}, "only": {}}
    for one in times[:TIMES_MAX]:
        time = moment(one.get("datetime") or one.get("content") or one.get("title", ""))
        text = one.get("", "")
        is_published, is_modified = meaning_of(one)
        if time is None and (time := date_within(text)) is not None:
            is_modified = is_modified or _SAYS_MODIFIED.search(text) is not None
            kind = "modified" if is_modified else "published" if is_published else "only"
            texts[kind].setdefault(time.date(), time)
        elif time is None and _is_unclear(text):
            texts["published"][_EPOCH.date()] = _EPOCH
        elif time is not None and time <= latest:
            stated.setdefault(time.date(), time)
            seen.append(time)
            if is_modified and is_published:
                both = both or time
            elif is_modified or is_published:
                found.setdefault("modified" if is_modified else "published", time)
    if both is not None:
        found = {"published": both, "modified": both, **found}
    if not found and stated:
        first = next(iter(stated.values()))
        if first != min(seen):
            return {}  # Lists begin with the latest, and threads with the earliest.
        if len(stated) == 1:
            return {"only": first}
        return {"first": first} if first.time() != _EPOCH.time() else {}
    if not stated:
        texts["only"] |= texts["published"]
        lone = {kind: next(iter(held.values())) for kind, held in texts.items() if len(held) == 1}
        found = {kind: time for kind, time in lone.items() if _EPOCH < time <= latest}
    return found


def _first(written: Iterable[str], latest: datetime) -> datetime | None:
    return next((time for time in map(moment, written) if time is not None and time <= latest), None)


def _meta_values(metas: Mapping[str, Sequence[str]], says: str) -> list[str]:
    return [value for some in _by_name(metas, says) for value in some if value]


def _by_name(metas: Mapping[str, Sequence[str]], says: str) -> list[Sequence[str]]:
    """Return the values of the meta elements that say something, by their names."""
    return [metas.get(name, ()) for name in _METAS[says]]


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
            one = _bare_keys(one) if any(":" in key for key in one) else one
            yield one
            waiting.extend(one[key] for key in ("mainEntity", "mainEntityOfPage", "@graph") if key in one)


def _bare_keys(value: object, depth: int = 3) -> Any:
    """Return a value of JSON-LD with its keys without the vocabulary's prefix or address, down to a depth."""
    if isinstance(value, list) and depth:
        return [_bare_keys(one, depth - 1) for one in value[:OBJECTS_MAX]]
    if isinstance(value, dict) and depth:
        return {_LOCAL.sub("", key): _bare_keys(one, depth - 1) for key, one in value.items()}
    return value


def _is_article(one: dict[str, object]) -> bool:
    return any(name.endswith(_ARTICLES) for name in _types([one]))


def _article_first(held: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return objects with the article, if there is one, before the page that has it."""
    articles = [one for one in held if _is_article(one)]
    return [*articles, *(one for one in held if one is not articles[0])] if len(articles) == 1 else held


def _dates(held: Sequence[dict[str, object]], *names: str) -> Iterator[str]:
    return (value for name in names for one in held if (value := value_of(one.get(name))))


def _types(held: Sequence[dict[str, object]]) -> Iterator[str]:
    for one in held:
        value = one.get("@type")
        for name in listed(value):
            if isinstance(name, str) and (local := _LOCAL.sub("", name)):
                yield local[:80]


def _organizations(held: Sequence[dict[str, object]]) -> Iterator[str]:
    """Yield the names of organizations that objects describe, or name as their publisher or author."""
    for one in held:
        for value in (one, one.get("publisher"), *listed(one.get("author"))):
            if isinstance(value, dict) and any("Organi" in name for name in _types([value])):
                yield bylines.clean_name(value_of(value.get("name")))


def _license(held: Sequence[dict[str, object]]) -> str:
    return next((value for one in held if (value := value_of(one.get("license"), "url", "@id"))), "")
