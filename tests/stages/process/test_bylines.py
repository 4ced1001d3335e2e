"""Bylines: authors whom the text, the classes and the posts around a heading name.

The shapes are those of pages of the Web Content Extraction Benchmark and of trafilatura's evaluation.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gossamer.stages.process.metadata import Metadata

from .test_content_modules import found

ORGANIZATION = """<script type="application/ld+json">{"@type": "Article", "author": {"@type": "Organization",
"name": "Example News"}}</script>"""


@pytest.mark.parametrize(
    ("lines", "byline"),
    [
        ("<p>By Ann Lee</p>", "Ann Lee"),
        ("<p>Written by</p><p>Ann</p>", "Ann"),
        ("<div>By</div><div>Ann de la Cruz</div>", "Ann de la Cruz"),
        ("<p>By <!-- -->Ann Lee<!-- --></p>", "Ann Lee"),
        ("<p>ByAnn Lee</p>", "Ann Lee"),
        ("<p>Published August 7, 2023 <span>by Ann Lee</span></p>", "Ann Lee"),
        ("<p>March 15, 2022 · 3 min read · By Ann Lee</p>", "Ann Lee"),
        ("<p>By Ann Lee ⋅ Senior Editor ⋅ Updated May 6, 2025</p>", "Ann Lee"),
        ("<p>By Ann Lee, Chief of Staff at Example</p>", "Ann Lee"),
        ("<p>By Ann Lee, Privacy and Home Expert</p>", "Ann Lee"),
        ("<p>By Ann Lee, Bob Roe and Cy Poe</p>", "Ann Lee, Bob Roe and Cy Poe"),
        ("<p>By Ann Lee and Bob Roe on May 6, 2024</p>", "Ann Lee and Bob Roe"),
        ("<p>Von Ann Lee Fr, 18. Oktober 2019</p>", "Ann Lee"),
        ("<p>Par Ann Lee</p>", "Ann Lee"),
        ("<p>Autorin: Ann Lee</p>", "Ann Lee"),
        ("<p>Author(s)</p><p>Ann Lee</p>", "Ann Lee"),
        ("<p>Posted by ann42 on May 6</p>", "ann42"),
        ("<p>Thread starter</p><p>ann42</p>", "ann42"),
        ("<p>By Theresa May</p>", "Theresa May"),
        ("<p>Reviewed by Ann Lee</p>", None),
        ("<p>Stand by me, and by Tuesday it is done.</p>", None),
        ("<p>By the way, this is how it began.</p>", None),
        ("<p>By default, nothing is kept.</p>", None),
        ("<p>By Default</p>", None),
        ("<p>Von Berlin nach Paris</p>", None),
        ("<p>BY POPULAR DEMAND</p>", None),
        ("<p>Written by</p><p>the staff of Example.</p>", None),
        (f"<p>{'Long lines hold no names. ' * 20}By Ann Lee</p>", None),
    ],
)
def test_a_line_beside_the_heading_names_the_author(lines: str, byline: str | None) -> None:
    assert found(Metadata(), f"<h1>Title</h1>{lines}<p>Text.</p>").columns.get("byline") == byline


@pytest.mark.parametrize(
    ("element", "byline"),
    [
        ("<div class='post-author'>Ann Lee</div>", "Ann Lee"),
        ("<div class=author><span>By</span> <b>Ann Lee</b><i>Tech Reporter</i></div>", "Ann Lee"),
        ("<p class='c-byline small'>View all posts by Ann Lee</p>", "Ann Lee"),
        ("<p class=byline>ANN LEE</p>", "ANN LEE"),
        ("<p class=author>AL</p><p>By Ann Lee</p>", "Ann Lee"),
        ("<p class=author>The best of all keyboards</p>", None),
        ("<p class=author>admin</p>", None),
        ("<p class=authority>Ann Lee</p>", None),
        ("<div><p class=author>Ann Lee</p></div><div><p class=author>Bob Roe</p></div>", None),
        ("<a href=/author/ann>Ann Lee</a>" + "<p>Text.</p>" * 900 + "<a href=/author/bob>Bob Roe</a>", "Ann Lee"),
    ],
)
def test_an_element_beside_the_heading_names_the_author(element: str, byline: str | None) -> None:
    assert found(Metadata(), f"<h1>Title</h1>{element}").columns.get("byline") == byline


def test_a_person_comes_before_an_organization_of_the_markup() -> None:
    person = "<h1>Title</h1><p>By Ann Lee</p>"
    assert found(Metadata(), ORGANIZATION + person).columns["byline"] == "Ann Lee"
    assert found(Metadata(), ORGANIZATION + "<h1>Title</h1><p>By Example News</p>").columns["byline"] == "Example News"
    assert found(Metadata(), f"<meta name=author content='Bob Roe'>{person}").columns["byline"] == "Bob Roe"


def test_lines_of_a_product_name_no_author() -> None:
    product = '<script type="application/ld+json">{"@type": "Product"}</script><h1>Title</h1>'
    assert "byline" not in found(Metadata(), product + "<p>By Ann Lee</p><p class=author>Bob Roe</p>").columns


QUESTION = "<div itemscope itemtype=https://schema.org/QAPage><h1>How?</h1><p>May 6, 2024 at 3:04 pm</p>"
NAMED = "<div itemprop=author itemscope><a href=/u/ann>ann42</a><meta itemprop=name content=ann42></div>"


@pytest.mark.parametrize(
    "posts",
    [
        f"{QUESTION}{NAMED}<p>Text.</p>{NAMED.replace('ann42', 'bob')}",
        f"{QUESTION}{'<p>Text.</p>' * 3_000}{NAMED}{NAMED.replace('ann42', 'bob')}",
        (
            "<a href='./memberlist.php?mode=viewprofile&u=1' class=username>ann42</a> » Mon May 06, 2024 3:04 pm<p>T."
            "<a href='./memberlist.php?mode=viewprofile&u=2' class=username>bob</a> » Tue May 07, 2024 3:04 pm"
        ),
        (
            "<a class=bigusername href='member.php?u=1'>ann42</a><p>6th May 2024, 15:04</p><p>Text.</p>"
            "<a class=bigusername href='member.php?u=2'>bob</a><p>7th May 2024, 15:04</p>"
        ),
        (
            "<a href=#p1>2024-05-06 15:04:00</a><dl class=postleft><dt><b>ann42</b></dt><dd>Joined: 2011-02-03"
            "</dd></dl><p>Text.<a href=#p2>2024-05-07 15:04:00</a><dl class=postleft><dt><strong>bob</strong></dt></dl>"
        ),
    ],
    ids=["microdata", "far", "phpBB", "vBulletin", "FluxBB"],
)
def test_the_first_post_of_a_thread_gives_its_author_and_date(posts: str) -> None:
    columns = found(Metadata(), f"<title>Thread</title>{posts}").columns
    assert columns["byline"] == "ann42"
    if "» " in posts or "postleft" in posts or "bigusername" in posts:
        assert columns["published"] == datetime(2024, 5, 6, 15, 4, tzinfo=UTC)
