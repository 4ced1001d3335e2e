"""Markdown: what each element becomes, and that a parser of CommonMark and GFM reads what was written."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from gossamer.stages.process.kept import build_tree
from gossamer.stages.process.links import Base
from gossamer.stages.process.markdown import as_markdown
from gossamer.stages.process.outline import outline_of

from .test_outline import soup

DOCUMENTATION = Path("/usr/share/doc/python3-doc/html")
PARSER = MarkdownIt("gfm-like", {"linkify": False})


def markdown(markup: str, chosen: list[bool] | None = None) -> str:
    made = outline_of(markup, 1_000)
    assert made is not None
    base = Base("https://e.example/d/p.html", None, "utf-8")
    return as_markdown(build_tree(made, chosen or [True] * len(made.blocks)), base.join)


HEADING_IDS = [
    # markup, ids of its headings
    ("<h1 id=a>A</h1><h2>B</h2><h2 ID='c d'>C</h2><h3 id='&auml;'>D", ("a", "", "", "ä")),
    ("<section id=s><h2>A<a class=headerlink href=#s>¶</a></h2><p>x</section><h2>B", ("s", "")),
    ("<a name=old></a><h2>A</h2><p id=p>x<h2>B", ("old", "")),
    ("<div id=page><p>menu</p><main><h1>A</h1></main></div>", ("",)),
    ("<h2><a name=n></a>A</h2><h2><font>B</font> <span id=q>C</span></h2><h2><font>D</font></h2><i id=r></i>x",
     ("n", "q", "")),
    ("<div id=mw><h2><span id=H>A</span></h2></div>", ("H",)),
    ("<h2 id=a>A</h2><h2 id=a>A</h2><h3 id=a2>A</h3>", ("a", "", "a2")),
    ("<ul><li><h2 id=l>A</h2></ul><blockquote><h2 id=b>A</h2></blockquote><h2 id=c>A", ("c",)),
    ("<a href=/x><h2 id=a>A</h2></a><h2 id=b>B", ("", "b")),
    ("<h2 id=e></h2><h2 id=" + "x" * 201 + ">A", ("",)),
]  # fmt: skip


@pytest.mark.parametrize(("markup", "ids"), HEADING_IDS)
def test_headings_have_the_ids_that_lead_to_them(markup: str, ids: tuple[str, ...]) -> None:
    made = outline_of(markup, 1_000)
    assert made is not None
    base = Base("https://e.example/d/p.html", None, "utf-8")
    assert as_markdown(build_tree(made, [True] * len(made.blocks)), base.join).heading_ids == ids


def test_text_that_is_not_kept_lies_between_an_id_and_a_heading() -> None:
    made = outline_of("<div id=page><p>menu</p><h1>A</h1>", 1_000)
    assert made is not None
    base = Base("https://e.example/", None, "utf-8")
    markdown = as_markdown(build_tree(made, [False, True]), base.join)
    assert (markdown, markdown.heading_ids) == ("# A", ("",))


WRITTEN = [
    # markup, Markdown
    ("<h1>A<a class=headerlink href=#a>¶</a></h1><h2> B #</h2><h3></h3>", "# A\n\n## B \\#"),
    ('<h2 id=a>A</h2><a href="#b">B</a>', "## A\n\n[B](https://e.example/d/p.html#b)"),
    ("<p>a <b>b </b>c <em>d</em><i>e</i> <s>f</s>", "a **b** c *de* ~~f~~"),
    ("<p><a href=x>a<br></a><b>b<br></b>c", "[a](https://e.example/d/x)\n**b**\\\nc"),
    ("<h2>*a<br></h2><dl><dt>\\b<br></dl>", "## \\*a\n\n**\\\\b**"),
    ("<p>a <b>b:&nbsp;</b>c", "a **b:**\xa0c"),
    ("<p>a<b>\"b\"</b>c <b></b>d", "a\"b\"c d"),
    ("<p><b>a</b><b>b</b><em><strong>c</strong></em>", "**ab*****c***"),
    ("<p>1 * 2 _a_ b_c [d] `e` <b>&lt;p&gt;</b> &amp;amp; f~g a|b !<a href=x>h</a>",
     "1 \\* 2 \\_a\\_ b_c \\[d\\] \\`e\\` **\\<p\\>** &amp;amp; f\\~g a\\|b \\![h](https://e.example/d/x)"),
    ("<p># a<p>- b<p>1. c<p>12) d<p>+ e<p>===<p>1986. f",
     "\\# a\n\n\\- b\n\n1\\. c\n\n12\\) d\n\n\\+ e\n\n\\===\n\n1986\\. f"),
    ("<p>a<br><br>- b<br>", "a\\\n\\\n\\- b"),
    ("<p><code>a`b</code> <kbd>`</kbd> <code> </code>c", "``a`b`` `` ` `` c"),
    ("<p><a href='/x y?a=1&amp;b=(2)#f_g'>l</a> <a href=javascript:x()>m</a> <a href=x></a><a>n</a>",
     "[l](<https://e.example/x%20y?a=1&b=(2)#f_g>) m n"),
    ("<p><a href='/?a=1&copy=2&amp;b=&#51;'>l</a>", "[l](https://e.example/?a=1&copy=2&b=3)"),
    ("<p><a href=x>a <img src=i.png alt='b [c]'></a><img src=data:x alt=d><img data-src=j>",
     "[a ![b \\[c\\]](https://e.example/d/i.png)](https://e.example/d/x)![](https://e.example/d/j)"),
    ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
    ("<ol><li>a</li><ul><li>b<li>c</ul><li>d</ol>", "1. a\n   - b\n   - c\n2. d"),
    ("<ul><li>a</li><ol start=3><li>b</ol><li>c<ol start=4><li>d</ol></ul>", "- a\n\n  3. b\n\n- c\n\n  4. d"),
    ("<ul><ul><li>a</ul><li>b</ul>", "- - a\n- b"),
    ("<ul><li><p>a<p>b<li>c</ul>", "- a\n\n  b\n\n- c"),
    ("<ol start=9><li>a<li>b<pre>c\n\nd</pre></ol>", "9. a\n\n10. b\n\n    ```\n    c\n\n    d\n    ```"),
    ("<ol start=99999999999><li>a</ol><ol><li>b</ol><ol><li>c</ol>", "1. a\n\n1) b\n\n1. c"),
    ("<ol><li>a<li value=5>b<li>c<li value=x>d</ol><ol start=2><li>e</ol>", "1. a\n5) b\n6) c\n7) d\n\n2. e"),
    ("<ol reversed><li>a<li>b<ol><li>c</ol></ol>", "2. a\n1) b\n   1. c"),
    ("<ol reversed start=1><li>a<li>b<li value=9>c<li>d</ol><ol><li>e</ol>", "1. a\n0) b\n9. c\n8) d\n\n1. e"),
    ("<ul><li>a</ul><ul><li>b</ul>", "- a\n\n* b"),
    ("<ul><li><input type=checkbox checked> a<li><input type=checkbox>b</ul>", "- [x] a\n- [ ] b"),
    ("<div class='highlight-py'><pre>  <span>a</span>\n```</pre></div>", "````py\n  a\n```\n````"),
    ("<pre><code class='language-c++ x'>a\n</code></pre><pre> </pre>", "```c++\na\n```"),
    ("<pre data-language=ts><code>a</code></pre><pre><code data-lang='go'>b</code></pre>",
     "```ts\na\n```\n\n```go\nb\n```"),
    ("<pre><code class='hljs language-python'>a</code></pre><pre class='hljs lang-go'>b</pre>",
     "```python\na\n```\n\n```go\nb\n```"),
    ("<pre><code><span style='display:block'>a</span><span style='display: block'>b</span></code></pre>",
     "```\na\nb\n```"),
    ("<pre><code class='hljs python'>a</code></pre><div class='mw-highlight mw-highlight-lang-c x'><pre>b</pre></div>",
     "```python\na\n```\n\n```c\nb\n```"),
    ("<pre lang=ruby><code>a</code></pre><pre class='src src-sh'>b</pre><code class='python'>c</code>",
     "```ruby\na\n```\n\n```sh\nb\n```\n\n`c`"),
    ("<pre data-enlighter-language=php>a</pre><pre lang=en>b</pre><pre class=poem>c</pre>",
     "```php\na\n```\n\n```\nb\n```\n\n```\nc\n```"),
    ("<p><code class=language-js>a\nb</code><p><code>c<br>d</code><p><code>e\nf</code> g",
     "```js\na\nb\n```\n\n```\nc\nd\n```\n\n`e f` g"),
    ("<p>x<img src=/0.gif data-src=/a.png alt=a><img src=b.png data-original='{w}'><img srcset='c.png 1x, d 2x'>",
     "x![a](https://e.example/a.png)![](https://e.example/d/b.png)![](https://e.example/d/c.png)"),
    ("<blockquote><p>a<ul><li>b</ul></blockquote>c", "> a\n>\n> - b\n\nc"),
    ("<dl><dt>a <b>b</b><dd>c</dl><hr><p>d", "**a b**\n\nc\n\n---\n\nd"),
    ("<table><tr><th>a<th>b<tr><td>1|2<td><code>x|y</code></table>", "| a | b |\n| --- | --- |\n| 1\\|2 | `x\\|y` |"),
    ("<table><caption>t</caption><thead><tr><th>a<th colspan=2>b</thead><tr><td rowspan=2>1<td>2<td>3<tr><td>4</table>",
     "t\n\n| a | b |  |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| 1 | 4 |  |"),
    ("<pre><ol><li>a<li> b</ol></pre><pre><code><div>c</div>\n<div>d</div>e</code></pre>",
     "```\na\n b\n```\n\n```\nc\nd\ne\n```"),
    ("<pre><table><tr><td class=hljs-ln-numbers>1<td>a<td>b<tr><td class=hljs-ln-numbers>2<td>c</table>",
     "```\nab\nc\n```"),
    ("<table><tr><td>a<p>b<ul><li>c</ul><td><pre>d|e\nf</pre><tr><td>x<td>y</table>",
     "| a<br>b<br>- c | `d\\|e`<br>`f` |\n| --- | --- |\n| x | y |"),
    ("<table><tr><td><h2>a</h2><table><tr><td>1<td>2</table><td>b</table>", "## a\n\n| 1 | 2 |\n| --- | --- |\n\nb"),
    ("<table><tr><td>a<tr><td>b</table>", "a\n\nb"),
    ("<p>a<math alttext='x^2'><mi>x</mi></math> <script type='math/tex; mode=display'>y_1</script>", "a$x^2$ $$y_1$$"),
    ("<p><math><mi>x</mi><annotation encoding='application/x-tex'>\\xi&lt;1</annotation></math> \\(a_1*b_2\\) \\d",
     "$\\xi<1$ $a_1*b_2$ \\\\d"),
    ("<span class=katex><span class=katex-mathml><math><mi>q</mi></math></span><span class=katex-html>Q</span></span>",
     "q"),
    ("<p><math><mfrac><mn>1</mn><mn>2</mn></mfrac>\n<mo>&gt;</mo><msup><mi>x</mi><mrow>n<mo>+</mo>1</mrow></msup></math>",
     "1/2\\>x^(n+1)"),
    ("<p>a <span class=MathJax id=MathJax-Element-1-Frame>a1</span><script type=math/tex>a_1</script>", "a $a_1$"),
    ("<p>a <img src=l.php class=latex alt='x^2'> b <img src=/latex.php?x alt=y>", "a $x^2$ b $y$"),
    ("<p>a <math alttext='x'></math><img class=mwe-math-fallback-image-inline src=x.svg alt=x>", "a $x$"),
    ("<p>10<sup>-6</sup> x<sup>n</sup> 1<sup>st</sup> ACME<sup>TM</sup> y<sup>2</sup> H<sub>2</sub>O",
     "10<sup>-6</sup> x<sup>n</sup> 1st ACMETM y<sup>2</sup> H2O"),
    ("<p>a<sup><a class=footnote-ref href=#fn1>1</a></sup><ol><li id=fn1><p>b <a href=#r1>↩</a><p>c</ol>",
     "a[^1]\n\n[^1]: b\n\n    c"),
    ("<a href=x><div><h3>a</h3><p>b</p></div></a>", "### [a](https://e.example/d/x)\n\nb"),
    # The rest is modelled on fixtures of kepano/defuddle: code-blocks, footnotes, math, elements, issue 141.
    ("<figure class='highlight cpp'><pre>a</pre></figure><div class=code-block language=tsx><pre>b</pre></div>",
     "```cpp\na\n```\n\n```tsx\nb\n```"),
    ("<p>a<a href=#f1><sup>1</sup></a><ol><li><span id=f1></span>b<a href=#r1 class=footnote-ref></a></ol>",
     "a[^1]\n\n[^1]: b"),
    ("<p>a<a name=FnAnchor_1 href=#Footnote_1><i>1</i></a><p><a name=Footnote_1 href=#FnAnchor_1><i>1</i></a> b",
     "a[^1]\n\n[^1]: b"),
    ("<p>a<sup><a href=#1>1</a></sup><div id=1><sup>1</sup><p>b</div>", "a[^1]\n\n[^1]: b"),
    ("<p>a<span class=katex-html>Q</span>", "aQ"),
    ("<p><math><mroot><mn>8</mn><mn>3</mn></mroot> <mi>f</mi><mfenced><mi>x</mi><mi>y</mi></mfenced></math>",
     "8^(1/3)f(x, y)"),
    ("<p><math><mtable><mtr><mtd>a</mtd><mtd>b</mtd></mtr><mtr><mtd>c</mtd></mtr></mtable></math>", "a b; c"),
    ("<p>x<picture><source srcset='a.webp 2x, b 1x'><source srcset=c><img src=data:x alt=d></picture><img src=data:y>",
     "x![d](https://e.example/d/a.webp)"),
    ("<p>x<img src=data:x data-image-loader=/a.png?1><img src=data:x data-x='/a.png, /b.png'><img src=data:x data-y=a>",
     "x![](https://e.example/a.png?1)"),
    ("<table><tr><td><td>a<td><tr><td>b</table>", "a\n\nb"),
    ("<table class=ltx_eqn_table><tr><td><td><math alttext='a'></math><td>(1)</table>", "$a$\n\n(1)"),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("markup", "expected"), WRITTEN)
def test_each_element_has_its_markdown(markup: str, expected: str) -> None:
    assert markdown(markup) == expected


AGAIN = [
    "a <em><strong>b</strong></em> c",
    "a<em><strong>b</strong></em>c",
    "<em><strong>a</strong> b</em>",
    "<em>a <strong>b</strong></em>",
    "<em>a<strong>b</strong></em>",
    "<em>a <strong>b</strong> c</em>",
    "<strong><em>a</em> b</strong>",
    "<strong>a <em>b</em></strong>",
    "<strong>a<em>b</em>c</strong>",
    "<em>a</em><strong>b</strong>",
    "<strong>a</strong><em>b</em>",
    "<em>(<strong>a</strong>)</em>",
    "<strong>(<em>a</em>)</strong>",
    "*<em>a</em>*",
    "_<strong>a</strong>_",
    "<em>*</em> <strong>\\</strong>",
    "\\<em>a</em>",
    "<s>a <em>b</em></s>",
    "<em><s>a</s></em>",
    "<s><em><strong>a</strong></em></s>",
    "<em>a<br>b</em>",
    "<strong>a<br>b <em>c<br>d</em></strong>",
    "<em>a</em><br><em>b</em>",
    '[a <em>[b <a href="https://e.example/x">c</a>](d)</em>]',
    '<a href="https://e.example/x"><em>a <strong>b</strong></em></a>',
    "<em><code>a</code></em>",
    "<code>a</code> <code>b</code>",
]
"""Paragraphs that a parser reads as they were."""


@pytest.mark.parametrize("markup", AGAIN)
def test_a_paragraph_is_read_again_as_it_was(markup: str) -> None:
    assert PARSER.render(markdown(f"<p>{markup}</p>")) == f"<p>{markup.replace('<br>', '<br />' + chr(10))}</p>" + chr(
        10
    )


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("a<em>(b)</em>c", "a(b)c"),  # No mark would be recognized there, and none is left.
        ("a<em><strong>'b'</strong></em>c", "a'b'c"),
        ("a<strong>b.<em>(c)</em></strong>d", "ab.(c)d"),
        ("<em>a <em>b</em> c</em>", "*a b c*"),
        ("<strong><em>a</em></strong>", "***a***"),
        ("<em> a </em>b<em> </em>", "*a* b"),
        ("<em><strong> a</strong> </em>b", "***a*** b"),
        ("<strong>a<br></strong><br>b", "**a**\\\n\\\nb"),
        ("<code>a</code><code>(`)</code>", "``a(`)``"),
        ("<code> a  b </code>", "`a b`"),
        # matthewwithanm/python-markdownify test_conversions.py: spaces at the beginning of an element divide words.
        ("a<a href=/x> b</a> c", "a [b](https://e.example/x) c"),
        ("a<u> b</u>c <a href=/x><b> d</b></a>", "a bc [**d**](https://e.example/x)"),
    ],
)
def test_what_has_no_markdown_is_written_as_the_next_best(markup: str, expected: str) -> None:
    assert markdown(f"<p>{markup}</p>") == expected


@pytest.mark.parametrize("tag", ["ul", "ol"])
@pytest.mark.parametrize("item", ["<hr>", "<hr><p>a</p>", "a<hr>", "<ul><li><hr></li></ul>"])
def test_a_rule_in_an_item_stays_in_it(tag: str, item: str) -> None:
    for lists in (1, 2):  # The second has another mark.
        body = f"<p>Before</p>{f'<{tag}><li>Foo</li><li>{item}</li></{tag}>' * lists}<p>After</p>"
        opened = [token.type for token in PARSER.parse(markdown(body))]
        assert opened.count("hr") == lists
        assert opened.count("list_item_open") == lists * (2 + item.count("<li>"))
        last = len(opened) - 1 - opened[::-1].index("hr")
        assert opened[last:].count(f"{'bullet' if tag == 'ul' else 'ordered'}_list_close") >= 1


@pytest.mark.parametrize(
    ("head", "row", "expected"),
    [
        ("<th align=right>a<th>b", "<td>1<td>2", "| ---: | --- |"),
        ("<th style='color: red; TEXT-ALIGN:Center'>a<th align=LEFT>b", "<td>1<td>2", "| :---: | :--- |"),
        ("<th>a<th>b", "<td>1<td align=right>2", "| --- | ---: |"),
        ("<th align=left>a<th>b", "<td align=right>1<td style='text-align: center'>2", "| :--- | :---: |"),
        ("<th colspan=2 align=center>a<th align=right>b", "<td>1<td align=left>2<td>3", "| :---: | :--- | ---: |"),
        ("<th align=justify>a<th style='text-align:inherit'>b", "<td>1<td>2", "| --- | --- |"),
    ],
)
def test_columns_keep_their_alignment(head: str, row: str, expected: str) -> None:
    text = markdown(f"<table><thead><tr>{head}</thead><tbody><tr>{row}</tbody></table>")
    assert text.splitlines()[1] == expected
    assert read_again(text)[2] == 2


def test_what_is_not_chosen_is_left_out_with_the_pictures_beside_it() -> None:
    body = "<nav><ul><li><a href=x><img src=a>n</a></ul></nav><p>one<p><img src=b alt=c><p>two<footer><img src=d>"
    body += "f</footer>"
    assert markdown(body, [False, True, True, False]) == "one\n\n![c](https://e.example/d/b)\n\ntwo"


@pytest.mark.parametrize(
    ("markup", "chosen", "expected"),
    [
        ("<img src=a><hr><h1>one</h1>", [True], "{a}\n\n---\n\n# one"),
        ("<hr><p>one", [True], "one"),
        ("<main><figure><img src=a></figure><p>one</main>", [True], "{a}\n\none"),
        ("<nav><img src=b>n</nav><img src=c><main><img src=a><p>one</main>", [False, True], "{a}\n\none"),
        ("<p>n<img src=b><figure><img src=c></figure><p>one", [False, True], "one"),
    ],
)
def test_a_picture_before_the_first_text_belongs_to_what_holds_both(
    markup: str, chosen: list[bool], expected: str
) -> None:
    assert markdown(markup, chosen) == expected.format(a="![](https://e.example/d/a)")


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def read_again(text: str) -> tuple[str, int, int]:
    """Return the words that a parser finds in Markdown, and how many links and rows of tables."""
    tokens = [one for token in PARSER.parse(text) for one in (token, *(token.children or ()))]
    plain = " ".join(one.content for one in tokens if one.type in ("text", "code_inline", "fence", "text_special"))
    links = sum(one.type == "link_open" for one in tokens)
    return plain, links, sum(one.type == "tr_open" for one in tokens)


@pytest.mark.heavy
def test_documentation_is_read_again_as_it_was_written() -> None:
    """Each table and each link of the Markdown is one to a parser, and no marks are left among the words."""
    pages = [path.read_text() for path in sorted(DOCUMENTATION.glob("library/*.html"))[::16]]
    pages = [page for page in pages if len(page) < 200_000] or [body for body, _ in WRITTEN]
    for page in pages:
        text = markdown(page)
        plain, links, rows = read_again(text)
        fenced = re.sub(r"^( *)(`{3,}).*?\n\1\2$", "", text, flags=re.MULTILINE | re.DOTALL)
        written = [
            line for line in re.findall(r"^(?:[> ]|- )*\|.*\|$", fenced, re.MULTILINE) if re.search("[^|: >-]", line)
        ]
        assert rows == len(written)
        assert links == len(re.findall(r"(?<!\\)\]\(<?https?://", fenced)) - len(re.findall(r"!\[", fenced))
        assert "](" not in plain
        assert "**" not in re.sub(r"\*\*\w|\w\*\*|\*\* ", "", plain) or "**" in page


@pytest.mark.parametrize("seed", range(100))
def test_any_soup_is_written_the_same_each_time_and_loses_no_words(seed: int) -> None:
    body = soup(random.Random(seed), 60)
    text = markdown(body)
    assert markdown(body) == text
    made = outline_of(body, 1_000)
    assert made is not None
    kept_words = sum(len(words(block.text)) for block in made.blocks)
    assert len(words(read_again(text)[0])) >= 0.8 * kept_words - 5
