"""Hosts: names compared as one, and the partition in which they meet."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from gossamer.options import OptionsError, convert
from gossamer.url.canonical import Canonicalizer
from gossamer.url.hosts import HostNameRules
from gossamer.url.join import absolute
from gossamer.url.name import Namer
from gossamer.url.options import UrlOptions
from gossamer.url.rules import DEFAULT_RULES, RULES
from gossamer.url.site import partition_of, site_of
from gossamer.url.url import Url

MUNICH = HostNameRules(
    {"www.": "", "www2.": ""},
    {".uni-muenchen.de": ".lmu.de", ".informatik.lmu.de": ".ifi.lmu.de"},
    {"uni-muenchen.de": "lmu.de", "alt.lmu.de": "neu.example.org", "127.0.0.1": "lmu.de"},
)


def named(text: str, hosts: HostNameRules, rules: tuple[str, ...] = DEFAULT_RULES) -> Url:
    whole = absolute(text)
    assert whole is not None
    url = Namer(Canonicalizer(rules, hosts)).name(whole)
    assert url is not None
    return url


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("example.org", "example.org"),
        ("www.example.org", "example.org"),
        ("www2.example.org", "example.org"),
        ("www3.example.org", "www3.example.org"),
        ("wwwx.example.org", "wwwx.example.org"),
        ("www.co.uk", "www.co.uk"),
        ("www.github.io", "www.github.io"),
        ("www.www.example.org", "example.org"),
        ("a.uni-muenchen.de", "a.lmu.de"),
        ("www.a.uni-muenchen.de", "a.lmu.de"),
        ("b.informatik.uni-muenchen.de", "b.ifi.lmu.de"),
        ("x-uni-muenchen.de", "x-uni-muenchen.de"),
        ("uni-muenchen.de", "lmu.de"),
        ("www.uni-muenchen.de", "lmu.de"),
        ("alt.uni-muenchen.de", "neu.example.org"),
        ("127.0.0.1", "lmu.de"),
        ("[::1]", "[::1]"),
    ],
)
def test_the_name_by_which_a_host_is_compared(host: str, name: str) -> None:
    assert MUNICH.resolve(host) == name
    assert MUNICH.resolve(name) == name


def test_kinds_run_in_their_order_and_of_a_kind_the_first_that_fits() -> None:
    """As in LARM: startsWith, endsWith, synonym, and each sees what the one before it made."""
    rules = HostNameRules({"a.": "b."}, {".x.org": ".y.org", ".org": ".example.net"}, {"b.h.y.org": "c.h.y.org"})
    assert rules._once("a.h.x.org") == "c.h.y.org"
    assert HostNameRules({"a.b.": "1.", "a.": "2."}).resolve("a.b.h.org") == "1.h.org"
    assert HostNameRules({"a.": "2.", "a.b.": "1."}).resolve("a.b.h.org") == "2.b.h.org"


def test_the_url_as_written_is_what_is_fetched() -> None:
    url = named("https://WWW.a.uni-muenchen.de:443/%7Eu#x", MUNICH)
    assert (url.text, url.key) == ("https://www.a.uni-muenchen.de/%7Eu", "https://a.lmu.de/~u")
    assert (url.host, url.site) == ("www.a.uni-muenchen.de", "uni-muenchen.de")
    assert url.partition == named("https://a.lmu.de/~u", MUNICH).partition
    assert url.fingerprint == named("https://a.lmu.de/~u", MUNICH).fingerprint


def test_hosts_compared_as_one_meet_in_one_partition_and_so_does_each_site() -> None:
    urls = [
        named(f"http://{host}/", MUNICH)
        for host in ("uni-muenchen.de", "a.uni-muenchen.de", "lmu.de", "b.lmu.de", "neu.example.org", "x.example.org")
    ]
    assert len({url.partition for url in urls}) == 1
    assert len({url.site for url in urls}) == 3
    other = named("http://www.elsewhere.example/", MUNICH)
    assert other.partition == partition_of("elsewhere.example")


def test_rules_that_move_whole_sites() -> None:
    rules = HostNameRules(ends_with={".co.uk": ".com"}, synonyms={"shop.example": "a.co.uk"})
    assert rules.resolve("x.b.co.uk") == "x.b.com"
    assert rules.home("b.co.uk") == rules.home("b.com") == "b.com"
    assert rules.resolve("shop.example") == "a.com"
    assert rules.home("shop.example") == rules.home("a.com") == rules.home("a.co.uk")


def test_hosts_that_never_come_to_rest_keep_their_names() -> None:
    rules = HostNameRules({"a.": "b.", "b.": "a."})
    assert rules.resolve("a.example.org") == "a.example.org"
    assert rules.resolve("b.example.org") == "b.example.org"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"starts_with": {"www": ""}}, "'www' is not the start of a host"),
        ({"starts_with": {".www.": ""}}, "'.www.' is not the start"),
        ({"starts_with": {"www.": "www.www."}}, "never come to rest"),
        ({"starts_with": {"www.": "www."}}, "changes nothing"),
        ({"ends_with": {"example.org": ".example.com"}}, "'example.org' is not the end of a host"),
        ({"ends_with": {".example.org": ".a.example.org"}}, "never come to rest"),
        ({"ends_with": {".example.org": ".org"}}, "anyone can register"),
        ({"ends_with": {".example.org": ""}}, "'' is not the end of a host"),
        ({"synonyms": {"a.org": "b.org", "b.org": "c.org", "c.org": "a.org"}}, "in a circle: a.org, b.org, c.org"),
        ({"synonyms": {"a.org/x": "b.org"}}, "'a.org/x' is not a host"),
        ({"synonyms": {"a..org": "b.org"}}, "'a..org' is not a host"),
        ({"synonyms": {"a.org:81": "b.org"}}, "is not a host"),
    ],
)
def test_rules_that_cannot_be_meant(options: dict[str, dict[str, str]], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        HostNameRules(**options)
    with pytest.raises(OptionsError, match=re.escape(said)):
        convert(UrlOptions, {"hosts": options})


def test_rules_of_single_sites() -> None:
    options = convert(
        UrlOptions,
        {
            "rules": [*DEFAULT_RULES, "drop_tracking"],
            "sites": {
                "example.org": {"rules": [*DEFAULT_RULES, "lower_path", "sort_query"]},
                "h.example": {"rules": []},
            },
            "hosts": {"synonyms": {"alias.test": "www.example.org"}},
        },
    )
    canonicalizer = options.canonicalizer()
    assert canonicalizer.key("http://docs.example.org/A?b&a&utm_id=1") == "http://docs.example.org/a?a&b&utm_id=1"
    assert canonicalizer.key("http://alias.test/A") == "http://www.example.org/a"
    assert canonicalizer.key("http://x.test/A?b&a&utm_id=1") == "http://x.test/A?b&a"
    assert canonicalizer.key("http://h.example./%7E") == "http://h.example./%7E"
    namer = Namer(canonicalizer)
    texts = ["http://example.org/A", "http://g.test/A", "http://h.example/%41"]
    assert [url and url.key for url in namer.names(texts)] == [
        "http://example.org/a", "http://g.test/A", "http://h.example/%41",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("site", "said"),
    [("www.example.org", "write 'example.org'"), ("http://x/", "is not a site"), ("", "is not a site")],
)
def test_rules_are_for_sites(site: str, said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        convert(UrlOptions, {"sites": {site: {"rules": []}}})
    with pytest.raises(OptionsError, match="did you mean sort_query"):
        convert(UrlOptions, {"sites": {"example.org": {"rules": ["sort_qery"]}}})


def test_what_changed_a_key_is_reported_in_order() -> None:
    canonicalizer = Canonicalizer((*DEFAULT_RULES, "drop_trailing_slash", "drop_index_file"), MUNICH)
    assert canonicalizer.changes("http://www.lmu.de/%7eu/index.html/") == [
        ("hosts", "http://lmu.de/%7eu/index.html/"),
        ("unreserved_escapes", "http://lmu.de/~u/index.html/"),
        ("drop_trailing_slash", "http://lmu.de/~u/index.html"),
        ("drop_index_file", "http://lmu.de/~u/"),
        ("drop_trailing_slash", "http://lmu.de/~u"),
    ]
    assert canonicalizer.changes("http://lmu.de/") == []
    assert canonicalizer.changes("mailto:x@y") == []


labels = st.sampled_from(["a", "b", "www"])
domains = st.sampled_from(["x.org", "y.org", "x.com", "y.com", "x.co.uk", "me.github.io", "z.x.org", "h"])
hosts = st.one_of(domains, st.builds("{}.{}".format, labels, domains), st.builds("{0}.{0}.{1}".format, labels, domains))
ends = st.one_of(domains, st.sampled_from(["org", "com", "co.uk", "github.io", "uk"]))


@st.composite
def host_rules(draw: st.DrawFn) -> HostNameRules:
    while True:
        starts = draw(
            st.dictionaries(labels.map("{}.".format), st.one_of(st.just(""), labels.map("{}.".format)), max_size=2)
        )
        tails = draw(st.dictionaries(ends.map(".{}".format), ends.map(".{}".format), max_size=3))
        synonyms = draw(st.dictionaries(hosts, hosts, max_size=3))
        try:
            return HostNameRules(starts, tails, synonyms)
        except ValueError:
            continue


@pytest.mark.promise("Several shards", "Equal keys and all hosts of a site belong to one shard, under any host rules.")
@given(host_rules(), st.lists(hosts, min_size=2, max_size=12), st.lists(st.sampled_from(list(RULES)), unique=True))
def test_equal_keys_have_one_partition_and_so_has_each_site(
    rules: HostNameRules, some: list[str], more: list[str]
) -> None:
    note(f"{rules._starts} {rules._ends} {rules._synonyms}")
    partitions: dict[str, set[int]] = {}
    for host in some:
        url = named(f"http://{host}/", rules, tuple(more))
        assert url.host == host
        assert url.site == site_of(host)
        assert rules.resolve(rules.resolve(host)) == rules.resolve(host)
        for what in (url.key, url.site):
            partitions.setdefault(what, set()).add(url.partition)
    assert [what for what, found in partitions.items() if len(found) > 1] == []


@given(host_rules(), hosts, st.lists(st.sampled_from(list(RULES)), unique=True))
def test_the_key_of_a_key_is_itself(rules: HostNameRules, host: str, more: list[str]) -> None:
    canonicalizer = Canonicalizer(more, rules)
    key = canonicalizer.key(f"http://{host}/A")
    assert canonicalizer.key(key) == key


@given(host_rules(), st.lists(hosts, max_size=5))
def test_the_fast_path_is_the_readable_one(rules: HostNameRules, some: list[str]) -> None:
    for more in (DEFAULT_RULES, tuple(RULES)):
        namer = Namer(Canonicalizer(more, rules))
        texts = [f"http://{host}/a%41?b" for host in some]
        for _ in range(2):
            keys = [url.key for url in namer.names(texts) if url is not None]
            assert keys == [namer.canonicalizer.key_by_rules(text) for text in texts]
