"""Content types: the media type and the charset that the headers of a reply give. Raises for no input."""

import re
from functools import lru_cache

from gossamer.model.visits import first_values, lower_names

_MEDIA_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+\Z")
_ONE_TYPE = re.compile(r"""(?>(?:[^,"]|"(?>(?:[^"\\]|\\.)*)"?)+)""")
"""One of several types in a field: no comma outside quotes."""
_PARAMETER = re.compile(r""";([^=;]*)(?:=[ \t]*(?:"(?>((?:[^"\\]|\\.)*))"?[^;]*|([^;]*)))?""")
_QUOTED_PAIR = re.compile(r"\\(.)")

_CONTENT_TYPES_MAX = 1024
_BLANK = " \t\r"


def content_type(headers: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return the media type, lower case without parameters, and the charset as written; each empty if not given.

    Of several types, in one header or in several, the last well-formed one counts; the charset of an equal one before
    it is kept (Fetch standard, "extract a MIME type"). `*/*` is no type.
    """
    first = first_values(headers)
    joined = first.get("content-type", "")
    if len(first) < len(headers):  # It may be repeated.
        joined = ",".join(value for name, value in headers if lower_names[name] == "content-type" and value)
    return _parse_content_type(joined) if joined else ("", "")


@lru_cache(maxsize=_CONTENT_TYPES_MAX)
def _parse_content_type(values: str) -> tuple[str, str]:
    media_type = charset = ""
    for value in _ONE_TYPE.findall(values):
        one = value.partition(";")[0].strip(_BLANK).lower()
        if _MEDIA_TYPE.match(one) and one != "*/*":
            charset = _charset(value) or (charset if one == media_type else "")
            media_type = one
    return media_type, charset


def _charset(value: str) -> str:
    """Return the first charset parameter that is not empty."""
    for name, quoted, plain in _PARAMETER.findall(value):
        charset = _QUOTED_PAIR.sub(r"\1", quoted) or plain.strip(" \t'")
        if charset and name.strip(_BLANK).lower() == "charset":
            return charset
    return ""
