import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.stages.process import charset
from gossamer.stages.process.charset import _ENCODINGS, _PLAIN_HEAD, _prescan, decode_body, encoding_of_label, to_utf8

from .pages import findings

R = "\N{REPLACEMENT CHARACTER}"

RUSSIAN = "Это обычный русский текст страницы, на которой заявлена другая кодировка."
CHINESE = "这是一个中文网页。声明的编码是错误的。今天天气很好。我们去公园玩。"

CASES = [
    # body, charset of the header, text, encoding
    (b"plain", "", "plain", "utf-8"),
    ("ünï".encode(), "", "ünï", "utf-8"),
    ("ünï".encode("latin-1"), "", "ünï", "windows-1252"),
    (b"\x93quoted\x94 \x80 \x81", "", "“quoted” € \x81", "windows-1252"),
    (b"\x93x\x94", "iso-8859-1", "“x”", "windows-1252"),
    (b"\xe9", "latin1", "é", "windows-1252"),
    (b"\xe9", "us-ascii", "é", "windows-1252"),
    ("жук".encode("cp1251"), "windows-1251", "жук", "windows-1251"),
    ("жук".encode("cp1251"), " Windows-1251 ", "жук", "windows-1251"),
    ("жук".encode("cp1251"), '"cp1251"', "жук", "windows-1251"),
    ("жук".encode("koi8-r"), "koi8-r", "жук", "koi8-r"),
    ("日本".encode("shift_jis"), "Shift_JIS", "日本", "shift_jis"),
    ("日本".encode("euc_jp"), "euc-jp", "日本", "euc-jp"),
    ("日本".encode("iso2022_jp"), "iso-2022-jp", "日本", "iso-2022-jp"),
    ("中文".encode("gb2312"), "gb2312", "中文", "gbk"),
    ("中文".encode("big5"), "big5", "中文", "big5"),
    ("한글".encode("euc_kr"), "ks_c_5601-1987", "한글", "euc-kr"),
    (b"x", "no-such-charset", "x", "utf-8"),
    (b"x", "hz-gb-2312", R, "replacement"),
    (b"\x80", "x-user-defined", "\uf780", "x-user-defined"),
    ("é\U0001f600".encode("utf-16-le"), "utf-16", "é\U0001f600", "utf-16le"),
    ("é".encode("utf-16-be"), "utf-16be", "é", "utf-16be"),
    (b"\x00\xd8x\x00", "utf-16le", R + "x", "utf-16le"),
    # A byte order mark is stronger than the header.
    (codecs.BOM_UTF8 + "é".encode(), "windows-1251", "é", "utf-8"),
    (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "utf-8", "é", "utf-16le"),
    (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "", "é", "utf-16be"),
    (b"<meta charset=utf-16>\xc3\xa9", "", "<meta charset=utf-16>é", "utf-8"),
    # UTF-8 is believed where most of what is not ASCII is valid in it, or the page is cut within a character.
    ("Don\u2019t".encode("cp1252"), "utf-8", "Don\u2019t", "windows-1252"),
    (b" " * 20_000 + b"\xe9 ", "utf-8", " " * 20_000 + "é ", "windows-1252"),
    (b"<meta charset=utf-8>" + RUSSIAN.encode("cp1251"), "", "<meta charset=utf-8>" + RUSSIAN, "windows-1251"),
    (CHINESE.encode("gbk"), "utf-8", CHINESE, "gb18030"),
    # The header is stronger than the page's own word.
    (b"<meta charset=koi8-r>\xe9", "windows-1252", "<meta charset=koi8-r>é", "windows-1252"),
]


@pytest.mark.parametrize(("body", "header", "text", "name"), CASES)
def test_encoding(body: bytes, header: str, text: str, name: str) -> None:
    assert to_utf8(body, header) == (text.encode(), name)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"<meta charset=windows-1251>", "windows-1251"),
        (b"<META CHARSET = 'Windows-1251' >", "windows-1251"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', "koi8-r"),
        (b"<meta content='text/html;charset=koi8-r;x' http-equiv=content-type>", "koi8-r"),
        (b"<meta http-equiv=content-type content='text/html; charset=\"koi8-r\"'>", "koi8-r"),
        (b"<meta content='text/html; charset=koi8-r'>", "windows-1252"),
        (b"<meta name=description content='charset=koi8-r'>", "windows-1252"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=koi8-u>", "koi8-u"),
        (b"<a title='<meta charset=koi8-r>'><meta charset=koi8-u>", "koi8-u"),
        (b"<?x <meta charset=koi8-r?><meta charset=koi8-u>", "koi8-u"),
        (b"<meta charset=none-such><meta charset=koi8-u>", "koi8-u"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        ("<html><p>x".encode("utf-16-le"), "utf-16le"),
        ("<!DOCTYPE html><p>x".encode("utf-16-be"), "utf-16be"),
        (b"<\0html>", "windows-1252"),
        (b" " * 1000 + b"<meta charset=koi8-u>", "koi8-u"),
        (b" " * 1024 + b"<meta charset=koi8-u>", "koi8-u"),
        (b"<!--" + b" " * 8_000 + b"--><meta http-equiv=content-type content='text/html; charset=koi8-u'>", "koi8-u"),
        (b"<script>" + b" " * 1024 + b"'<meta charset=koi8-r>'</script ><meta charset=koi8-u>", "koi8-u"),
        (b"<style>" + b" " * 1024 + b"<meta charset=koi8-r>", "windows-1252"),
        (b" " * charset.LATE_BYTES_MAX + b"<meta charset=koi8-u>", "windows-1252"),
        (b"<metal charset=koi8-r>", "windows-1252"),
        (b"<!-- <meta charset=koi8-r>", "windows-1252"),
        (b"<meta charset='koi8-r", "windows-1252"),
        (b"<?xml version='1.0' encoding='koi8-r'?>", "koi8-r"),
        (b'<?xml version="1.0" encoding="koi8-r"?><meta charset=koi8-u>', "koi8-u"),
        (b"", "windows-1252"),
    ],
)
def test_the_page_declares_its_encoding(head: bytes, name: str) -> None:
    body = head + b" " * 1024 + b"\xe9\xff"
    assert to_utf8(body, "")[1] == name


pieces_of_heads = st.sampled_from(
    [
        b"<?xml version='1.0' encoding='koi8-r'?>", b"<!doctype html>", b"<!DOCTYPE html PUBLIC \"-//W3C//DTD\">",
        b"<!--", b"-->", b"<html lang=en>", b"<html lang='a>b'>", b"<HTML\n", b"<head>", b"<head profile=x>", b"\n ",
        b">", b"<meta ", b'charset="koi8-u">', b"charset=koi8-r/>", b"charset='koi8-r'>", b'charset="none-such">',
        b'charset="utf-16">', b'http-equiv="Content-Type" content="text/html; charset=koi8-r" />', b'name="a" ',
        b"</head>", b"<title>x</title>",
    ]
)  # fmt: skip


@given(st.lists(pieces_of_heads, max_size=9).map(b"".join))
@example(b"<head><meta charset=koi8-r/>")
@example(b"<head><meta charset=koi8-r />")
@example(b"<head><meta charset=koi8-r>")
@example(b'<head><meta charset=koi8-r">')
@example(b'<head><meta charset="koi8-r>')
@example(b"<head><meta charset=koi8-r\v>")
@example(b"<head><meta\vcharset=koi8-r>")
@example(b'<head><meta http-equiv="Content-Type" content="text/html; charset=koi8-r>')
def test_a_plain_beginning_declares_what_the_steps_of_the_standard_find(head: bytes) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(charset, "_PLAIN_HEAD", lambda _: None)
        by_steps = _prescan(head)
    assert _prescan(head) == by_steps


@pytest.mark.parametrize(
    "head",
    [
        b'\n<!DOCTYPE html>\n\n<html lang="en">\n  <head>\n    <meta charset="koi8-u" />',
        (
            b'<?xml version="1.0"?><!DOCTYPE html><html><head>'
            b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-u">'
        ),
    ],
)
def test_most_pages_begin_plainly(head: bytes) -> None:
    assert _PLAIN_HEAD(head) is not None
    assert _prescan(head) == "koi8-u"


def test_utf8_is_not_copied() -> None:
    body = b"<meta charset=utf-8>caf\xc3\xa9"
    assert to_utf8(body, "")[0] is body
    assert to_utf8(body, "UTF-8")[0] is body


def test_a_page_cut_within_a_character_is_still_utf8() -> None:
    assert to_utf8("é".encode()[:1], "")[1] == "utf-8"
    assert to_utf8("é".encode()[:1], "utf-8")[1] == "utf-8"


def test_a_page_of_utf8_with_a_part_in_another_encoding_is_still_utf8() -> None:
    page = "<title>Grüße aus Köln</title>".encode() * 4 + "<p>café</p>".encode("windows-1252")
    assert to_utf8(page, "")[1] == "utf-8"
    assert to_utf8("é".encode() + b"\xe9", "utf-8") == ("é".encode() + b"\xe9", "utf-8")


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('<meta httpequiv="ContentType" content="text/html; charset=gbk">', "gbk"),  # scrapy/w3lib#155
        ("<meta name='content-type' content='text/html;charset = \"gb2312\"'>", "gbk"),
        ("<meta http-equiv=Content-Type content='text/html; charset:Big5'>", "big5"),
        ("<meta http-equiv='Content Type' content='text/html; charset=gbk'>", "euc-jp"),
        ("<meta name=charset-of content='charset=gbk'>", "windows-1252"),
    ],
)
def test_an_encoding_that_is_named_elsewhere_counts_if_the_page_is_valid_in_it(head: str, name: str) -> None:
    text = "日本\u3042の" if name == "euc-jp" else "网站地图" if name == "gbk" else "繁體中文"
    body = head.encode() + ("déjà vu".encode("latin-1") if name == "windows-1252" else text.encode(name))
    if name == "euc-jp":
        body = body.replace(b"charset=gbk", b"charset=euc-jp")
    assert to_utf8(body, "")[1] == name


def test_a_page_in_windows_1251_is_read() -> None:
    body = "<title>Жуки</title><a href='/ж'>ссылка</a>".encode("windows-1251")
    found = findings(body, charset="windows-1251")
    assert (found.title, found.charset) == ("Жуки", "windows-1251")
    assert (found.links[0].url, found.links[0].anchor_text) == ("https://example.org/%D0%B6", "ссылка")


def test_a_page_in_utf16_is_read() -> None:
    found = findings("\ufeff<title>Жуки</title><a href=x>日本</a>".encode("utf-16-le"))
    assert (found.title, found.charset, found.links[0].anchor_text) == ("Жуки", "utf-16le", "日本")


@pytest.mark.parametrize("name", sorted(_ENCODINGS))
def test_every_encoding_decodes_what_it_encodes(name: str) -> None:
    assert encoding_of_label(name.upper()) == name
    if name != "replacement":
        text = "abc" if not name.startswith("utf-16") else "a\0b\0"
        assert decode_body(text.encode(), name)


@given(st.binary(max_size=100), st.sampled_from(sorted(_ENCODINGS)))
def test_no_bytes_are_an_error(body: bytes, name: str) -> None:
    text, used = to_utf8(body, name)
    if used != "utf-8":
        text.decode()
