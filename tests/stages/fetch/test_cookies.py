"""Cookies: what is kept, what is sent back, and to whom (RFC 6265bis); files in Netscape format."""

from __future__ import annotations

import json

import pytest

from gossamer.model.errors import ConfigError
from gossamer.stages.fetch import cookies
from gossamer.stages.fetch.cookies import (
    COOKIE_BYTES_MAX,
    COOKIES_MAX,
    Cookie,
    Jar,
    cookie_date,
    netscape,
    of_file,
    of_netscape,
)
from gossamer.url.name import Namer
from gossamer.url.url import Url

NOW = 1_800_000_000.0


def named(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None
    return url


def sent(set_by: str, headers: list[str], to: str, later_s: float = 0.0) -> str:
    """Return what a request to one URL carries after another one set cookies."""
    jar = Jar()
    for header in headers:
        jar.take(header, named(set_by), NOW)
    return jar.header(named(to), NOW + later_s)


HOME = "https://www.example.co.uk/a/b"


@pytest.mark.parametrize(
    ("header", "to", "carries"),
    [
        ("a=1", HOME, "a=1"),
        ("a = 1 ; ;", HOME, "a=1"),
        ('a="1; 2"', HOME, 'a="1'),
        ("a==1=", HOME, "a==1="),
        ("=1", HOME, ""),
        ("a", HOME, ""),
        ("a=\x01", HOME, ""),
        ("a=1", "https://example.co.uk/a/", ""),
        ("a=1; Domain=.Example.co.uk", "https://x.y.example.co.uk/a/", "a=1"),
        ("a=1; Domain=example.co.uk", "https://badexample.co.uk/a/", ""),
        ("a=1; Domain=co.uk", HOME, ""),
        ("a=1; Domain=other.test", HOME, ""),
        ("a=1; Domain=sub.www.example.co.uk", HOME, ""),
        ("a=1; Domain=", HOME, "a=1"),
        ("a=1", "https://www.example.co.uk/a", "a=1"),
        ("a=1", "https://www.example.co.uk/ab", ""),
        ("a=1", "https://www.example.co.uk/a/c/d?e#f", "a=1"),
        ("a=1; Path=/", "https://www.example.co.uk/", "a=1"),
        ("a=1; path=/x/", "https://www.example.co.uk/x/y", "a=1"),
        ("a=1; path=/x/", "https://www.example.co.uk/x", ""),
        ("a=1; path=x", "https://www.example.co.uk/a/z", "a=1"),
        ("a=1; Secure", HOME, "a=1"),
        ("a=1; Secure", "http://www.example.co.uk/a/b", ""),
        ("a=1; SameSite=None", HOME, ""),
        ("a=1; SameSite=None; Secure", HOME, "a=1"),
        ("a=1; SameSite=strict; HttpOnly", HOME, "a=1"),
        ("__Secure-a=1; Secure", HOME, "__Secure-a=1"),
        ("__Secure-a=1", HOME, ""),
        ("__Host-a=1; Secure; Path=/", HOME, "__Host-a=1"),
        ("__host-a=1; Secure", HOME, ""),
        ("__Host-a=1; Secure; Path=/; Domain=www.example.co.uk", HOME, ""),
        (f"a={'x' * COOKIE_BYTES_MAX}", HOME, ""),
    ],
)
def test_what_is_sent_back(header: str, to: str, carries: str) -> None:
    assert sent(HOME, [header], to) == carries


@pytest.mark.parametrize(
    ("attributes", "lives_s"),
    [
        ("Max-Age=10", 10), ("Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 10), ("Max-Age=0", 0),
        ("Max-Age=-1", 0), ("Max-Age=x", None), ("Max-Age=99999999999999", cookies.AGE_S_MAX),
        ("Expires=Fri, 15 Jan 2027 08:00:10 GMT", 10), ("Expires=Friday, 15-Jan-27 08:00:10 GMT", 10),
        ("Expires=Fri Jan 15 08:00:10 2027", 10), ("Expires=never", None),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0), ("", None),
    ],
)  # fmt: skip
def test_how_long_it_lives(attributes: str, lives_s: int | None) -> None:
    header = [f"a=1; {attributes}"]
    if lives_s is None:
        assert sent(HOME, header, HOME, later_s=1e9) == "a=1"
        return
    assert sent(HOME, header, HOME, later_s=lives_s) == ""
    assert (sent(HOME, header, HOME, later_s=lives_s - 1) == "a=1") == (lives_s > 0)


@pytest.mark.parametrize("text", ["", "1 Jan", "32 Jan 2027 00:00:00", "1 Jan 1600 00:00:00", "1 Jan 2027 24:00:00"])
def test_what_is_no_date(text: str) -> None:
    assert cookie_date(text) is None


def test_a_new_value_takes_the_place_of_the_old_one_and_keeps_its_turn() -> None:
    jar = Jar()
    for at, header in enumerate(("a=1", "b=1; Path=/", "c=1; Path=/", "b=2; Path=/", "a=; Max-Age=0")):
        jar.take(header, named(HOME), NOW + at)
    assert jar.header(named(HOME), NOW + 9) == "b=2; c=1"
    assert jar.changed


def test_a_name_without_a_dot_is_no_domain_of_other_hosts() -> None:
    """The rule `*` of the public suffix list, for top-level domains that it does not name."""
    assert sent("http://a.b.intranet/", ["a=1; Domain=intranet"], "http://a.b.intranet/") == ""
    assert sent("http://wiki/", ["a=1; Domain=wiki"], "http://wiki/") == "a=1"


def test_cookies_of_one_response_keep_their_order() -> None:
    assert sent(HOME, ["a=1", "b=1", "a=2"], HOME) == "a=2; b=1"


def test_longer_paths_come_first() -> None:
    headers = ["a=1; Path=/", "b=1; Path=/a/b", "c=1; Path=/a/"]
    assert sent(HOME, headers, HOME) == "b=1; c=1; a=1"


def test_an_insecure_page_does_not_replace_a_secure_cookie() -> None:
    jar = Jar()
    jar.take("a=1; Secure; Path=/", named(HOME), NOW)
    jar.take("a=2; Path=/; Domain=example.co.uk", named("http://www.example.co.uk/"), NOW)
    assert jar.header(named(HOME), NOW) == "a=1"


def test_a_script_replaces_no_cookie_that_it_must_not_see() -> None:
    """RFC 6265bis, section 5.7: a cookie of a non-HTTP API."""
    jar = Jar()
    jar.take("a=1; Path=/; HttpOnly", named(HOME), NOW)
    jar.take("b=1; Path=/", named(HOME), NOW)
    for text in ("a=2; Path=/", "a=; Path=/; Max-Age=0", "b=2; Path=/"):
        jar.take(text, named(HOME), NOW, by_script=True)
    assert jar.header(named(HOME), NOW) == "a=1; b=2"
    jar.take("a=2; Path=/", named(HOME), NOW)
    assert jar.header(named(HOME), NOW) == "a=2; b=2"


def test_parts_of_other_sites_pages_get_those_that_say_so_alone() -> None:
    jar = Jar()
    for header in ("a=1", "b=1; SameSite=Lax", "c=1; SameSite=None; Secure"):
        jar.take(header, named(HOME), NOW)
    assert jar.header(named(HOME), NOW, embedded_elsewhere=True) == "c=1"


@pytest.mark.promise("Bounds", "Cookies of one site are bounded in number and bytes.")
def test_a_site_cannot_fill_the_jar() -> None:
    jar = Jar()
    for n in range(COOKIES_MAX + 20):
        jar.take(f"a{n}=1; Path=/", named(HOME), NOW + n)
    assert [cookie.name for cookie in jar][:2] == ["a20", "a21"]
    for n in range(40):
        jar.take(f"b{n}={'x' * 4_000}; Path=/", named(HOME), NOW + 1_000 + n)
    assert sum(cookie.size for cookie in jar) <= cookies.JAR_BYTES_MAX
    assert [cookie.name for cookie in jar][-1] == "b39"


NETSCAPE = """\
# Netscape HTTP Cookie File
# a comment

.example.com\tTRUE\t/\tTRUE\t1900000000\tall\t1
#HttpOnly_www.example.com\tFALSE\t/in\tFALSE\t0\tone\ta b
www.example.com\tFALSE\t/\tFALSE\t1\tgone\tx
co.uk\tTRUE\t/\tFALSE\t0\tsuffix\tx
"""


def test_a_netscape_file_in_and_out() -> None:
    found = of_netscape(NETSCAPE, "cookies.txt", NOW)
    assert found == [
        Cookie("all", "1", "example.com", "/", NOW, 1_900_000_000.0, host_only=False, secure=True),
        Cookie("one", "a b", "www.example.com", "/in", NOW, 0.0, http_only=True),
        Cookie("suffix", "x", "co.uk", "/", NOW, 0.0),
    ]
    assert of_netscape(netscape(found), "again", NOW) == found


def test_a_recorded_browser_session() -> None:
    one = {"name": "a", "value": "é", "domain": ".example.com", "path": "/", "expires": 1_900_000_000.5}
    rest = {"httpOnly": True, "secure": True, "sameSite": "Lax"}
    gone, suffix = {**one, "expires": 1}, {"name": "b", "value": "", "domain": ".co.uk", "expires": -1}
    state = json.dumps({"cookies": [{**one, **rest}, gone, suffix], "origins": [{"origin": "x", "localStorage": []}]})
    assert of_file(state, "state.json", NOW) == [
        Cookie("a", "é".encode().decode("latin-1"), "example.com", "/", NOW, 1_900_000_000.5, False, True, True, "lax"),
        Cookie("b", "", "co.uk", "/", NOW),
    ]
    assert of_file(NETSCAPE, "cookies.txt", NOW) == of_netscape(NETSCAPE, "cookies.txt", NOW)
    listed = {"name": "sid", "value": "1", "domain": ".a.test", "expirationDate": NOW + 9.5, "sameSite": None}
    [cookie] = of_file(json.dumps([{**listed, "hostOnly": False, "storeId": "0"}]), "extension.json", NOW)
    assert (cookie.name, cookie.domain, cookie.expires_at, cookie.host_only) == ("sid", "a.test", NOW + 9.5, False)
    for text in ("{}", '{"cookies": [{"name": "s3cret"}]}', '{"cookies": "s3cret"}'):
        with pytest.raises(ConfigError, match=r"^state\.json: no storage state of a browser: .*; save it") as found:
            of_file(text, "state.json", NOW)
        assert "s3cret" not in str(found.value)


@pytest.mark.parametrize("line", ["{}", "a.test\tTRUE\t/\tFALSE\tx\ta\ts3cret", "a.test\tTRUE\t/\tFALSE\t0"])
def test_what_is_no_netscape_file(line: str) -> None:
    with pytest.raises(ConfigError, match=r"^cookies\.txt line 2: no cookie: (fields|its|it) .*; save") as found:
        of_netscape(f"# x\n{line}\n", "cookies.txt", NOW)
    assert "s3cret" not in str(found.value)


@pytest.mark.parametrize("expiry", ["-1", "", "0", "-1.0"])
def test_a_file_by_other_programs(expiry: str) -> None:
    [cookie] = of_file(f"\ufeffa.test\tFALSE\t/\tFALSE\t{expiry}\ta\tb\r\n", "cookies.txt", NOW)
    assert cookie == Cookie("a", "b", "a.test", "/", NOW, 0.0)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a.test TRUE / FALSE 0 a s3cret", "fields between tabs: 1"), ("\tTRUE\t/\tFALSE\t0\ta\ts3cret", "is empty"),
        ("a.test\tTRUE\t/\tFALSE\t2030-01-01\ta\ts3cret", "no cookie: its fifth field is not a time in seconds"),
        ("a.test\tTRUE\t/\tFALSE\t0\ta\ts3\x1bcret", "control characters"),
        (f"a.test\tTRUE\t/\tFALSE\t0\ta\t{'s3cret' * 800}", "bytes"),
        ("a.test\tFALSE\t/\tFALSE\t0\t__Secure-a\ts3cret", "__Secure- ones secure"),
        *((f"{rest}\t0\t__host-a\ts3cret", "of one host and of path /") for rest in (
            ".a.test\tTRUE\t/\tTRUE", "a.test\tFALSE\t/in\tTRUE", "a.test\tFALSE\t/\tFALSE",
        )),
    ],
)  # fmt: skip
def test_a_cookie_that_is_not_read_is_named_with_the_reason(line: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"^cookies\.txt line 1: ") as found:
        of_file(line, "cookies.txt", NOW)
    assert why in str(found.value)
    assert "s3cret" not in str(found.value)
    assert of_file("a.test\tFALSE\t/\tTRUE\t0\t__Host-a\tb", "cookies.txt", NOW)[0].secure


def test_a_recorded_cookie_obeys_its_prefix() -> None:
    one = {"name": "__Secure-a", "value": "s3cret", "domain": "a.test"}
    assert of_file(json.dumps({"cookies": [{**one, "secure": True}]}), "state.json", NOW)
    with pytest.raises(ConfigError, match=r"^state\.json cookie 1: .* ones secure$"):
        of_file(json.dumps({"cookies": [one]}), "state.json", NOW)
