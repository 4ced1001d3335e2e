"""Charsets: pages in many encodings, said in many places; their links need the right one."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made, Mark
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/charsets/"
CYRILLIC = "паутина"
CYRILLIC_ESCAPED = "%D0%BF%D0%B0%D1%83%D1%82%D0%B8%D0%BD%D0%B0"
LATIN, LATIN_ESCAPED = "café", "caf%C3%A9"
JAPANESE, JAPANESE_ESCAPED = "蜘蛛", "%E8%9C%98%E8%9B%9B"

PAGES = (
    # name, codec, Content-Type, charset in a meta element, text, the text in a path as UTF-8
    ("utf8-header", "utf-8", "text/html; charset=UTF-8", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf8-meta", "utf-8", "text/html", "utf-8", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf8-bom", "utf-8-sig", "text/html; charset=windows-1251", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf16-bom", "utf-16", "text/html", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf16be-header", "utf-16-be", "text/html; charset=utf-16be", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("1251-header", "cp1251", 'text/html; charset="windows-1251"', "", CYRILLIC, CYRILLIC_ESCAPED),
    ("1251-meta", "cp1251", "text/html", "windows-1251", CYRILLIC, CYRILLIC_ESCAPED),
    ("1251-both", "cp1251", "text/html; charset=windows-1251", "utf-8", CYRILLIC, CYRILLIC_ESCAPED),
    ("koi8-meta", "koi8-r", "text/html", "koi8-r", CYRILLIC, CYRILLIC_ESCAPED),
    ("latin1-header", "cp1252", "text/html; charset=ISO-8859-1", "", LATIN, LATIN_ESCAPED),
    ("sjis-header", "shift_jis", "text/html; charset=Shift_JIS", "", JAPANESE, JAPANESE_ESCAPED),
    ("eucjp-meta", "euc_jp", "text/html", "euc-jp", JAPANESE, JAPANESE_ESCAPED),
)


def pages(place: Place) -> dict[str, Made]:
    """Return the corner. A path is UTF-8 in a URL whatever the page's encoding, so a wrong guess leads astray."""
    found: dict[str, Made] = {}
    index = Sheet(place, AT, "Charsets")
    for name, codec, media_type, meta, text, escaped in PAGES:
        path, written, asked = AT + name, f"{AT}{name}/{text}.html", f"{AT}{name}/{escaped}.html"
        sheet = Sheet(place, path, f"{text} {name}")
        sheet.tag(f'<p><a href="{written}">{text}</a></p>', Mark(place.origin + asked, text=text))
        body = sheet.html(meta, declare=bool(meta)).encode(codec)
        found[path] = sheet.sent(body, media_type)
        found[asked] = leaf(place, asked)
        index.anchor(path)
    found[AT] = index.made()
    return found
