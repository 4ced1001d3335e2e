"""RFC 9309 rule by rule, and Google's published cases, through the gate of a crawl: `Permit` over `SiteRobots`.

The tables of `test_rules` judge the parser; here the same files answer the prerequisite fetch of the gate.
"""

from __future__ import annotations

import itertools
import re
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gossamer.features.permit import RobotsTxt
from gossamer.model.links import Verdict
from gossamer.model.visits import Failure, Reply
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.robots import SiteRobots
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice
from tests.stages.robots.test_rules import GROUPS, PATHS

pytestmark = pytest.mark.promise("Politeness", "robots.txt is obeyed as RFC 9309 specifies.")

NOW = 1_800_000_000.0
HOUR_S, DAY_S = 3_600.0, 86_400.0
OPTIONS = RobotsOptions()
namer = Namer()


def url(text: str) -> Url:
    named = namer.name(text)
    assert named is not None, text
    return named


@dataclass
class Gate:
    """A crawl's gate over a real store; each `site` is an origin that was never asked."""

    robots: SiteRobots
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def site(self) -> str:
        return f"https://site{next(self.numbers)}.example"

    def ask(self, address: str, now: float = NOW) -> Verdict:
        return RobotsTxt(self.robots, None, url, lambda _: False, print).judge(url(address), now)  # type: ignore[arg-type]

    def tell(
        self,
        site: str,
        body: bytes = b"",
        status: int = 200,
        *headers: tuple[str, str],
        now: float = NOW,
        hops: int = 0,
    ) -> str | None:
        """Bring robots.txt, as the prerequisite that the gate asks for; return where it redirects to."""
        prerequisite = self.ask(f"{site}/never-named-by-a-rule", now).prerequisite
        assert prerequisite is not None, "the gate did not ask for robots.txt"
        assert prerequisite.url.text == f"{site}/robots.txt"
        answer = Reply(prerequisite.url.text, status, headers, body, "192.0.2.1", now, 0.1, len(body))
        for _ in range(hops):
            target = self.robots.answer(prerequisite, answer, b"", now)
            assert target is not None
            prerequisite = type(prerequisite)(prerequisite.origin, url(target), prerequisite.hops + 1)
        return self.robots.answer(prerequisite, answer, body, now)

    def allows(self, site: str, path: str, now: float = NOW) -> bool:
        verdict = self.ask(site + path, now)
        if verdict.wait_until:  # A long file waits for its turn to be parsed.
            verdict = self.ask(site + path, verdict.wait_until)
        assert verdict.allowed or verdict.outcome == "robots_denied", verdict
        return verdict.allowed


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    store = Store(Path(tmp_path_factory.mktemp("robots")) / "store", 1 << 20, 1 << 20)
    yield Gate(SiteRobots(Epochs(store), OPTIONS, namer.name, Dice(1)))
    store.close()


@pytest.mark.parametrize(("text", "allowed"), GROUPS)
def test_which_rules_are_ours_through_the_gate(gate: Gate, text: str | bytes, allowed: bool) -> None:
    site = gate.site()
    assert gate.tell(site, text.encode() if isinstance(text, str) else text) is None
    assert gate.allows(site, "/x/y") is allowed


@pytest.mark.parametrize(("text", "path", "allowed"), PATHS)
def test_which_rule_decides_through_the_gate(gate: Gate, text: str, path: str, allowed: bool) -> None:
    site = gate.site()
    gate.tell(site, ("User-agent: *\n" + re.sub(r"(?i)(?<=[/@.])example\.org", site[8:], text)).encode())
    assert gate.allows(site, path.partition("#")[0]) is allowed


# (section of RFC 9309, file, what it allows, what it does not)
RULES = [
    ("2.2.1 the group that names us, whatever the case", "User-agent: GOSSAMER\nDisallow: /a", "/b", "/a"),
    ("2.2.1 several lines, one group", "User-agent: x\nUser-agent: gossamer\nDisallow: /a", "/b", "/a"),
    (
        "2.2.1 groups of one agent are merged",
        "User-agent: gossamer\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n\nUser-agent: gossamer\nDisallow: /c",
        "/b", "/c",
    ),
    ("2.2.1 nobody else's group", "User-agent: gossamerbot\nDisallow: /\nUser-agent: *\nDisallow: /a", "/b", "/a"),
    ("2.2.1 else that of all", "User-agent: x\nAllow: /\n\nUser-agent: *\nDisallow: /a", "/b", "/a"),
    ("2.2.1 ours alone", "User-agent: *\nDisallow: /b\nUser-agent: gossamer\nDisallow: /a", "/b", "/a"),
    ("2.2.1 no group, no rules", "Disallow: /a\nSitemap: /s", "/a", None),
    ("2.2.2 case matters in paths", "User-agent: *\nDisallow: /Aa", "/aa", "/Aa"),
    ("2.2.2 the longest match", "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c", "/a/b/d", "/a/b/c"),
    ("2.2.2 of equals the one that allows", "User-agent: *\nDisallow: /a\nAllow: /a\nDisallow: /b", "/a", "/b"),
    ("2.2.2 robots.txt itself", "User-agent: *\nDisallow: /", "/robots.txt", "/a"),
    ("2.2.2 octets outside ASCII", "User-agent: *\nDisallow: /ü", "/u", "/%C3%BC"),
    ("2.2.2 escapes of plain octets", "User-agent: *\nDisallow: /%62", "/c", "/b"),
    ("2.2.2 escapes of reserved ones stay apart", "User-agent: *\nDisallow: /a%2Fb", "/a/b", "/a%2fb"),
    ("2.2.3 # begins a comment", "User-agent: * # we\nDisallow: /a # not this\n#Disallow: /b", "/b", "/a"),
    ("2.2.3 $ is the end", "User-agent: *\nDisallow: /a$", "/ab", "/a"),
    ("2.2.3 * is anything", "User-agent: *\nDisallow: /a*c", "/ab", "/abc"),
    ("2.2.3 escaped they are themselves", "User-agent: *\nDisallow: /a%2Ac%24", "/abc", "/a*c$"),
    ("2.2.4 a sitemap ends no group", "User-agent: gossamer\nSitemap: /s\nUser-agent: x\nDisallow: /a", "/b", "/a"),
    ("2.2.4 a sitemap among the rules", "User-agent: *\nDisallow: /a\nSitemap: /s\nDisallow: /b", "/c", "/b"),
    ("2.2.4 unknown lines mean nothing", "User-agent: *\nNoindex: /b\nwhat ever\n: x\nDisallow: /a", "/b", "/a"),
    ("2.2 an empty Disallow says nothing", "User-agent: *\nDisallow:\nDisallow: /a", "/b", "/a"),
    ("2.2 line ends of every kind", "User-agent: *\rDisallow: /a\r\nDisallow: /c\n", "/b", "/c"),
    ("2.2 white space", " User-agent\t: * \n\tDisallow :  /a\t", "/b", "/a"),
    ("2.3 a byte order mark", "\ufeffUser-agent: *\nDisallow: /a", "/b", "/a"),
    ("2.3 a page instead of a file", "<!doctype html><title>Disallow: /a</title>", "/a", None),
    ("5.2 the longest, though * is in it", "User-agent: *\nAllow: /e/p/\nDisallow: /e/p/d.gif", "/e/p/x", "/e/p/d.gif"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text", "allowed", "denied"), RULES, ids=[rule[0] for rule in RULES])
def test_rule_by_rule(gate: Gate, rule: str, text: str, allowed: str, denied: str | None) -> None:
    site = gate.site()
    gate.tell(site, text.encode())
    assert gate.allows(site, allowed)
    assert denied is None or not gate.allows(site, denied)


# The situations that Google's published parser is tested with, in our words and for our name.
_THREE_GROUPS = (
    "allow: /foo/bar/\n\nuser-agent: gossamer\ndisallow: /\nallow: /x/\nuser-agent: barbot\ndisallow: /\n"
    "allow: /y/\n\n\nallow: /w/\nuser-agent: bazbot\n\nuser-agent: gossamer\nallow: /z/\ndisallow: /\n"
)
GOOGLE = [
    ("an empty file", "", "/", True),
    ("a line without sense", "foo: gossamer\nbar: /", "/", True),
    ("no colons", "user-agent gossamer\ndisallow /", "/a", False),
    *[("three groups", _THREE_GROUPS, path, True) for path in ("/x/b", "/z/d")],
    *[("three groups", _THREE_GROUPS, path, False) for path in ("/y/c", "/w/a", "/foo/bar/")],
    ("a sitemap between agents", "User-agent: bar\nSitemap: /s\nUser-agent: *\nDisallow: /\n", "/", False),
    (
        "a word nobody knows between agents",
        "User-agent: gossamer\nInvalid-Line: x\nUser-agent: *\nDisallow: /\n",
        "/", False,
    ),
    ("key words in capitals", "USER-AGENT: gossamer\nALLOW: /x/\nDISALLOW: /\n", "/x/y", True),
    ("key words in capitals", "USER-AGENT: gossamer\nALLOW: /x/\nDISALLOW: /\n", "/a/b", False),
    ("key words in cAmEl", "uSeR-aGeNt: gossamer\nAlLoW: /x/\ndIsAlLoW: /\n", "/a/b", False),
    ("our name in capitals", "User-Agent: GOSSAMER\nAllow: /x/\nDisallow: /\n", "/x/y", True),
    (
        "our name up to a space",
        "User-Agent: *\nDisallow: /\nUser-Agent: Gossamer Fish\nAllow: /x/\nDisallow: /\n",
        "/x/y", True,
    ),
    ("rules before all, then ours", "Disallow: /\nUser-Agent: gossamer\nAllow: /", "/a", True),
    ("a group for all is second", "user-agent: *\nallow: /\nuser-agent: gossamer\ndisallow: /", "/x/y", False),
    ("a group for another", "user-agent: foobot\nallow: /\nuser-agent: barbot\ndisallow: /", "/x/y", True),
    ("paths keep their case", "user-agent: gossamer\ndisallow: /x/", "/X/y", True),
    ("the longest, allowing", "user-agent: gossamer\ndisallow: /x/page.html\nallow: /x/", "/x/", True),
    ("the longest, disallowing", "user-agent: gossamer\ndisallow: /x/page.html\nallow: /x/", "/x/page.html", False),
    (
        "the longest, with the other order", "user-agent: gossamer\nallow: /x/page.html\ndisallow: /x/",
        "/x/page.html", True,
    ),
    ("nothing against nothing", "user-agent: gossamer\ndisallow: \nallow: ", "/x", True),
    ("all against all", "user-agent: gossamer\ndisallow: /\nallow: /", "/x", True),
    ("a slash more", "user-agent: gossamer\ndisallow: /x\nallow: /x/", "/x", False),
    ("a slash more", "user-agent: gossamer\ndisallow: /x\nallow: /x/", "/x/", True),
    (
        "a wildcard is as long as it is written",
        "user-agent: gossamer\ndisallow: /x/page.html\nallow: /x/*.html",
        "/x/page.html", False,
    ),
    ("a wildcard in a shorter one", "user-agent: gossamer\ndisallow: *html\nallow: /x/*.", "/x/page.html", True),
    (
        "an address in a query",
        "User-agent: gossamer\nDisallow: /\nAllow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par",
        "/foo/bar?qux=taz&baz=http://foo.bar?tar&par", True,
    ),
    ("three octets", "User-agent: gossamer\nDisallow: /\nAllow: /foo/bar/ツ", "/foo/bar/%E3%83%84", True),
    (
        "three octets escaped", "User-agent: gossamer\nDisallow: /\nAllow: /foo/bar/%E3%83%84",
        "/foo/bar/%E3%83%84", True,
    ),
    ("a star in the middle", "User-agent: gossamer\nDisallow: /foo/bar/quz\nAllow: /foo/*/qux", "/foo/x/quz", True),
    ("an end in an Allow", "User-agent: gossamer\nDisallow: /foo/bar$\nAllow: /foo/bar/qux", "/foo/bar", False),
    ("a comment in a rule", "User-agent: gossamer\n# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /", "/foo/quz", False),
    ("a byte order mark", "\ufeffUser-agent: gossamer\nDisallow: /", "/a", False),
    ("a long line", "User-agent: gossamer\nDisallow: /" + "a" * 20_000 + "/qux", "/" + "a" * 20_000 + "/qux", False),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "path", "allowed"), GOOGLE)
def test_what_googles_parser_is_tested_with(gate: Gate, what: str, text: str, path: str, allowed: bool) -> None:
    site = gate.site()
    gate.tell(site, text.encode())
    assert gate.allows(site, path) is allowed


def test_half_a_byte_order_mark_hides_no_rule(gate: Gate) -> None:
    site = gate.site()
    gate.tell(site, b"\xef\xbbUser-agent: *\nDisallow: /")
    assert not gate.allows(site, "/a")


def test_an_index_file_that_is_allowed_is_no_directory(gate: Gate) -> None:
    """Google reads `Allow: /a/index.html` as if it said `/a/` too. The standard does not, and it would ask for more."""
    site = gate.site()
    gate.tell(site, b"User-agent: *\nDisallow: /\nAllow: /a/index.html")
    assert gate.allows(site, "/a/index.html")
    assert not gate.allows(site, "/a/")


def test_2_3_each_scheme_host_and_port_has_its_own(gate: Gate) -> None:
    site = gate.site()
    gate.tell(site, b"User-agent: *\nDisallow: /")
    for other in (site.replace("https", "http"), site + ":8443", site.replace("site", "www.site")):
        assert gate.ask(other + "/a").prerequisite is not None
    assert not gate.allows(site, "/a")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_2_3_1_2_five_redirects_are_followed_and_the_answer_is_for_who_asked(gate: Gate, status: int) -> None:
    site = gate.site()
    prerequisite = gate.ask(site + "/a").prerequisite
    assert prerequisite is not None
    for hop in range(5):
        headers = (("Content-Type", "text/html"), ("Location", f"https://other{hop}.example/r"))
        moved = Reply(prerequisite.url.text, status, headers, b"", "", NOW, 0.1, 9)
        target = gate.robots.answer(prerequisite, moved, b"", NOW)
        assert target == f"https://other{hop}.example/r"
        prerequisite = type(prerequisite)(prerequisite.origin, url(target), hop + 1)
    rules = Reply(prerequisite.url.text, 200, (), b"", "", NOW, 0.1, 9)
    assert gate.robots.answer(prerequisite, rules, b"User-agent: *\nDisallow: /a", NOW) is None
    assert not gate.allows(site, "/a")
    assert gate.allows(site, "/b")
    assert gate.ask("https://other4.example/a").prerequisite is not None


def test_2_3_1_2_more_redirects_are_as_if_there_were_no_file(gate: Gate) -> None:
    site = gate.site()
    assert gate.tell(site, b"", 301, ("Location", "/robots.txt"), hops=5) is None
    assert gate.allows(site, "/a")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_2_3_1_3_a_file_that_is_unavailable_allows_all(gate: Gate, status: int) -> None:
    site = gate.site()
    gate.tell(site, b"User-agent: *\nDisallow: /", status)
    assert gate.allows(site, "/a")


@pytest.mark.parametrize("status", [408, 421, 425, 429, 500, 502, 503, 504, 599])
def test_2_3_1_4_a_server_in_trouble_disallows_all_for_now(gate: Gate, status: int) -> None:
    site = gate.site()
    gate.tell(site, b"", status)
    verdict = gate.ask(site + "/a")
    assert not verdict.allowed
    assert verdict.wait_until > NOW
    given_up = gate.ask(site + "/a", NOW + OPTIONS.robots_wait_max_s)
    assert not given_up.allowed, "also when it is over"


@pytest.mark.parametrize("outcome", ["timeout", "dns_error", "connect_error", "tls_error", "protocol_error"])
def test_2_3_1_4_a_network_in_trouble_does_too(gate: Gate, outcome: str) -> None:
    site = gate.site()
    prerequisite = gate.ask(site + "/a").prerequisite
    assert prerequisite is not None
    gate.robots.answer(prerequisite, Failure(outcome, "none"), b"", NOW)
    assert gate.ask(site + "/a").wait_until > NOW


def test_2_3_1_4_a_copy_is_obeyed_while_the_server_is_in_trouble(gate: Gate) -> None:
    site = gate.site()
    gate.tell(site, b"User-agent: *\nDisallow: /a")
    later = NOW + DAY_S + 1
    gate.tell(site, b"", 503, now=later)
    assert not gate.allows(site, "/a", later)
    assert gate.allows(site, "/b", later)


@pytest.mark.parametrize(
    ("headers", "good_s"),
    [((), DAY_S), ((("Cache-Control", "max-age=7200"),), 2 * HOUR_S), ((("Cache-Control", "max-age=9999999"),), DAY_S)],
)
def test_2_4_a_copy_is_no_older_than_a_day(gate: Gate, headers: tuple[tuple[str, str], ...], good_s: float) -> None:
    site = gate.site()
    gate.tell(site, b"User-agent: *\nDisallow: /a", 200, *headers)
    assert not gate.allows(site, "/a", NOW + good_s - 1)
    assert gate.ask(site + "/a", NOW + good_s + 1).prerequisite is not None


def test_2_5_five_hundred_kibibytes_are_read(gate: Gate) -> None:
    site = gate.site()
    line = b"# " + b"x" * 97 + b"\n"
    gate.tell(site, line * (500 * 1024 // len(line) - 1) + b"User-agent: *\nDisallow: /a\n")
    assert not gate.allows(site, "/a")


def long_file(size: int) -> bytes:
    head = b"User-agent: *\nDisallow: /a\n"
    rules = b"".join(b"Disallow: /private/%06d/*.html$\n" % n for n in range(8_000))
    return (head + rules * (size // len(rules) + 1))[:size]


@pytest.mark.promise("Politeness", "A robots.txt of any length costs no more than one of 500 KiB.")
@pytest.mark.heavy
def test_a_file_of_five_megabytes_costs_what_one_of_its_bound_costs(gate: Gate) -> None:
    """Time and memory go by what is read (500 KiB), not by what a server sends: ratios within one run."""

    def cost(size: int) -> tuple[float, int]:
        body, site = long_file(size), gate.site()
        tracemalloc.start()
        gate.tell(site, body)
        assert not gate.allows(site, "/a")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        spent = []
        for _ in range(3):
            site, started = gate.site(), time.process_time()
            gate.tell(site, body)
            gate.allows(site, "/b")
            spent.append(time.process_time() - started)
        return min(spent), peak

    (bound_s, bound_peak), (long_s, long_peak) = cost(512_000), cost(5_000_000)
    assert long_s < 4 * bound_s
    assert long_peak < bound_peak + 2 * 512_000
    assert bound_peak < 20 * 512_000
