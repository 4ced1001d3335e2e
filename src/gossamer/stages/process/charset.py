"""Charset: the encoding of a page, as browsers find it (HTML standard, section 13.2.3; WHATWG Encoding)."""

import codecs
import functools
import pkgutil
import re

import msgspec

import gossamer.stages.process.multibyte  # noqa: F401 - registers the codecs `whatwg-…`
from gossamer.stages.process.scan import attributes

PRESCAN_BYTES_MAX = 1024
LATE_BYTES_MAX = 32_768
"""Bytes in which a declaration counts though it comes late: a parser that meets one begins again (section 13.2.3.4)."""
DETECTED_BYTES_MAX = 65_536
"""Bytes that are examined when an encoding is guessed."""
CHECKED_BYTES = 16_384
"""Bytes in which a page shows whether it is in UTF-8, as it declares, if they are not all ASCII."""
_ENCODINGS = msgspec.json.decode(
    pkgutil.get_data("gossamer.stages.process", "encodings.json") or b"", type=dict[str, tuple[str, str]]
)
"""By the standard's name in lower case: Python's codec, and further labels. Names are labels too."""
_LABELS = {label: name for name, (_, labels) in _ENCODINGS.items() for label in (name, *labels.split())}
_SINGLE_BYTE = frozenset(
    name for name in _ENCODINGS if name.startswith(("iso-8859", "windows-", "koi8", "ibm", "mac", "x-"))
)
_OTHERWISE = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "windows-1255": {0xCA: "\u05ba"}}
"""Bytes that Python's tables lack or map otherwise."""
_META = re.compile(rb"<(?:(?P<comment>!--)|(?P<meta>(?i:meta)[\t\n\f\r /])|(?P<tag>/?[a-zA-Z][^\t\n\f\r >]*)|[!/?])")
_RAW_ENDS = {
    name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in (b"script", b"style", b"title", b"textarea", b"noscript")
}
_INSIDE = rb"(?:[^<>\"']|\"[^<>\"]*+\"|'[^<>']*+')*>\s*+"
_PLAIN_HEAD = re.compile(
    rb"\s*(?:<\?xml" + _INSIDE + rb")?(?:<!doctype" + _INSIDE + rb")?(?:<html(?=[\s>])" + _INSIDE + rb")?<head>\s*"
    rb"<meta[\t\n\f\r ]+(?:"
    rb"http-equiv=\"content-type\"[\t\n\f\r ]+content=\"text/html;[\t\n\f\r ]*charset=([a-z0-9_-]+)\""
    rb"|charset=\"([a-z0-9_-]+)\"|charset=([a-z0-9_-]+)(?=[\t\n\f\r >]))[\t\n\f\r ]*/?>",
    re.IGNORECASE,
).match
"""Matches the usual beginning of pages that declare their encoding, with the same result as the standard's steps."""
_CONTENT_CHARSET = re.compile(
    r"charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\"'\t\n\f\r ;][^\t\n\f\r ;]*))"
)
_CSS_CHARSET = re.compile(rb'@charset "([^"]{1,40}+)";').match
"""Matches a stylesheet's declaration (CSS Syntax Level 3, section 3.2)."""
_XML_ENCODING = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*+=[\x00-\x20]*+(?:\"([^\">]*+)\"|'([^'>]*+)')")
_NAMED = re.compile(rb"charset[\t\n\f\r \"']{0,3}[=:][\t\n\f\r \"']{0,3}([a-z0-9_-]{3,20})", re.IGNORECASE).search
"""Finds an encoding that is named where browsers do not look for it, as in `meta httpequiv="ContentType"`."""
_ISO_2022_JP = re.compile(rb"\x1b\$[@B](?>(?:[\x21-\x7e]{2})+)\x1b\([BJ]").search
"""Finds Japanese of two bytes between its escapes, which is valid UTF-8 too."""
_WHATWG = {
    "cp1251": "windows-1251", "cp949": "euc-kr", "cp932": "shift_jis", "iso8859-5": "iso-8859-5", "uhc": "euc-kr",
}  # fmt: skip
"""Names of the detector that are not labels."""
_CENTRAL_EUROPEAN = frozenset(("bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"))
_OF_LANGUAGES = {"tr": "windows-1254", "vi": "windows-1258"} | dict.fromkeys(("et", "lt", "lv"), "windows-1257")
_BELIEVED = frozenset(
    (
        "windows-1251", "koi8-r", "koi8-u", "ibm866", "iso-8859-5", "x-mac-cyrillic", "shift_jis", "euc-jp",
        "iso-2022-jp", "gb18030", "gbk", "big5", "euc-kr", "windows-1253", "iso-8859-7", "windows-1255", "iso-8859-8",
        "windows-1256", "iso-8859-6", "windows-874", "utf-16le", "utf-16be",
    )
)  # fmt: skip


def encoding_of_label(label: str) -> str | None:
    """Return the WHATWG encoding (lower case) that a label names, or None."""
    return _LABELS.get(label.strip("\t\n\f\r ").lower())


def to_utf8(body: bytes, header_charset: str) -> tuple[bytes, str]:
    """Return the page's bytes in UTF-8 and the encoding they came in (WHATWG name, lower case).

    A page in UTF-8 is returned unchanged, without its byte order mark; errors are replaced when parts are decoded.
    Other pages are transcoded, with U+FFFD for errors. Without BOM, header and meta: UTF-8 if that decodes, else what
    is guessed; so it is with a page that declares UTF-8 and is not mostly valid in it.
    """
    name, mark = _read_declaration(body, header_charset)
    if mark:
        body = body[mark:]
    elif name == "utf-8":
        piece = body[:CHECKED_BYTES]
        if not _is_mostly_utf8(body[:DETECTED_BYTES_MAX] if piece.isascii() else piece, 2):
            name = None
    if name is None:
        name = _infer_encoding(body)
    if name == "utf-8":
        return body, name
    return decode_body(body, name).encode("utf-8", "replace"), name


def codec_of(head: bytes, header_charset: str) -> str:
    """Return Python's codec for a document that begins with `head`, as declared there or in the header; else UTF-8."""
    name = _read_declaration(head, header_charset)[0] or "utf-8"
    return "utf-8" if name in ("replacement", "x-user-defined") else _ENCODINGS[name][0]


def guess_encoding(body: bytes) -> str:
    """Guess the encoding of a page that declares none and is not UTF-8.

    By an encoding of several bytes that its beginning names if it is valid in it; by its language, as browsers do (HTML
    standard, section 13.2.3.2); else by the frequencies of its letters (uchardet, in Resiliparse). Only non-Latin
    results are used then: browsers use windows-1252 for Western pages, and similar guesses do more harm. About 0.5 ms.
    """
    named = _NAMED(body[:PRESCAN_BYTES_MAX])
    hint = _LABELS.get(named[1].decode("ascii").lower(), "") if named is not None else ""
    if hint in _BELIEVED - _SINGLE_BYTE and "\ufffd" not in decode_body(body[:DETECTED_BYTES_MAX], hint)[:-2]:
        return hint
    if stated := _encoding_of_language(body):
        return stated
    from resiliparse.parse.encoding import detect_encoding  # noqa: PLC0415 - few pages need it

    guess = detect_encoding(body, max_len=DETECTED_BYTES_MAX, html5_compatible=False, from_html_meta=False)
    guess = (guess or "").lower()
    name = encoding_of_label(_WHATWG.get(guess, guess)) or encoding_of_label(guess.replace("_", "-"))
    return name if name in _BELIEVED else "windows-1252"


def _encoding_of_language(body: bytes) -> str:
    """Return the encoding of a page's language, if it has one of Latin letters that is not windows-1252."""
    head = body[:PRESCAN_BYTES_MAX]
    tag = head.lower().find(b"<html") + 5
    language = attributes(head, tag)[0].get("lang", "")[:2].lower() if tag > 4 else ""
    if language in _CENTRAL_EUROPEAN:  # Each of the two has letters where the other one has control characters.
        return "windows-1250" if re.search(rb"[\x80-\x9f]", body) is not None else "iso-8859-2"
    return _OF_LANGUAGES.get(language, "")


def _infer_encoding(body: bytes) -> str:
    head = body[:PRESCAN_BYTES_MAX]
    if b"\0" in head[:2] and len(head) >= 8:
        for name, zeros, others in (("utf-16le", head[1::2], head[::2]), ("utf-16be", head[::2], head[1::2])):
            if zeros.count(0) * 10 >= len(zeros) * 9 and others.count(0) * 10 <= len(others):
                return name
    if _ISO_2022_JP(body[:DETECTED_BYTES_MAX]):
        return "iso-2022-jp"
    return "utf-8" if _is_mostly_utf8(body, 5) else guess_encoding(body)


def _is_mostly_utf8(body: bytes, parts: int) -> bool:
    """Return whether at most one part of what is not ASCII is invalid in UTF-8: other text is valid by chance only."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        text = body[:DETECTED_BYTES_MAX].decode("utf-8", "replace")
        others = len(text) - len(text.encode("ascii", "ignore"))
        # A cut page may end within a character.
        return error.reason == "unexpected end of data" or text.count("\ufffd") * parts <= others
    return True


def decode_body(body: bytes, name: str) -> str:
    """Return the text of bytes in an encoding given by its WHATWG name, with U+FFFD for errors."""
    if name in _SINGLE_BYTE:
        return codecs.charmap_decode(body, "replace", _table(name))[0]
    if name == "replacement":
        return "\ufffd" if body else ""
    text: str = codecs.decode(body, _ENCODINGS[name][0], "replace")
    # Lone surrogates have no UTF-8.
    return text if name[:6] != "utf-16" else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def python_codec(name: str) -> str:
    """Return Python's name of the encoding in which a page's queries are written: UTF-8 for those without encoder."""
    return "utf-8" if name.startswith(("utf-", "replacement", "x-user")) else _ENCODINGS[name][0]


def _read_declaration(body: bytes, header_charset: str) -> tuple[str | None, int]:
    """Return the encoding that the page declares, strongest first, and the length of its byte order mark."""
    if body[:3] == codecs.BOM_UTF8:
        return "utf-8", 3
    if body[:2] == codecs.BOM_UTF16_LE:
        return "utf-16le", 2
    if body[:2] == codecs.BOM_UTF16_BE:
        return "utf-16be", 2
    name = encoding_of_label(header_charset.strip("\"'")) if header_charset else None
    name = name or _prescan(body[:PRESCAN_BYTES_MAX])
    if name is None and len(body) > PRESCAN_BYTES_MAX:
        name = _of_metas(body[:LATE_BYTES_MAX], raw_text=True)
    return name, 0


def _prescan(head: bytes) -> str | None:
    """Search the first bytes for a declaration (HTML standard, section 13.2.3.2)."""
    plain = _PLAIN_HEAD(head)
    if plain is not None and (name := _usable(plain[plain.lastindex or 0].decode("ascii"))) is not None:
        return name
    if (rule := _CSS_CHARSET(head)) is not None:
        return _usable(rule[1].decode("latin-1"))
    # The standard has `<?x` alone; Firefox reads any markup so, whose first characters have zero bytes between them.
    if head[:2] == b"<\0" and head[3:6:2] == b"\0\0":
        return "utf-16le"
    if head[:2] == b"\0<" and head[2:5:2] == b"\0\0":
        return "utf-16be"
    if (name := _of_metas(head)) is not None:
        return name
    xml = _XML_ENCODING.match(head)
    return _usable((xml[1] or xml[2]).decode("latin-1")) if xml is not None else None


def _of_metas(head: bytes, *, raw_text: bool = False) -> str | None:
    """Return the encoding that the first such `meta` declares; with `raw_text` only outside of scripts and styles."""
    if b"harset" not in head and b"HARSET" not in head:
        return None
    position = 0
    while (match := _META.search(head, position)) is not None:
        if match.lastgroup == "comment":
            end = head.find(b"-->", match.start() + 2)
            position = end + 3
        elif match.lastgroup in ("meta", "tag"):
            found, end = attributes(head, match.end())
            position = end
            if match.lastgroup == "meta" and end > 0 and (name := _of_meta(found)) is not None:
                return name
            if raw_text and end > 0 and match.lastgroup == "tag" and (closing := _RAW_ENDS.get(match["tag"].lower())):
                ending = closing.search(head, end)
                position = ending.end() if ending is not None else len(head)
        else:
            end = head.find(b">", match.end())
            position = end + 1
        if end < 0:
            break
    return None


def _of_meta(found: dict[str, str]) -> str | None:
    if "charset" in found:
        return _usable(found["charset"])
    if found.get("http-equiv", "").lower() == "content-type":
        match = _CONTENT_CHARSET.search(found.get("content", "").lower())
        if match is not None:
            return _usable(match[1] or match[2] or match[3] or "")
    return None


@functools.lru_cache(maxsize=64)
def _usable(label: str) -> str | None:
    """Return the encoding for a label within a page. It cannot be UTF-16, because the label was read as ASCII."""
    name = encoding_of_label(label)
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


@functools.lru_cache(maxsize=64)
def _table(name: str) -> str:
    if name == "x-user-defined":
        return "".join(chr(i if i < 0x80 else 0xF700 + i) for i in range(256))
    table = bytes(range(256)).decode(_ENCODINGS[name][0], "replace")
    for byte, character in _OTHERWISE.get(name, {}).items():
        table = table[:byte] + character + table[byte + 1 :]
    # Unlike Python's tables, WHATWG's leave no hole among the C1 controls.
    return "".join(chr(i) if c == "\ufffd" and 0x80 <= i < 0xA0 else c for i, c in enumerate(table))
