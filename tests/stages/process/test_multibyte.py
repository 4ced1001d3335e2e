"""Encodings of the standard: their whole indexes, errors, what forms send, and Chromium's reading of the same bytes."""
# ruff: noqa: RUF001

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

import pytest
from playwright.sync_api import sync_playwright

from gossamer.stages.process.charset import _ENCODINGS, decode_body, to_utf8
from gossamer.stages.process.multibyte import _BASES, CODEC, decode, encode
from gossamer.url.join import Joiner
from tests.chromium import launch_chromium
from tests.growth.measuring import is_linear

R = "\N{REPLACEMENT CHARACTER}"
SINGLE_BYTES = bytes(range(0x80, 0x100))
SINGLE = sorted(
    name for name in _ENCODINGS if name not in {*_BASES, "iso-2022-jp", "replacement"} and "utf" not in name
)

INDEXES = {
    "big5": "8c23b07f72ea30efb95613606e5f4d04b8e85878453e530726813177c411852e",
    "euc-jp": "7048eb58e95f74e390ad80777323cb37d26dd201bbf743f8eb13ca439b4fdb7d",
    "euc-kr": "46d937224ace74152af0346399d3eb2656765ce785da23edc83d94bc3630536d",
    "gb18030": "12960c2992f0254aa2c3e7edd349b8bee1e60dc95241a5688a8f199d1fb9e020",
    "gbk": "12960c2992f0254aa2c3e7edd349b8bee1e60dc95241a5688a8f199d1fb9e020",
    "iso-2022-jp": "92dcecaeb3d3042055079565668c26491e73c2f74f3899c3434a96120b8a9c45",
    "shift_jis": "3dfdb77b03ccf51ce299b052e2fd227768188a981b699226f74e5836f1f29997",
}
"""SHA-256 of what the standard's decoders make of `all_of`, from the indexes of 2024-09 (https://encoding.spec.whatwg.org/,
BSD 3-Clause), as Chromium has it too.
"""


def all_of(name: str) -> bytes:
    """Return each pair of bytes with a space behind it, in EUC-JP those of three bytes too."""
    if name == "iso-2022-jp":
        return b"".join(b"\x1b$B" + bytes(two) + b"\x1b(B " for two in pairs(range(0x21, 0x7F), range(0x21, 0x7F)))
    two_bytes = pairs(range(0x81, 0xFF), range(0x20, 0x100))
    three_bytes = pairs(range(0xA1, 0xFF), range(0xA1, 0x100)) if name == "euc-jp" else ()
    return b"".join([bytes(one) + b" " for one in two_bytes] + [b"\x8f" + bytes(one) + b" " for one in three_bytes])


def pairs(first: range, second: range) -> Iterator[tuple[int, int]]:
    return ((one, other) for one in first for other in second)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", INDEXES)
def test_every_pair_of_the_index_is_read(name: str) -> None:
    assert digest(decode(all_of(name), name)) == INDEXES[name]


@pytest.mark.long
@pytest.mark.acceptance
def test_chromium_reads_the_same() -> None:
    """Its TextDecoder is the standard's; it also has the encodings of one byte."""
    script = "([name, bytes]) => new TextDecoder(name, {ignoreBOM: true}).decode(new Uint8Array(bytes))"
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        page = browser.new_page()
        bodies = {name: all_of(name) for name in INDEXES} | dict.fromkeys(SINGLE, SINGLE_BYTES)
        bodies |= {f"{name}!": body for name in _BASES for body in [b"".join(BROKEN)]}
        read = {name: page.evaluate(script, [name.rstrip("!"), list(body)]) for name, body in bodies.items()}
        browser.close()
    ours = {name: decode_body(body, name.rstrip("!")) for name, body in bodies.items()}
    differing = {name: count_differences(read[name], ours[name]) for name in bodies if read[name] != ours[name]}
    # Chromium 156 departs from the standard here: Ê and ê with a macron or caron, and the ideographic space.
    assert differing == {"big5": 4, "euc-jp": 1}


def count_differences(text: str, other: str) -> int:
    return sum(one != two for one, two in zip(text.split(" "), other.split(" "), strict=True))


BROKEN = [
    b"\x81<p>",
    b"a\xff b",
    b"\xad\xa1<",
    b"\x80 ",
    b"\x8f\xa2<",
    b"\x8f\xa2\xb7 ",
    b"\x8e\xe0 ",
    b"\xa1\x7f ",
    b"\xa2\x41",
]


@pytest.mark.parametrize("name", _BASES)
def test_a_broken_character_costs_no_markup(name: str) -> None:
    assert decode(b"\x81<p>\xfe", name) == f"{R}<p>{R}"
    assert decode(b'\xff"x', name) == f'{R}"x'


@pytest.mark.parametrize(
    ("body", "name", "text"),
    [
        (b"\xad\xa1 \xad\xea \xa1\xc1 \xa1\xdd", "euc-jp", "① ㈱ ～ －"),
        (b"~/x \x8f\xa2\xb7", "euc-jp", "~/x ～"),
        (b"\x1b$B-!\x1b(B \x1b(I1\x1b(J\\~", "iso-2022-jp", "① ｱ¥‾"),
        (b"\x87\x7a \xa1\xe3 \xa2\x41 \xa1\xfe", "big5", "㡵 ～ ∕ ／"),
        (b"\xa8\xbc \x80 \xa6\xd9 \x81\x35\xf4\x37", "gbk", "ḿ € ︐ \ue7c7"),
        (b"\x94\x39\xfc\x36", "gb18030", "😀"),
        (b"\x81\x30<", "gb18030", f"{R}0<"),
        (b"\xae\xbe", "koi8-u", "ўЎ"),
        (b"\xca", "windows-1255", "\u05ba"),
    ],
)
def test_characters_that_browsers_know(body: bytes, name: str, text: str) -> None:
    assert decode_body(body, name) == text
    assert to_utf8(body, name) == (text.encode(), name)


@pytest.mark.parametrize(
    ("name", "text", "query"),
    [
        ("euc-jp", "①㈱～ｱ", "%AD%A1%AD%EA%A1%C1%8E%B1"),
        ("shift_jis", "①～纊ｱ", "%87%40%81%60%FA%5C%B1"),
        ("iso-2022-jp", "①aｱ", "%1B%24B-%21%1B%28Ba%1B%24B%25%22%1B%28B"),
        ("big5", "～廴十", "%A1%E3%C6%CF%A4Q"),
        ("gbk", "€ḿ", "%80%A8%BC"),
        ("gb18030", "€", "%A2%E3"),
        ("euc-kr", "한", "%C7%D1"),
        ("euc-jp", "😀", "%26%23128512%3B"),
    ],
)
def test_queries_go_out_as_browsers_write_them(name: str, text: str, query: str) -> None:
    assert quote(text, safe="", encoding=CODEC + name, errors="xmlcharrefreplace") == query
    assert text.isascii() or encode(text, name, "xmlcharrefreplace").decode("latin-1") != text


def test_a_link_of_an_old_page_keeps_its_bytes() -> None:
    assert Joiner("http://h.test/d/p", _ENCODINGS["euc-jp"][0]).join("/s?q=①") == "http://h.test/s?q=%AD%A1"


@pytest.mark.parametrize("name", [*_BASES, "iso-2022-jp"])
def test_pieces_of_a_document_are_read_as_the_whole(name: str) -> None:
    """Sitemaps and feeds are read piece by piece."""
    text = "<loc>http://h.test/日本 中文 ～</loc>\n" * 20
    body = encode(text, name, "replace")
    reader = codecs.getincrementaldecoder(CODEC + name)("replace")
    found = [reader.decode(body[at : at + 7]) for at in range(0, len(body), 7)]
    assert "".join([*found, reader.decode(b"", final=True)]) == decode(body, name)


def test_japanese_in_escapes_is_found_without_a_declaration() -> None:
    body = b"<title>" + encode("日本語の題", "iso-2022-jp") + b"</title>"
    assert to_utf8(body, "") == ("<title>日本語の題</title>".encode(), "iso-2022-jp")
    assert to_utf8(b"\x1b[31mred \x1b$B", "")[1] == "utf-8"


def test_the_exact_reading_costs_as_much_as_the_page_is_long() -> None:
    body = b"\xad\xa1\xff" * 60_000
    assert is_linear(lambda times: partial(decode, body * times, "euc-jp"), 1, times=4, factor=12.0)
