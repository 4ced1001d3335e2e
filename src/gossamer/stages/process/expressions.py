"""Expressions: compiles selectors (CSS, XPath, JSONPath, regular expressions) and refuses those that may cost much."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import re2
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.patterns import ONE_PATTERN_MEMORY_BYTES_MAX

COMPILED_MAX = 1024
SCOPE = "gossamer-scope"
"""Attribute of the element in which a CSS selector with `:scope` searches, for as long as it does."""
_SCOPE = re.compile(r""""[^"]*"|'[^']*'|:scope(?![\w-])""", re.IGNORECASE)
_NAMES = re.compile(r"[\w.-]++(?::(?=[\w*]))?")
_NAMESPACE = "urn:prefix:"
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_ABSOLUTE_WITHIN = re.compile(r"(?:[\[(,|=<>+*-]|\b(?:and|or|div|mod))\s*/")
_FAR = re.compile(r"//|\b(?:preceding|following|ancestor|descendant)[\w-]*+\s*+::")
_REST_OF_PAGE = re.compile(r"\b(?:preceding|following)\s*::")
_CALLS = re.compile(r"(?<![\w.-])(?!(?:and|or|div|mod)\s*+\()([\w.-]++(?::[\w.-]++)?)\s*+\(")
_FOREIGN = (
    (re.compile(r"\[\]"), "[*]"), (re.compile(r"\.(?=\[)"), ""), (re.compile(r"(?<!\d)\.(\d+)(?=[.\[]|\Z)"), r"[\1]"),
    (re.compile(r"\(@\.length\s?-\s?(\d+)\)"), r"-\1"), (re.compile(" and "), " && "), (re.compile(" or "), " || "),
)  # fmt: skip
"""How jq and older dialects of JSONPath write what RFC 9535 has."""


class SelectError(ValueError):
    """A page cannot be searched this way; the text says why."""


def compile_selector(kind: str, selector: str) -> Any:
    """Return a selector, ready to run: `kind` is css, xpath, jsonpath or re. Raises ConfigError: it is not valid, it
    may cost too much, or a package that it needs is not installed.
    """
    return _COMPILE[kind](selector)


@lru_cache(COMPILED_MAX)
def css_of(selector: str) -> str:
    """Return a CSS selector with an attribute (`SCOPE`) for `:scope`. Raises ConfigError if lexbor has no support."""
    known = _SCOPE.sub(lambda found: found[0] if found[0][0] in "\"'" else f"[{SCOPE}]", selector)
    try:
        LexborHTMLParser("<p>").css(known)
    except SelectolaxError:
        raise ConfigError(f"{selector!r} is not a CSS selector that lexbor knows{_css_hint(selector)}") from None
    return known


def _css_hint(selector: str) -> str:
    plain, _, pseudo = selector.partition("::")
    if pseudo == "text":
        return f'; write "{plain}", which gives the text'
    if pseudo.startswith("attr("):
        name = pseudo[5:].rstrip(")")
        return f'; write {{ css = "{plain}", attribute = "{name}" }}, in Python css("{plain}").attribute("{name}")'
    if selector.lstrip("(.").startswith("/"):
        return "; it looks like XPath"
    return "; write :lexbor-contains(…)" if ":contains(" in selector or "-contains(" in selector else ""


@lru_cache(COMPILED_MAX)
def xpath_of(expression: str) -> Callable[[Any], object]:
    """Compile an XPath expression. Raises ConfigError, also if its cost is more than quadratic in the page."""
    require("lxml", "xpath")
    from lxml import etree  # noqa: PLC0415 - only where XPath is used

    _require_cheap(expression)
    bare = _QUOTED.sub("''", expression)
    prefixes = {name[:-1] for name in _NAMES.findall(bare) if name.endswith(":")} - {"xml"}
    namespaces = {prefix: _NAMESPACE + prefix for prefix in prefixes}
    empty = etree.fromstring("<p/>")
    try:
        found = etree.XPath(expression, smart_strings=False, namespaces=namespaces)
        found(empty)
    except etree.XPathError as error:
        raise ConfigError(f"{expression!r} is not an XPath 1.0 expression: {error}") from None
    for name in _CALLS.findall(bare):  # In brackets, functions are called for elements alone.
        try:
            etree.XPath(f"{name}()", namespaces=namespaces)(empty)
        except etree.XPathError as error:
            if "Unregistered" in str(error):
                raise ConfigError(f"{expression!r} calls {name}(), which XPath 1.0 lacks") from None
    return found  # type: ignore[no-any-return]


def qualify(name: str) -> str:
    """Return a name of an XML document with its prefix as a namespace, as expressions see it."""
    prefix, _, local = name.partition(":")
    if not (prefix and local):
        return name.replace(":", "_")
    space = "http://www.w3.org/XML/1998/namespace" if prefix == "xml" else _NAMESPACE + prefix
    return f"{{{space}}}{local.replace(':', '_')}"


@lru_cache(COMPILED_MAX)
def jsonpath_of(query: str) -> Callable[[object], Iterator[object]]:
    """Compile a JSONPath query (RFC 9535). Raises ConfigError if it is not valid."""
    require("jsonpath", "jsonpath")
    import jsonpath  # noqa: PLC0415 - only where JSONPath is used

    environment = jsonpath.JSONPathEnvironment(strict=True)
    for name in ("match", "search"):  # Their patterns may come from the page, and are not RE2's.
        environment.function_extensions.pop(name, None)
    try:
        found = environment.compile(query)
    except (jsonpath.JSONPathError, RecursionError) as error:
        reason = "it does not begin with $"
        if query.startswith("$"):
            reason = str(error).split("\n", 1)[0] or "it nests too deeply"
        meant = query if query.startswith("$") else f"${query}" if query.startswith((".", "[")) else f"$.{query}"
        for foreign, ours in _FOREIGN:
            meant = foreign.sub(ours, meant)
        with suppress(jsonpath.JSONPathError, RecursionError):
            environment.compile(meant)
            reason += f"; write {meant}"
        raise ConfigError(f"{query!r} is not a JSONPath query (RFC 9535): {reason}") from None

    def values(data: object) -> Iterator[object]:
        try:
            yield from (one.value for one in found.finditer(data))  # type: ignore[arg-type]
        except jsonpath.JSONPathError as error:
            raise SelectError(str(error).split("\n", 1)[0]) from None

    return values


@lru_cache(COMPILED_MAX)
def pattern_of(pattern: str) -> Any:
    """Compile a regular expression in RE2 syntax. Raises ConfigError if it is not valid."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = ONE_PATTERN_MEMORY_BYTES_MAX
    try:
        return re2.compile(pattern, options)  # type: ignore[no-untyped-call]
    except re2.error as error:
        detail = error.args[0] if error.args else ""
        reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise ConfigError(f"{pattern!r} is not a regular expression (RE2): {reason}") from None


_COMPILE: dict[str, Callable[[str], Any]] = {
    "css": css_of, "xpath": xpath_of, "jsonpath": jsonpath_of, "re": pattern_of,
}  # fmt: skip


def matches(pattern: str, text: str) -> Iterator[str]:
    """Yield the first group of each match of a pattern, or the match where it has no group. Linear."""
    found = pattern_of(pattern)
    for match in found.finditer(text):
        value = match[1] if found.groups else match[0]
        if value is not None:
            yield value


def require_relative(expression: str) -> None:
    """Raise ConfigError if an XPath expression for use within an element begins at the page."""
    if expression.lstrip("( ").startswith("/") or _ABSOLUTE_WITHIN.search(_QUOTED.sub("''", expression)):
        raise ConfigError(f"{expression!r} searches the whole page for each element; begin with .//")


def _require_cheap(expression: str) -> None:
    bare = _QUOTED.sub("''", expression)
    if _REST_OF_PAGE.search(bare):
        raise ConfigError(
            f"{expression!r} visits the rest of the page for each element; write following-sibling:: or "
            "preceding-sibling::"
        )
    depth = 0
    begins = 0
    parts: list[tuple[int, str]] = []
    for at, mark in enumerate(bare):
        if mark in "[]":
            parts.append((depth, bare[begins : at + (mark == "[" and depth == 0)]))
            depth = depth + (1 if mark == "[" else -1)
            begins = at
    parts.append((depth, bare[begins:]))
    for depth, part in parts:
        if depth >= 1 and _ABSOLUTE_WITHIN.search(part):
            raise ConfigError(f"{expression!r} searches the whole page for each element; within brackets write .//")
        if depth >= 2 and _FAR.search(part):
            raise ConfigError(f"{expression!r} has // or a long axis in brackets within brackets; select step by step")
