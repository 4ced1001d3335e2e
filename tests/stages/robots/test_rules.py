"""What robots.txt files say to us: RFC 9309, what is known of other readers, and files that mean ill."""

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.stages.robots.patterns import WILDCARD_BYTES_MAX, Matcher, pattern_of, target_of
from gossamer.stages.robots.rules import LINE_BYTES_MAX, SITEMAPS_MAX, RobotsRules, cut
from tests.growth.measuring import is_linear

H = "https://example.org"


def rules(text: str | bytes) -> RobotsRules:
    return RobotsRules.parse(text.encode() if isinstance(text, str) else text, origin=H)


def allows(path_rules: str, path: str) -> bool:
    return rules("User-agent: *\n" + path_rules).allows(H + path)


GROUPS = [
    # file, whether /x/y may be fetched
    ("", True),
    ("User-agent: *\nDisallow: /", False),
    ("user-AGENT:*\nDISALLOW:/", False),
    ("User-agent: *\nDisallow:", True),
    ("User-agent: *\nDisallow: /x", False),
    ("User-agent: gossamer\nDisallow: /", False),
    ("User-agent: GossaMer\nDisallow: /", False),
    ("User-agent: gossamer/1.0\nDisallow: /", False),
    ("User-agent: gossamer (+http://x)\nDisallow: /", False),
    ("User-agent: gossamer*\nDisallow: /", False),
    ("User-agent: gossamer-news\nDisallow: /", True),
    ("User-agent: gossamer-2\nDisallow: /", True),
    ("User-agent: gossamer2\nDisallow: /", False),
    ("User-agent: gossamer.example\nDisallow: /", False),
    ("User-agent: goss\nDisallow: /", True),
    ("User-agent: my gossamer\nDisallow: /", True),
    ("User-agent: otherbot\nDisallow: /", True),
    ("User-agent: *bot\nDisallow: /", True),
    ("User-agent: * # all\nDisallow: /", False),
    # The group that names us is the only one for us.
    ("User-agent: *\nDisallow: /\nUser-agent: gossamer\nDisallow: /other", True),
    ("User-agent: gossamer\nDisallow: /other\nUser-agent: *\nDisallow: /", True),
    ("User-agent: gossamer\nDisallow:\nUser-agent: *\nDisallow: /", True),
    ("User-agent: gossamer\nUser-agent: *\nDisallow: /", False),
    ("User-agent: *\nDisallow: /\nUser-agent: gossamer", True),
    ("User-agent: *\nDisallow: /\nUser-agent: gossamer-news\nAllow: /", False),
    # Groups of one agent are one group.
    ("User-agent: gossamer\nDisallow: /a\n\nUser-agent: b\nDisallow: /\n\nUser-agent: gossamer\nDisallow: /x", False),
    ("User-agent: *\nDisallow: /a\nUser-agent: b\nAllow: /\nUser-agent: *\nDisallow: /x", False),
    # Several agents, one group.
    ("User-agent: a\nUser-agent: gossamer\nUser-agent: b\nDisallow: /", False),
    ("User-agent: gossamer\n\n# comment\n\nUser-agent: b\nDisallow: /", False),
    # Other records end no group (section 2.2.4).
    ("User-agent: gossamer\nSitemap: https://example.org/s.xml\nUser-agent: b\nDisallow: /", False),
    ("User-agent: gossamer\nCrawl-delay: 5\nUser-agent: b\nDisallow: /", False),
    ("User-agent: gossamer\nHost: example.org\nNoindex: /\nDisallow: /", False),
    # Rules before any group are nobody's.
    ("Disallow: /", True),
    ("Disallow: /\nUser-agent: *\nDisallow: /other", True),
    ("Allow: /\nUser-agent: *\nDisallow: /", False),
    ("User-agent:\nDisallow: /", True),
    ("User-agent: *\nDisallow: /a\nUser-agent:\nDisallow: /", True),
    # Lines.
    ("User-agent: *\rDisallow: /", False),
    ("User-agent: *\r\nDisallow: /\r\n", False),
    ("User-agent: *\n\r\n\rDisallow: /", False),
    ("  User-agent :  *  \n\t Disallow\t:\t/  ", False),
    ("User-agent: *\nDisallow: / # comment", False),
    ("User-agent: *\n#Disallow: /", True),
    ("User-agent: *\nDisallow: /x#/other", False),
    ("User-agent: *\x0bDisallow: /other\nDisallow: /x", False),
    ("User-agent: *\nDisallow: /other\u2028Disallow: /x", True),
    ("User-agent *\nDisallow /x", False),
    ("User-agent: *\nDisallow /x y", True),
    ("User-agent: *\nDisalow: /\n", False),
    ("Useragent: *\ndissallow: /\n", False),
    ("User-agents: *\nDisallowed: /", False),
    ("User-agent: *\nDisallow all: /x", False),
    ("User-agent: *\nDisallow: /\nAllowed: /x", True),
    ("User-agent: *\nDisallow /x:y\nDisallow: /other", True),
    ("User-agent: *\nDisallow", True),
    ("User-agent: *\nDisallow=/", True),
    ("User-agent: *\nNo such thing: /\nDisallow: /", False),
    # Encodings.
    ("\ufeffUser-agent: *\nDisallow: /", False),
    (b"\xff\xfe" + "User-agent: *\nDisallow: /".encode("utf-16-le"), False),
    (b"\xfe\xff" + "User-agent: *\nDisallow: /".encode("utf-16-be"), False),
    ("User-agent: *\nDisallow: /".encode("utf-16-le"), False),
    ("User-agent: *\r\nDisallow: /\r\n".encode("utf-16-be"), False),
    (b"\xff\xfe\0\0" + "User-agent: *\nDisallow: /".encode("utf-32-le"), False),
    (b"\xff\xfe" + "User-agent: *\nDisallow: /x".encode("utf-16-le") + b"\n", False),
    # These marks before a file that is not in UTF-16, and before one of which a half is.
    (b"\xff\xfeUser-agent: *\nDisallow: /", False),
    (b"\xfe\xffUser-agent: *\r\nDisallow: /", False),
    (b"\xff\xfe\nUser-agent: *\nDisallow: /x\n", False),
    (b"\xff\xfe" + "User-agent: *\nDisallow: /a\n".encode("utf-16-le") + b"\nUser-agent: *\nDisallow: /x\n", False),
    (b"\xff\xfe" + "User-agent: *\nDisallow: /x\n".encode("utf-16-le") + b"\nUser-agent: *\nAllow: /x\n", False),
    (b"\xff\xfe", True),
    (b"\xff", True),
    (b"\xefUser-agent: *\nDisallow: /", False),
    # A line ends at its first NUL, as for Google's parser.
    (b"User-agent: *\nDisallow: /x\x00.html", False),
    (b"User-agent: *\nDis\x00allow: /", True),
    (b"User-agent: *\n\xff\xfe\x00: \xe9\nDisallow: /\xff\nDisallow: /x", False),
    (b"\x00\x00User-agent: *\nDisallow: /", True),
    (b"User-agent: *\n# \x00\nDisallow: /", False),
    ("<!doctype html><title>404</title><p>Disallow: / User-agent: *", True),
]


@pytest.mark.parametrize(("text", "allowed"), GROUPS)
def test_which_rules_are_ours(text: str | bytes, allowed: bool) -> None:
    assert rules(text).allows("/x/y") is allowed


PATHS = [
    # rules, path, allowed
    # RFC 9309, section 5.1 and 5.2 (as facts).
    ("Disallow: *.gif$", "/a/b.gif", False),
    ("Disallow: *.gif$", "/a/b.gif?x", True),
    ("Disallow: /example/\nAllow: /publications/", "/example/x", False),
    ("Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/disallowed.gif", False),
    ("Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/x", True),
    # What Google documents of which rule takes precedence.
    ("Allow: /p\nDisallow: /", "/page", True),
    ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
    ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
    ("Allow: /page\nDisallow: /*.ph", "/page.php5", True),
    ("Allow: /$\nDisallow: /", "/", True),
    ("Allow: /$\nDisallow: /", "/page.htm", False),
    # What Google documents of which paths match.
    ("Disallow: /", "/any", False),
    ("Disallow: /fish", "/fish", False),
    ("Disallow: /fish", "/fish.html", False),
    ("Disallow: /fish", "/fish/salmon.html", False),
    ("Disallow: /fish", "/fishheads/yummy.html", False),
    ("Disallow: /fish", "/fish.php?id=anything", False),
    ("Disallow: /fish", "/Fish.asp", True),
    ("Disallow: /fish", "/catfish", True),
    ("Disallow: /fish", "/?id=fish", True),
    ("Disallow: /fish*", "/fishheads", False),
    ("Disallow: /fish*", "/catfish", True),
    ("Disallow: /fish/", "/fish/?id=x", False),
    ("Disallow: /fish/", "/fish", True),
    ("Disallow: /fish/", "/animals/fish/", True),
    ("Disallow: /*.php", "/folder/filename.php?parameters", False),
    ("Disallow: /*.php", "/folder/any.php.file.html", False),
    ("Disallow: /*.php", "/windows.PHP", True),
    ("Disallow: /*.php$", "/filename.php", False),
    ("Disallow: /*.php$", "/filename.php?parameters", True),
    ("Disallow: /*.php$", "/filename.php/", True),
    ("Disallow: /fish*.php", "/fishheads/catfish.php?parameters", False),
    ("Disallow: /fish*.php", "/Fish.PHP", True),
    # Longest match, whatever the order.
    ("Disallow: /a/b\nAllow: /a", "/a/b/c", False),
    ("Allow: /a\nDisallow: /a/b", "/a/b/c", False),
    ("Allow: /a/b/c\nDisallow: /a/b", "/a/b/c/d", True),
    ("Disallow: /a/b\nAllow: /a/*/c", "/a/b/c", True),
    ("Disallow: /a\nAllow: /a", "/a", True),
    ("Allow: /a$\nDisallow: /a", "/ab", False),
    ("Disallow: /a\nDisallow: /b", "/c", True),
    ("Disallow: /abcd\nAllow: /ab", "/abc", True),
    ("Allow: /x", "/y", True),
    # Wildcards.
    ("Disallow: *", "/x", False),
    ("Disallow: /**x**y", "/axby", False),
    ("Disallow: /*?", "/x", True),
    ("Disallow: /*?", "/x?", False),
    ("Disallow: /*?", "/x?y", False),
    ("Disallow: /*a*b*c", "/xaybzc", False),
    ("Disallow: /*a*b*c", "/xcba", True),
    ("Disallow: /a*a$", "/a", True),
    ("Disallow: /a*a$", "/aa", False),
    ("Disallow: /*ab$", "/abab", False),
    ("Disallow: /*aba$", "/ababa", False),
    ("Disallow: /a$b", "/a$b", False),
    ("Disallow: /a$b", "/a", True),
    ("Disallow: /$", "/", False),
    ("Disallow: /$", "/?x", True),
    ("Disallow: /a*$", "/abc", False),
    # Octets that mean something, taken for themselves (section 2.2.3).
    ("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html", False),
    ("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-x.html", True),
    ("Disallow: /path/foo-%24", "/path/foo-$", False),
    ("Disallow: /path/foo-%24", "/path/foo-", True),
    # One spelling for each octet (section 2.2.2).
    ("Disallow: /foo/bar?baz=quz", "/foo/bar?baz=quz", False),
    ("Disallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", False),
    ("Disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar", False),
    ("Disallow: /*baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", False),
    ("Disallow: /*=https://", "/foo?baz=https%3A%2F%2Ffoo.bar", False),
    ("Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
    ("Disallow: /foo/bar/%E3%83%84", "/foo/bar/ツ", False),
    ("Disallow: /foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", False),
    ("Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
    ("Disallow: /foo/bar/baz", "/foo/bar/%62%61%7A", False),
    ("Disallow: /~joe", "/%7Ejoe", False),
    ("Disallow: /a%2Fb", "/a/b", True),
    ("Disallow: /a/b", "/a%2Fb", True),
    ("Disallow: /a%2fb", "/a%2Fb", False),
    ("Disallow: /*%2F", "/a/b/c", True),
    ("Disallow: /*%2F", "/a%2Fb", False),
    ("Disallow: /a%3Fb", "/a?b", True),
    ("Disallow: /a;b=c,d", "/a%3Bb%3Dc%2Cd", False),
    ("Disallow: /a%", "/a%25", False),
    ("Disallow: /a%zz", "/a%25zz", False),
    ("Disallow: /a b", "/a%20b", False),
    ('Disallow: /"a"', "/%22a%22", False),
    # What counts of the address.
    ("Disallow: /x", "/x#y", False),
    ("Disallow: /x%23y", "/x#y", True),
    ("Disallow: /robots.txt", "/robots.txt", True),
    ("Disallow: /", "/robots.txt", True),
    ("Disallow: /", "/robots.txt.bak", False),
    # Rules that do not begin with a slash.
    ("Disallow: private/", "/private/x", False),
    # Absolute URLs: of this host, by http or https, and of any other.
    ("Disallow: https://example.org/private/", "/private/x", False),
    ("Disallow: HTTP://u:p@EXAMPLE.org:80/private/*.html$", "/private/x.html", False),
    ("Disallow: https://example.org", "/x", False),
    ("Disallow: https://example.org:8443/", "/x", True),
    ("Disallow: ftp://example.org/", "/x", True),
    ("Disallow: https://other.example/", "/x", True),
    ("Disallow: https://other.example", "/", True),
    ("Disallow: https://www.example.org/*", "/x", True),
    ("Disallow: https://*.example.org/x", "/x", True),
    ("Disallow: http://", "/x", True),
    ("Disallow: http:///x", "/x", True),
    ("Disallow: https://example.org.evil.example/x", "/x", True),
    ("Disallow: https://[::1/x", "/x", True),
    ("Disallow: /x\nAllow: https://example.org/x", "/x", False),
    ("Disallow: //other.example/", "/", True),
    # Repeated wildcards count as octets.
    ("Disallow: /x***\nAllow: /xya", "/xyab", False),
    # The beginning of an escape.
    ("Disallow: /x%2*y", "/x%2Fy", False),
    ("Disallow: /x%2", "/x%20", False),
    ("Disallow: /x%$", "/x%", False),
    ("Disallow: /x%$", "/x%20", True),
    ("Disallow: /\nAllow: public/", "/public/x", False),
]


@pytest.mark.parametrize(("text", "path", "allowed"), PATHS)
def test_which_rule_decides(text: str, path: str, allowed: bool) -> None:
    assert allows(text, path) is allowed


@pytest.mark.parametrize(
    "url", ["/a?b#c", "https://example.org/a?b#c", "http://u:p@example.org:8080/a?b", "HTTP://[::1]/a?b#/"]
)
def test_an_address_counts_from_its_path(url: str) -> None:
    assert not rules("User-agent: *\nDisallow: /a?b$").allows(url)


def test_an_address_without_path_is_the_root() -> None:
    assert not rules("User-agent: *\nDisallow: /$").allows(H)
    assert not rules("User-agent: *\nDisallow: /?x").allows(H + "?x")


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("User-agent: *\nCrawl-delay: 5", 5.0),
        ("User-agent: *\nCrawl-delay: 0.5 # half", 0.5),
        ("User-agent: *\ncrawl-delay:.5", 0.5),
        ("User-agent: *\nCrawl-delay: 10s", 10.0),
        ("User-agent: *\nCrawl-delay: 2\nCrawl-delay: 7\nCrawl-delay: 3", 7.0),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: gossamer\nDisallow: /x", None),
        ("User-agent: gossamer\nUser-agent: *\nCrawl-delay: 5\nDisallow: /x", 5.0),
        ("User-agent: *\nDisallow: /x\nCrawl-delay: 5\nUser-agent: gossamer\nDisallow: /x", None),
        ("User-agent: bing\nCrawl-delay: 30\nUser-agent: *\nDisallow: /x", None),
        ("User-agent: gossamer\nCrawl-delay: 3\n\nUser-agent: *\nCrawl-delay: 5", 3.0),
        ("Crawl-delay: 5\nUser-agent: *\nDisallow: /x", None),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("User-agent: *\nCrawl-delay: -1", None),
        ("User-agent: *\nCrawl-delay: inf", None),
        ("User-agent: *\nCrawl-delay: 1" + "0" * 500, 1e8),
        ("User-agent: *\nCrawl-delay:", None),
    ],
)
def test_crawl_delay(text: str, delay_s: float | None) -> None:
    assert rules(text).crawl_delay_s == delay_s


def test_sitemaps_belong_to_no_group() -> None:
    text = "Sitemap: https://a/1\nUser-agent: x\nSITEMAP :/2#c\nDisallow: /\nSitemap https://a/3\nSitemap:"
    assert rules(text).sitemaps == ("https://a/1", "/2", "https://a/3")
    assert len(rules("Sitemap: /x\n" * 5000).sitemaps) == SITEMAPS_MAX


def test_two_readings_give_all_sitemaps_and_the_longer_delay() -> None:
    text = "Sitemap: /1\nUser-agent: *\nCrawl-delay: 3\n".encode("utf-16-le")
    found = rules(b"\xff\xfe" + text + b"\nSitemap: /2\nUser-agent: *\nCrawl-delay: 7\n")
    assert found.sitemaps == ("/1", "/2")
    assert found.crawl_delay_s == 7.0


def test_the_rest_of_a_very_long_line_is_not_read() -> None:
    start = "Disallow: /" + "a" * LINE_BYTES_MAX
    assert not allows(start + "b", "/" + "a" * LINE_BYTES_MAX)
    assert not allows(start + "\nDisallow: /x", "/x")
    assert not allows("Disallow: " + " " * (LINE_BYTES_MAX - 12) + "/x/y", "/x")


def test_a_rule_with_the_origin_of_a_host_with_a_port_or_an_international_name() -> None:
    def denies(origin: str, rule: str) -> bool:
        return not RobotsRules.parse(f"User-agent: *\nDisallow: {rule}".encode(), origin=origin).allows(origin + "/x")

    assert denies("http://127.0.0.1:8080", "http://127.0.0.1:8080/x")
    assert not denies("http://127.0.0.1:8080", "http://127.0.0.1/x")
    assert denies("https://xn--bcher-kva.example", "https://b\u00fccher.example/x")
    assert denies("https://xn--bcher-kva.example", "https://xn--bcher-kva.example/x")
    assert denies("http://[::1]", "https://[0:0:0:0:0:0:0:1]/x")
    assert denies("ftp://example.org", "ftp://example.org/x")
    assert not denies("ftp://example.org", "http://example.org/x")
    assert not denies("", "https://example.org/x")


def test_a_long_file_is_read_to_its_bound_in_whole_lines() -> None:
    text = b"User-agent: *\n" + b"# x\n" * 130_000 + b"Disallow: /late\n"
    assert RobotsRules.parse(text).allows("/late")
    assert not RobotsRules.parse(text, bytes_max=1_000_000).allows("/late")
    assert cut(b"ab\ncd\nef", 7) == b"ab\ncd\n"
    assert cut(b"ab\rcd\ref", 7) == b"ab\rcd\r"
    assert cut(b"abcdef", 5) == b""
    assert cut(b"abcde", 5) == b"abcde"


def test_five_hundred_kibibytes_are_read() -> None:
    filler = b"# " + b"x" * 98 + b"\n"
    text = filler * (500 * 1024 // len(filler) - 1) + b"User-agent: *\nDisallow: /\n"
    assert len(text) <= 500 * 1024
    assert not RobotsRules.parse(text).allows("/x")


HOSTILE = {
    "stars": lambda n: b"Disallow: /" + b"*a" * n + b"$",
    "many stars": lambda n: b"\n".join(b"Disallow: /*a*%d*b$" % i for i in range(n)),
    "many rules": lambda n: b"\n".join(b"Disallow: /%d" % i for i in range(n)),
    "many lengths": lambda n: b"\n".join(b"Disallow: /" + b"a" * (i % 2000) for i in range(n)),
    "many agents": lambda n: b"User-agent: gossamer\n" * n,
    "many groups": lambda n: b"User-agent: gossamer\nDisallow: /x\n" * n,
    "escapes": lambda n: b"Disallow: /" + b"%41" * n,
    "long line": lambda n: b"Disallow: /" + b" " * 10 * n,
    "colons": lambda n: b":" * 10 * n,
    "other hosts": lambda n: b"".join(b"Disallow: https://h%d.example/\n" % i for i in range(n)),
    "odd keys": lambda n: b"Disallow\x0ball /x:y\n" * n,
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_cost_a_line(kind: str) -> None:
    """Eight times the file may cost eight times the work, with room for noise; a square would cost 64 times."""

    def prepare(n: int) -> Callable[[], object]:
        text = b"User-agent: *\n" + HOSTILE[kind](n)
        return lambda: RobotsRules.parse(text, bytes_max=10_000_000).allows("/" + "a" * 2000)

    assert is_linear(prepare, 2_000)


def test_patterns_that_would_backtrack_do_not() -> None:
    text = "User-agent: *\n" + "\n".join(f"Disallow: /{'*a' * 60}{i}$" for i in range(500))
    started = time.process_time()
    assert rules(text).allows("/" + "a" * 2000)
    assert time.process_time() - started < 20  # A backtracking matcher would not end.


def test_beyond_the_bound_on_wildcards_rules_are_read_strictly() -> None:
    filler = "".join(f"Disallow: /no/*{'x' * 1000}{i}\n" for i in range(WILDCARD_BYTES_MAX // 1000 + 1))
    found = rules("User-agent: *\n" + filler + "Disallow: /late/*z\nAllow: /late/*y\n")
    assert not found.allows("/late/anything")
    assert found.allows("/other")


@given(st.binary(max_size=400))
def test_any_bytes_are_a_file(body: bytes) -> None:
    for text in (body, b"User-agent: *\nDisallow: /" + body, b"User-agent: *\nAllow: *" + body):
        found = RobotsRules.parse(text)
        assert found.allows("/robots.txt")
        found.allows("/x?y")


@given(st.text(alphabet="/ab*$?%2Ff", min_size=1, max_size=12), st.text(alphabet="/ab?%2Ff$*", max_size=12))
def test_the_matcher_does_what_a_regular_expression_would(pattern: str, path: str) -> None:
    normal, target = pattern_of(pattern.encode(), allow=False), target_of("/" + path)
    assert normal is not None
    expected = "".join(".*" if c == "*" else re.escape(c) for c in normal.removesuffix("$"))
    expected += r"\Z" if normal.endswith("$") else ""
    matches = re.match(expected, target, re.DOTALL) is not None
    if "%2F" not in normal:
        assert Matcher({normal: False}).allows(target) is not matches
    elif matches:
        assert not Matcher({normal: False}).allows(target)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("User-agent: CCBot\nDisallow: /", False),
        ("User-agent: other\nDisallow: /", True),
        ("User-agent: *\nDisallow: /\nUser-agent: ccbot\nAllow: /", True),
        ("User-agent: ccbot\nDisallow: /\nUser-agent: gossamer\nAllow: /", True),
        ("User-agent: gossamer\nDisallow: /\nUser-agent: ccbot\nAllow: /", False),
        ("User-agent: archiver\nAllow: /\nUser-agent: ccbot\nDisallow: /", False),
        ("User-agent: ccbot\nUser-agent: archiver\nDisallow: /", False),
    ],
)
def test_of_several_product_tokens_the_first_that_is_named_decides(text: str, allowed: bool) -> None:
    rules = RobotsRules.parse(text.encode(), agents=("ccbot", "archiver"))
    assert rules.allows("/x") is allowed
