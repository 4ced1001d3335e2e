# ruff: noqa: RUF001, E501 - texts in many alphabets, each as its people write it
"""Pages that declare no encoding: what they are taken for, last of all by their letters."""

from __future__ import annotations

import pytest

from gossamer.stages.process.charset import to_utf8

TEXTS = {
    "ru": "Молодые пауки пересекают океаны на тонкой и лёгкой нити паутины, и каждая нить где-то закреплена. Ветер "
    "несёт их над морем, пока не увидят берег, а корабли находят их на своих парусах за тысячу миль от земли.",
    "ja": "若い蜘蛛は細くて軽い糸に乗って海を渡ります。すべての糸はどこかに繋がっています。風が吹くかぎり、彼らは遠くまで飛んでいきます。",
    "zh": "幼小的蜘蛛乘着细而轻的丝飘过海洋，每一根丝都固定在某个地方。只要有风，它们就能飞得很远，船员们在离海岸一千英里的帆上发现它们。",
    "tw": "幼小的蜘蛛乘著細而輕的絲飄過海洋，每一根絲都固定在某個地方。只要有風，牠們就能飛得很遠，船員們在離海岸一千英里的帆上發現牠們。",
    "ko": "어린 거미들은 가늘고 가벼운 실을 타고 바다를 건넌다. 모든 실은 어딘가에 매여 있다. 바람이 부는 한 거미들은 아주 멀리까지 날아간다.",
    "el": "Οι νεαρές αράχνες διασχίζουν τους ωκεανούς πάνω σε ένα λεπτό και ελαφρύ νήμα, και κάθε νήμα είναι κάπου δεμένο.",
    "de": "Junge Spinnen überqueren Ozeane an einem Faden, fein und leicht, und jeder Faden ist irgendwo verankert. Schöne Grüße.",
    "fr": "Les jeunes araignées traversent les océans au bout d'un fil très fin et léger, et chaque fil est ancré là-bas.",
}


def html(language: str, codec: str) -> bytes:
    return f"<!doctype html><title>T</title><p>{TEXTS[language] * 4}</p>".encode(codec)


@pytest.mark.parametrize(
    ("language", "codec", "names"),
    [
        ("ru", "cp1251", {"windows-1251"}),
        ("ru", "koi8-r", {"koi8-r", "koi8-u"}),
        ("ru", "cp866", {"ibm866"}),
        ("ru", "utf-8", {"utf-8"}),
        ("ja", "cp932", {"shift_jis"}),
        ("ja", "euc_jp", {"euc-jp"}),
        ("zh", "gb18030", {"gb18030", "gbk"}),
        ("tw", "big5", {"big5"}),
        ("ko", "cp949", {"euc-kr"}),
        ("el", "iso8859-7", {"iso-8859-7", "windows-1253"}),
        ("de", "cp1252", {"windows-1252"}),
        ("fr", "cp1252", {"windows-1252"}),
        ("de", "utf-16-le", {"utf-16le"}),
        ("fr", "utf-16-be", {"utf-16be"}),
    ],
)
def test_a_page_that_declares_nothing(language: str, codec: str, names: set[str]) -> None:
    body, name = to_utf8(html(language, codec), "")
    assert name in names
    assert TEXTS[language] in body.decode()


@pytest.mark.parametrize(
    ("language", "text", "codecs"),
    [
        ("cs", "Příliš žluťoučký kůň úpěl ďábelské ódy", {"windows-1250", "iso8859-2"}),
        ("pl", "Zażółć gęślą jaźń", {"windows-1250", "iso8859-2"}),
        ("hu-HU", "Árvíztűrő tükörfúrógép", {"iso8859-2"}),
        ("tr", "İşlemci ağı çalışıyor, ığdır", {"windows-1254"}),
        ("lt", "Įlinkdama fechtuotojo špaga", {"windows-1257"}),
        ("vi", "Đường phố".replace("ố", "ô\u0301").replace("ờ", "ơ\u0300"), {"windows-1258"}),
    ],
)
def test_the_language_of_a_page_names_its_latin_encoding(language: str, text: str, codecs: set[str]) -> None:
    """As browsers have it by locale (HTML standard, section 13.2.3.2); mozilla's chardetng uses the domain so."""
    for codec in codecs:
        page = f"<!DOCTYPE html>\n<HTML class=a lang='{language}'><p>{text * 4}".encode(codec)
        for declared in ("", "utf-8"):
            body, name = to_utf8(page, declared)
            assert text in body.decode(), codec
            assert name == codec.replace("iso8859", "iso-8859")
        assert to_utf8(page.replace(b"lang", b"data-lang"), "")[1] not in codecs


def test_a_declaration_is_stronger_except_one_of_utf8_that_is_wrong() -> None:
    body = html("ru", "cp1251")
    assert to_utf8(body, "koi8-r")[1] == "koi8-r"
    assert to_utf8(b"<meta charset=iso-8859-1>" + body, "")[1] == "windows-1252"
    assert to_utf8(html("de", "utf-16-le"), "utf-8")[1] == "utf-16le"
    assert to_utf8(body, "utf-8")[1] == "windows-1251"


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"\0\0", b"a\0", b"\0" * 3000, b"\xff", b"\xff\xfe", bytes(range(256)) * 9]
)
def test_nothing_odd_raises(body: bytes) -> None:
    to_utf8(body, "")
