"""Rules: changes to an address before it is compared, one small function each.

`docs/reference/scope.md` has an example of each.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from gossamer.url.site import is_suffix
from gossamer.url.url import Parts, is_default_port

Rule = Callable[[Parts], Parts]

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile("%(?:2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)", re.IGNORECASE)
# Characters that mean the same escaped or not in path and query, by RFC 3986 and the WHATWG rules, and that do not
# delimit parameters.
_HARMLESS = re.compile("%(?:2[1489ACDE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7[CE])", re.IGNORECASE)
_STRAY = re.compile("%(?![0-9A-Fa-f]{2})").search
_UPPER = re.compile("%[0-9A-Fa-f]{2}|[A-Z]+")
_SLASHES = re.compile("//+")
_INDEX_FILE = re.compile(r"(?<=/)(?:index\.(?:x?html?|shtml|php[345]?|aspx?|jsp|cgi)|default\.(?:html?|aspx?))$").search
_SESSION_PARAMETER = re.compile(
    r"(?i:jsessionid|phpsessid|aspsessionid[a-z]*|sessionid|session_id|zenid|oscsid|cfid|cftoken)"
).fullmatch
# Names that others use too: only with the value of phpBB's (sid) and vBulletin's (s) sessions.
_SESSION_BY_VALUE = re.compile(r"(?i:sid|s)=[0-9A-Fa-f]{32}").fullmatch
_SESSION_IN_PATH = re.compile(r"(?i:;jsessionid=[^;/]*|(?<=/)\([asf]\([0-9a-z]{24,}\)\)/)")
_TRACKING_PARAMETER = re.compile(
    r"utm_[a-z_]+|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid|li_fat_id|srsltid"
    r"|mc_cid|mc_eid|mkt_tok|_hsenc|_hsmi|_ga|_gl|vero_id|oly_anon_id|oly_enc_id"
).fullmatch


def fragment(parts: Parts) -> Parts:
    """Drop the fragment, which is never sent (RFC 9110, section 7.1)."""
    return parts if parts.fragment is None else replace(parts, fragment=None)


def unreserved_escapes(parts: Parts) -> Parts:
    """Write escapes of letters, digits and `- . _ ~` as themselves: `%7Eu` is `~u` (RFC 3986, section 6.2.2.2).

    An address with a `%` that does not begin an escape is left alone: removing escapes might create new ones.
    """
    return _each_text(parts, partial(_decode, _UNRESERVED))


def escape_case(parts: Parts) -> Parts:
    """Write the digits of escapes in upper case: `%c3` is `%C3` (RFC 3986, section 6.2.2.1)."""
    return _each_text(parts, lambda text: _ESCAPE.sub(lambda escape: escape[0].upper(), text))


def host_case(parts: Parts) -> Parts:
    """Write the host in lower case (RFC 3986, section 6.2.2.1), for schemes where the WHATWG rules do not."""
    host = parts.host.lower()
    return parts if host == parts.host or "%" in host else replace(parts, host=host)


def default_port(parts: Parts) -> Parts:
    """Drop the scheme's default port, or an empty one: `gopher://h:70/` is `gopher://h/` (RFC 3986, section 6.2.3)."""
    drop = parts.port is not None and (not parts.port or is_default_port(parts.scheme, parts.port))
    return replace(parts, port=None) if drop else parts


def host_dot(parts: Parts) -> Parts:
    """Drop the dot that ends a fully qualified name: `example.org.` is `example.org` (RFC 3986, section 3.2.2)."""
    host = parts.host
    return replace(parts, host=host[:-1]) if host.endswith(".") and host.strip(".") and host[-2] != "." else parts


def https_is_http(parts: Parts) -> Parts:
    """Compare https as http, if no port is given."""
    return replace(parts, scheme="http") if parts.scheme == "https" and parts.port is None else parts


def drop_www(parts: Parts) -> Parts:
    """Drop a leading `www.` where a name under a public suffix remains."""
    rest = parts.host.removeprefix("www.")
    return parts if rest == parts.host or "." not in rest or is_suffix(rest) else replace(parts, host=rest)


def lower_path(parts: Parts) -> Parts:
    """Write the path in lower case, except escapes: for servers that ignore case."""
    lower = _UPPER.sub(lambda found: found[0] if found[0][0] == "%" else found[0].lower(), parts.path)
    return _with_path(parts, lower)


def collapse_slashes(parts: Parts) -> Parts:
    """Replace several slashes in a row in the path by one."""
    return _with_path(parts, _SLASHES.sub("/", parts.path))


def drop_session_ids(parts: Parts) -> Parts:
    """Drop session identifiers: `;jsessionid=…` and `(S(…))` in the path, PHPSESSID and its like in the
    query, also `sid` and `s` with a value of 32 hexadecimal digits.
    """
    parts = _with_path(parts, _SESSION_IN_PATH.sub("", parts.path))
    return _without_parameters(
        parts, lambda pair: bool(_SESSION_PARAMETER(_parameter_name(pair)) or _SESSION_BY_VALUE(pair))
    )


def drop_tracking(parts: Parts) -> Parts:
    """Drop query parameters that track the origin of visitors, such as `utm_source` and `gclid`."""
    return _without_parameters(parts, lambda pair: _TRACKING_PARAMETER(_parameter_name(pair)) is not None)


def drop_index_file(parts: Parts) -> Parts:
    """Drop the usual names of a directory's own page: `/a/index.html` is `/a/`."""
    found = _INDEX_FILE(parts.path)
    return replace(parts, path=parts.path[: found.start()]) if found else parts


def drop_trailing_slash(parts: Parts) -> Parts:
    """Drop slashes at the end of the path, except that of the root: `/a/` is `/a`."""
    return _with_path(parts, parts.path.rstrip("/") or parts.path[:1])


def drop_empty_query(parts: Parts) -> Parts:
    """Drop a `?` that nothing follows: `/a?` is `/a`."""
    return replace(parts, query=None) if parts.query == "" else parts


def drop_empty_parameters(parts: Parts) -> Parts:
    """Drop parameters without a name and a value, which stray `&` leave: `?&a=1&&b=2&` is `?a=1&b=2`."""
    if not parts.query or not ("&&" in parts.query or parts.query[0] == "&" or parts.query[-1] == "&"):
        return parts
    return replace(parts, query="&".join(pair for pair in parts.query.split("&") if pair))


def harmless_escapes(parts: Parts) -> Parts:
    """Write escapes of `! $ ( ) * , |` as themselves too: `%28` is `(`. Few servers distinguish them."""
    return _each_text(parts, partial(_decode, _HARMLESS))


def plus_is_space(parts: Parts) -> Parts:
    """Compare `+` in a query as `%20`, as in form data."""
    return parts if not parts.query or "+" not in parts.query else replace(parts, query=parts.query.replace("+", "%20"))


def sort_query(parts: Parts) -> Parts:
    """Sort the query's parameters by name; those of one name keep their order."""
    if parts.query is None or "&" not in parts.query:
        return parts
    return replace(parts, query="&".join(sorted(parts.query.split("&"), key=_parameter_name)))


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        rule.__name__: rule
        for rule in (
            fragment, unreserved_escapes, escape_case, host_case, default_port, host_dot,
            harmless_escapes, https_is_http, drop_www, lower_path, collapse_slashes, drop_session_ids,
            drop_tracking, drop_index_file, drop_trailing_slash, plus_is_space, sort_query, drop_empty_parameters,
            drop_empty_query,
        )
    }
)  # fmt: skip
"""Every rule by its name, in the order in which rules run: escapes before case, since an escape may hide a letter."""

OCCASIONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "fragment": ("#", ""),
        "lower_path": ("A-Z", ""),
        "collapse_slashes": ("", "/"),
        "drop_session_ids": (";(?", ""),
        "drop_index_file": ("", r"(?:index|default)\."),
        "drop_trailing_slash": ("", r"\Z|[?#]"),
        **dict.fromkeys(("unreserved_escapes", "escape_case", "harmless_escapes"), ("%", "")),
        **dict.fromkeys(
            ("drop_tracking", "plus_is_space", "sort_query", "drop_empty_parameters", "drop_empty_query"), ("?", "")
        ),
    }
)
"""By rule, what path, query or fragment contain if the rule may change them: one of these characters, or this pattern
after a slash. Other rules never change them."""


def occasion(names: Iterable[str]) -> str:
    """Return a pattern that matches if one of these rules may change path, query or fragment."""
    found = [OCCASIONS[name] for name in names if name in OCCASIONS]
    characters = "".join(dict.fromkeys(characters for characters, _ in found))
    after = "|".join(dict.fromkeys(after for _, after in found if after))
    if after:
        # One character class that includes the slash costs half as much as alternatives.
        return f"[{characters}/](?:(?<!/)|{after})"
    return f"[{characters}]" if characters else "(?!)"


DEFAULT_RULES: Final = ("fragment", "unreserved_escapes", "escape_case", "host_case", "default_port", "host_dot")


def _each_text(parts: Parts, change: Callable[[str], str]) -> Parts:
    """Apply a change to every part that may hold escapes."""
    if "%" not in parts.text():
        return parts
    userinfo = None if parts.userinfo is None else change(parts.userinfo)
    query = None if parts.query is None else change(parts.query)
    return replace(parts, userinfo=userinfo, host=change(parts.host), path=change(parts.path), query=query)


def _decode(escapes: re.Pattern[str], text: str) -> str:
    return text if _STRAY(text) else escapes.sub(lambda escape: chr(int(escape[0][1:], 16)), text)


def _with_path(parts: Parts, path: str) -> Parts:
    return parts if path == parts.path else replace(parts, path=path)


def _without_parameters(parts: Parts, unwanted: Callable[[str], bool]) -> Parts:
    """Drop query parameters, each given as `name=value`, and the `?` with the last of them."""
    if not parts.query:
        return parts
    pairs = parts.query.split("&")
    kept = [pair for pair in pairs if not unwanted(pair)]
    return parts if len(kept) == len(pairs) else replace(parts, query="&".join(kept) if kept else None)


def _parameter_name(pair: str) -> str:
    return pair.partition("=")[0]
