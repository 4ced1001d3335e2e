"""Pages as browsers read them: the trees of html5lib's tests, SVG and MathML, shadow roots and `<noframes>`."""

import json
from pathlib import Path

import pytest

from gossamer.stages.process.chain import Modules
from gossamer.stages.process.content import MainText, Markdown
from gossamer.stages.process.embeds import resources_in
from gossamer.stages.process.foreign import closes_itself, end_of_plain_root
from gossamer.stages.process.html import Markup, TreeMarkup
from gossamer.stages.process.metadata import json_ld
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.raw import SCRIPT_MARKS_MAX
from gossamer.stages.process.scan import ScannedMarkup

from .pages import SCAN, TREE, findings, page

TREES = json.loads((Path(__file__).parent / "data" / "trees.json").read_text())

KNOWN = {
    "elements": {
        # A frame is one only in a frameset, which a page has only where nothing else is; to the scan it is always one.
        "<frame>test",
        "<!DOCTYPE html><body><frame>A",
        "<!doctype html><svg>a</svg><frameset><frame>",
        "<frame></frame></frame><frameset><frame><frameset><frame></frameset><noframes></frameset><noframes>",
        "<frameset><template><frame></frame></template></frameset>",
    },
    "text": {
        # A frameset holds no text.
        "<!DOCTYPE html><frameset>test",
        "<!DOCTYPE html><frameset> te st",
        "<!DOCTYPE html><frameset></frameset> te st",
        "<frameset></frameset>\nfoo",
        "<!doctype html><html><frameset></frameset></html>abc",
        # Python drops characters that are none.
        "FOO&#x10FFFE;ZOO",
        "FOO&#x10FFFF;ZOO",
        # Within <noframes> the links are read, and so the comments.
        "<!doctype html><noframes><!--<noframes></noframes>--></noframes>",
        "<noframes><!--<noframes></noframes>--></noframes>",
        # The text of the chosen option appears twice.
        "<select><button><selectedcontent></button><option>X",
        "<select><button><selectedcontent></button><option>x<i>i<b>ib</i>b",
        "<select><button><selectedcontent></button><option>X<option>Y",
        "<select><button><selectedcontent></button><option>X<option selected>Y",
    },
}
"""Pages that the scan reads otherwise than browsers, and why."""


def read(markup: Markup) -> dict[str, object]:
    return {
        "links": sorted({anchor[0] for anchor in markup.anchors}),  # Misnested anchors are repeated by the tree.
        "elements": [tag for tag, _ in markup.elements],
        "title": " ".join((markup.title or "").split()),
    }


def test_both_readers_find_what_a_browsers_tree_holds() -> None:
    others: dict[str, set[str]] = {"elements": set(), "text": set()}
    for body, links, elements, title, text in TREES:
        expected = {"links": sorted(set(links)), "elements": elements, "title": title, "text": sorted(text)}
        scan = ScannedMarkup(body.encode())
        scanned, tree = read(scan), read(TreeMarkup(body.encode()))
        assert tree == {name: expected[name] for name in tree}, body
        scanned["text"] = sorted("".join(scan.text().split()))  # Text before a table's cells is moved to before it.
        for name, found in scanned.items():
            if found != expected[name]:
                assert name in others, (body, found)
                others[name].add(body)
    assert others == KNOWN
    assert len(TREES) == 1548


DRAWINGS = [
    "<svg><title/><path d='M0'/></svg>",
    "<svg><defs><style/></defs></svg>",
    "<svg><script href='x.js'/></svg>",
    "<svg><textarea/><iframe/><xmp/><noembed/><plaintext/></svg>",
    "<svg><template/></svg>",
    "<svg><g><title/><desc/></g><title>Drawing</title></svg>",
    "<svg viewBox='0 0 1 1'><style>.a > b { c: d }</style><style type=text/css /></svg>",
    "<svg><title>not ended</svg>",
    "<SVG><TITLE/></SVG>",
    "<svg\n/><svg><title\n/></svg>",
    "<math><title/><mi>x</mi><style/></math>",
    "<math><annotation-xml encoding='text/html'><p>a</p></annotation-xml><script/></math>",
    "<math><mtext><b>a</b></mtext><title/></math>",
    "<svg><foreignObject><div><svg><title/></svg><title>HTML's</title></div></foreignObject><style/></svg>",
    "<svg><desc><b>a</b></desc><title/></svg>",
    "<svg><svg><title/></svg><title/></svg>",
    "<svg><![CDATA[<title>]]><title/></svg>",
    "<svg><style><![CDATA[ a > b </style> ]]></style></svg>",
    "<svg><font class=x/><title/><font color=red></svg>",
    "<svg><p>breaks out</p><svg><title/></svg>",
    "<svg><!-- </svg> --><title/></svg>",
    "<svg><a xlink:href=inner><text>t</text></a><title/></svg>",
    "<svg></div><title/></svg>",
    "<svg/><svg a='>'/><svg><title/></svg>",
]


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_a_drawing_ends_where_it_ends_for_a_browser(drawing: str) -> None:
    data = '<script type=\'application/ld+json\'>{"@type":"Article"}</script>'
    body = f"<title>T</title><a href=one>1</a>{drawing}<p>Words</p><img src=i>{data}<a href=two>2</a>".encode()
    scanned, tree = ScannedMarkup(body), TreeMarkup(body)
    assert [one[0] for one in scanned.anchors] == [one[0] for one in tree.anchors]
    assert {"one", "two"} <= {one[0] for one in scanned.anchors}
    assert scanned.title == tree.title == "T"
    assert scanned.text().splitlines()[-2:] == ["Words", "2"]
    assert json_ld(body, 1000) == [{"@type": "Article"}]
    assert ("i", "") in list(resources_in(body))


@pytest.mark.parametrize("raw", ["title", "style", "script", "textarea", "xmp", "iframe"])
def test_in_html_a_slash_closes_nothing(raw: str) -> None:
    body = f"<svg><path/></svg><svg><foreignObject><{raw}/><a href=x>n</a></{raw}></foreignObject></svg>".encode()
    assert ScannedMarkup(body).anchors == []
    assert TreeMarkup(body).anchors == []


@pytest.mark.parametrize("reader", [ScannedMarkup, TreeMarkup])
def test_elements_of_a_drawing_are_not_those_of_html(reader: type[Markup]) -> None:
    body = b"<svg><g><title>no</title></g><base href=no><link rel=next href=no></svg><title>T</title><base href=b>"
    markup = reader(body)  # type: ignore[call-arg]  # a protocol
    assert markup.title == "T"
    assert [tag for tag, _ in markup.elements] == ["base"]


def test_the_text_of_a_drawing_is_what_it_shows() -> None:
    body = b"<p>a<svg><title>no</title><style>no</style><text>shown</text><![CDATA[ 1 < 2 &amp; ]]></svg>b"
    assert ScannedMarkup(body).text() == "ashown 1 < 2 &amp; b"


@pytest.mark.parametrize(
    ("tag", "closes"),
    [
        (b"/", True),
        (b" /", True),
        (b" a='b'/", True),
        (b' a="x=b"/', True),
        (b" a=b /", True),
        (b" a/", True),
        (b" a=b/", False),
        (b" a=/", False),
        (b" a = b/", False),
        (b"", False),
        (b" /a", False),
    ],
)
def test_a_slash_after_a_bare_value_is_part_of_it(tag: bytes, closes: bool) -> None:
    assert closes_itself(tag) is closes


@pytest.mark.parametrize(
    ("comment", "is_plain"),
    [("<!-- a notice -->", True), ("<!---->", True), ("<!-- <title> -->", False), ("<!-->", False), ("<!-- x", False)],
)
def test_a_drawing_with_a_comment_is_passed_over_in_one_step(comment: str, is_plain: bool) -> None:
    """Icon fonts have a notice in each drawing. What a comment hides, or whether it ends, must not be guessed."""
    drawing = f"<svg>{comment}<path d='m0'/></svg>".encode()
    assert end_of_plain_root(drawing + b"<p>", 0) == is_plain * len(drawing)


def test_of_a_script_with_too_many_comments_the_next_end_tag_counts() -> None:
    body = b"<script>" + b"<!--<script></script>-->" * SCRIPT_MARKS_MAX + b"</script><a href=x>n</a>"
    assert [one[0] for one in ScannedMarkup(body).anchors] == ["x"]


SHADOW = "<div>light<template shadowrootmode={}><p>In the <a href=x>shadow</a> root.</p></template></div>"


@pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])
@pytest.mark.parametrize("mode", ["open", "closed", "OPEN", "'closed' shadowrootdelegatesfocus"])
def test_a_shadow_root_is_part_of_the_page(mode: str, options: ProcessOptions) -> None:
    found = findings("<title>T</title>" + SHADOW.format(mode), options)
    assert [link.url for link in found.links] == ["https://example.org/dir/x"]
    assert findings(SHADOW.format(mode), SCAN).text == "light\nIn the shadow root."
    assert found.title == "T"


@pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])
@pytest.mark.parametrize(
    "body",
    [
        SHADOW.format("''"),
        SHADOW.format("no"),
        SHADOW.format("open").replace("shadowrootmode", "shadowroot"),
        f"<template>{SHADOW.format('open')}</template>light",
        SHADOW.format("open").replace("<p>", "<template>").replace("</p>", "</template>"),
    ],
)
def test_another_template_is_not(body: str, options: ProcessOptions) -> None:
    found = findings(body, options)
    assert found.links == []
    assert findings(body, SCAN).text == "light"


def test_a_shadow_root_is_in_the_main_text_and_in_markdown() -> None:
    body = "<article><h1>Head</h1>" + SHADOW.format("open") + "<template>never</template>" + "<p>More words.</p>" * 5
    processed = Modules([MainText(TREE), Markdown(TREE)], TREE).process(page(body))
    assert processed.errors == ()
    assert "In the shadow root." in str(processed.findings.columns["main_text"])
    assert "In the [shadow](https://example.org/dir/x) root." in str(processed.findings.columns["markdown"])
    assert "never" not in str(processed.findings.columns)


def test_resources_of_a_shadow_root_are_embedded() -> None:
    body = (
        b"<div><template shadowrootmode=open><img src=a></template><template><img src=no></template></div><img src=b>"
    )
    assert [address for address, _ in resources_in(body)] == ["a", "b"]


@pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])
@pytest.mark.parametrize(
    "body",
    [
        "<frameset><frame src=f><noframes>No frames? <a href=x>Here</a></noframes></frameset>",
        "<FRAMESET><FRAME SRC=f></FRAMESET><NOFRAMES><BODY><A HREF=x>Here</A></BODY></NOFRAMES>",
        "<frameset><frame src=f></frameset><noframes><title>no</title><base href=no/><a href=x>Here</a>",
        "<frameset><frame src=f><noframes><p><a href=x>Here</a><img src=i></p></noframes></frameset>",
        "<frameset><frame src=f><noframes><meta name=robots content=noindex><a href=x>Here</a></noframes></frameset>",
    ],
)
def test_links_within_noframes_count_but_nothing_else(body: str, options: ProcessOptions) -> None:
    found = findings(body, options)
    assert [link.url.removeprefix("https://example.org/dir/") for link in found.links] == ["x", "f"]
    assert found.text == ""
    assert found.title == ""
