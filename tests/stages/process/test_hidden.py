"""Hidden text: what a page hides from all readers is in no text, and what they can open or will see is."""

from __future__ import annotations

import gzip
import zipfile
from io import BytesIO

import pytest

from gossamer.model.pages import Findings
from gossamer.stages.process.content import MainText, Markdown
from gossamer.stages.process.documents import Documents
from gossamer.stages.process.hidden import without_hidden
from gossamer.stages.process.text import TitleAndText

from .pages import SCAN, page

BEFORE = (
    "<article><h1>Notes on kilns</h1><p>This page explains how a small pottery fires its kilns in winter, with enough "
    "words to make it look like an ordinary article to any extractor that needs a paragraph.</p>"
)
AFTER = "<p>That is the whole procedure, used for many years by the people who run the workshop.</p></article>"
HIDDEN = [
    "<i hidden>MARK</i>",
    '<p style="display:none">MARK</p>',
    '<p style="color:red; DISPLAY : None !important">MARK</p>',
    '<p style="display:/**/none">MARK</p>',
    '<p style="display&#58;none">MARK</p>',
    "<p hidden>MARK</p>",
    '<p hidden="hidden">MARK</p>',
    "<p class=x hidden>MARK<p>Next.</p>",
    '<p style="visibility: hidden">MARK</p>',
    '<div style="display: none;"><p>MARK</p></div>',
    '<div style="display:none"><div>a</div><p>MARK</div>',
    "<div hidden>a</section>MARK</div>",
    '<p>Paid on <span style="display:none">MARK</span>a warm day.</p>',
    '<div aria-hidden="true">MARK</div>',
    "<dialog>MARK</dialog>",
    "<noscript>MARK</noscript>",
    "<video controls><source src=v><p>MARK</p></video>",
    "<p>Listen: <AUDIO src=a>MARK</AUDIO> <canvas>MARK</canvas></p>",
    '<p style="opacity:0">MARK</p>',
    '<p style="opacity: 0.0;color:red">MARK</p>',
    '<p style="position:absolute;left:-9999px">MARK</p>',
    '<p style="text-indent:-1000em">MARK</p>',
    '<p style="font-size:0">MARK</p>',
    '<p style="height:0;overflow:hidden">MARK</p>',
    '<p style="position:absolute;clip:rect(0 0 0 0)">MARK</p>',
    '<p style="transform: scale(0)">MARK</p>',
    '<p title=">" style="display:none">MARK</p>',
    '<p title="it\'s" style="display:none">MARK</p>',
    "<style>.x{display:none}</style><p class='a x'>MARK</p>",
    "<style>@charset 'a'; /* .y */ p.x, #z {color:red;visibility:hidden}</style><p class=x>MARK</p>",
    "<style>#z{opacity:0}</style><p id=z>MARK</p>",
    "<style>[data-n='1']{left:-9999px;position:absolute}</style><p data-n=1>MARK</p>",
    "<style media=screen>x-note{display:none}</style><x-note>MARK</x-note>",
]
SHOWN = [
    "<details><summary>More</summary><p>MARK</p></details>",
    "<dialog open>MARK</dialog>",
    "<div role=tabpanel hidden>MARK</div>",
    '<div class="tab-pane" style="display:none">MARK</div>',
    '<div class="accordion-content" aria-hidden="true">MARK</div>',
    '<button aria-controls="s1">A</button><div id=s1 hidden>MARK</div>',
    '<a data-bs-target="#s1" href="#">A</a><div id=s1 style="display:none">MARK</div>',
    '<p hidden="until-found">MARK</p>',
    '<p style="display:block">MARK</p>',
    '<p style="opacity:0.5">MARK</p>',
    '<p style="opacity:0;transform:translateY(20px)">MARK</p>',
    '<p style="opacity:0" class="wow fadeIn">MARK</p>',
    '<p style="margin-top:-20px;font-size:0.9em;height:auto;overflow:auto">MARK</p>',
    '<p class="overflow-hidden">MARK</p>',
    '<p title="hidden display:none">MARK</p>',
    "<div hidden id='S:0'><p>MARK</p></div>",
    "<script>document.write('<div hidden>')</script><p>MARK</p>",
    "<!-- <div hidden> --><p>MARK</p>",
    "<template><div hidden></template><p>MARK</p>",
    "<style>@media print{.x{display:none}}</style><p class=x>MARK</p>",
    "<style media=print>.x{display:none}</style><p class=x>MARK</p>",
    "<noscript><style>.x{display:none}</style></noscript><p class=x>MARK</p>",
    "<style>.x{display:none}.open .x{display:block}</style><p class=x>MARK</p>",
    "<style>.x{display:none}@media(min-width:9px){.y{display:block}}</style><p class='x y'>MARK</p>",
    "<style>.a .x{display:none}</style><p class=x>MARK</p>",
    "<section><div hidden>gone</section><p>MARK</p>",
    "<ul><li hidden>gone<li>MARK</ul>",
]


def texts(body: str) -> list[str]:
    """Return the text of a page as each module finds it."""
    findings = Findings()
    for module in (TitleAndText(SCAN), MainText(SCAN), Markdown(SCAN)):
        module.process(page(body), findings)
        assert findings.columns["hidden_chars"] == without_hidden(body.encode())[1]
    visible = Findings()
    TitleAndText(SCAN).process(page(body), visible)
    return [visible.text, str(findings.columns["main_text"]), str(findings.columns["markdown"])]


@pytest.mark.promise("Files and exports", "Text that a page hides from its readers is in no text, Markdown or index.")
@pytest.mark.parametrize("hidden", HIDDEN)
def test_hidden_text_is_in_no_text(hidden: str) -> None:
    for text in texts(BEFORE + hidden + AFTER):
        assert "MARK" not in text
        assert "pottery" in text
        assert "procedure" in text
    assert without_hidden((BEFORE + hidden + AFTER).encode())[1] >= len("MARK")


@pytest.mark.parametrize("shown", SHOWN)
def test_what_readers_see_or_open_stays(shown: str) -> None:
    assert all("MARK" in text for text in texts(BEFORE + shown + AFTER)[:1])
    assert "MARK" in without_hidden((BEFORE + shown + AFTER).encode())[0].decode()


def test_hidden_text_leaves_its_sentence_and_list_whole() -> None:
    sentence = '<p>Paid on <span style="display:none">1977-08-21</span>a warm day.</p>'
    listed = "<ul><li>one<li hidden>two<li>three</ul>"
    text, _, markdown = texts(BEFORE + sentence + listed + AFTER)
    assert "Paid on a warm day." in text
    assert "- one\n- three" in markdown


@pytest.mark.parametrize(
    "body",
    [
        "<body style='opacity:0'>MARK</body>",
        "<noscript>MARK</noscript>",
        "<div hidden>MARK</div>",
        f"<nav>Menu</nav><div style='visibility:hidden'>{'MARK ' * 400}</div>",
    ],
)
def test_a_page_that_a_script_shows_keeps_its_text(body: str) -> None:
    assert without_hidden(body.encode()) == (body.encode(), 0)


def test_links_in_hidden_menus_are_followed() -> None:
    from gossamer.stages.process.links import LinkExtractor

    findings = Findings()
    LinkExtractor(SCAN).process(page("<nav hidden><a href=/menu>m</a></nav>x"), findings)
    assert len(findings.links) == 1


def test_hidden_text_of_a_book_is_left_out() -> None:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as book:
        book.writestr("META-INF/container.xml", '<c><rootfile full-path="c.opf"/></c>')
        book.writestr("c.opf", '<p><item id="a" href="a.xhtml"/><itemref idref="a"/></p>')
        book.writestr("a.xhtml", "<html><body><p>Shown.</p><p hidden=''>MARK</p></body></html>")
    findings = Findings()
    Documents().process(page(out.getvalue(), media_type="application/epub+zip"), findings)
    assert (findings.text, findings.columns["hidden_chars"]) == ("Shown.", 4)


def test_gzip_bytes_are_no_markup() -> None:
    data = gzip.compress(b"<p hidden>" * 9, mtime=0)
    assert without_hidden(data) == (data, 0)
