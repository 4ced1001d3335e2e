"""The modules that look at what a page says: text, Markdown, language, metadata, tags, links of text and PDF."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from pypdf import PdfWriter
from pypdf.annotations import Link

from gossamer.model.pages import Findings, Page
from gossamer.ports import ProcessingModule
from gossamer.stages.process.content import MainText, Markdown
from gossamer.stages.process.language import LanguageModule
from gossamer.stages.process.links import LinkExtractor
from gossamer.stages.process.metadata import Metadata, TagCounter
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.pdf import PdfLinks
from gossamer.stages.process.text import TextLinks, TitleAndText, trim_address
from gossamer.testing.conformance import check_processing_module

from .pages import SCAN, TREE, URL, page, urls

ARTICLE = """<!doctype html><html lang=de><head><title>T</title></head><body><nav><a href=/>Startseite</a><a href=/x>M
</a></nav><main><article><h1>Die Spinne</h1><p>Junge Spinnen segeln an einem Faden über das Meer, so weit der Wind sie
trägt; man nennt den Faden <a href="/faden (alt)">Altweibersommer</a>. Jeder Faden ist fein und leicht, und jeder Faden
ist irgendwo verankert.</p><h2>Wie weit</h2><p>Schiffe fanden sie tausend Meilen vor der Küste auf ihren Segeln, und in
der Luft noch in fünf Kilometern Höhe. 2 * 3 _ist_ 6.</p><pre>x  &lt;y&gt;
 z</pre></article></main><footer>Impressum</footer></body></html>"""


def found(module: ProcessingModule, body: str | bytes, **more: object) -> Findings:
    findings = Findings()
    module.process(page(body, **more), findings)  # type: ignore[arg-type]
    return findings


def test_main_text_leaves_navigation_out() -> None:
    text = found(MainText(), ARTICLE).columns["main_text"]
    assert "Altweibersommer" in str(text)
    assert "Wie weit" in str(text)
    assert "Startseite" not in str(text)
    assert "Impressum" not in str(text)


@pytest.mark.parametrize(
    ("body", "method"),
    [
        ('<h1></h1><p><img src="scan-12.jpg" width="1200"></p>', "image"),
        ('<a href="/13"><img src="scan-12.jpg" alt=""></a>', "image"),
        ("<picture><source srcset=a.webp><img src=a.png></picture>", "image"),
        ('<img src="/count" width="1" height="1">', "main"),
        ("<noscript><img src=/count></noscript><div id=app></div>", "main"),
        (f"<img src=a.png>{ARTICLE}", "main"),
        ("", "main"),
    ],
)
def test_a_page_that_is_an_image_says_so(body: str, method: str) -> None:
    markup = f"<!doctype html><title>T</title><body>{body}</body>"
    assert {found(module, markup).text_method for module in (MainText(), Markdown())} == {method}


@pytest.mark.parametrize(
    ("tag", "after"),
    [
        ("<h2>", '<a class=headerlink href="#s">¶</a></h2>'),
        ("<h2>", '<a href="#s" class="hash-link" aria-label="Direct link to Wie">\u200b</a></h2>'),
        ('<h2 id="s"><a class="doc-anchor" href="#s">§</a>', "</h2>"),
        ('<h2 id="s">', '</h2><a class="sl-anchor-link" href="#s"><svg></svg><span>Section titled “Wie”</span></a>'),
    ],
    ids=["Sphinx", "Docusaurus", "rustdoc", "Starlight"],
)
def test_main_text_has_no_links_of_headings_to_themselves(tag: str, after: str) -> None:
    linked = ARTICLE.replace("<h2>", tag).replace("</h2>", after)
    assert found(Markdown(), linked).columns["markdown"] == found(Markdown(), ARTICLE).columns["markdown"]
    assert found(MainText(), linked).text == found(MainText(), ARTICLE).text
    assert found(MainText(), linked).text == found(MainText(), ARTICLE).text


def test_marks_and_lines_within_words_do_not_divide_them() -> None:
    body = ARTICLE.replace("Altweibersommer", "Alt&shy;weiber\u00adsommer").replace(
        "Jeder Faden", "\u4e00\u4e01\n \u4e02 \u4e03<pre>\u4e04\n\u4e05</pre> Jeder Faden"
    )
    text = found(MainText(), body).text
    assert "Altweibersommer" in text
    assert "\u4e00\u4e01\u4e02 \u4e03" in text
    assert "\u4e04\n\u4e05" in str(found(Markdown(), body).columns["markdown"])


def test_formulas_and_images_of_mediawiki_and_amp_are_read() -> None:
    formula = "<math><msup><mi>x</mi><mn>2</mn></msup></math>"
    hidden = f'<span class="mwe-math-mathml-a11y" style="display: none;">{formula}</span>'
    body = ARTICLE.replace("Altweibersommer", f"{hidden}<img class=mwe-math-fallback-image src=s alt=x2>").replace(
        "<h2>",
        "<amp-img src=a.png alt=A></amp-img><amp-img src=b.png><noscript><img src=c.png></noscript></amp-img><h2>",
    )
    assert "x^2" in found(MainText(), body).text
    written = str(found(Markdown(), body).columns["markdown"])
    assert "[x^2](" in written
    assert "![A](http" in written
    assert "b.png" not in written


def test_a_formula_with_references_is_read() -> None:
    body = ARTICLE.replace(
        "Altweibersommer", "<math><mi>a</mi><mo>&#x2264;</mo><msqrt><mi>b</mi><mi>c</mi></msqrt></math>"
    )
    assert "a≤√(bc)" in found(MainText(), body).text


@pytest.mark.parametrize("module", [MainText, Markdown])
def test_readings_have_brackets_as_browsers_without_ruby_show_them(module: type[MainText | Markdown]) -> None:
    for ruby in ("漢字<rt>かんじ</rt>", "漢字<rt lang=ja>かんじ", "漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp>"):
        markup = f"<article><p>{'これは文章です。' * 20}<ruby>{ruby}</ruby>です。</p></article>"
        page = Page("https://e.example/", "text/html", "utf-8", (), markup.encode())
        findings = Findings()
        module().process(page, findings)
        assert "漢字(かんじ)です。" in str(findings.columns[module.name]), ruby


def test_numbers_of_lines_and_links_for_editors_are_no_text() -> None:
    numbered = "<table><tr><td class=linenos><pre>1\n2</pre></td><td><pre>first\nsecond</pre></td></tr></table><pre>3"
    body = ARTICLE.replace("<pre>", numbered, 1)
    body = body.replace("</h2>", "<span class=mw-editsection>[<a href=/e>edit</a>]</span></h2>")
    lines = found(MainText(), body).text.split("\n")
    assert "Wie weit" in lines
    assert "first second" in lines
    assert "1 2" not in lines
    assert "## Wie weit\n" in str(found(Markdown(), body).columns["markdown"])


@pytest.mark.parametrize(
    "number",
    [
        "<span class=lineno>%d</span>",  # Pygments in Jekyll: kepano/defuddle, codeblocks--pygments-lineno
        '<span class="linenumber react-syntax-highlighter-line-number" style="user-select: none">%d</span>',
        '<span style="white-space:pre;user-select:none;margin-right:.4em;padding:0 .4em;color:#7f7f7f"> %d</span>',
        '<span class="ln"> %d</span>',  # Chroma, in Hugo
        '<span class="lineno"><a class="line" href="#l1">    %d</a></span>',  # Doxygen
        '<span class="source-line-no">00%d</span>',  # Javadoc
    ],
)
def test_numbers_in_lines_of_code_are_no_text(number: str) -> None:
    body = ARTICLE.replace("<pre>", f"<pre>{number % 1}first\n{number % 2}second</pre><pre>", 1)
    body = body.replace("tausend", "<span>1000</span>")
    page_of_text = Findings()
    TitleAndText(SCAN).process(page(body), page_of_text)
    assert "fanden sie 1000 Meilen" in page_of_text.text
    assert "\nfirst\nsecond\n" in page_of_text.text
    assert "\nfirst second\n" in found(MainText(), body).text
    assert "\nfirst\nsecond\n" in str(found(Markdown(), body).columns["markdown"])


def test_a_table_of_numbers_beside_code_is_no_text() -> None:
    """Chroma's (kepano/defuddle, code-blocks--chroma-linenums), cgit's and Hexo's."""
    for numbers in (
        '<pre class="chroma"><code><span class="lnt">1\n</span><span class="lnt">2\n</span></code></pre></td>',
        "<div class=linenumbers><pre><a id=n1>1</a>\n<a id=n2>2</a></pre></div></td>",
        "<div class=gutter><pre><span class=line>1</span><br><span class=line>2</span><br></pre></div></td>",
    ):
        table = f"<table><tr><td>{numbers}<td class=code><pre>first\nsecond</pre></td></table><pre>"
        marked = str(found(Markdown(), ARTICLE.replace("<pre>", table, 1)).columns["markdown"])
        assert "\n\n```\nfirst\nsecond\n```" in marked
        assert "1\n2" not in marked


def test_code_of_doxygen_and_a_button_in_a_sentence_are_text() -> None:
    """kepano/defuddle#263 has the button; Doxygen 1.9 writes each line of code as an element."""
    line = '<div class="line"><a id="l1"></a><span class="lineno">    1</span>#ifdef A</div>\n'
    code = f'<div class="fragment">{line}{line.replace("#ifdef A", "  x();")}</div><!-- fragment -->'
    body = ARTICLE.replace("<pre>", f"{code}<pre>", 1).replace("tausend", "<button class=b>tausend</button>")
    assert "fanden sie tausend Meilen" in found(MainText(), body).text
    marked = str(found(Markdown(), body).columns["markdown"])
    assert "\n```\n#ifdef A\n\n  x();\n```\n" in marked
    assert "fanden sie tausend Meilen" in marked


def test_formulas_that_mathjax_and_katex_show_without_text_are_read() -> None:
    """MathJax 3 and 4 with SVG, KaTeX with `output: html` (kepano/defuddle: mathjax-svg, katex-data-math)."""
    mathjax = (
        "<mjx-container><svg aria-hidden=true></svg><mjx-assistive-mml style='clip:rect(1px,1px,1px,1px)'>"
        "<math><msub><mi>r</mi><mn>2</mn></msub></math></mjx-assistive-mml></mjx-container>"
    )
    katex = "<span class=katex><span class=katex-html aria-hidden=true><b>r</b><b>2</b></span></span>"
    for formula, text in ((mathjax, "r_2"), (katex, "r2")):
        body = ARTICLE.replace("tausend", formula)
        assert f"fanden sie {text} Meilen" in found(MainText(), body).text
        marked = str(found(Markdown(), body).columns["markdown"]).replace("*", "").replace("\\", "")
        assert f"fanden sie {text} Meilen" in marked


@pytest.mark.parametrize("options", [TREE, SCAN])
def test_a_nul_in_text_is_nothing(options: ProcessOptions) -> None:
    body = page("<title>a\0b</title><p>c\0d <a href=x>e\0f</a><pre>g\0h</pre>")
    findings = Findings()
    for module in (TitleAndText(options), LinkExtractor(options)):
        module.process(body, findings)
    assert findings.title == "ab"
    assert findings.text == ("cd ef\ngh" if options.text else "")
    assert [link.anchor_text for link in findings.links] == ["ef"]
    columns = {**found(MainText(options), body.body).columns, **found(Markdown(options), body.body).columns}
    assert columns["main_text"] == "cd ef\ngh"
    assert columns["markdown"] == "cd [ef](https://example.org/dir/x)\n\n```\ngh\n```"


@pytest.mark.parametrize("module", [MainText, Markdown])
def test_content_of_long_pages_is_found_as_of_short_ones(module: type[MainText | Markdown]) -> None:
    """A long page, one of many tags and one that leaves most of them open are ordinary pages."""
    long = "".join(f"<p>Paragraph {number} of the article, with <b>some</b> words.\n" for number in range(3_000))
    body = ARTICLE.replace("</article>", long + "</article>")
    assert body.count("<") > 1_000
    assert len(body) > 65_536
    findings = found(module(), body)
    text = str(findings.columns[module.name])
    assert "Paragraph 2999" in text
    assert "Startseite" not in text
    assert findings.text_method == "main"


def test_a_page_too_deep_for_content_says_that_its_text_is_all_visible_text() -> None:
    for deep, text in (
        ("<div>" * 1_001 + "One<p>Two *", "One\nTwo *"),
        ("<nav>Menu</nav>" + "<div>" * 50_000 + "<p>One</p>Two", "Menu\nOne\nTwo"),
    ):
        main, marked = found(MainText(), deep), found(Markdown(), deep)
        assert main.columns["main_text"] == text
        assert marked.columns["markdown"] == text.replace("\n", "\n\n").replace("*", "\\*")
        assert main.text_method == marked.text_method == "visible"
    assert found(MainText(), "<div>" * 1_000 + "One" + "<!--" + "x" * 70_000 + "-->").text_method == "main"
    assert (
        found(MainText(ProcessOptions(open_tags_max=10, tree_tags_max=10)), "<div>" * 11 + "x").text_method == "visible"
    )


def test_content_without_a_tree_of_the_page() -> None:
    for module in (MainText(SCAN), Markdown(SCAN)):
        findings = found(module, ARTICLE)
        assert "Altweibersommer" in str(findings.columns[module.name])
        assert findings.text_method == "main"


def test_markdown() -> None:
    text = str(found(Markdown(), ARTICLE).columns["markdown"])
    assert text.startswith("# Die Spinne\n\nJunge Spinnen")
    assert "[Altweibersommer](<https://example.org/faden%20(alt)>)" in text
    assert "\n\n## Wie weit\n\n" in text
    assert "2 \\* 3 \\_ist\\_ 6" in text
    assert "```\nx  <y>\n z\n```" in text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The quick brown fox jumps over the lazy dog and runs away from all of the hunters.", "en"),
        ("Junge Spinnen segeln an einem Faden über das Meer, so weit der Wind sie trägt.", "de"),
        ("Les jeunes araignées traversent les océans au bout d'un fil très fin et léger.", "fr"),
        ("Молодые пауки пересекают океаны на тонкой и лёгкой нити паутины.", "ru"),
        ("若い蜘蛛は細くて軽い糸に乗って海を渡ります。すべての糸はどこかに繋がっています。", "ja"),
    ],
)
def test_language(text: str, language: str) -> None:
    for options in (TREE, SCAN):
        columns = found(LanguageModule(options), f"<p>{text}</p>").columns
        assert columns["language"] == language
        assert 0.5 < float(str(columns["language_score"])) <= 1.01
    assert found(LanguageModule(), text, media_type="text/plain").columns["language"] == language


def test_too_little_text_has_no_language() -> None:
    assert found(LanguageModule(), "<p>Hi</p>").columns == {}


def test_language_looks_at_the_text_that_a_module_before_it_found() -> None:
    findings = Findings(text="Les jeunes araignées traversent les océans au bout d'un fil.")
    LanguageModule().process(page("<p>The quick brown fox jumps over the lazy dog.</p>"), findings)
    assert findings.columns["language"] == "fr"


METADATA = """<html lang=" en-GB "><head><base href=/b/>
<meta name=Description content=" What it\n is "><link rel="canonical x" href=c>
<meta property="og:title" content="A"><meta property="OG:image" content="1.png">
<meta property="og:image" content="2.png">
<meta name="twitter:card" content="summary"><meta property="other" content=no>
<script type="application/ld+json">{"@type": "Article", "name": "A"}</script>
<script type='Application/LD+JSON;x'>[1]</script>
<script type="application/ld+json">{broken</script>
<!--<script type="application/ld+json">{"no": 1}</script>--></head>"""


@pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])
def test_metadata(options: ProcessOptions) -> None:
    columns = found(Metadata(options), METADATA).columns
    assert columns == {
        "description": "What it is",
        "canonical": "https://example.org/b/c",
        "declared_language": "en-GB",
        "open_graph": {"og:title": ["A"], "og:image": ["1.png", "2.png"], "twitter:card": ["summary"]},
        "og_image": "https://example.org/b/1.png",
        "json_ld": [{"@type": "Article", "name": "A"}, [1]],
        "schema_types": ["Article"],
    }


def test_metadata_says_that_scripts_make_a_page() -> None:
    assert found(Metadata(), "<div id=root></div><script src=a.js></script>").columns == {"script_signal": "root"}
    columns = found(Metadata(), "<p>Words. " * 90 + "<a href=/x>x</a>" * 20 + "<script src=a.js></script>").columns
    assert "script_signal" not in columns


def test_metadata_of_a_page_without_any() -> None:
    assert found(Metadata(), "<p>x").columns == {}


def test_hostile_metadata_is_bounded() -> None:
    body = (
        "".join(f"<meta property=og:{n} content=x>" for n in range(5000))
        + "<script type=application/ld+json>"
        + "[" * 99_999
    )
    columns = found(Metadata(), body + "</script>").columns
    assert len(columns["open_graph"]) == 200  # type: ignore[arg-type]
    assert "json_ld" not in columns
    assert json.dumps(columns)


def test_tags_are_counted_as_they_stand() -> None:
    body = "<P>a<p title='<b>'><!-- <i> --><script>'<u>'</script><svg></svg><template><q></template></p><br/><p>"
    findings = found(TagCounter(), body)
    counts = {str(row["tag"]): row["count"] for row in findings.rows["tags"]}
    assert counts == {"p": 3, "script": 1, "svg": 1, "br": 1}
    assert findings.columns == {"tag_count": 6}
    assert findings.rows["tags"][0] == {"tag": "p", "count": 3}


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("See https://a.example/x, and (http://b.example/y).", ["https://a.example/x", "http://b.example/y"]),
        ("https://e.example/wiki/X_(y)!", ["https://e.example/wiki/X_(y)"]),
        ("<HTTPS://E.example/A>", ["https://e.example/A"]),
        ("ftp://f.example/a gopher://g.example/1", ["ftp://f.example/a", "gopher://g.example/1"]),
        ("x.finger://h.example/ann git+https://g.example/r", ["finger://h.example/ann", "https://g.example/r"]),
        ("\"https://q.example/\" 'https://r.example/'", ["https://q.example/", "https://r.example/"]),
        ("www.no.example mailto:a@b.example http:// https://[", []),
        ("https://ä.example/ö", ["https://xn--4ca.example/%C3%B6"]),
    ],
)
def test_links_of_plain_text(text: str, addresses: list[str]) -> None:
    assert urls(found(TextLinks(), text, media_type="text/plain"), "anchor") == addresses


def test_brackets_and_full_stops_go() -> None:
    assert trim_address("http://a/b.).") == "http://a/b"
    assert trim_address("...") == ""


def pdf(*addresses: str) -> bytes:
    writer = PdfWriter()
    for address in addresses:
        writer.add_blank_page(100, 100)
        writer.add_annotation(len(writer.pages) - 1, Link(rect=(0, 0, 9, 9), url=address))
    writer.add_metadata({"/Title": "Of  spiders"})
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def test_links_of_a_pdf() -> None:
    findings = found(
        PdfLinks(), pdf("https://a.example/x", "y.html", "https://a.example/x"), media_type="application/pdf"
    )
    assert urls(findings, "anchor") == ["https://a.example/x", "https://example.org/dir/y.html", "https://a.example/x"]
    assert findings.title == "Of spiders"
    assert PdfLinks.isolated


@pytest.mark.parametrize(
    "module",
    [MainText(), Markdown(), LanguageModule(), Metadata(), TagCounter(), TextLinks()],
    ids=lambda module: module.name,
)
def test_they_keep_the_promises_of_their_port(module: ProcessingModule) -> None:
    check_processing_module(module, [Page(URL, "text/html", "", (), ARTICLE.encode())])
