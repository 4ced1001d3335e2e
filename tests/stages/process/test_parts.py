"""Footnotes, accordions and short lists: what belongs to a text though it is short or stands apart."""

from __future__ import annotations

import pytest

from gossamer.model.pages import Findings
from gossamer.stages.process.content import MainText, Markdown
from gossamer.stages.process.main import complete_blocks
from gossamer.stages.process.outline import outline_of

from .pages import page

ARTICLE = (
    "<p>The quick brown potter fires kilns in the winter months, and the long paragraph goes on for"
    " quite some time{} to "
    "be content. It also has a second sentence, and a third one.</p>"
)
NOTES = {
    "wikipedia": (
        (
            '<sup id="cite_ref-1" class="reference"><a href="#cite_note-1"><span'
            ' class="cite-bracket">[</span>1<span class="cite-bracket">]</span></a></sup>'
        ),
        (
            '<div class="reflist"><ol class="references"><li id="cite_note-1"><span'
            ' class="mw-cite-backlink"><b><a href="#cite_ref-1">^</a></b></span> <span'
            ' class="reference-text">NOTE one, Smith 1999, p. 4.</span></li></ol></div>'
        ),
    ),
    "pandoc": (
        '<a href="#fn1" class="footnote-ref" id="fnref1" role="doc-noteref"><sup>1</sup></a>',
        (
            '<section class="footnotes" role="doc-endnotes"><hr/><ol><li id="fn1"><p>NOTE one.<a href="#fnref1"'
            ' class="footnote-back" role="doc-backlink">↩︎</a></p></li></ol></section>'
        ),
    ),
    "wordpress": (
        '<sup data-fn="81f6" class="fn"><a href="#81f6c1e0" id="81f6c1e0-link">1</a></sup>',
        (
            '<ol class="wp-block-footnotes"><li id="81f6c1e0">NOTE one. <a href="#81f6c1e0-link"'
            ' aria-label="Jump to footnote reference 1">↩︎</a></li></ol>'
        ),
    ),
    "substack": (
        '<a class="footnote-anchor" id="footnote-anchor-1-12" href="#footnote-1-12" target="_self">1</a>',
        (
            '<div class="footnote"><a id="footnote-1-12" href="#footnote-anchor-1-12" class="footnote-number"'
            ' contenteditable="false" target="_self">1</a><div class="footnote-content"><p>NOTE'
            " one.</p></div></div>"
        ),
    ),
    "raised": ('<sup><a href="#n1">1</a></sup>', '<hr><p id="n1">1. NOTE one.</p>'),
    "raised and listed": (
        '<sup><a href="#n1">1</a></sup>',
        '<hr><ol><li id="n1">NOTE one. <a href="#r1">↩</a></li></ol>',
    ),
    "named": (' <a href="#1">[1]</a>', '<p><a name="1">[1]</a> NOTE one.</p>'),
    "sphinx": (
        (
            '<a class="footnote-reference brackets" href="#id2" id="id1" role="doc-noteref"><span'
            ' class="fn-bracket">[</span>1<span class="fn-bracket">]</span></a>'
        ),
        (
            '<aside class="footnote-list brackets"><aside class="footnote brackets" id="id2"'
            ' role="doc-footnote"><span class="label"><span class="fn-bracket">[</span><a role="doc-backlink"'
            ' href="#id1">1</a><span class="fn-bracket">]</span></span><p>NOTE one.</p></aside></aside>'
        ),
    ),
    "sphinx, referred to twice": (
        (
            '<a class="footnote-reference brackets" href="#id3" id="id1" role="doc-noteref"><span'
            ' class="fn-bracket">[</span>1<span class="fn-bracket">]</span></a>'
        ),
        (
            '<aside class="footnote-list brackets"><aside class="footnote brackets" id="id3"'
            ' role="doc-footnote"><span class="label"><span class="fn-bracket">[</span>1<span'
            ' class="fn-bracket">]</span></span><span class="backrefs">(<a role="doc-backlink" href="#id1">1</a>,<a'
            ' role="doc-backlink" href="#id2">2</a>)</span><p>NOTE one.</p></aside></aside>'
        ),
    ),
    "asciidoc": (
        (
            '<sup class="footnote">[<a id="_footnoteref_1" class="footnote" href="#_footnotedef_1" title="View'
            ' footnote.">1</a>]</sup>'
        ),
        (
            '<div id="footnotes"><hr><div class="footnote" id="_footnotedef_1"><a href="#_footnoteref_1">1</a>.'
            " NOTE one.</div></div>"
        ),
    ),
    "dl": ('<a href="#fn:1" rel="footnote">1</a>', '<dl><dt>1</dt><dd id="fn:1">NOTE one.</dd></dl>'),
}
"""By the program or people that write them: a reference and the note."""


def found(*content: str) -> tuple[str, str]:
    """Return text and Markdown of an article with this content at its end."""
    body = (
        "<html><body><nav><a href=/>Home</a> <a href=/x>About</a></nav><main><article><h1>Title</h1>"
        + ARTICLE.format("")
        + "".join(content)
        + "</article></main><footer><p>Copyright 2020 Example Inc.</p></footer></body></html>"
    )
    findings = Findings()
    for module in (MainText(), Markdown()):
        module.process(page(body), findings)
    return findings.text, str(findings.columns["markdown"])


@pytest.mark.parametrize("style", NOTES)
def test_footnotes_of_every_style_are_kept_and_are_markdowns(style: str) -> None:
    reference, note = NOTES[style]
    text, markdown = found(ARTICLE.format(reference), note)
    assert "NOTE one" in text
    assert "quite some time[^1]" in markdown.replace(" [^1]", "[^1]")
    assert "\n[^1]: NOTE one" in markdown
    assert "Copyright" not in text


def test_several_notes_of_an_old_page_are_kept() -> None:
    notes = '<b>Notes</b><br><br>[<a name="f1n">1</a>] NOTE one.<br><br>[<a name="f2n">2</a>] NOTE two.<br><br>'
    text, _ = found(ARTICLE.format('[<a href="#f1n">1</a>]'), notes)
    assert "NOTE one. [2] NOTE two." in text


def test_a_sign_as_reference_gets_a_label() -> None:
    _, markdown = found(ARTICLE.format('<sup><a href="#s">*</a></sup>'), '<p id="s"><a href="#b">*</a> NOTE one.</p>')
    assert "time[^n-0]" in markdown
    assert "[^n-0]: NOTE one." in markdown


def test_links_to_chapters_are_no_footnotes() -> None:
    _, markdown = found('<p><a href="#1">1</a> <a href="#2">2</a></p>', f'<div id="1">{ARTICLE}</div>' * 2)
    assert "[^" not in markdown


def test_notes_that_outweigh_the_text_are_judged_like_any_other() -> None:
    note = "<footer><p id=n1>" + "Terms apply to offers in each state. " * 90 + "</p></footer>"
    outline = outline_of(ARTICLE.format('<sup><a href="#n1">1</a></sup>') + note, 1_000)
    assert outline is not None
    assert complete_blocks(outline, [True, False]) == [True, False]


@pytest.mark.parametrize(
    "question",
    [
        "<h2><button aria-expanded=false>QUESTION?</button></h2>",
        "<h3 class=accordion-header><button class=accordion-button><span>QUESTION</span></button></h3>",
        "<button class=faq-question>QUESTION?</button>",
    ],
)
def test_questions_of_an_accordion_are_kept_with_their_answers(question: str) -> None:
    answer = "<div class=accordion-panel><p>The answer to this is long enough to be kept as a paragraph.</p></div>"
    text, markdown = found(question + answer)
    assert "QUESTION" in text
    assert text.index("QUESTION") < text.index("The answer")
    assert "QUESTION" in markdown


def test_a_short_list_at_the_end_is_kept_whole() -> None:
    steps = ["Wedge the clay.", "Throw it.", "Fire it.", "Glaze."]
    text, markdown = found("<h2>Steps to do</h2><ol>", *(f"<li>{step}</li>" for step in steps), "</ol>")
    assert text.endswith("\n".join(steps))
    assert markdown.rstrip().endswith("4. Glaze.")
