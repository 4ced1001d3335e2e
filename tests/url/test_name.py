"""Name: everything we call one address."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.url import name as name_module
from gossamer.url.canonical import Canonicalizer
from gossamer.url.hosts import HostNameRules
from gossamer.url.join import absolute, join
from gossamer.url.name import Namer
from gossamer.url.rules import DEFAULT_RULES, RULES, occasion
from gossamer.url.site import partition_of, site_of
from gossamer.url.url import Url, fingerprint, split


def named(text: str, namer: Namer | None = None) -> Url | None:
    whole = absolute(text)
    assert whole is not None
    return (namer or Namer()).name(whole)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("http://Example.ORG/a", "example.org"),
        ("https://a.b.example.co.uk:8443/", "a.b.example.co.uk"),
        ("http://h:81/?@x:1/", "h"),
        ("http://example.org./", "example.org"),
        ("http://example.org.:81/", "example.org"),
        ("http://127.0.0.1:8123/", "127.0.0.1"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://[::1]:8123/", "[::1]"),
        ("http://[2001:DB8::0]/", "[2001:db8::]"),
        ("http://münchen.example/", "xn--mnchen-3ya.example"),
        ("ftp://h/a", "h"),
        ("ftps://H.Example:990/a", "h.example"),
        ("gopher://H.Example:70/1", "h.example"),
        ("gopher://H?x/y", "h"),
        ("gopher://0x7f.1/", "127.0.0.1"),
        ("gopher://münchen.example/", "xn--mnchen-3ya.example"),
        ("file:///a/b", "localhost"),
        ("file://localhost/a/b", "localhost"),
        ("file://server/a", "server"),
    ],
)
def test_host(text: str, host: str) -> None:
    url = named(text)
    assert url is not None
    assert url.host == host
    assert url.site == site_of(host)
    assert url.partition == partition_of(url.site)
    assert url.fingerprint == fingerprint(url.key)
    assert url.text == absolute(text)


@pytest.mark.promise("What is fetched", "Addresses that are queued, requested or compared hold no credentials.")
@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("http://user:pass@h/", "http://h/"),
        ("http://u@h:81/?@x:1/", "http://h:81/?@x:1/"),
        ("https://a%40b:c@h/%7eu", "https://h/%7eu"),
        ("http://u@[2001:DB8::0]/@", "http://[2001:db8::]/@"),
        ("ftp://u:p@h/a", "ftp://h/a"),
    ],
)
@pytest.mark.parametrize("rules", [DEFAULT_RULES, (*DEFAULT_RULES, "lower_path")])
@pytest.mark.parametrize("hosts", [None, HostNameRules(starts_with={"www.": ""})])
def test_credentials_are_left_out(text: str, bare: str, rules: Sequence[str], hosts: HostNameRules | None) -> None:
    namer = Namer(Canonicalizer(rules, hosts))
    url, plain = named(text, namer), named(bare, namer)
    assert url is not None
    assert url == plain
    assert url.text == bare
    assert namer.names([absolute(text) or "", bare, absolute(text) or ""]) == [url, url, url], "remembered or not"


@pytest.mark.parametrize(
    "text",
    [
        "mailto:me@example.org", "javascript:void(0)", "data:text/html,x", "about:blank", "tel:+1", "ws://h/", "httpx://h/",
        "httpsx://h/", "gopher:///x", "gopher:x", "blob:http://h/x", "http://a..b/", "http://./", "http://../", "http://.a/",
        "http://a../", "view-source:http://h/", "gopher://a%00b/",
    ],
)  # fmt: skip
def test_what_cannot_be_visited_has_no_name(text: str) -> None:
    assert named(text) is None


def test_names_come_in_order() -> None:
    namer = Namer()
    texts = ["http://h/a", "mailto:x@h", "http://h/b", "https://g/%41"]
    urls = namer.names(texts)
    assert [url and url.text for url in urls] == ["http://h/a", None, "http://h/b", "https://g/%41"]
    assert urls == namer.names(texts)


def test_two_spellings_have_one_name() -> None:
    one, other = named("http://h/%7eu"), named("HTTP://h.:80/~u")
    assert one is not None
    assert other is not None
    assert (one.key, one.fingerprint, one.host) == (other.key, other.fingerprint, other.host)
    assert one.text != other.text


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_module, "STARTS_MAX", 8)
    namer = Namer()
    for n in range(100):
        url = namer.name(f"http://h{n}/")
        assert url is not None
        assert url.host == f"h{n}"
        assert namer.name("http://always/") is not None
    assert len(namer._young) <= 8
    assert len(namer._old) <= 8
    assert "http://always" in {**namer._young, **namer._old}
    userinfo = "u" * 1000
    assert namer.name(f"http://{userinfo}@h/") is not None
    assert not any(userinfo in start for start in namer._young)


hrefs = st.text(st.sampled_from("ab.:/?#%2e41H@[]ü\\"), max_size=16)


@given(hrefs, st.lists(st.sampled_from(list(RULES)), unique=True))
def test_names_agree_with_the_key(href: str, rules: list[str]) -> None:
    for canonicalizer in (Canonicalizer(), Canonicalizer(rules)):
        for text in (join("http://h/a", href), absolute("http://" + href), absolute("gopher://" + href)):
            url = None if text is None else Namer(canonicalizer).name(text)
            if url is not None:
                assert url.key == canonicalizer.key_by_rules(url.text)
                assert url.host
                assert url.host == url.host.lower()


@given(st.text())
def test_naming_never_raises(text: str) -> None:
    Namer().name(text)


@given(hrefs, st.sampled_from(list(RULES)), st.sampled_from(["http://h", "https://u@www.example.org:81", "gopher://H"]))
def test_where_a_rule_has_no_occasion_it_changes_nothing(href: str, rule: str, start: str) -> None:
    address = absolute(start + "/" + href)
    assert address is not None
    rest = address[address.index("/", address.index("://") + 3) :]
    parts = split(address)
    assert parts is not None
    changed = RULES[rule](parts)
    if re.search(occasion([rule]), rest) is None:
        assert (changed.path, changed.query, changed.fragment) == (parts.path, parts.query, parts.fragment)


def test_keys_that_took_work_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_module, "KEYS_MAX", 8)
    namer = Namer(Canonicalizer(tuple(RULES)))
    for n in range(100):
        for text in (f"http://h/A{n}?b&a", f"http://h/plain{n}", "http://h/Always"):
            url = namer.name(text)
            assert url is not None
            assert url.key == namer.canonicalizer.key_by_rules(text)
    assert namer.name("http://h/A" + "b" * 600) is not None
    assert len(namer._keys) <= 8
    assert len(namer._keys_before) <= 8
    assert "http://h/Always" in {**namer._keys, **namer._keys_before}
    assert not any("plain" in text or len(text) > 500 for text in namer._keys)


SPLIT = ("example.org",)
SPLIT_HOSTS = ("example.org", "www.example.org", "a.example.org", "www.a.example.org", "b.example.org", "m.example.org")


def test_hosts_of_a_split_site_have_a_partition_each_and_others_that_of_their_site() -> None:
    namer = Namer(split=SPLIT)
    for host in SPLIT_HOSTS:
        assert named_by(namer, f"https://{host}/x").partition == partition_of(host)
    assert named_by(namer, "https://a.example.net/").partition == partition_of("example.net")
    assert named_by(namer, "https://a.example.net/").site == "example.net"
    assert named_by(namer, "https://a.example.org/").site == "example.org", "its gate is that of the whole site"


def named_by(namer: Namer, text: str) -> Url:
    url = named(text, namer)
    assert url is not None
    return url


@given(
    st.sampled_from(["http", "https"]), st.sampled_from(["http", "https"]),
    st.sampled_from(SPLIT_HOSTS), st.sampled_from(SPLIT_HOSTS),
    st.sampled_from(["", "/", "/a", "//a?b=1&a=2", "/A/index.html", "/a;jsessionid=1"]),
    st.sampled_from(["", "/", "/a", "/a?a=2&b=1", "/a/", "/A"]),
    st.lists(st.sampled_from(sorted(RULES)), unique=True),
    st.sampled_from([{}, {"www.": ""}, {"m.": "", "www.": ""}]),
    st.sampled_from(["", ".", ":80", ":443", ":8080"]),
)  # fmt: skip
def test_equal_keys_of_a_split_site_meet_in_one_partition(
    scheme: str, other: str, one: str, two: str, path: str, other_path: str, rules: list[str],
    starts: dict[str, str], end: str,
) -> None:  # fmt: skip
    """http and https, with and without www., final dots and ports: as the rules that are on compare them."""
    namer = Namer(Canonicalizer(tuple(rules), HostNameRules(starts)), split=SPLIT)
    first = named_by(namer, f"{scheme}://{one}{end}{path}")
    second = named_by(namer, f"{other}://{two}{other_path}")
    if first.key == second.key:
        assert first.partition == second.partition
    again = named_by(namer, first.key)
    assert again.partition == first.partition


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("http://H.TEST:80/a#b", "http://h.test/a"),
        (" http://me:pw@h.test/./a ", "http://h.test/a"),
        ("http://h.test", "http://h.test/"),
        ("http://h.test/a%31?B#request=POST+1", "http://h.test/a%31?B#request=POST+1"),
        ("h.test/a", None),
        ("mailto:me@h.test", None),
        ("http://a\r\nX: 1/", None),
    ],
)
def test_addresses_are_named_as_people_write_them(text: str, named: str | None) -> None:
    url = Namer().name_typed(text)
    assert (url.text if url is not None else None) == named
