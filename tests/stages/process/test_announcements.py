"""Sitemaps and feeds: the shapes that sites really serve, and those that are meant to hurt."""

from __future__ import annotations

import gzip
import io
import json
import time
from datetime import UTC, datetime
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.links import Announcement
from gossamer.model.modules import whole
from gossamer.model.pages import Findings, Page
from gossamer.stages.process.announcements import Announcements
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.choice import make_modules
from gossamer.stages.process.feeds import URLS_MAX, instant
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.xml import DEPTH_MAX, read_xml, repair
from gossamer.testing import check_processing_module
from tests.stages.process.made import made

URL = "https://e.example/maps/s.xml"
CORE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def at(*when: int) -> float:
    return datetime(*when, tzinfo=UTC).timestamp()  # type: ignore[misc]


def found(
    body: bytes, media_type: str = "text/xml", link_type: str = "", charset: str = "", url: str = URL
) -> Findings:
    findings = Findings()
    Announcements().process(Page(url, media_type, charset, (), body, link_type=link_type), findings)
    return findings


def links(findings: Findings) -> list[tuple[str, str]]:
    return [(link.url.removeprefix("https://e.example"), link.link_type) for link in findings.links]


def told(findings: Findings) -> Announcement:
    assert findings.announcement is not None
    return findings.announcement


def test_a_sitemap_with_its_hints_and_other_vocabularies() -> None:
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
<?xml-stylesheet type="text/xsl" href="//e.example/main-sitemap.xsl"?>
<urlset xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns="{CORE}">
  <!-- made by a plugin -->
  <url><loc>https://e.example/a?x=1&amp;y=2</loc><lastmod>2026-11-20T10:00:00+02:00</lastmod>
    <changefreq>Hourly</changefreq><priority>0.8</priority>
    <image:image><image:loc>https://e.example/picture.jpg</image:loc></image:image></url>
  <url><loc><![CDATA[ https://e.example/b?x=1&y=2 ]]></loc><lastmod>2026-11</lastmod><priority>7</priority></url>
  <url><lastmod>2026-11-20</lastmod></url>
  <url><loc>https://e.example/a?x=1&#38;y=2#part</loc></url>
</urlset>""".encode()
    findings = found(body)
    assert links(findings) == [("/a?x=1&y=2", "sitemap"), ("/b?x=1&y=2", "sitemap")]
    first, second = told(findings).entries
    assert (first.changed_at, first.period_s, first.weight) == (at(2026, 11, 20, 8), 3600.0, 0.8)
    assert (second.changed_at, second.period_s, second.weight) == (at(2026, 11, 1), 0.0, -1.0)
    assert told(findings).kind == "sitemap"
    assert told(findings).error == ""


@pytest.mark.parametrize("prefix", ["xhtml:", "x:", ""])
def test_versions_of_a_page_in_other_languages_are_listed(prefix: str) -> None:
    body = f"""<urlset xmlns="{CORE}"><url><loc>https://e.example/en/</loc>
<{prefix}link rel="alternate" hreflang="de" href="https://e.example/de/"/>
<{prefix}link rel="Alternate" hreflang="x-default" href="https://e.example/"/>
<{prefix}link rel="alternate" hreflang="en" href="https://e.example/en/"/>
<{prefix}link rel="alternate" hreflang="fr"/>
<{prefix}link rel="stylesheet" href="https://e.example/style.css"/>
<{prefix}link rel="alternate" hreflang="it" href=" it/ "/></url>
<url><loc>https://e.example/other</loc></url></urlset>""".encode()
    assert links(found(body))[:2] == [("/en/", "sitemap"), ("/other", "sitemap")]
    assert links(found(body))[2:] == [("/de/", "alternate"), ("/", "alternate"), ("/maps/it/", "alternate")]


def test_versions_that_each_entry_names_again_take_the_place_of_no_entry() -> None:
    count, versions = 2_000, 40
    body = [f'<urlset xmlns="{CORE}" xmlns:xhtml="http://www.w3.org/1999/xhtml">']
    for number in range(count):
        first = number - number % versions
        body.append(f"<url><loc>https://e.example/{number}</loc>")
        body += [f'<xhtml:link rel="alternate" href="/{first + n}"/>' for n in range(versions)]
        body.append("</url>")
    findings = found("".join([*body, "</urlset>"]).encode())
    assert links(findings) == [(f"/{number}", "sitemap") for number in range(count)]
    assert told(findings).error == ""


def test_the_versions_of_one_sitemap_are_bounded() -> None:
    many = "".join(f'<link rel="alternate" href="/{n}"/>' for n in range(URLS_MAX + 9))
    entries = "<url><loc>https://e.example/a</loc></url><url><loc>https://e.example/b</loc></url>"
    findings = found(f'<urlset xmlns="{CORE}">{many}{entries}</urlset>'.encode())
    assert len(findings.links) == URLS_MAX + 2


def test_addresses_in_other_vocabularies_are_no_pages() -> None:
    body = f"""<urlset xmlns="{CORE}"><url><image xmlns="urn:image"><loc>https://e.example/picture.jpg</loc></image>
<loc>https://e.example/a</loc></url></urlset>""".encode()
    assert links(found(body)) == [("/a", "sitemap")]


LIST = b"\xef\xbb\xbf\nhttps://e.example/a\nhttps://e.example/b\n"


@pytest.mark.parametrize(
    ("body", "media_type", "count"),
    [
        (LIST, "text/plain", 2),
        (gzip.compress(LIST), "application/gzip", 2),
        (gzip.compress(f"<urlset xmlns='{CORE}'><url><loc>/a</loc></url></urlset>".encode()), "application/x-gzip", 1),
        (f"<x:urlset xmlns:x='{CORE}'><x:url><x:loc>/a</x:loc></x:url></x:urlset>".encode(), "text/html", 1),
        (b"<rss version='2.0'><channel><item><link>/a</link></item></channel></rss>", "text/plain", 1),
        (b"See\nhttps://e.example/a\n", "text/plain", None),
        (b"<!doctype html><title>T</title>https://e.example/a", "text/html", None),
        (b"<!doctype html><p>&lt;urlset> &lt;feed></p>", "text/html", None),
        (b"%PDF-1.7 <</Type /Catalog>>", "application/pdf", None),
        (b"", "text/plain", None),
    ],
)
def test_a_seed_of_any_type_is_recognized_by_its_content(body: bytes, media_type: str, count: int | None) -> None:
    findings = found(body, media_type, "seed")
    assert (findings.announcement and len(findings.links)) == count
    chosen_for_seed = Modules([], ProcessOptions(), {"text/xml": [Announcements()]}).modules_for(media_type, "seed")
    assert [module.name for module in chosen_for_seed] == ["announcements"]


def test_an_index_leads_to_sitemaps_and_prefixes_are_the_documents_own() -> None:
    body = f"""<sm:sitemapindex xmlns:sm="{CORE}"><sm:sitemap><sm:loc>https://e.example/1.xml.gz</sm:loc></sm:sitemap>
    <sm:sitemap><loc>https://e.example/not.xml</loc></sm:sitemap></sm:sitemapindex>""".encode()
    assert links(found(body)) == [("/1.xml.gz", "sitemap_file")]
    assert told(found(body)).kind == "sitemap_index"


@pytest.mark.parametrize(
    ("root", "entry", "kind"), [("urlset", "sitemap", "sitemap_file"), ("sitemapindex", "url", "sitemap")]
)
def test_an_index_with_the_names_of_a_sitemap_and_the_other_way_round(root: str, entry: str, kind: str) -> None:
    entries = "".join(f"<{entry}><loc>https://e.example/{name}</loc></{entry}>" for name in "ab")
    assert links(found(f"<{root}>{entries}</{root}>".encode())) == [("/a", kind), ("/b", kind)]


RSS = b"""<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"
 xmlns:sy="http://purl.org/rss/1.0/modules/syndication/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
<title>Site &amp; more</title><link>https://e.example/</link>
<atom:link href="https://e.example/feed/" rel="self" type="application/rss+xml" />
<atom:link rel="hub" href="https://hub.example/"/>
<ttl>30</ttl><skipHours><hour>0</hour><hour>24</hour><hour>77</hour></skipHours><skipDays><day>Sunday</day></skipDays>
<item><title>One</title><link>https://e.example/one/</link><pubDate>Fri, 20 Nov 2026 10:00:00 +0000</pubDate>
 <guid isPermaLink="false">https://e.example/?p=1</guid><comments>https://e.example/one/#comments</comments></item>
<item><guid>https://e.example/two/</guid><dc:date>2026-11-19T00:00:00Z</dc:date></item>
<item><title>No address</title><guid isPermaLink="false">tag:1</guid></item>
<item><link>/three/</link><source url="https://other.example/feed"><link>https://no.example/</link></source></item>
</channel></rss>"""


def test_names_in_capitals_are_read() -> None:
    """Old programs and XSLT write them; browsers and feed readers do not mind."""
    sitemap = f"<URLSET XMLNS='{CORE}'><URL><LOC>/a</LOC><LASTMOD>2026-11-20</LASTMOD></URL></URLSET>".encode()
    findings = found(sitemap)
    assert links(findings) == [("/a", "sitemap")]
    assert told(findings).entries[0].changed_at == at(2026, 11, 20)
    assert links(found(b"<SitemapIndex><Sitemap><Loc>/b</Loc></Sitemap></SitemapIndex>")) == [("/b", "sitemap_file")]
    feed = b"<RSS><CHANNEL><ITEM><LINK>/c</LINK><PUBDATE>2026-11-20</PUBDATE></ITEM></CHANNEL></RSS>"
    assert links(found(feed, "text/html", "seed")) == [("/c", "feed")]
    assert told(found(feed)).entries[0].changed_at == at(2026, 11, 20)


def test_rss_two() -> None:
    findings = found(RSS, "application/rss+xml", url="https://e.example/feed/")
    assert links(findings) == [
        ("/one/", "feed"), ("/two/", "feed"), ("/three/", "feed"), ("/feed/", "self"), ("https://hub.example/", "hub"),
    ]  # fmt: skip
    feed = told(findings)
    assert [entry.changed_at for entry in feed.entries] == [at(2026, 11, 20, 10), at(2026, 11, 19), 0.0]
    assert (feed.kind, feed.ttl_s, feed.skip_hours, feed.skip_days) == ("feed", 1800.0, (0, 0), (6,))


def test_rss_one_and_its_wish_how_often_to_be_asked() -> None:
    body = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel rdf:about="https://e.example/"><link>https://e.example/</link>
<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency></channel>
<item rdf:about="https://e.example/x"><title>X</title><link>https://e.example/y</link></item>
<item rdf:about="https://e.example/z"/></rdf:RDF>"""
    findings = found(body, "application/rdf+xml")
    assert links(findings) == [("/y", "feed"), ("/z", "feed")]
    assert told(findings).ttl_s == 21_600.0


def test_atom_with_bases_and_many_links() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://e.example/blog/">
<link href="https://e.example/blog/"/><link rel="self" href="feed.atom"/><link rel="hub" href="https://hub.example/"/>
<link rel="next" href="?page=2"/><updated>2026-11-20T00:00:00Z</updated>
<entry><id>tag:e,1</id><link rel="edit" href="edit/1"/><link rel="enclosure" href="1.mp3"/><link href="1.html"/>
 <published>2026-11-01T00:00:00Z</published><updated>2026-11-02T00:00:00.5Z</updated>
 <content type="xhtml"><div><a href="inside"/><link href="not-this"/></div></content></entry>
<entry xml:base="2/"><link rel="http://www.iana.org/assignments/relation/alternate" href="two.html"/></entry>
<entry><link href="3.html"/></entry></feed>"""
    findings = found(body, "application/atom+xml", url="https://e.example/blog/feed.atom")
    assert links(findings)[:3] == [("/blog/1.html", "feed"), ("/blog/2/two.html", "feed"), ("/blog/3.html", "feed")]
    assert set(links(findings)[3:]) == {
        ("/blog/feed.atom", "self"), ("https://hub.example/", "hub"), ("/blog/?page=2", "next"),
    }  # fmt: skip
    assert told(findings).entries[0].changed_at == at(2026, 11, 2)


def test_a_base_is_relative_to_the_address_of_the_feed() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="../posts/"><entry><link href="1.html"/></entry>
<entry xml:base="/root/"><link href="2.html"/></entry>
<entry xml:base="http://[bad"><link href="3.html"/></entry></feed>"""
    findings = found(body, "application/atom+xml", url="https://e.example/feeds/feed.atom")
    assert links(findings) == [("/posts/1.html", "feed"), ("/root/2.html", "feed"), ("/posts/3.html", "feed")]


@pytest.mark.parametrize(
    "before",
    ['<source><link href="http://other.example/"/></source>', '<content><div><link href="/not"/></div></content>'],
)
def test_an_entry_has_no_link_of_what_it_holds(before: str) -> None:
    body = f'<feed xmlns="http://www.w3.org/2005/Atom"><entry>{before}<link href="/a"/></entry></feed>'
    assert links(found(body.encode())) == [("/a", "feed")]
    body = f'<feed xmlns="http://www.w3.org/2005/Atom"><entry>{before}</entry></feed>'
    assert links(found(body.encode())) == []


def test_json_feed() -> None:
    feed = {
        "version": "https://jsonfeed.org/version/1.1", "feed_url": "https://e.example/feed.json",
        "hubs": [{"type": "rssCloud", "url": "x"}, {"type": "WebSub", "url": "https://hub.example/"}],
        "items": [
            {"id": "1", "url": "https://e.example/1", "date_published": "2026-11-20T10:00:00Z"},
            {"id": "https://e.example/2"}, {"id": 3, "url": None}, {"id": "4"},
            5, None, ["x"], "y",
        ],
    }  # fmt: skip
    findings = found(b"\xef\xbb\xbf" + json.dumps(feed).encode(), "application/feed+json")
    assert links(findings) == [
        ("/1", "feed"), ("/2", "feed"), ("/feed.json", "self"), ("https://hub.example/", "hub"),
    ]  # fmt: skip
    assert told(findings).entries[0].changed_at == at(2026, 11, 20, 10)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"[" * 100_000, b'{"version": 1}', b"\xff{",
        b'{"version": "https://jsonfeed.org/version/1", "items": 3}',
    ],
)  # fmt: skip
def test_json_that_is_no_feed_is_nothing(body: bytes) -> None:
    assert found(body, "application/json") == Findings()


@pytest.mark.parametrize(
    "body", [b"", b"<html><urlset/></html>", b"<svg><url><loc>x</loc></url></svg>", b"text", b"\0<"]
)
def test_other_documents_are_nothing(body: bytes) -> None:
    assert found(body, "application/xml") == Findings()


def test_plain_text_and_gzip_are_read_where_they_are_announced() -> None:
    text = b"\xef\xbb\xbfhttps://e.example/1\t2026-11-20\r\n\r\n ftp://e.example/2 \rhttps://e.example/3"
    for body, kind in ((text, "text/plain"), (gzip.compress(text), "application/octet-stream")):
        assert links(found(body, kind, "sitemap_file")) == [("/1", "sitemap"), ("/3", "sitemap")]
        assert found(body, kind) == Findings()
    packed = gzip.compress(b"<urlset><url>") + gzip.compress(b"<loc>https://e.example/1</loc></url></urlset>")
    assert links(found(packed, "application/gzip", "sitemap_file")) == [("/1", "sitemap")]
    assert links(found(packed[:-9], "application/gzip", "sitemap_file")) == [("/1", "sitemap")]


def test_what_was_packed_twice_and_lists_in_utf_16_are_read() -> None:
    text = "https://e.example/1\r\nhttps://e.example/\u4e8c\n"
    xml = b"<urlset><url><loc>https://e.example/1</loc></url><url><loc>https://e.example/%E4%BA%8C</loc></url></urlset>"
    lists = [text.encode("utf-16"), b"\xfe\xff" + text.encode("utf-16-be"), xml]
    twice = [gzip.compress(gzip.compress(body)) for body in (*lists, text.encode())]
    for body in (*lists, *twice):
        assert len(links(found(body, "text/plain", "sitemap_file"))) == 2
    assert len(links(found(text.encode("utf-16-le"), "text/plain", "sitemap_file", "utf-16le"))) == 2
    assert links(found(gzip.compress(twice[-1]), "text/plain", "sitemap_file")) == [], "that is no mistake any more"


def test_modules_look_at_what_was_announced_whatever_its_type() -> None:
    modules = make_modules(ProcessOptions(), made).inside
    page = Page(URL, "text/html", "", (), RSS, link_type="feed_file")
    assert len(modules.process(page).findings.links) > 4
    plain = Page(URL, "text/html", "", (), RSS)
    assert modules.process(plain).findings.announcement is None


def document(path: str, encoding: str = "") -> str:
    declared = f"<?xml version='1.0' encoding='{encoding}'?>" if encoding else ""
    return f"{declared}<urlset><url><loc>https://e.example/{path}</loc></url></urlset>"


@pytest.mark.parametrize(
    ("body", "charset", "wanted"),
    [
        (document("é").encode("latin-1"), "iso-8859-1", "/%C3%A9"),
        (document("日", "Shift_JIS").encode("shift_jis"), "", "/%E6%97%A5"),
        (document("é", "utf-16").encode("utf-16"), "", "/%C3%A9"),
        (document("é", "utf-16").encode(), "", "/%C3%A9"),
        (document("é", "no-such").encode(), "", "/%C3%A9"),
        (("\n\n " + document("a\x0bb\x00", "utf-8")).encode(), "", "/ab"),
        (b"<br />\n<b>Warning</b>: in line 3<br />\n" + document("a", "utf-8").encode(), "", "/a"),
        (b"<!-- <?xml version='1.0'?><x/> -->" + document("a", "utf-8").encode(), "", "/a"),
        (b"<?xml version='1.0'?>" + document("a", "utf-8").encode(), "", "/a"),
        (document("a?<![CDATA[<?xml version='1.0'?>]]>").encode(), "", "/a?%3C?xml%20version=%271.0%27?%3E"),
        (document("a?b&c=d&nbsp;&copy;x").encode(), "", "/a?b&c=d%C2%A0%C2%A9x"),
        (document("?<![CDATA[a&b]]></loc></url><url><loc>? & ").encode(), "", "/?a&b"),
    ],
)  # fmt: skip
def test_encodings_that_are_wrong_or_rare_and_mistakes_that_can_be_mended(
    body: bytes, charset: str, wanted: str
) -> None:
    findings = found(body, charset=charset)
    assert links(findings)[0] == (wanted, "sitemap")
    assert told(findings).error == ""


def test_what_stands_before_a_mistake_counts() -> None:
    body = b"<urlset><url><loc>https://e.example/1</loc></url><url><loc>https://e.example/2</url></urlset>"
    assert links(found(body)) == [("/1", "sitemap")]
    assert told(found(body)).error.startswith("XML: mismatched tag in line 1")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<urlset><url><loc>https://e.example/1</loc></url><url><loc>https://e.example/2</loc><lastmod>20", "sitemap"),
        (b"<sitemapindex><sitemap><loc>https://e.example/1</loc></sitemap><sitemap><loc>/2</loc>", "sitemap_file"),
        (b"<urlset><url><loc>/1</loc></url><url><loc>/2</loc></url><url><loc>https://e.examp", "sitemap"),
        (b"<rss><channel><item><link>/1</link></item><item><link>/2</link><description>cut", "feed"),
    ],
)
def test_the_address_of_an_entry_that_is_cut_counts(body: bytes, kind: str) -> None:
    assert links(found(body)) == [("/1", kind), ("/2", kind)]
    assert told(found(body)).error.startswith("XML: ")


def test_the_address_of_an_entry_may_be_its_id() -> None:
    """As that of dxuuu.xyz, whose entries have no link."""
    entries = (
        "<entry><id>https://e.example/1</id></entry><entry><id>https://e.example/?p=2</id><link href='/2'/></entry>"
    )
    body = f"<feed xmlns='http://www.w3.org/2005/Atom'>{entries}<entry><id>urn:uuid:3</id></entry></feed>".encode()
    assert links(found(body)) == [("/1", "feed"), ("/2", "feed")]


HOSTILE = {
    "bomb": b"<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>%s]><urlset/>" % b"".join(
        b"<!ENTITY a%d '&a%s;&a%s;'>" % (n, str(n - 1).encode() if n else b"", b"") for n in range(30)
    ),
    "external": b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>&a;</loc></url></urlset>",
    "deep": b"<urlset>" + b"<a>" * 3_000_000,
    "wide": b"<urlset>" + b"<a/>" * 3_000_000,
    "attribute": b"<urlset a='" + b"x" * 10_000_000 + b"'/>",
    "attributes": b"<urlset " + b" ".join(b"a%d=''" % n for n in range(200_000)) + b"/>",
    "comment": b"<urlset><!--" + b"-" * 10_000_000,
    "text": b"<urlset><url><loc>" + b"x" * 10_000_000 + b"</loc></url></urlset>",
    "ampersands": b"<urlset><url><loc>" + b"&" * 3_000_000 + b"</loc></url></urlset>",
    "cdata": b"<urlset><url><loc>& " + b"<![CDATA[]]>" * 300_000 + b"</loc></url></urlset>",
    "entries": b"<urlset>" + b"<url><loc>https://e.example/%s</loc></url>" * 200_000 + b"</urlset>",
    "rss": b"<rss><channel>" + b"<item>" * 3_000_000,
    "zeros": gzip.compress(bytes(200_000_000), 9),
    "names": b"<urlset><" + b"n" * 3_000_000 + b"/></urlset>",
    "different names": b"<urlset>" + b"".join(b"<n%d a%d=''/>" % (n, n) for n in range(400_000)),
}  # fmt: skip


@pytest.mark.heavy
@pytest.mark.promise("Bounds", "The cost of any sitemap or feed is linear in its length.")
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_costs_more_than_its_length(name: str) -> None:
    body = HOSTILE[name]
    began = time.process_time()
    found(body[: len(body) // 2], link_type="sitemap_file")
    half_s = time.process_time() - began
    findings = found(body, link_type="sitemap_file")
    # What is quadratic would take four times as long for twice the bytes.
    assert time.process_time() - began - half_s < 3.0 * half_s + 0.3
    assert len(findings.links) <= 50_000
    if name in ("bomb", "external"):
        assert "entities" in told(findings).error
        assert not findings.links


def test_bounds_hold() -> None:
    assert told(found(HOSTILE["different names"])).error == "XML: more than 10,000 names of elements and attributes"
    many = (
        b"<urlset>" + b"".join(b"<url><loc>https://e.example/%d</loc></url>" % n for n in range(50_010)) + b"</urlset>"
    )
    findings = found(many)
    assert len(findings.links) == 50_000
    assert "50,000" in told(findings).error
    long = b"<urlset><url><loc>https://e.example/%s</loc></url></urlset>" % (b"x" * 9_000)
    assert found(long).links == []
    assert DEPTH_MAX < 1_000


@given(st.binary(max_size=300))
def test_any_bytes_are_taken(body: bytes) -> None:
    for kind in ("", "sitemap_file", "feed_file"):
        found(body, "application/xml", kind)
        found(b"<urlset><url><loc>" + body, "application/xml", kind)
        found(b"<rss><channel><item>" + body, "application/json", kind)


@given(
    st.lists(st.sampled_from([b"&", b"&amp;", b"&#1", b"&eacute;", b"<![CDATA[", b"]]>", b"a", b"&nbsp", b"]"])),
    st.integers(1, 7),
)
def test_mending_does_not_depend_on_where_pieces_end(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    pieces = [data[n : n + size] for n in range(0, len(data), size)]
    assert b"".join(repair(pieces)) == b"".join(repair([data]))


def test_a_feed_in_json_that_would_take_long_to_parse_is_not_read() -> None:
    def feed(items: int) -> Findings:
        entry = b'{"url":"http://x.example/%d","content_text":"' + b"x" * 1_000 + b'"}'
        body = b'{"version":"https://jsonfeed.org/version/1.1","items":[' + b",".join([entry] * items) + b"]}"
        found = Findings()
        Announcements().process(Page("http://x.example/", "application/feed+json", "", (), body), found)
        return found

    assert feed(9_000).announcement is not None
    assert feed(11_000).announcement is None


def test_elements_are_bounded_and_a_handler_may_stop() -> None:
    class Deaf:
        def start(self, name: str, attributes: object, depth: int) -> None: ...

        def end(self, name: str, text: str, depth: int) -> None: ...

    def open_() -> BinaryIO:
        return io.BytesIO(b"<a>" + b"<b/>" * 100 + b"</a>")

    assert whole(read_xml(open_, "utf-8", Deaf, 101)) == ""
    assert "too many" in whole(read_xml(open_, "utf-8", Deaf, 100))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-20T10:00:00Z", at(2026, 11, 20, 10)), ("2026-11-20T10:00:00.123-05:30", at(2026, 11, 20, 15, 30)),
        ("2026-11-20 10:00", at(2026, 11, 20, 10)), ("2026", at(2026, 1, 1)),
        ("2026-11-20T10:00:60Z", at(2026, 11, 20, 10, 0, 59)),
        ("Fri, 20 Nov 2026 10:00:00 GMT", at(2026, 11, 20, 10)), ("20 Nov 26 10:00 EST", at(2026, 11, 20, 15)),
        ("Fri, 20 Nov 2026 10:00:00", at(2026, 11, 20, 10)),
        ("Fri, 20 Nov 2026 10:00:00 +01:00", at(2026, 11, 20, 9)), ("20 Nov 2026 10:00 CEST", at(2026, 11, 20, 8)),
        ("20 Nov 2026 10:00 -05:30", at(2026, 11, 20, 15, 30)), ("20 Nov 2026 10:00 IST", at(2026, 11, 20, 4, 30)),
        ("Fri, 20 Nov 2026 10:00:00+0100", at(2026, 11, 20, 9)), ("20 Nov 2026 10:00 UTC+2", at(2026, 11, 20, 8)),
        ("Fri Nov 20 2026 10:00 GMT+0200 (CEST)", at(2026, 11, 20, 8)), ("20 Nov 2026 10:00 XYZ", at(2026, 11, 20, 10)),
        ("2026-11-20 10:00:00 CET", at(2026, 11, 20, 9)), ("2026-11-20T10:00:00.5 EDT", at(2026, 11, 20, 14)),
        ("Fri, 20 Nov 2026 10:00:00 +99:00", at(2026, 11, 20, 10)),
        # feedparser's test_date_parsers: a comma too many, no time, names of American zones; Go's time.String().
        ("Fri, 20 Nov, 2026 10:00:00 UTC", at(2026, 11, 20, 10)), ("Fri, 20 Nov 2026", at(2026, 11, 20)),
        ("Fri, 20 November 2026 10:00:00 ET", at(2026, 11, 20, 15)),
        ("Fri, 2026/11/20 10:00:00 EDT", at(2026, 11, 20, 14)),
        ("2026-11-20 10:00:00.5 +0000 UTC", at(2026, 11, 20, 10)), ("20.11.2026", at(2026, 11, 20)),
        ("20261120", at(2026, 11, 20)), ("November 20, 2026", at(2026, 11, 20)), ("11/10/2026", 0.0),
        ("2026-13-01", 0.0), ("2026-02-30", 0.0), ("1970-01-01", 0.0), ("9999-12-31", 0.0), ("yesterday", 0.0),
        ("Fri, 99 Nov 2026 10:00:00 +9999", 0.0), ("2026-11-20T99:00:00Z", 0.0), ("x" * 10_000, 0.0),
    ],
)  # fmt: skip
def test_dates(text: str, wanted: float) -> None:
    assert instant(text) == wanted


def test_it_is_a_module_like_others() -> None:
    pages = [Page(URL, "application/rss+xml", "", (), RSS)]
    check_processing_module(Announcements(), pages)
    assert Modules([Announcements()], ProcessOptions()).wants("application/atom+xml")
