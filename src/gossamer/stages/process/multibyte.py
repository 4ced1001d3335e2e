"""Multibyte: the Chinese, Japanese and Korean encodings of the WHATWG Encoding standard, as codecs of Python.

Python's own codecs lack or map otherwise some 700 characters that browsers know, among them `①` and `㈱` of Japanese
pages, and resume elsewhere after an error. The codecs here are named `whatwg-` and the standard's name. They decode
with Python's and, only where that fails or yields a character that the standard maps otherwise, with a table: 20 ms to
build, and 10 ms for a page of 100 KB.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

CODEC = "whatwg-"
_BASES = {
    "big5": "big5hkscs", "euc-jp": "euc_jp", "euc-kr": "cp949", "gb18030": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932",
}  # fmt: skip
_ASCII_OR_PAIR = rb"[\x00-\x7f]+|[\x81-\xfe][\x40-\xff]|[\x80-\xff]"
_GB_TOKEN = (
    rb"[\x00-\x7f]+|[\x81-\xfe](?:[\x30-\x39][\x81-\xfe][\x30-\x39]|[\x30-\x39][\x81-\xfe]?\Z|[\x40-\xff])|[\x80-\xff]"
)
_TOKENS = {
    "big5": _ASCII_OR_PAIR,
    "euc-jp": rb"[\x00-\x7f]+|\x8f[\xa1-\xfe][\x80-\xff]?|[\x8e\x8f\xa1-\xfe][\x80-\xff]|[\x80-\xff]",
    "euc-kr": _ASCII_OR_PAIR,
    "gb18030": _GB_TOKEN,
    "gbk": _GB_TOKEN,
    "shift_jis": rb"[\x00-\x7f]+|[\x81-\x9f\xe0-\xfc][\x40-\xff]|[\x80-\xff]",
}
"""Tokens of a decoder: a run of ASCII, the bytes of a character, or a byte that begins none."""
_OTHERWISE = {
    "big5": "\u2022\uff64\u203e\u223c\u2641\u2609\uff0f\uff3c\xa5\xa2\xa3",
    "euc-jp": "\u301c\u2016\u2212\xa2\xa3\xac",
    "gb18030": "\u1e3f\ue5e5\ue78d-\ue796\ue7c7\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
    "shift_jis": "\uf8f0-\uf8f3",
}
"""Characters of Python's results, as a class of a pattern, that the standard may map otherwise."""
_BIG5 = """
877a㡵𡵓𣚞𦀡㻬 87a1𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆㓦珄
87c0𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋 8e69箸 8e6f簆 8e7e糎 8eab緒 8eb4縝 8ecd者
8ed0耨 8f57菁 8f69蒨 8f6e萏 8fcb覦覩 8ffe起 906d都 907a銹 90dc靜 90f1響 91bf鼖 9244蔃 92af兙兛兝兞 92c8鍮 92d1瑹
9447浧 94ca禛 95d9邗 9644靝 96ed瀞 96fc嬨 9b76爁 9b78矗 9b7b纇 9bc6駖 9bde釔 9bec惞 9bf6澶 9c42輶 9c53侻 9c62營
9c68鄄 9c6b鷰 9c77菏 9cbc尐秣 9cd0婧 9d57輋 9d5a筑 9dc4拐 9ea9恢 9eef痹 9efd汊 9f60鬮 9f66鼗 9fcb僭 9fd8弌 a063蠏
a077拎 a0d5瑨 a0df煢 a0e4牐 a145‧ a14e﹑ a1c2¯ a1e3\uff5e a1f2⊕⊙ a241\u2215\ufe68 a244￥ a246￠￡
a3c0␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟␡€ c6cf廴 c6d3无 c6d5癶 c6d7隶 c6de〃仝 fa5f倩 fa66偽 fabd包 fac5卄 fad5卿
fb48嘅 fbb8婷 fbf3幵 fbf9廐 fc4f彘 fc6c悤 fcb9撐 fce2晴 fcf1杞 fdb7沜渝 fdbb港 fdf1煮 fe52猪 fe6f瑜 feaa瓩 fedd砉
"""
_GB18030 = (
    "a3a0\u3000 a6d9\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16 a6ec\ufe17\ufe18 a6f3\ufe19 a8bc\u1e3f "
    "fe59\u9fb4 fe61\u9fb5 fe66\u9fb6\u9fb7 fe6d\u9fb8 fe7e\u9fb9 fe90\u9fba fea0\u9fbb"
)
"""The standard's mappings that Python's lack (indexes of 2024-09): two bytes and the characters from there on."""
_BIG5_LAST = "\u2550\u255e\u2561\u256a\u5341\u5345"
_TILDE = b"\x8f\xa2\xb7"
"""A full-width tilde in EUC-JP, which Python reads as that of ASCII."""
_ESCAPE = re.compile(rb"\x1b(\([BIJ]|\$[@B])")
_JIS_TOKEN = re.compile(rb"[\x21-\x7e]{2}|[\x00-\xff]").findall
_ESCAPES = {"ascii": b"\x1b(B", "jis": b"\x1b$B"}


def decode(body: bytes, name: str) -> str:
    """Return the text of bytes in one of these encodings (its name in the standard), with U+FFFD for errors."""
    if name == "iso-2022-jp":
        return "".join(_decode_iso_2022_jp(body))
    with suppress(UnicodeDecodeError):
        text = body.decode(_BASES[name])
        if not _is_otherwise(name, text, body):
            return text
    table = _table(name)
    return "".join(
        token.decode() if token[0] < 0x80 else table.get(token) or _repair(token)
        for token in re.findall(_TOKENS[name], body)
    )


def encode(text: str, name: str, errors: str = "strict") -> bytes:
    """Return a text as forms and queries send it; what the encoding lacks goes through the error handler of Python."""
    found: list[bytes] = []
    is_jis = False
    handle = codecs.lookup_error(errors)
    for position, character in enumerate(text):
        code = character.encode() if character < "\x80" else _encode_character(character, name)
        if code is None:
            handled = handle(UnicodeEncodeError(CODEC + name, text, position, position + 1, "not in the encoding"))[0]
            code = handled.encode("ascii") if isinstance(handled, str) else bytes(handled)
        if name == "iso-2022-jp":
            begins_jis = code[0] >= 0x80 if code else is_jis
            if begins_jis != is_jis:
                found.append(_ESCAPES["jis" if begins_jis else "ascii"])
            is_jis = begins_jis
            code = bytes(byte & 0x7F for byte in code)
        found.append(code)
    if is_jis:
        found.append(_ESCAPES["ascii"])
    return b"".join(found)


def _is_otherwise(name: str, text: str, body: bytes) -> bool:
    if name == "euc-jp" and _TILDE in body:
        return True
    characters = _OTHERWISE.get("gb18030" if name == "gbk" else name)
    return characters is not None and re.search(f"[{characters}]", text) is not None


def _repair(token: bytes) -> str:
    """Return what is read for bytes that are no pair of the table: an ASCII byte at the end counts by itself."""
    if len(token) == 4:
        with suppress(UnicodeDecodeError):
            return token.decode("gb18030")
        return f"\ufffd{token[1]:c}\ufffd{token[3]:c}"
    is_cut = token[1:2].isdigit()
    return "\ufffd" if is_cut or token[-1] >= 0x80 else f"\ufffd{token[-1]:c}"


@lru_cache(maxsize=len(_BASES))
def _table(name: str) -> dict[bytes, str]:
    """Return the character of each byte or pair (in EUC-JP also three bytes) above ASCII, in the order of the index."""
    if name == "euc-jp":
        return dict(_euc_jp())
    table = dict(_read_base(_BASES[name], [bytes([first]) for first in range(0x80, 0x100)]))
    pairs = [bytes([first, second]) for first in range(0x81, 0xFF) for second in range(0x40, 0xFF)]
    table.update(_read_base(_BASES[name], pairs))
    if name == "shift_jis":
        for byte in (b"\xa0", b"\xfd", b"\xfe", b"\xff"):
            del table[byte]
    elif name in ("gbk", "gb18030"):
        table[b"\x80"] = "€"
        table[b"\x81\x35\xf4\x37"] = "\ue7c7"
        table.update(_read_runs(_GB18030))
    elif name == "big5":
        table.update(_read_runs(_BIG5))
    return table


def _read_base(base: str, codes: list[bytes]) -> Iterator[tuple[bytes, str]]:
    for code in codes:
        with suppress(UnicodeDecodeError):
            text = code.decode(base)
            # Two that Python reads for a pair are a byte and its successor.
            if len(text) == 1 or unicodedata.combining(text[1]):
                yield code, text


def _euc_jp() -> Iterator[tuple[bytes, str]]:
    """Yield EUC-JP: its two bytes have the characters of Shift_JIS, in another arithmetic."""
    shifted = _table("shift_jis")
    for pointer in range(94 * 94):
        first, second = divmod(pointer, 188)
        code = bytes([first + (0x81 if first < 0x1F else 0xC1), second + (0x40 if second < 0x3F else 0x41)])
        if code in shifted:
            yield bytes([pointer // 94 + 0xA1, pointer % 94 + 0xA1]), shifted[code]
    yield from _read_base("euc_jp", [bytes([0x8E, second]) for second in range(0xA1, 0xE0)])
    threes = [bytes([0x8F, second, third]) for second in range(0xA1, 0xFF) for third in range(0xA1, 0xFF)]
    yield from _read_base("euc_jp", threes)
    yield _TILDE, "\uff5e"


def _read_runs(runs: str) -> Iterator[tuple[bytes, str]]:
    for run in runs.split(" ") if "\n" not in runs else runs.split():
        first = int(run[:4], 16)
        for number, character in enumerate(run[4:]):
            yield (first + number).to_bytes(2), character


def _decode_iso_2022_jp(body: bytes) -> Iterator[str]:
    start, *rest = _ESCAPE.split(body)
    yield _decode_jis_part(start, b"(B")
    for state, part in zip(rest[::2], rest[1::2], strict=True):
        yield _decode_jis_part(part, state)


def _decode_jis_part(part: bytes, state: bytes) -> str:
    if state.startswith(b"$"):
        table = _table("euc-jp")
        codes = (bytes(byte | 0x80 for byte in token) for token in _JIS_TOKEN(part))
        return "".join(table.get(code, "\ufffd") for code in codes)
    if state == b"(I":
        return "".join(chr(0xFF40 + byte) if 0x21 <= byte <= 0x5F else "\ufffd" for byte in part)
    text = part.decode("ascii", "replace").translate(dict.fromkeys((0x0E, 0x0F, 0x1B), "\ufffd"))
    return text.translate({0x5C: "¥", 0x7E: "‾"}) if state == b"(J" else text


def _encode_character(character: str, name: str) -> bytes | None:
    if name in ("euc-jp", "iso-2022-jp", "shift_jis"):
        character = {"\u2212": "\uff0d"}.get(character, character)
        if character in "¥‾":
            return b"\\" if character == "¥" else b"~"
    if name == "iso-2022-jp":
        is_half = "\uff61" <= character <= "\uff9f"
        return _codes("iso-2022-jp").get(unicodedata.normalize("NFKC", character) if is_half else character)
    code = _codes(name).get(character)
    if code is None and name == "gb18030" and character != "\ue5e5":
        return character.encode("gb18030")
    return code


@lru_cache(maxsize=len(_BASES) + 1)
def _codes(name: str) -> dict[str, bytes]:
    """Return the bytes of each character: the first in the index, with the exceptions of the standard."""
    codes: dict[str, bytes] = {}
    table = _table("euc-jp" if name == "iso-2022-jp" else name)
    for code, character in sorted(table.items()):
        is_last = name == "big5" and character in _BIG5_LAST
        if _is_written(code, name) and (is_last or character not in codes):
            codes[character] = code
    if name == "gb18030":
        codes.pop("€")
        codes["€"] = b"\xa2\xe3"
    return codes


def _is_written(code: bytes, name: str) -> bool:
    """Return whether an encoder uses these bytes; the others are only read."""
    if name == "shift_jis":
        return not b"\xed\x40" <= code <= b"\xef\xff" and not b"\xf0" <= code < b"\xfa"
    if name == "big5":
        return code >= b"\xa1"
    if name == "iso-2022-jp":
        return len(code) == 2 and code[0] != 0x8E
    return len(code) < 3


class _Incremental(codecs.BufferedIncrementalDecoder):
    """Decodes up to the last byte that is no part of a longer character in any of these encodings."""

    def __init__(self, name: str, errors: str = "strict") -> None:
        super().__init__(errors)
        self._name = name

    def _buffer_decode(self, data: Any, errors: str, final: bool) -> tuple[str, int]:
        end = len(data) if final else 0
        if not final and self._name != "iso-2022-jp":
            end = max(data.rfind(byte) for byte in (b"\n", b" ", b"/", b'"', b"\t")) + 1
        return decode(data[:end], self._name), end


def _codec(name: str) -> codecs.CodecInfo:
    def write(text: str, errors: str = "strict") -> tuple[bytes, int]:
        return encode(text, name, errors), len(text)

    def read(body: Any, errors: str = "strict") -> tuple[str, int]:  # noqa: ARG001 - no error raises
        return decode(bytes(body), name), len(body)

    return codecs.CodecInfo(write, read, incrementaldecoder=partial(_Incremental, name), name=CODEC + name)


_NAMES = {(CODEC + name).replace("-", "_"): name for name in (*_BASES, "iso-2022-jp")}
codecs.register(lambda normalized: _codec(_NAMES[normalized]) if normalized in _NAMES else None)
