"""Audit: what it finds on pages of other checkers' tests, and on pages with each fault."""

from __future__ import annotations

import pytest

from gossamer.model.links import Announcement, Found
from gossamer.model.pages import Findings, Page
from gossamer.stages.process.announcements import Announcements
from gossamer.stages.process.audit import COUNTED_BYTES_MAX, IDS_MAX, Audit, is_place
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.links import AT_ONCE
from gossamer.stages.process.options import ProcessOptions

URL = "https://example.org/dir/page"


def found(body: str, *headers: tuple[str, str], url: str = URL) -> Findings:
    findings = Findings()
    Audit(ProcessOptions()).process(Page(url, "text/html", "utf-8", headers, body.encode()), findings)
    return findings


def column(name: str, body: str, *headers: tuple[str, str], url: str = URL) -> object:
    return found(body, *headers, url=url).columns.get(name)


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("part", True), ("Part-ÄÖ", True), ("tangent%3A-kustomize", True), ("a:~:text=word", True), ("table=", False),
        ("", False), ("top", False), ("TOP", False), (":~:text=word", False), ("!/route", False), ("/route", False),
        ("!", False), ("page=3", False), ("t=10", False), ("L10-L20", False), ("L10", False), ("Large", True),
        ("myid:", True), ("a" * 501, False),
    ],
)  # fmt: skip
def test_a_fragment_names_a_place_unless_it_is_the_top_or_a_program_reads_it(fragment: str, expected: bool) -> None:
    assert is_place(fragment) is expected


def test_links_with_a_fragment_are_listed_with_the_name_that_browsers_look_for() -> None:
    body = (
        '<a href="#here">a</a> <a href="other#Upper-%C3%84">b</a> <a href="#top">c</a> <a href="#">d</a>'
        '<a href="mailto:a@b.c#x">e</a> <a href="data:text/html,#x">f</a> <a href="#here">again</a>'
        '<a href="#a:~:text=word">g</a> <a href="javascript:go(\'#x\')">h</a>'
    )
    assert [(row["to_url"], row["fragment"], row["name"]) for row in found(body).rows["fragments"]] == [
        (URL, "here", "here"),
        ("https://example.org/dir/other", "Upper-%C3%84", "Upper-Ä"),
        (URL, "a", "a"),
    ]


def test_a_fragment_alone_is_of_the_base() -> None:
    rows = found('<base href="/b/"><a href="#x">x</a>').rows["fragments"]
    assert [row["to_url"] for row in rows] == ["https://example.org/b/"]


def test_images_beside_a_shared_link_are_requested() -> None:
    """html-proofer's `check_opengraph` looks for them: https://github.com/gjtorikian/html-proofer#open-graph"""
    body = (
        '<meta property="og:image" content="/a.png"><meta property="OG:image " content="/a.png"><base href="/b/">'
        '<meta name="twitter:image" content="c.png"><meta property="og:image:width" content="9">'
        '<meta property="og:image" content=""><meta property="og:image" content="http://[">'
    )
    links = found(body).links
    assert [(one.url, one.link_type) for one in links] == [
        ("https://example.org/a.png", "embed"), ("https://example.org/b/c.png", "embed"),
    ]  # fmt: skip
    assert len(found("".join(f'<meta property="og:image" content="/{n}.png">' for n in range(99))).links) == 50


def test_what_other_programs_show_of_a_page_is_part_of_it() -> None:
    body = (
        "<link rel=search type=application/opensearchdescription+xml href=/a.xml><link rel=search href=/no>"
        "<link rel=image_src href=/b.png><link rel='apple-touch-startup-image' href=/c.png><link rel=prefetch href=/no>"
        "<meta name=msapplication-TileImage content=/d.png><meta itemprop=image content=/e.png>"
        "<meta property=og:video content=/no.mp4>"
    )
    assert [one.url for one in found(body).links] == [
        f"https://example.org/{name}" for name in ("a.xml", "b.png", "c.png", "d.png", "e.png")
    ]


def test_places_are_ids_of_all_elements_and_names_of_anchors() -> None:
    body = '<p id="A">x<a name="b c">y</a><p id=""><img name=no><template><p id=no></template><svg id=s></svg>'
    assert column("ids", body) == ["A", "s", "b c"]


def test_a_page_with_more_ids_than_are_kept_has_none_to_judge_by() -> None:
    assert column("ids", "".join(f"<p id=a{number}></p>" for number in range(IDS_MAX + 1))) is None


def test_mail_without_an_address_and_numbers_without_digits_are_invalid() -> None:
    invalid = ["mailto:", "MAILTO:me", "mailto:me?subject=a@b", "tel:", "tel:call"]
    sound = ["mailto:a@example.org", "mailto:?subject=a", "mailto:a%40example.org", "mailto:me(at)example.org",
             "mailto:me[at]example.org", "tel:+49-1", "tel:#31#12", "tel:*100%23", "mailto:a@b,c@d"]  # fmt: skip
    body = "".join(f'<a href="{one}">a</a>' for one in [*invalid, *sound])
    assert column("invalid_links", body) == invalid


def test_sets_of_versions_of_a_sitemap_are_rows() -> None:
    findings = Findings(announcement=Announcement("sitemap"))
    assert findings.announcement is not None
    findings.announcement.versions = {
        ("en /a", "de /b", " /mobile"): ["/a", " /b ", ""],
        **{(f"en /{number}",): [f"/{number}"] for number in range(AT_ONCE)},
    }
    page = Page("https://example.org/map.xml", "application/xml", "", (), b"")
    assert len(list(Audit().process_in_slices(page, findings))) == 1, "other work runs within a long sitemap"
    rows = findings.rows["sitemap_versions"]
    root = "https://example.org/"
    assert rows[0] == {"entries": [f"{root}a", f"{root}b"], "alternates": [f"en {root}a", f"de {root}b"]}
    assert (len(rows), findings.columns) == (AT_ONCE + 1, {})


def test_addresses_that_no_browser_opens_are_listed() -> None:
    body = '<a href="https://example]org/x">a</a><a href="https://example.com/">b</a><a href="http://">c</a><a href="">'
    assert column("invalid_links", body) == ["https://example]org/x", "http://"]
    hosts = ["http://www..example.org/", "//", "//.a/"]
    assert column("invalid_links", "".join(f"<a href={one}>a</a>" for one in [*hosts, "//a.example/?b=.."])) == hosts
    misspelt = [f"{scheme}://a.example/" for scheme in ("htp", "ttps", "htttp", "httpss", "hhttp")]
    sound = [f"{scheme}://a.example/" for scheme in ("ftp", "http", "HTTPS", "tg", "matrix")]
    assert column("invalid_links", "".join(f"<a href={one}>a</a>" for one in misspelt + sound)) == misspelt


def test_what_a_secure_page_loads_by_http_is_listed() -> None:
    body = (
        "<img src=http://a.example/1.png><script src=//a.example/x.js></script><link rel=stylesheet href=HTTP://a/c.css>"
        "<a href=http://a.example/>link</a><form action=http://a.example/f></form><link rel=icon href=http://a/i>"
    )
    assert column("insecure", body) == ["http://a.example/1.png", "HTTP://a/c.css", "http://a.example/f"]
    assert column("insecure", body, url="http://example.org/") is None
    policy = "<meta http-equiv=Content-Security-Policy content='upgrade-insecure-requests'>"
    assert column("insecure", policy + body) is None
    assert column("insecure", body, ("Content-Security-Policy", "default-src *; Upgrade-Insecure-Requests")) is None


def test_images_in_sets_and_styles_of_a_secure_page_are_listed_too() -> None:
    body = (
        '<img src=/a srcset="http://a/1.png 1x, /2.png 2x, http://a/3.png?a,b 3x"><source srcset=HTTP://a/4.png>'
        '<link rel=preload imagesrcset="http://a/5.png 2x"><style>@namespace url(http://a/no); /* url(http://b) */'
        "p { background: url('http://a/6.png') } @import 'http://a/7.css';</style><p style='background: url(http://a/8)'>"
        "<video poster=http://a/9.png></video><input type=IMAGE src=http://a/10.png><input src=http://a/no>"
    )
    found = column("insecure", body)
    assert isinstance(found, list)
    expected = ["1.png", "3.png?a,b", "5.png", "6.png", "7.css", "8", "9.png", "10.png"]
    assert sorted(found) == sorted(["HTTP://a/4.png", *(f"http://a/{name}" for name in expected)])


def test_properties_that_items_of_microdata_lack_are_named() -> None:
    body = (
        '<div itemscope itemtype="https://schema.org/Product"><p itemprop=sku>1</div>'
        '<div itemscope itemtype="http://schema.org/Event"><p itemprop=name>x<meta itemprop="startDate endDate"></div>'
        '<div itemscope itemtype="https://schema.org/Recipe" itemref=a></div><div itemscope><p itemprop=x></div>'
        '<div itemscope itemtype="https://schema.org/Person"></div><div itemscope itemtype="https://schema.org/Course">'
        "<p itemprop=name>x<p itemprop=description>y</div>"
    )
    assert column("json_ld_lacks", body) == ["Product without name", "Event without location"]


def test_images_need_an_alt_unless_they_are_hidden() -> None:
    body = "<img src=1><img src=2 alt=''><img src=3 aria-hidden=true><img src=4 role=presentation><img src=5 alt=x>"
    pixel = "<noscript><img src=6 height=1 width=1></noscript><img src=7 height=0><img src=8 height=10>"
    buttons = "<input type=IMAGE src=9><input type=image src=10 alt=Go><input src=11><img src=12 aria-labelledby=a>"
    assert column("images_without_alt", body + pixel + buttons) == ["1", "8", "9"]


def test_headings_titles_and_descriptions_are_counted() -> None:
    body = (
        "<head><title>a</title><title>b</title><meta name=Description content=x><meta name=description></head>"
        "<svg><title>drawing</title></svg><h1> One <b>two</b></h1><h1></h1>"
    )
    columns = found(body).columns
    assert (columns["h1"], columns["title_count"], columns["description_count"]) == (["One two", ""], 2, 2)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("<img src=a alt='The logo'>", "The logo"),
        ("<svg aria-label=Logo></svg>", "Logo"),
        ("<img src=a alt=Logo> Text", "Text"),
        ("<img src=a alt=''>", ""),
    ],
)
def test_an_image_is_a_heading_by_its_text(heading: str, expected: str) -> None:
    assert column("h1", f"<h1>{heading}</h1>") == [expected]


def test_robots_directives_come_from_markup_and_headers_and_are_those_for_all() -> None:
    headers = (("X-Robots-Tag", "noarchive"), ("X-Robots-Tag", "otherbot: noindex"))
    body = (
        "<meta name=ROBOTS content='NoIndex, follow'><meta name=googlebot content=nosnippet><meta name=b content=none>"
    )
    assert column("robots_meta", body, *headers) == "noarchive, noindex, follow, nosnippet"
    mixed = ("X-Robots-Tag", "max-snippet:-1, noarchive, googlebot: noindex, otherbot: none")
    assert column("robots_meta", "", mixed) == "max-snippet:-1, noarchive, noindex"


def test_versions_in_other_languages_come_from_markup_and_headers() -> None:
    header = ("Link", '</fr>; rel="alternate"; hreflang="fr"')
    body = "<link rel=alternate hreflang=de-AT href=/at><link rel=alternate type=application/rss+xml href=/feed>"
    assert column("alternates", body, header) == ["fr https://example.org/fr", "de-AT https://example.org/at"]


def test_versions_of_a_pdf_come_from_headers() -> None:
    link = '<https://example.org/a.pdf>; rel="alternate"; hreflang="en", </b.pdf>;rel=alternate;hreflang=de'
    headers = (("Link", link), ("X-Robots-Tag", "noindex"))
    findings = Findings()
    Audit().process(Page("https://example.org/a.pdf", "application/pdf", "", headers, b"%PDF-1.4"), findings)
    versions = ["https://example.org/a.pdf", "https://example.org/b.pdf"]
    assert findings.columns["alternates"] == [f"en {versions[0]}", f"de {versions[1]}"]
    assert (findings.columns["robots_meta"], findings.columns.get("title_count")) == ("noindex", None)
    assert findings.links == [Found(one, "alternate") for one in versions]


def test_a_sitemap_that_is_served_as_a_page_is_read_before_it_is_judged() -> None:
    body = b'<urlset><url><loc>/a</loc><xhtml:link rel="alternate" hreflang="de" href="/b"/></url></urlset>'
    page = Page("https://example.org/map", "text/html", "", (), body, link_type="sitemap_file")
    chain = Modules([Announcements(), Audit()], ProcessOptions())
    rows = chain.process(page).findings.rows["sitemap_versions"]
    assert rows == [{"entries": ["https://example.org/a"], "alternates": ["de https://example.org/b"]}]


def test_what_search_engines_read_in_the_head_alone_is_listed_where_it_is_in_the_body() -> None:
    header = ("Link", '</c>; rel="canonical"')
    links = "<link rel=canonical href=/a><link rel='alternate' hreflang=fr href=/fr>"
    assert column("outside_head", f"<head>{links}</head><body>{links}") == []
    # An image ends the head (HTML standard, section 13.2.6.4.4).
    body = f"<head><img src=pixel>{links}<link rel=canonical href=/c></head>"
    assert column("outside_head", body, header) == ["canonical https://example.org/a", "fr https://example.org/fr"]
    assert column("alternates", body, header) == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('<!-- {"@context": "https://schema.org", "@type": "Article"} -->', ""),
        ('\n//<![CDATA[\n{"@context": "https://schema.org", "@type": "Article"}\n//]]>\n', ""),
        ('/*<![CDATA[*/[{"@context": "https://schema.org", "@type": "Article"}]/*]]>*/', ""),
        ('<![CDATA[[{"@context": "https://schema.org", "@type": "Article"}]]]>', ""),
        ('<!-- {"@context": "https://schema.org", "@type": "Article",} -->', "no JSON"),
        ('{"@context": "https://schema.org", "@type": "Article"}', ""),
        ('{"@context": "https://schema.org", "@graph": []}', ""),
        ('[{"@context": "https://schema.org", "@type": "Article"}]', ""),
        ('{"@context": "https://schema.org", "@type": "Article",}', "no JSON"),
        ('{"@type": "Article"}', "@context"),
        ('{"@context": "https://schema.org"}', "@type"),
        ('"text"', "no object"),
    ],
)
def test_structured_data_is_json_with_a_context_and_a_type(script: str, expected: str) -> None:
    said = str(column("json_ld_error", f'<script type="application/ld+json">{script}</script>'))
    assert (expected in said, bool(said)) == (True, bool(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"@type": "Recipe", "name": "a"}', ["Recipe without image"]),
        ('{"@type": "Recipe", "name": "a", "image": []}', ["Recipe without image"]),
        ('{"@type": "Recipe", "name": "a", "image": "b"}', []),
        ('{"@graph": [{"@type": ["Thing", "http://schema.org/FAQPage"], "url": "a"}]}',
         ["http://schema.org/FAQPage without mainEntity"]),
        ('{"@type": "Article", "about": {"@type": "Event", "@id": "#a"}}', []),
        ('{"@type": "Product", "name": "a", "review": {"@type": "Review", "author": "b"}}',
         ["Review without reviewRating"]),
        ('{"@type": {"a": 1}}', []),
    ],
)  # fmt: skip
def test_objects_of_structured_data_have_what_their_type_requires(value: str, expected: list[str]) -> None:
    script = f'<script type="application/ld+json">{value}</script>'
    assert column("json_ld_lacks", script * 2) == expected


@pytest.mark.parametrize(("words", "expected"), [(3, 3), (COUNTED_BYTES_MAX, None)])
def test_the_words_of_short_pages_are_counted(words: int, expected: int | None) -> None:
    assert column("words", f"<p>{'a ' * words}<script>b c</script>") == expected
