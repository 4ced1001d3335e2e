"""Facts: dates, authors, licenses and types, from JSON-LD and from meta elements."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.facts import date_within, moment
from gossamer.stages.process.metadata import Metadata

from .test_content_modules import found

JSON_LD = """<script type="application/ld+json">{"@graph": [{"@type": ["BlogPosting", "https://schema.org/Article"],
"datePublished": "2024-02-03T04:05:06+01:00", "dateModified": "soon", "author":
[{"name": "First  Author"}, "Second Author", {}],
"license": {"url": "https://l.example/by"}}]}</script>"""


def test_json_ld_comes_first() -> None:
    columns = found(Metadata(), JSON_LD + "<meta name=author content=Other><meta name=date content=2000-01-01>").columns
    assert columns["published"] == datetime(2024, 2, 3, 3, 5, 6, tzinfo=UTC)
    assert columns["byline"] == "First Author, Second Author"
    assert columns["license"] == "https://l.example/by"
    assert columns["schema_types"] == ["BlogPosting", "Article"]
    assert "modified" not in columns


def test_meta_elements_and_links_come_second() -> None:
    body = """<meta property="article:published_time" content="2024-01-02">
    <meta itemprop=dateModified content="2024-01-03">
    <meta name=article:author content=https://p.example/first><meta name=dc.creator content="By First Author">
    <p>Under <a rel="license nofollow" href=/cc>CC</a>"""
    columns = found(Metadata(), body).columns
    assert columns["published"] == datetime(2024, 1, 2, tzinfo=UTC)
    assert columns["modified"] == datetime(2024, 1, 3, tzinfo=UTC)
    assert columns["byline"] == "First Author"
    assert columns["license"] == "https://example.org/cc"
    assert found(Metadata(), "<link rel=license href=x>" + body).columns["license"] == "https://example.org/dir/x"


@pytest.mark.parametrize(
    ("body", "published", "modified"),
    [
        ('<time class="entry-date published" datetime="2024-01-02">a</time><time datetime=2023-01-01>', (1, 2), None),
        (
            "<time itemprop=datePublished datetime=2024-01-02><time itemprop=dateModified datetime=2024-01-03>",
            (1, 2),
            (1, 3),
        ),
        ("<time itemprop=datePublished content=2024-01-02>January</time><time datetime=2023-01-01>", (1, 2), None),
        ("<time pubdate datetime=2024-01-02><time class='updated' datetime=2024-01-03>", (1, 2), (1, 3)),
        ("<p><time datetime=2024-01-02>one</time> and <time datetime=2024-01-02>again</time>", (1, 2), None),
        ("<time datetime=2024-01-02><time datetime=2024-01-03>", None, None),
        ("<time datetime=P2D><p class=date>Friday", None, None),
        ("<time>2024-01-02</time>", (1, 2), None),
        ("<time class=published><b>Jan</b> 2nd, 2024</time><time class=updated>3. Jänner 2024</time>", (1, 2), None),
        ("<span class=entry-date>am Dienstag, 2. Januar 2024</span>", (1, 2), None),
        ("<p class=date>2/1/2024</p><p class='post-date'>Updated on January 3, 2024</p>", None, (1, 3)),
        ("<i class=date>02.01.2024</i><i class=date>03.01.2024</i>", None, None),
        ("<i class=date>02.01.2024</i><i class=comment-date>03.01.2024</i>", (1, 2), None),
        ("<time datetime=2024-01-02>a</time><i class=date>03.01.2024</i>", (1, 2), None),
        ("<i property='schema:dateCreated' content=2024-01-02></i><i property=dc:date>2023-01-01</i>", (1, 2), None),
        ("<time itemprop=datePublished datetime='02/01/2024'>2 January 2024</time>", (1, 2), None),
        ("<time class='entry-date published updated' datetime=2024-01-02>", (1, 2), (1, 2)),
        (
            "<time class='updated entry-date' datetime=2024-01-03><time class=published datetime=2024-01-02>",
            (1, 2),
            (1, 3),
        ),
        ("<time itemprop='datePublished dateModified' datetime=2024-01-02><time datetime=2023-01-01>", (1, 2), (1, 2)),
        (
            "<time class=post-date datetime=2024-01-02><time class='post-date modified' datetime=2024-01-03>",
            (1, 2),
            (1, 3),
        ),
        ("<time class=unpublished datetime=2024-01-02><time datetime=2024-01-04>", None, None),
        ('<span itemprop="datePublished" content="2024-01-02">January</span><time datetime=2023-01-01>', (1, 2), None),
        ("<abbr class='published' title='2024-01-02'>x</abbr><abbr class=updated title=2024-01-03>y", (1, 2), (1, 3)),
        ("<DIV itemprop='name dateModified' content=2024-01-03><p title=2024-01-02 class=published>", None, (1, 3)),
        ("<!-- <span itemprop=datePublished content=2024-01-02> --><span title=2024-01-02>", None, None),
        ("<span itemprop=startDate content=2024-01-05><abbr class=dtstart title=2024-01-05>", None, None),
        ("<script>'<span itemprop=datePublished content=2024-01-02>'</script>", None, None),
    ],
)
def test_dates_of_elements_come_last(
    body: str, published: tuple[int, int] | None, modified: tuple[int, int] | None
) -> None:
    expected = {
        name: datetime(2024, *day, tzinfo=UTC)
        for name, day in (("published", published), ("modified", modified))
        if day is not None
    }
    columns = found(Metadata(), body).columns
    assert {name: columns[name] for name in ("published", "modified") if name in columns} == expected
    stated = found(Metadata(), "<meta name=date content=2020-01-01>" + body).columns
    assert stated["published"] == datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("url", "body", "published", "modified"),
    [  # Pages of WCXB and of htmldate's evaluation, by their form.
        ("", "<p>Jun 5, 2024</p><h1>A</h1>", "2024-06-05", None),
        ("", "<h1>A</h1><p>By <a href=/v>Dr. V Osman</a> - Jun 5, 2024</p>", "2024-06-05", None),
        ("", "<h1>A</h1><div>Published on June 5, 2024</div>", "2024-06-05", None),
        ("", "<h1>A</h1><i>June 5, 2024 \u30fb 3 min read</i>", "2024-06-05", None),
        ("", "<h1>A</h1><p>05.06.2024</p>", "2024-06-05", None),
        ("", "<h1>A</h1><p>jeudi 13 juin 2019 par Anne</p>", "2019-06-13", None),
        ("", "<h1>A</h1><span>June 5, 2024</span> <span>- Updated July 9, 2025</span>", "2024-06-05", "2025-07-09"),
        ("", "<h1>A</h1><p>Last updated: July 9, 2025</p>", None, "2025-07-09"),
        ("", "<h1>A</h1><p>Joined: June 5, 2024</p><p>Copyright June 5, 2024</p>", None, None),
        ("", "<h1>A</h1><p>On June 5, 2024 the council met again for a vote.</p>", None, None),
        ("", "<h1>A</h1><p>28 January 1975</p>", None, None),  # Of birth.
        ("", "<h1>News</h1><p>June 5, 2024</p><p>June 4, 2024</p>", None, None),
        ("", "<h1>News</h1>" + "<p>June 5, 2024</p>" * 3, None, None),
        ("", "<h1>A</h1><p style='display:none'>June 5, 2024</p>", None, None),
        ("", "<h1>A</h1>" + "<p>word</p>" * 800 + "<p>June 5, 2024</p>", None, None),
        ("", "<p>June 5, 2024</p>", None, None),
        ("", "<script>'<p>June 5, 2024</p>'</script><h1>A</h1>", None, None),
        (
            "",
            '<script type="application/ld+json">{"@type":"Product"}</script><h1>A</h1><p>June 5, 2024</p>',
            None,
            None,
        ),
        ("", "<time datetime=2024-06-05T10:00><h1>A</h1><time datetime=2024-06-06T10:00>", "2024-06-05", None),
        ("", "<time datetime=2024-06-06T10:00><time datetime=2024-06-05T10:00>", None, None),
        ("", "<time datetime=2024-06-05><h1>A</h1><p>7 June 2024</p><time datetime=2024-06-06>", "2024-06-07", None),
        (
            "",
            "<h1>A</h1><p>Jun 5, 2024<p><time datetime=2024-03-02></time><time datetime=2024-02-01></time>",
            "2024-06-05",
            None,
        ),  # kepano/defuddle#295
        ("", "<h1>A</h1><p>06-05-2024, 10:00</p><p>06-06-2024, 10:00</p>", None, None),
        ("", "<i class=date>06-05-2024</i><i class=date>06-06-2024</i>", None, None),  # MyBB
        ("", "<h1>A</h1><i>Wed Jun  5 23:30:00 EDT 2024</i>", "2024-06-05", None),  # Mailman
        (
            "",
            "<span class=age title='2024-06-05T09:00:00 1717578000'>3 hours</span>",
            "2024-06-05",
            None,
        ),  # Hacker News
        ("", "".join(f"<i class=age title='2024-06-05T09:0{minute}:00'></i>" for minute in (2, 1, 0)), None, None),
        ("", "<relative-time datetime=2024-06-05T10:00:00Z>5 Jun</relative-time>", "2024-06-05", None),  # GitHub
        ("2024/06/05/a", "", "2024-06-05", None),
        ("2024-6-5-a.html", "<p>text", "2024-06-05", None),
        ("2024/06/05/", "", None, None),
        ("2024/13/05/a", "", None, None),
    ],
)
def test_dates_around_the_heading_and_in_the_address_come_last(
    url: str, body: str, published: str | None, modified: str | None
) -> None:
    findings = Findings()
    Metadata().process(Page(f"https://x.test/{url}", "text/html", "utf-8", (), body.encode()), findings)
    columns = findings.columns
    assert [str(columns.get(name))[:10] for name in ("published", "modified")] == [str(published), str(modified)]


@pytest.mark.parametrize(
    ("meta", "column"),
    [  # htmldate's unit_tests
        ("http-equiv=last-modified content=2024-01-02", "modified"),
        ("http-equiv=date content=2024-01-02", "published"),
        ("name=created content=2024-01-02", "published"),
        ("name=DC.Issued content=2024-01-02", "published"),
        ("property=og:regDate content=20240102000000", "published"),
        ("itemprop=datecreated datetime=2024-01-02", "published"),
        ("name=published content='January 2, 2024'", "published"),  # Splunk
        ("property=vr:published_time content=2024-01-02", "published"),
        ("name=cXenseParse:recs:publishtime content=2024-01-02", "published"),
        ("name=shareaholic:article_published_time content=2024-01-02", "published"),
        ("name='Updated Date' content=2024-01-02", "modified"),  # Oracle
        ("name=ms.date content=2024-01-02T00:00:00Z", "modified"),  # Microsoft Learn
    ],
)
def test_old_and_odd_names_of_meta_elements(meta: str, column: str) -> None:
    assert found(Metadata(), f"<meta {meta}>").columns[column] == datetime(2024, 1, 2, tzinfo=UTC)


def test_links_name_author_and_license() -> None:
    by = "<a href='http://creativecommons.org/licenses/by-sa/4.0/deed.en'>CC</a>"
    columns = found(Metadata(), f"<p>By <a rel=author href=/ann>Ann Writer</a>. {by} {by}").columns
    assert columns["byline"] == "Ann Writer"
    assert columns["license"] == "http://creativecommons.org/licenses/by-sa/4.0/"
    several = by + "<a href=https://creativecommons.org/publicdomain/zero/1.0/>0</a>"
    assert "license" not in found(Metadata(), several).columns
    assert found(Metadata(), several + "<a rel=license href=/own>").columns["license"] == "https://example.org/own"


def test_open_graph_has_columns_of_its_own() -> None:
    body = "<meta property=og:type content=article><meta property=og:image content=/i.png>"
    body += "<meta property=og:image content=2>"
    columns = found(Metadata(), body + "<meta property=og:site_name content='The  Site'>").columns
    assert (columns["og_type"], columns["og_site_name"]) == ("article", "The Site")
    assert columns["og_image"] == "https://example.org/i.png"
    assert "description" not in columns
    body += "<meta property=og:description content=' '><meta property=og:description content=Words>"
    assert found(Metadata(), body).columns["description"] == "Words"
    assert found(Metadata(), body + "<meta name=description content=Own>").columns["description"] == "Own"
    assert found(Metadata(), "<meta name=twitter:description content=Card>").columns["description"] == "Card"


def test_a_meta_element_can_have_several_names_and_an_empty_one_says_nothing() -> None:
    body = (
        "<html xml:lang=de><meta name=description content=' '><meta property=og:image content=''>"
        "<meta name=Description property='og:description twitter:description' content=Words>"
        "<meta property=og:image content=/i.png><meta name=author property=article:author content=Ann>"
    )
    columns = found(Metadata(), body).columns
    assert (columns["description"], columns["byline"], columns["declared_language"]) == ("Words", "Ann", "de")
    assert columns["og_image"] == "https://example.org/i.png"
    graph = cast("dict[str, list[str]]", columns["open_graph"])
    assert graph["og:description"] == graph["twitter:description"] == ["Words"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-05-06", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024-05-06 07:08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("2024-05-06T07:08:09.123Z", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024-05-06T07:08:09+0200", datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)),
        ("Mon, 06 May 2024 07:08:09 GMT", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024/05/06", datetime(2024, 5, 6, tzinfo=UTC)),
        ("20240506", datetime(2024, 5, 6, tzinfo=UTC)),
        ("202405067", None),
        ("2024-05/06", None),
        ("May 6, 2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("6. September 2024", datetime(2024, 9, 6, tzinfo=UTC)),
        ("6 May 2024 07:08:09 +0100", datetime(2024, 5, 6, 6, 8, 9, tzinfo=UTC)),
        ("2024-05-06 7:08 PM", datetime(2024, 5, 6, 19, 8, tzinfo=UTC)),
        ("May 6, 2024 12:08:09 a.m.", datetime(2024, 5, 6, 0, 8, 9, tzinfo=UTC)),
        ("6 May 2024 12:08 pm +0100", datetime(2024, 5, 6, 11, 8, tzinfo=UTC)),
        ("6 May 2024 19:08 PM", datetime(2024, 5, 6, 19, 8, tzinfo=UTC)),
        ("Mon, 06 May 2024 07:08:09 +01:00", datetime(2024, 5, 6, 6, 8, 9, tzinfo=UTC)),
        ("2024-05-06 07:08 CEST", datetime(2024, 5, 6, 5, 8, tzinfo=UTC)),
        ("6 May 2024 12:08 pm EST", datetime(2024, 5, 6, 17, 8, tzinfo=UTC)),
        ("2024-05-06T07:08:09-08:00", datetime(2024, 5, 6, 15, 8, 9, tzinfo=UTC)),
        ("6 May 2024, at 07:08 -08:00", datetime(2024, 5, 6, 15, 8, tzinfo=UTC)),
        ("May 6, 2024 07:08 AM ET", datetime(2024, 5, 6, 12, 8, tzinfo=UTC)),
        ("6 mei 2024 om 07:08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("6 maj 2024 kl. 07.08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("6 mai 2024 à 7h08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("6 de maio de 2024 às 07h08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("2024-05-06T07:08:09.25-08:00", datetime(2024, 5, 6, 15, 8, 9, tzinfo=UTC)),
        ("31 June 2024", None),
        ("05/06/2024", None),
        ("\uff12\uff10\uff12\uff14-05-06", None),
        ("2024-13-45", None),
        ("0001-01-01", None),
        ("1965-03-02", datetime(1965, 3, 2, tzinfo=UTC)),
        ("1789-07-14T12:00:00Z", datetime(1789, 7, 14, 12, tzinfo=UTC)),
        ("1970-01-02", datetime(1970, 1, 2, tzinfo=UTC)),
        ("1970-01-01T00:00:00Z", None),
        ("2024-5-6", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024.05.06 07:08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("6.5.2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024年5月6日 07:08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("2024년 5월 6일", datetime(2024, 5, 6, tzinfo=UTC)),
        ("令和6年5月6日", datetime(2024, 5, 6, tzinfo=UTC)),
        ("令和元年5月6日", datetime(2019, 5, 6, tzinfo=UTC)),
        ("昭和40年3月2日", datetime(1965, 3, 2, tzinfo=UTC)),
        ("民國113年5月6日", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2567-05-06", datetime(2024, 5, 6, tzinfo=UTC)),
        ("1403/02/17", None),
        ("1445-10-27", None),
        ("6th May 2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("Monday, May 6th, 2024 at 3:04 PM", datetime(2024, 5, 6, 15, 4, tzinfo=UTC)),
        ("20240506T070809+0200", datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)),
        ("20240506070809", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024/5/6 7:08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("2024. 05. 06. 14:30", datetime(2024, 5, 6, 14, 30, tzinfo=UTC)),
        ("31/05/2024", datetime(2024, 5, 31, tzinfo=UTC)),
        ("5/31/2024 3:04:05 PM", datetime(2024, 5, 31, 15, 4, 5, tzinfo=UTC)),
        ("5/5/2024", datetime(2024, 5, 5, tzinfo=UTC)),
        ("06-May-2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024 May 6", datetime(2024, 5, 6, tzinfo=UTC)),
        ("Published: May 6, 2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("1er mai 2024", datetime(2024, 5, 1, tzinfo=UTC)),
        ("6 de agosto de 2024", datetime(2024, 8, 6, tzinfo=UTC)),
        ("6. März 2024, 10:11", datetime(2024, 3, 6, 10, 11, tzinfo=UTC)),
        ("6 мая 2024 \u0433.", datetime(2024, 5, 6, tzinfo=UTC)),
        ("6 Ağustos 2024", datetime(2024, 8, 6, tzinfo=UTC)),
        ("6 May 2024 - 9 May 2024", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times(written: str, expected: datetime | None) -> None:
    assert moment(written) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Posted by Ann on 6 May 2024 at 10:30 PM in News", datetime(2024, 5, 6, 22, 30, tzinfo=UTC)),
        ("Janic Cathomen, 01.12.2021 | 3 min", datetime(2021, 12, 1, tzinfo=UTC)),
        ("Publicerad 6 maj 2024 kl. 10.14 av Ann", datetime(2024, 5, 6, 10, 14, tzinfo=UTC)),
        ("発行日2024年5月6日", datetime(2024, 5, 6, tzinfo=UTC)),
        # dateparser's test_date_parser.py and its languages; Croatian has months that begin as other ones of Czech do.
        *(
            (text, datetime(2024, 5, 6, tzinfo=UTC))
            for text in (
                "6 травня 2024",
                "6. května 2024",
                "6 mai 2024",
                "6. toukokuuta 2024",
                "2024. május 6.",
                "6 \u039c\u03b1\u0390\u03bf\u03c5 2024",
                "6 Mei 2024",
                "6 de maig de 2024",
                "6 de mayo del 2024",
                "6 مايو 2024",
                "6 במאי 2024",
                "6 พฤษภาคม 2024",
            )
        ),
        ("5 d\u2019octubre de 2020", datetime(2020, 10, 5, tzinfo=UTC)),
        ("5. desember 2021", datetime(2021, 12, 5, tzinfo=UTC)),
        ("5. července 2021", datetime(2021, 7, 5, tzinfo=UTC)),
        ("5 červenec 2021", datetime(2021, 7, 5, tzinfo=UTC)),
        ("5. června 2021", datetime(2021, 6, 5, tzinfo=UTC)),
        ("5. lipnja 2021", datetime(2021, 6, 5, tzinfo=UTC)),
        ("5. srpnja 2021", datetime(2021, 7, 5, tzinfo=UTC)),
        ("5. srpna 2021", datetime(2021, 8, 5, tzinfo=UTC)),
        ("5. marraskuuta 2021", datetime(2021, 11, 5, tzinfo=UTC)),
        ("6 May 2024, updated 7 May 2024", None),
        ("05/06/2024", None),
        ("call 12.12.2024.555", None),
        ("6 May 2024" + " and more" * 20, None),
    ],
)
def test_a_date_in_a_short_text(text: str, expected: datetime | None) -> None:
    assert date_within(text) == expected


VIDEO = '{"@type": "VideoObject", "uploadDate": "2020-01-01", "dateModified": "2020-01-02"}'
ENTRY = "<time class=entry-date datetime=2024-05-06>"


@pytest.mark.parametrize(
    ("block", "body", "day"),
    [
        (f'[{{"@type": "Article", "dateCreated": "2024-05-06"}}, {VIDEO}]', "", 6),
        (f'{{"@graph": [{VIDEO}, {{"@type": "NewsArticle"}}]}}', "<meta name=date content=2024-05-07>", 7),
        (f'{{"@graph": [{VIDEO}, {{"@type": ["WebPage", "BlogPosting"]}}]}}', "", None),
        (f'[{VIDEO}, {{"@type": "Recipe"}}]', "<time datetime=2024-05-08>", 8),
        (VIDEO, ENTRY, 6),
        (
            '[{"@type": "Page", "datePublished": "2024-05-01"}, {"@type": "Article", "datePublished": "2024-05-06"}]',
            "",
            6,
        ),
        ('{"@type": "ImageObject", "uploadDate": "2020-01-01", "datePublished": "2020-01-01"}', ENTRY, 6),
        ('{"@type": "VideoObject", "uploadDate": "2024-05-09"}', "<time datetime=2020-01-01>", 9),
        ('{"@type": "WebPage", "mainEntity": {"@type": "VideoObject", "uploadDate": "2024-05-09"}}', "", 9),
    ],
)
def test_an_embedded_video_does_not_date_an_article(block: str, body: str, day: int | None) -> None:
    columns = found(Metadata(), f'<script type="application/ld+json">{block}</script>{body}').columns
    assert columns.get("published") == (None if day is None else datetime(2024, 5, day, tzinfo=UTC))
    assert "modified" not in columns


@pytest.mark.parametrize(
    ("block", "column", "expected"),
    [
        ('{"datePublished": {"@value": "2024-05-06"}}', "published", datetime(2024, 5, 6, tzinfo=UTC)),
        ('{"datePublished": ["2024-05-06", "2024-05-07"]}', "published", datetime(2024, 5, 6, tzinfo=UTC)),
        ('{"author": {"name": [{"@value": "A. Writer"}]}}', "byline", "A. Writer"),
        ('{"author": {"@id": "#writer"}}', "byline", None),
        ('{"author": {"@id": "#a"}, "publisher": {"@id": "#a", "name": "A. Writer"}}', "byline", "A. Writer"),
        ('{"author": {"name": ["Ann", "Bob"]}}', "byline", "Ann, Bob"),
        ('{"schema:author": [{"schema:name": "Ann"}]}', "byline", "Ann"),
        (
            '{"https://schema.org/datePublished": [{"@value": "2024-05-06"}]}',
            "published",
            datetime(2024, 5, 6, tzinfo=UTC),
        ),
        ('{"datePublished": "Mon May  6 10:00:00 CEST 2024"}', "published", datetime(2024, 5, 6, 8, tzinfo=UTC)),
        ('{"author": {"name": "Tom &amp; Jerry O&#39;Neil"}}', "byline", "Tom & Jerry O'Neil"),
        ('{"author": {"name": "By <a href=/x>Ann</a>"}}', "byline", "Ann"),
        ('{"author": {"givenName": "Ann", "familyName": "Bee"}}', "byline", "Ann Bee"),
        ('{"author": null, "creator": ["Ann", "Bob"]}', "byline", "Ann, Bob"),
        ('{"author": {"@list": [{"name": "Ann"}, {"name": "Bob"}]}}', "byline", "Ann, Bob"),
        ('{"@type": "JobPosting", "datePosted": "2024-05-06"}', "published", datetime(2024, 5, 6, tzinfo=UTC)),
        ('{"datePublished": "2024-05-06T10:00:00&#43;02:00"}', "published", datetime(2024, 5, 6, 8, tzinfo=UTC)),
        ('[{"@type": "WebPage", "author": "Site"}, {"@type": "Article", "author": "Ann"}]', "byline", "Ann"),
        ('{"license": ["https://l.example/a", "https://l.example/b"]}', "license", "https://l.example/a"),
        ('{"license": [], "author": [], "datePublished": {}}', "license", None),
        ('{"@type": ["schema:Article", "https://schema.org/Article", 3, null]}', "schema_types", ["Article"]),
    ],
)
def test_values_of_json_ld_have_many_forms(block: str, column: str, expected: object) -> None:
    body = f'<script type="application/ld+json">{block}</script>'
    assert found(Metadata(), body).columns.get(column) == expected


def test_hostile_facts_are_bounded() -> None:
    body = '<script type="application/ld+json">[' + '{"@type": "T", "mainEntity": [' * 200 + "]}" * 200 + "]</script>"
    columns = found(Metadata(), body + "<meta name=author content='" + "x" * 90_000 + "'>").columns
    assert columns["schema_types"] == ["T"]
    assert len(str(columns["byline"])) == 500


def test_a_date_that_cannot_be_read_is_kept_as_written() -> None:
    columns = found(Metadata(), "<meta name=date content='1403/02/17'>").columns
    assert "published" not in columns
    assert columns["published_written"] == "1403/02/17"
    columns = found(
        Metadata(), "<meta name=date content='17 Ordibehesht'><meta name=pubdate content=2024-05-06>"
    ).columns
    assert columns["published"] == datetime(2024, 5, 6, tzinfo=UTC)
    assert "published_written" not in columns


@pytest.mark.parametrize(
    "name",
    [
        "article.published", "article:published_time", "citation_date", "date_published", "dc.date.created",
        "dc:date", "dcterms.date", "og:article:published_time", "og:published_time", "publication_date",
        "published-date", "bepress_citation_date", "DC.Date.Issued", "rnews:datePublished",
    ],
)  # fmt: skip
def test_dates_are_read_under_the_names_that_htmldate_knows(name: str) -> None:
    columns = found(Metadata(), f"<meta name='{name}' content=2024-05-06>").columns
    assert columns["published"] == datetime(2024, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "byline"),
    [
        ("<p itemprop=author itemscope><a itemprop=url><b itemprop=name>Ann  B</b></a> Editor</p>", "Ann B"),
        ("<span itemprop=author>By Ann</span><p itemprop=comment><i itemprop=author>Troll</i></p>", "Ann"),
        ("<p><i itemprop=author>Ann</i>, <i itemprop=author>Bob</i></p>", "Ann, Bob"),
        ("<p><i itemprop=author>Ann</i></p><p><i itemprop=author>Bob</i></p>", None),
        ("<p vocab=http://schema.org/><i property=author typeof=Person><b property=name>Ann</b></i>", "Ann"),
        ("<i property='dc:creator' content=Ann>A.</i>", "Ann"),
        ("<span class='author vcard'><a class='url fn n' href=/a>Ann</a></span>", "Ann"),
        ("<li class=comment><span class='author vcard'>Troll</span></li><span class='author vcard'>Ann</span>", "Ann"),
        ("<span class='author vcard'>Written by</span>", None),
        (f"<i itemprop=author>{'Ann ' * 30}</i>", None),
        ("<meta name=author content=Bob><i itemprop=author>Ann</i>", "Bob"),
        # Fixtures of postlight/parser: The Guardian, NPR, CNET, NBC News, Wired, USA Today.
        ("<p><a rel=author href=/a>Ann</a> and <a href=/b rel='author nofollow'>Bob</a></p>", "Ann, Bob"),
        ("<p><a rel=author href=/a><img alt='Ann at work'>Ann</a></p>", "Ann"),
        ("<p><a rel=author href=/a>Ann</a></p><p><a rel=author href=/b>Bob</a></p>", None),
        ("<div>By <span class='byline-name x'>Ann</span></div><div class=author__name>Ann</div>", "Ann"),
        ("<a class=PostHeader_AuthorName>Ann</a>", "Ann"),
        ("<meta name=author content=Wired><meta property=og:site_name content=Wired><i itemprop=author>Ann</i>", "Ann"),
        ("<meta name=author content=Wired><meta property=og:site_name content=Wired>", "Wired"),
        ("<meta name=author content=', Ann'><i itemprop=author>Bob</i>", "Ann"),
        ("<a href=/author/ann>Ann</a>", "Ann"),
        ("<li><a href=/authors/ann>Ann</a><li><a href=/authors/bob>Bob</a>", None),
        ("<meta name=author content='Ann - https://ann.example/'>", "Ann"),  # kepano/defuddle's fixtures
        ("<meta name=author content='ann@x.example (Ann Lee)'>", "Ann Lee"),
        ("<meta name=author content='Ann Lee &lt;ann@x.example>'>", "Ann Lee"),
        ("<meta name=author content=ann@x.example>", "ann@x.example"),
        ("<meta name=author content=undefined><i itemprop=author>Ann</i>", "Ann"),
        ("<meta name=author content=page.head.author><i itemprop=author>J.R.R. Ann</i>", "J.R.R. Ann"),
    ],
)
def test_an_element_names_the_author_last(body: str, byline: str | None) -> None:
    assert found(Metadata(), body).columns.get("byline") == byline


@pytest.mark.parametrize(
    ("body", "language"),
    [
        ("<html lang=' '><meta http-equiv=Content-Language content=de-AT>", "de-AT"),
        ("<html lang=fr><meta http-equiv=content-language content=de>", "fr"),
        ("<meta http-equiv=content-language content='de, en'>", None),
        ("<meta http-equiv=content-language content='German language'>", None),
    ],
)
def test_a_pragma_states_the_language_where_html_does_not(body: str, language: str | None) -> None:
    assert found(Metadata(), body).columns.get("declared_language") == language


EVENT = "<p>It opens on <time datetime=2090-01-01>1 January 2090</time>."


@pytest.mark.parametrize(
    "body",
    [
        EVENT,
        "<meta name=date content=2090-01-01>",
        "<time itemprop=datePublished datetime=2090-01-01>",
        '<script type="application/ld+json">{"@type": "Event", "datePublished": "2090-01-01"}</script>',
        '<script type="application/ld+json">{"@type": "VideoObject", "uploadDate": "2090-01-01"}</script>',
        "<meta name=last-modified content=2090-01-01>",
    ],
)
def test_a_date_after_the_fetch_is_that_of_an_event(body: str) -> None:
    at = datetime(2024, 5, 6, tzinfo=UTC).timestamp()
    columns = found(Metadata(), body, fetched_at=at).columns
    assert {"published", "modified", "published_written"}.isdisjoint(columns)
    dated = found(Metadata(), body + "<meta name=dc.date content=2024-05-07>", fetched_at=at).columns
    assert dated["published"] == datetime(2024, 5, 7, tzinfo=UTC), "zones of a day apart"
    assert {"published", "modified"} & set(found(Metadata(), body).columns), "the time of the fetch is not known"


@pytest.mark.parametrize(
    ("body", "byline"),
    [
        (
            "<meta name=citation_author content='Jane Doe'><meta name=citation_author content='Ann Roe'>",
            "Jane Doe, Ann Roe",
        ),
        ("<meta name=sailthru.author content='Ann Lee'>", "Ann Lee"),
        ("<meta name=DC.creator content='Doe, Jane'><meta name=DC.creator content='Roe, Ann'>", "Doe, Jane; Roe, Ann"),
        ("<meta property=article:author content=A><meta property=article:author content=B>", "A, B"),
        (
            "<meta name=author content=Site><meta name=citation_author content=A><meta name=citation_author content=B>",
            "A, B",
        ),
        ("<meta name=author content=A><meta name=author content='By A'><meta name=author content=''>", "A"),
        ("<meta name=author content='Author: A'><meta name=byl content=www.p.example/b>", "A"),
        ("<meta name=author content=262588213843476><meta property=article:author content='By B'>", "B"),
        ("<meta name=citation_authors content='Doe, Jane; Roe, Ann'>", "Doe, Jane; Roe, Ann"),
    ],
)
def test_all_of_several_authors_are_named(body: str, byline: str) -> None:
    assert found(Metadata(), body).columns["byline"] == byline


def test_an_author_may_be_another_object_of_the_graph() -> None:
    graph = """{"@graph": [{"@type": "Article", "author": [{"@id": "#/p/1"}, {"@id": "#/p/2"}, {"@id": "#/none"}]},
    {"@type": "Person", "@id": "#/p/1", "name": "Ann Writer"}, {"@id": "#/p/2", "name": "Bob Writer"}]}"""
    columns = found(Metadata(), f"<script type=application/ld+json>{graph}</script>").columns
    assert columns["byline"] == "Ann Writer, Bob Writer"
