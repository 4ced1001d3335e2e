"""Items: structured data of pages, by rules of the configuration or by functions of the operator's.

Each kind of item has its own table, `items/NAME`. Missing values, and values of another type, are counted by field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, Self

import msgspec

from gossamer.model.links import REQUEST, Found
from gossamer.model.modules import INVALID, ModuleError
from gossamer.model.pages import Findings, Page
from gossamer.model.patterns import PatternSet
from gossamer.stages.process.expressions import SelectError, matches
from gossamer.stages.process.facts import moment
from gossamer.stages.process.html import HTML_TYPES
from gossamer.stages.process.options import FieldRule, ItemRule, ProcessOptions, Selector
from gossamer.stages.process.selectors import SelectorSource, address_of, attribute_of, html_of, text_of
from gossamer.stages.process.zones import without_zone

FOLDER = "items/"
"""Prefix of the names of tables of items."""
ITEMS_MAX = 10_000
"""Largest number of items of one kind from one page."""
LEVEL_MAX = 7
WRITTEN_CHARACTERS_MAX = 200
"""Longer texts are not parsed as number, truth value or date."""
INTEGER_MAX = 2**63 - 1
_DASH = "[-\u2010-\u2015\u2212\ufe63\uff0d]"
_NUMBER = re.compile(
    # A point after letters ends a word, as in `Rs.500`; one after a digit of a word, as in `v1.5`, is of that word.
    r"((?:(?<![\w.,])[.,]|(?<!\w)(?<!\d[.,]))\d++(?>(?:[.,\s'\u2019\u02bc]\d++)*))(?:[eE]([-+]?\d{1,3})(?!\w))?"
)
_WRITTEN = [
    re.compile(form).fullmatch
    for form in (
        r"(\d+)()", r"(\d*)\.(\d+)", r"((?:0\d*|\d{4,})?),(\d+)", r"(\d{1,3}),(\d{1,2}|\d{4,})",
        r"((?!0)\d{1,3}(?:,\d{3})+|(?!0)\d{1,2}(?:,\d\d)+,\d{3})(?:\.(\d+))?",  # 1,234.5 and, in India, 1,23,456.5
        r"((?!0)\d{1,3}(?:\.\d{3}){2,})()", r"((?!0)\d{1,3}(?:\.\d{3})+),(\d+)",  # 1.234,5
        r"((?!0)\d{1,3}(?:_\d{3})+)(?:[.,](\d+))?",  # 1 234,5
    )
]  # fmt: skip
"""Numbers as people write them: whole part and fraction, with `_` for a space or an apostrophe."""
_SIGN = re.compile(rf"({_DASH})(\s?)([^\W\d_]{{0,3}})[^\w\s.,()]?\.?\s?\Z")
_IN_WORD = re.compile(r"[\w.]\Z|\d,\Z")
_MONEY = rf"((?:[A-Z]{{3}}|(?!{_DASH})[^\w\s()%+.,:#~])?)"
_IN_BRACKETS = re.compile(rf"{_MONEY}\s?\(\s?{_MONEY}\s?0\s?{_MONEY}\s?\)")
_BEHIND = re.compile(rf"_|[\u00b2\u00b3\u00b9\u2070-\u2079]|{_DASH}(?:\s|\Z)")
_ISO_DAY = re.compile(r"\d{4}(?:([-/]?)\d\d\1\d\d|-?W\d\d-?\d)(?=[Tt\s]|\Z)", re.ASCII)
_NAMED_ZONE = re.compile(r"(?:(?<=[+-]\d\d:\d\d)|(?<=[+-]\d{4})|(?<=[Zz]))\s?\[!?[A-Za-z][\w/+-]*\]\Z")
_HYPHENS = str.maketrans("/\u2212", "--")
_UTC = re.compile(r"(?<=\d)\s?(?:UTC?|GMT|Z)\Z")
_HALF_DAY = re.compile(r"(\d)\s?[ap]\.?m\b\.?", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]+")
_DATE_WORD = re.compile(
    "(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*|z|utc?|gmt", re.IGNORECASE
).fullmatch
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class Items:
    """The processing module that applies the rules of `[extract]`. Costs a tree a page, and about 5 µs a field."""

    name = "items"

    def __init__(self, rules: Mapping[str, ItemRule], options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()
        self._rules = [(FOLDER + name, rule, _pages_of(rule.urls)) for name, rule in rules.items()]
        self.tables = {FOLDER + name: rule.kinds for name, rule in rules.items()}

    def wants(self, media_type: str) -> bool:
        return readable(media_type)

    def process(self, page: Page, findings: Findings) -> None:
        source: SelectorSource | None = None
        for table, rule, is_for in self._rules:
            findings.fields.append(table)
            if is_for(page.url):
                source = source or SelectorSource(page, self._options)
                reading = _ItemReading(source, table)
                items = findings.rows[table] = reading.items(rule)
                findings.fields += (f"{table}.{field}" for field in rule.fields)
                findings.invalid += reading.problems.values()
                findings.matched += [table] if items else []


def readable(media_type: str) -> bool:
    """Return whether items may be in a page of this type: HTML, XML, JSON and text."""
    return media_type in HTML_TYPES or media_type.startswith("text/") or media_type.endswith(("json", "xml"))


def _pages_of(urls: tuple[str, ...]) -> Callable[[str], bool]:
    return PatternSet(urls).matches if urls else lambda _: True


class _ItemReading:
    """The items of one kind on one page, and what was wrong with them: the first problem of each field."""

    def __init__(self, source: SelectorSource, table: str) -> None:
        self._source = source
        self._table = table
        self.problems: dict[str, ModuleError] = {}

    def items(self, rule: ItemRule) -> list[dict[str, object]]:
        """Return the items that have all required fields."""
        try:
            places = self._select(rule.items, None) if rule.items.kind else [None]
        except SelectError as error:
            self._note(next(iter(rule.fields)), str(error))
            return []
        found = (self._object(rule.fields, place, "") for place in places[:ITEMS_MAX])
        # A page of another kind gives one item without values, which is dropped.
        kept = [
            one
            for one in found
            if one is not None and (rule.items.kind or any(value not in (None, []) for value in one.values()))
        ]
        for one in kept if rule.identity else ():
            if (identity := one[rule.identity]) is not None:
                one["item"] = str(identity)
        return kept

    def _select(self, selector: Selector, within: object) -> list[object]:
        kind = selector.kind
        return self._source.select(kind, getattr(selector, kind), within) if kind else [within]

    def _object(self, fields: Mapping[str, FieldRule], within: object, path: str) -> dict[str, object] | None:
        found: dict[str, object] = {}
        complete = True
        for name, rule in fields.items():
            try:
                values = self._values(rule, within, f"{path}{name}")
            except SelectError as error:
                values = []
                self._note(path + name, str(error))
            found[name] = values if rule.list else values[0] if values else None
            if rule.required and not values:
                complete = False
                self._note(path + name, "missing")
        return found if complete else None

    def _values(self, rule: FieldRule, within: object, path: str) -> list[object]:
        if rule.fields:
            objects = (self._object(rule.fields, place, f"{path}.") for place in self._select(rule, within))
            return [one for one in objects if one is not None]
        values: list[object] = []
        for raw in self._raw(rule, within):
            try:
                values.append(convert_value(raw, rule, self._source))
            except ValueError as error:
                self._note(path, str(error))
            if not rule.list and values:
                break
        return values

    def _raw(self, rule: FieldRule, within: object) -> Iterator[object]:
        if not rule.kind and within is None:
            if rule.re:
                yield from matches(rule.re, self._source.characters())
            return
        for one in self._select(rule, within):
            value = attribute_of(one, rule.attribute) if rule.attribute else one
            if rule.re and value is not None:
                yield from matches(rule.re, html_of(value) if rule.type == "html" else text_of(value))
            elif value is not None:
                yield value

    def _note(self, path: str, problem: str) -> None:
        name = f"{self._table}.{path}"
        self.problems.setdefault(name, ModuleError(name, problem, INVALID))


def convert_value(value: object, rule: FieldRule, source: SelectorSource) -> object:
    """Convert a selected value to the field's type. Raises ValueError if it does not fit."""
    match rule.type:
        case "text":
            return text_of(value)
        case "html":
            return html_of(value)
        case "url":
            if (joined := source.join(address_of(value))) is None:
                raise ValueError(f"no address: {_excerpt(address_of(value))}")
            return joined
        case "boolean":
            return truth_of(value)
        case "date":
            return date_of(text_of(value), rule.format)
    return number_of(value, whole=rule.type == "integer")


def number_of(value: object, *, whole: bool = False) -> int | float:
    """Return the only number in a text, as of `£1,234.50` or `1.234,50 €`. Raises ValueError: there is none or more."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = Decimal(value if is_number else _digits(text_of(value)))  # type: ignore[arg-type]
    if not isfinite(float(number)):
        raise ValueError(f"too large a number: {_excerpt(text_of(value))}")
    if not whole:
        return float(number)
    if number != number.to_integral_value():
        raise ValueError(f"no whole number: {_excerpt(text_of(value))}")
    if abs(number) > INTEGER_MAX:
        raise ValueError(f"a whole number of more than 64 bits: {_excerpt(text_of(value))}")
    return int(number)


def _digits(text: str) -> str:
    """Return the only number in a text, as Python writes it. Raises ValueError if there is none, or may be another."""
    found = list(_NUMBER.finditer(text)) if len(text) <= WRITTEN_CHARACTERS_MAX else []
    if len(found) != 1:
        raise ValueError(f"{'more than one' if found else 'no'} number: {_excerpt(text)}")
    [one] = found
    plain = _plain(one[1])
    before = text[: one.start()]
    behind = text[one.end() :]
    # Accountants write what is below zero in brackets.
    brackets = _IN_BRACKETS.fullmatch(f"{before}0{behind}".strip())
    is_amount = brackets is not None and (any(brackets.groups()) or len(plain.partition(".")[2]) > 1)
    if not plain or is_amount or _BEHIND.match(behind):
        raise ValueError(f"no number that all readers read alike: {_excerpt(text)}")
    return _sign(before) + plain + (f"e{one[2]}" if one[2] else "")


def _plain(written: str) -> str:
    """Return a number's digits with a point before its fraction; empty if they are grouped as no number is."""
    written = re.sub(r"[\s'\u2019\u02bc]", "_", written)
    for form in _WRITTEN:
        if parts := form(written):
            whole = re.sub(r"\D", "", parts[1]) or "0"
            return f"{whole}.{parts[2]}" if parts[2] else whole
    return ""


def _sign(before: str) -> str:
    """Return a number's sign by the text before it. Raises ValueError if a dash may be another mark: `Price - 5`."""
    sign = _SIGN.search(before[-9:])
    ahead = before[: -len(sign[0])] if sign is not None else ""
    if sign is None or _IN_WORD.search(ahead[-2:]):
        return ""
    if (sign[3] and sign[2]) or ((sign[2] or sign[3]) and re.search(r"\w", ahead)):
        raise ValueError(f"no number that all readers read alike: {_excerpt(before)}")
    return "-"


def truth_of(value: object) -> bool:
    """Return a truth value: of JSON, or true, yes, on, 1 and their opposites. Raises ValueError."""
    if isinstance(value, bool):
        return value
    text = text_of(value).lower()
    if text not in _TRUTH:
        raise ValueError(f"neither true nor false: {_excerpt(text)}")
    return _TRUTH[text]


def date_of(text: str, written: str = "") -> datetime:
    """Return a time; UTC if it has no zone. Raises ValueError if it is not valid."""
    try:
        if len(text) > WRITTEN_CHARACTERS_MAX:
            raise ValueError
        time = datetime.strptime(text, written) if written else None  # noqa: DTZ007 - the zone follows
        time = time or _moment(text)
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"no date{f' as {written}' if written else ''}: {_excerpt(text)}") from None


def _moment(text: str) -> datetime:
    """Return a time by ISO 8601 or as in e-mail. Raises ValueError, also if a part of the text is something else."""
    stated = _NAMED_ZONE.sub("", text.strip())
    whole_day, halves = _HALF_DAY.subn(r"\1", stated)
    bare, zone = without_zone(whole_day)
    if halves or _ISO_DAY.match(bare) is None:
        time = moment(stated)
        if time is None or (zone is None and not all(map(_DATE_WORD, _LETTERS.findall(bare)))):
            raise ValueError("neither ISO 8601 nor as in e-mail")
        return time
    time = datetime.fromisoformat(_UTC.sub("", bare.translate(_HYPHENS).upper()))
    return time if zone is None else time.replace(tzinfo=zone)


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


# ---- for functions of the operator's


class Selected:
    """An element of a page, or the page itself: `css`, `xpath`, `jsonpath` and `re` select within it."""

    def __init__(self, source: SelectorSource, value: object = None) -> None:
        self._source = source
        self._value = value

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {_excerpt(self.html if self._value is not None else self._source.page.url)}>"

    def css(self, selector: str) -> Selection:
        """Return the elements that a CSS selector finds. Raises ConfigError if it is not valid."""
        return self._all("css", selector)

    def xpath(self, expression: str) -> Selection:
        """Return the elements or values that an XPath 1.0 expression finds. Raises ConfigError if it is not valid."""
        return self._all("xpath", expression)

    def jsonpath(self, query: str) -> Selection:
        """Return the results of a JSONPath query in JSON, or a page's JSON-LD. Raises ConfigError: an invalid query."""
        return self._all("jsonpath", query)

    def re(self, pattern: str) -> list[str]:
        """Return the first group, or else the whole, of each match of a regular expression (RE2) in an element's text,
        or in the whole markup of a page. Raises ConfigError if it is not valid.
        """
        return list(matches(pattern, self._source.characters() if self._value is None else self.text))

    @property
    def text(self) -> str:
        """The text, spaces collapsed."""
        return text_of(self._value)

    @property
    def html(self) -> str:
        """The markup."""
        return html_of(self._value)

    @property
    def value(self) -> object:
        """A JSON value as it is; for an element its text."""
        is_element = hasattr(self._value, "itertext") or hasattr(self._value, "css")
        return self.text if is_element else self._value

    @property
    def url(self) -> str | None:
        """The absolute address in its `href` or `src`, or in its text; None if that cannot be fetched."""
        return self._source.join(address_of(self._value))

    def attribute(self, name: str) -> str | None:
        """Return an attribute, None if there is none."""
        return attribute_of(self._value, name)

    def _all(self, kind: str, selector: str) -> Selection:
        found = self._source.select(kind, selector, self._value)
        return Selection(Selected(self._source, one) for one in found)


class Selection(list[Selected]):
    """The results of a selector, in order; its properties are those of the first result, empty or None without."""

    @property
    def text(self) -> str:
        """The text of the first result."""
        return self[0].text if self else ""

    @property
    def texts(self) -> list[str]:
        """The texts of all results."""
        return [one.text for one in self]

    @property
    def value(self) -> object:
        """The value of the first result."""
        return self[0].value if self else None

    @property
    def url(self) -> str | None:
        """The absolute address of the first result."""
        return self[0].url if self else None

    @property
    def urls(self) -> list[str]:
        """The absolute addresses of all results."""
        return [url for one in self if (url := one.url) is not None]

    def attribute(self, name: str) -> str | None:
        """Return an attribute of the first result."""
        return self[0].attribute(name) if self else None


class ItemPage(Selected):
    """A page, as an extractor sees it."""

    def __init__(self, source: SelectorSource) -> None:
        super().__init__(source)
        self.page = source.page

    @classmethod
    def of(cls, page: Page, options: ProcessOptions | None = None) -> Self:
        """Return a page with selectors."""
        return cls(SelectorSource(page, options or ProcessOptions()))

    @property
    def url(self) -> str:
        """The page's address."""
        return self.page.url

    @property
    def text(self) -> str:
        """The text of its body element, spaces collapsed."""
        return self.css("body").text

    @property
    def html(self) -> str:
        """The page as it was sent, decoded."""
        return self._source.characters()

    @property
    def json_ld(self) -> list[Any]:
        """The JSON-LD blocks of an HTML page."""
        found = self._source.data if self.page.media_type in HTML_TYPES else []
        return found if isinstance(found, list) else []

    @property
    def json(self) -> Any:
        """The document of a JSON page. Raises SelectError if it is not JSON."""
        return self._source.data


class Follow(msgspec.Struct, frozen=True):
    """A page to fetch next, if the filters of the crawl accept it."""

    url: str
    """Absolute, as from `Selected.url` and `Selection.urls`."""
    priority: int | None = None
    """Level from 0, the most urgent, to 7; None: as for any other link."""


Extract = Callable[[ItemPage], Iterable[Mapping[str, object] | Follow] | None]


class Extractor:
    """A `ports.ProcessingModule` that calls a function for the pages whose URLs match."""

    def __init__(self, extract: Extract, urls: tuple[str, ...], table: str, kinds: Mapping[str, str]) -> None:
        self.name: str = getattr(extract, "__name__", type(extract).__name__)
        self._extract = extract
        self._table = table
        self._is_for = _pages_of(urls)
        self.tables = {table: dict(kinds)}
        self.__doc__ = extract.__doc__

    def wants(self, media_type: str) -> bool:
        return readable(media_type)

    def process(self, page: Page, findings: Findings) -> None:
        if not self._is_for(page.url):
            return
        rows = findings.rows.setdefault(self._table, [])
        for one in self._extract(ItemPage.of(page)) or ():
            if isinstance(one, Follow):
                level = None if one.priority is None else max(0, min(one.priority, LEVEL_MAX))
                findings.links.append(Found(one.url, REQUEST, level=level))
            elif len(rows) < ITEMS_MAX:
                rows.append(dict(one))

    def __call__(self, page: ItemPage) -> Iterable[Mapping[str, object] | Follow] | None:
        """Call the function, as if it had not been decorated."""
        return self._extract(page)


def extractor(name: str, *urls: str, columns: Mapping[str, str] | None = None) -> Callable[[Extract], Extractor]:
    """Make a processing module from a function that yields the items of a page, as mappings, and pages to `Follow`.

    Items go to the table `items/NAME`. `urls` are regular expressions (RE2) for its pages; none: all pages. `columns`
    declares the kind of fields (`processing_module` lists the kinds); other fields have the kind of their values.
    """
    if callable(name):
        raise TypeError('write @extractor("NAME"), with the name of the items')

    def decorate(extract: Extract) -> Extractor:
        return Extractor(extract, urls, FOLDER + name, columns or {})

    return decorate
