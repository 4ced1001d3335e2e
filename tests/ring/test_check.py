"""Check: a site with every kind of fault, each of which `gossamer check` finds, and no other."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gossamer.api.reading import faults_of
from tests.ring.hostile import Answer, HostileServer, whole
from tests.ring.test_recipes import QUICK, Done, moved, run

pytestmark = pytest.mark.heavy

WORDS = " ".join(f"word{number}" for number in range(80))


def page(title: str, body: str = "", head: str = "", *, h1: str = "<h1>Heading</h1>", lang: str = " lang=en") -> Answer:
    description = f'<meta name=description content="About {title}.">'
    return whole(f"<!doctype html><html{lang}><title>{title}</title>{description}{head}{h1}{body}".encode())


def links(*targets: str) -> str:
    return "".join(f'<p><a href="{target}">{target}</a>' for target in targets)


def canonical(target: str) -> str:
    return f"<link rel=canonical href={target}>"


def version(code: str, target: str) -> str:
    return f"<link rel=alternate hreflang={code} href={target}>"


FRAGMENTS = links(
    "#here", "#gone", "#top", "#", "#!/route", "#/route", "#:~:text=x", "/places#A", "/places#a", "/places#b%20c",
    "/places#%C3%84", "/places#100%25", "/places#100%2525", "/places#enc%3Aoded", "/places#md", "/moved#A", "/moved#no",
    "/copy#A", "/copy#nothing", "/program#any", "/file.txt#line", "mailto:a@example.org#x", "tel:1#x", "data:,#x",
)  # fmt: skip
PLACES = (
    '<p id=A><a name="b c"></a><p id=Ä><p id="100%"><p id="100%25"><p id="enc%3Aoded"><p id=user-content-md>'
    "<img name=no alt=''>"
)
SITE = {
    "/": page("Home", links("/fragments", "/canonicals", "/languages", "/shown", "/mapped", "/1", "/old", "/secure")),
    "/fragments": page("Fragments", f"<p id=here>{FRAGMENTS}"),
    "/places": page("Places", PLACES),
    "/copy": page("Places", PLACES),
    "/moved": moved("/places"),
    "/program": page("Program", "<div id=root></div><noscript>You need to enable JavaScript to run this app.</noscript>"
                     "<script src=/app.js></script>", h1=""),
    "/app.js": whole(b"go()", "text/javascript"),
    "/file.txt": whole(b"text", "text/plain"),
    "/canonicals": page("Canonicals", links("/c-broken", "/c-chain", "/c-two", "/c-noindex", "/c-self", "/c-moved",
                                          "/c-body", "/c-noindexed", "/c-denied")),
    "/c-noindexed": page("Noindexed", head=canonical("/mapped")),
    "/c-denied": page("Denied", head=canonical("/private")),
    "/c-body": page("Body", canonical("/c-self") + version("de", "/c-self"), canonical("/c-body")),
    "/c-broken": page("Broken", head=canonical("/absent")),
    "/c-moved": page("Moved", head=canonical("/old")),
    "/c-chain": page("Chain", head=canonical("/c-chain2")),
    "/c-chain2": page("Chain 2", head=canonical("/c-self")),
    "/c-self": page("Self", head=canonical("/c-self")),
    "/c-two": page("Two", head=canonical("/c-self") + canonical("/c-two")),
    "/c-noindex": page("Noindex", head=canonical("/c-self") + "<meta name=robots content=noindex>"),
    "/languages": page("Languages", links("/en", "/de", "/fr", "/codes", "/twice", "/others", "/sv", "/da", "/fi",
                                          "/et", "/is", "/headed", "/a.pdf", "/c.pdf", "/lt", "/lv")),
    "/lt": page("Lithuanian"), "/lv": page("Latvian"),
    "/sv": page("Swedish"), "/da": page("Danish"), "/et": page("Estonian"), "/is": page("Icelandic"),
    "/fi": page("Finnish", head=version("fi", "/fi") + version("et", "/et")),
    "/twice": page("Twice", head=version("nl", "/twice") + version("NL", "/mapped") + version("it", "/old")),
    "/others": page("Others", head=version("nl", "/twice")),
    "/en": page("English", head=version("en", "/en") + version("de", "/de") + version("fr", "/fr")),
    "/de": page("German", head=version("en", "/en") + version("de", "/de") + version("x-default", "/en")),
    "/fr": page("French", head=version("fr", "/fr")),
    "/codes": page("Codes", head="".join(version(code, "/codes") for code in (
        "en-UK", "xx", "zh-Hant-TW", "es-419", "pt-BR", "english", "de_AT", "X-Default"))),
    "/shown": page("Shown", links(*(f"/s{number}" for number in range(1, 14)))),
    "/s1": page("First", h1=""),
    "/s2": page("Second", h1="<h1>One</h1><h1>Two</h1>"),
    "/s3": page("Third", lang=""),
    "/s4": page("Fourth", "<img src=/picture.png><img src=/picture.png alt=''>"),
    "/picture.png": whole(b"\x89PNG\r\n\x1a\n", "image/png"),
    "/s5": page("F" * 61, h1=f"<h1>{'h' * 71}</h1>"),
    "/s6": page("Sixth", head='<meta name=description content="another"><title>Second title</title>'),
    "/s7": page("Page not found", h1="<h1>404</h1>"),
    "/s8": page("Eighth", head='<script type="application/ld+json">{"@context": "https://schema.org",}</script>'),
    "/s9": page("Ninth", f"<p>{WORDS}", head=f'<meta name=other content="{"x" * 10}">'),
    "/s10": page("Tenth 404 things to do in Berlin", f"<p>{'y' * 3_100_000}"),
    "/s11": page("Eleventh", lang=" lang=en_US",
                 head='<script type="application/ld+json">{"@context": "a", "@type": "Recipe", "name": "a"}</script>'),
    "/s12": page("Twelfth", head="<meta http-equiv=refresh content='0; url=/s11'>"),
    "/s13": page("Not found | Site"),
    "/mapped": page("Mapped", head="<meta name=robots content='noindex'>"),
    "/1": page("1", links("/2")), "/2": page("2", links("/3")), "/3": page("3", links("/4")),
    "/4": page("4", links("/5")), "/5": page("5"),
    "/old": moved("/places"),
    "/secure": page("Secure", links("http://[bad/")),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer(dict(SITE)) as server:
        robots = f"User-agent: *\nDisallow: /private\nSitemap: {server.root}map.xml\nSitemap: {server.root}map.html\n"
        server.answers["/robots.txt"] = whole(robots.encode(), "text/plain")
        names = ("", "absent", "mapped", "private", "old", "c-chain2", "orphan", "c-self")
        places = "".join(f"<url><loc>{server.root}{name}</loc></url>" for name in names)
        versions = (f"<url><loc>{server.root}{name}</loc>{said}</url>" for name, said in MAPPED_VERSIONS.items())
        server.answers["/map.xml"] = whole(f"<urlset>{places}{''.join(versions)}</urlset>".encode(), "application/xml")
        said = f'<{server.root}headed>; rel="alternate"; hreflang="en", </s1>; rel=alternate; hreflang=gb'
        server.answers["/headed"] = page("Headed")._replace(headers=(("Link", said),))
        server.answers["/orphan"] = page("Orphan")
        for name, others in PDF_VERSIONS.items():
            link = ", ".join(f'<{server.root}{to}>; rel="alternate"; hreflang="{code}"' for code, to in others.items())
            body = f"%PDF-1.4 {name}".encode()
            server.answers[f"/{name}"] = whole(body, "application/pdf")._replace(headers=(("Link", link),))
        entry = f"<url><loc>{server.root}lt</loc>{mapped_version('lt', '/lt')}{mapped_version('lv', '/lv')}</url>"
        server.answers["/map.html"] = whole(f"<urlset>{entry}</urlset>".encode(), "text/html")
        yield server


def mapped_version(code: str, target: str) -> str:
    return f'<xhtml:link rel="alternate" hreflang="{code}" href="{target}"/>'


MAPPED_VERSIONS = {
    "sv": mapped_version("sv", "/sv") + mapped_version("da", "/da"),
    "da": mapped_version("da", "/da"),
    "et": mapped_version("fi", "/fi") + mapped_version("et", "/et"),
    "is": mapped_version("is", "/is") + mapped_version("is", "/absent") + mapped_version("en-UK", "/is"),
}
"""Versions in other languages that the sitemap names: one without return link, two for one language, a wrong code."""
PDF_VERSIONS = {
    "a.pdf": {"en": "a.pdf", "de": "b.pdf", "fr": "c.pdf", "en-UK": "a.pdf"},
    "b.pdf": {"en": "a.pdf", "de": "b.pdf"},
    "c.pdf": {"fr": "c.pdf", "nl": "absent"},
}
"""Versions in other languages that replies with PDFs name: one without return link, one that is missing."""
FILES = {"--csv": "f.csv", "--html": "f.html", "--json-file": "f.json", "--junit": "f.xml", "--sarif": "f.sarif",
         "--markdown": "f.md"}  # fmt: skip


@pytest.fixture(scope="module")
def checked(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    directory = tmp_path_factory.mktemp("checked")
    named = [word for pair in FILES.items() for word in pair]
    return directory, run(directory, "check", server.root, *named, *QUICK)


def found(checked: tuple[Path, Done], server: HostileServer, *kinds: str) -> list[tuple[str, str]]:
    """URLs, without the root, and details of faults of some kinds."""
    faults = faults_of(checked[0] / "check")
    return [(one.url.removeprefix(server.root), one.detail.replace(server.root, "/")) for one in faults
            if one.kind in kinds]  # fmt: skip


@pytest.mark.promise("Operation", "`gossamer check` finds links to a `#fragment` that its page does not have.")
def test_fragments_are_looked_for_as_browsers_do(checked: tuple[Path, Done], server: HostileServer) -> None:
    assert [url for url, _ in found(checked, server, "missing_fragment")] == [
        "copy#nothing", "fragments#gone", "moved#no", "places#a",
    ]  # fmt: skip
    assert found(checked, server, "invalid_link") == [("http://[bad/", "no valid address")]


def test_canonical_addresses_are_followed(checked: tuple[Path, Done], server: HostileServer) -> None:
    assert found(checked, server, "canonical_broken") == [
        ("c-broken", "to /absent: HTTP 404"),
        ("c-denied", "to /private: robots.txt disallows it"),
        ("c-moved", "to /old: HTTP 301"),
        ("c-noindexed", "to /mapped: noindex"),
    ]
    assert found(checked, server, "canonical_chain") == [("c-chain", "to /c-chain2, whose canonical is /c-self")]
    assert found(checked, server, "canonical_contradiction") == [
        ("c-noindex", "noindex, and its canonical is /c-self"),
        ("c-two", "/c-self /c-two"),
    ]


def test_what_search_engines_ignore_in_a_body_is_not_used(checked: tuple[Path, Done], server: HostileServer) -> None:
    assert found(checked, server, "outside_head") == [("c-body", "canonical /c-self, de /c-self")]


def test_languages_have_codes_and_links_back(checked: tuple[Path, Done], server: HostileServer) -> None:
    assert found(checked, server, "hreflang_return") == [
        ("a.pdf", "no link back from /c.pdf"), ("en", "no link back from /fr"),
        ("headed", "no link back from /s1"), ("lt", "no link back from /lv (/map.html)"),
        ("others", "no link back from /twice"), ("sv", "no link back from /da (/map.xml)"),
    ]  # fmt: skip
    assert found(checked, server, "hreflang_contradiction") == [
        ("is", "is is /absent (/map.xml) and /is (/map.xml)"),
        ("others", "the page does not name itself"),
        ("twice", "nl is /mapped and /twice"),
    ]
    assert found(checked, server, "hreflang_broken") == [
        ("c.pdf", "nl to /absent: HTTP 404"), ("is", "is to /absent: HTTP 404 (/map.xml)"),
        ("twice", "NL to /mapped: noindex, it to /old: HTTP 301"),
    ]  # fmt: skip
    assert found(checked, server, "hreflang_code") == [
        ("a.pdf", "en-UK"), ("codes", "de_AT en-UK english xx"), ("headed", "gb"), ("is", "en-UK (/map.xml)"),
    ]  # fmt: skip


def test_the_sitemap_contradicts_no_page(checked: tuple[Path, Done], server: HostileServer) -> None:
    assert found(checked, server, "sitemap_contradiction") == [
        ("c-chain2", "its canonical is /c-self"),
        ("mapped", "robots directive: noindex"),
        ("old", "redirects"),
        ("private", "robots.txt disallows it"),
    ]
    assert found(checked, server, "orphan") == [("c-chain2", ""), ("orphan", ""), ("private", "")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("missing_h1", [("s1", "")]),
        ("multiple_h1", [("s2", "One | Two")]),
        ("missing_lang", [("s3", "")]),
        ("missing_alt", [("/picture.png", "image without alt")]),
        ("long_title", [("s5", f"61 characters: {'F' * 61}")]),
        ("long_h1", [("s5", "71 characters")]),
        ("multiple_descriptions", [("s6", "2 descriptions")]),
        ("multiple_titles", [("s6", "2 title elements")]),
        ("soft_404", [("s13", "Not found | Site"), ("s7", "Page not found")]),
        ("wrong_lang", [("s11", "en_US")]),
        ("incomplete_structured_data", [("s11", "Recipe without image")]),
        ("refresh", [("s12", "to /s11")]),
        ("invalid_structured_data", [("s8", "no JSON: JSON is malformed: trailing comma in object (byte 34)")]),
        ("heavy_page", [("s10", "3.1 MB with 0 embeds")]),
        ("deep_page", [("5", "more than 4 clicks from the start")]),
        ("duplicate_page", [("copy", "2 URLs have the same content")]),
        ("redirect_permanent", [("moved", "HTTP 301 to /places"), ("old", "HTTP 301 to /places")]),
        ("near_duplicate_page", []),
        ("broken_link", [("absent", "HTTP 404")]),
    ],
)
def test_each_fault_of_pages_is_found_where_it_is(
    checked: tuple[Path, Done], server: HostileServer, kind: str, expected: list[tuple[str, str]]
) -> None:
    assert found(checked, server, kind) == expected


def test_all_files_hold_all_faults(checked: tuple[Path, Done]) -> None:
    directory, done = checked
    assert done.returncode == 1, done.stderr
    faults = faults_of(directory / "check")
    rows = list(csv.DictReader((directory / "f.csv").read_text().splitlines()))
    assert [(one["fault"], one["severity"]) for one in rows] == [(one.kind, one.severity) for one in faults]
    values = json.loads((directory / "f.json").read_text())
    assert [one["url"] for one in values["faults"]] == [one.url for one in faults]
    suites = ET.parse(directory / "f.xml").getroot()
    assert sum(one.get("name") in {fault.url for fault in faults} for one in suites.iter("testcase")) == len(faults)
    assert len(list(suites.iter("failure"))) == sum(one.severity == "error" for one in faults)
    results = json.loads((directory / "f.sarif").read_text())["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == [one.kind for one in faults]
    assert "| error | Links to a missing \\#fragment | 4 links from " in (directory / "f.md").read_text()


def test_an_ended_check_is_listed_again_without_a_request(checked: tuple[Path, Done]) -> None:
    directory, _ = checked
    attempts = {file.name: file.read_bytes() for file in (directory / "check" / "pages").iterdir()}
    again = run(directory, "check", "check", "--json-file", "again.json")
    assert again.returncode == 1, again.stderr
    assert {file.name: file.read_bytes() for file in (directory / "check" / "pages").iterdir()} == attempts
    files = [json.loads((directory / name).read_text())["faults"] for name in ("f.json", "again.json")]
    assert files[0] == files[1]


@pytest.mark.long
@pytest.mark.promise("Operation", "`gossamer check --since` lists what is new and what is gone since another check.")
def test_a_second_check_says_what_is_new_and_what_is_gone(tmp_path: Path) -> None:
    with HostileServer({"/": page("Home", links("/a", "/gone"))}) as server:
        assert run(tmp_path, "check", server.root, "-o", "first", *QUICK).returncode == 1
        server.answers |= {"/": page("Home", links("/a", "/lost")), "/gone": page("There")}
        again = run(tmp_path, "check", server.root, "-o", "second", "--since", "first", "--markdown", "-", *QUICK)
        assert "Since the last check: 1 new, 1 gone" in again.stdout
        assert f"  {server.root}lost  HTTP 404  new\n" in again.stdout
        assert "(1 new, 1 gone since the last check)" in again.stdout
        accepted = ("--baseline", "second/faults.csv")
        third = run(tmp_path, "check", server.root, "-o", "third", *accepted, *QUICK)
        assert (third.returncode, "Accepted by the baseline: 2" in third.stdout) == (0, True), third.stdout
        server.answers["/"] = page("Home", links("/a", "/lost", "/more"), h1="")
        fourth = run(tmp_path, "check", server.root, "-o", "fourth", *accepted, *QUICK)
        assert (fourth.returncode, fourth.stdout.splitlines()[-1]) == (1, "1 fault")


@pytest.mark.parametrize(("level", "status"), [("error", 0), ("warning", 1), ("notice", 1)])
def test_the_least_severity_that_fails_a_check_can_be_chosen(tmp_path: Path, level: str, status: int) -> None:
    with HostileServer({"/": page("Home", h1="")}) as server:
        done = run(tmp_path, "check", server.root, "-o", "c", "--fail-on", level, *QUICK)
    assert (done.returncode, "Pages without h1: 1 (warning)" in done.stdout) == (status, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fail-on", "worst"), "--fail-on worst: expected error, warning, notice"),
        (("--since", "no"), "--since no: expected the directory of a check"),
        (("--baseline", "no.csv"), "--baseline: cannot read no.csv: No such file or directory; name a CSV file of"),
        (("--baseline", "other.csv"), "--baseline other.csv has no columns fault, url and detail; name a CSV file of"),
        (("--sarif", "no/f.sarif"), "there is no directory no; make it, or name another file than no/f.sarif"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_crawled(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    done = run(tmp_path, "check", "http://127.0.0.1:9/", *words, *QUICK)
    assert (done.returncode, said in done.stderr, len(done.stderr.splitlines())) == (2, True, 1), done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["other.csv"]


def test_a_page_that_redirects_to_itself_until_its_cookie_comes_is_sound(tmp_path: Path) -> None:
    with HostileServer({"/": page("Home", links("/shop", "/loop"))}) as server:
        back = moved("/shop")
        server.answers["/shop"] = back._replace(headers=(*back.headers, ("Set-Cookie", "seen=1; Path=/")))
        server.with_cookies["/shop"] = page("Shop")
        server.answers["/loop"] = moved("/loop")
        done = run(tmp_path, "check", server.root, *QUICK)
        faults = [(one.kind, one.url) for one in faults_of(tmp_path / "check") if one.severity == "error"]
    assert (done.returncode, faults) == (1, [("redirect_loop", f"{server.root}loop")]), done.stdout


def test_fragments_of_other_sites_are_not_judged(tmp_path: Path) -> None:
    with HostileServer({}) as site, HostileServer({}, "127.0.0.2") as away:
        far = away.root
        site.answers["/"] = page("Home", links(f"{far}a#gone", f"{far}b#here"), f"<iframe src={far}framed></iframe>")
        away.answers |= {"/a": page("A"), "/b": moved("/a"), "/framed": page("Framed")}
        done = run(tmp_path, "check", site.root, *QUICK)
        faults = [one.kind for one in faults_of(tmp_path / "check") if one.severity != "notice"]
        assert (done.returncode, faults) == (0, [])
        assert (away.counts["/a"], away.counts["/b"]) == (1, 1)
