"""Canonical: rules merge what is one, and nothing else."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.options import OptionsError, convert
from gossamer.url.canonical import Canonicalizer, check_rules, is_plain
from gossamer.url.join import absolute
from gossamer.url.options import UrlOptions
from gossamer.url.rules import DEFAULT_RULES, RULES
from gossamer.url.url import Parts, split

DEFAULT = Canonicalizer()


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("HTTP://Example.ORG/a", "http://example.org/a"),
        ("http://h:80/", "http://h/"),
        ("https://h:443/", "https://h/"),
        ("http://h", "http://h/"),
        ("http://h/a/./b/../c", "http://h/a/c"),
        ("http://h/a/%2e%2E/c", "http://h/c"),
        ("http://h/#part", "http://h/"),
        ("http://h/#", "http://h/"),
        ("http://example.org./a", "http://example.org/a"),
        ("http://example.org.:8080/a", "http://example.org:8080/a"),
        ("http://h/%7Euser", "http://h/~user"),
        ("http://h/%7euser", "http://h/~user"),
        ("http://h/%41%5a%61%7A%30%39%2D%2e%5F", "http://h/AZaz09-._"),
        ("http://h/?%41=%42", "http://h/?A=B"),
        ("http://h/%c3%bc", "http://h/%C3%BC"),
        ("http://h/ü", "http://h/%C3%BC"),
        ("http://h/%2f?x=%2f", "http://h/%2F?x=%2F"),
        ("http://%75ser@h/", "http://user@h/"),
        ("gopher://Example.ORG:70/1", "gopher://example.org/1"),
        ("ftps://H:990/x", "ftps://h/x"),
        ("ftp://h:21/x", "ftp://h/x"),
    ],
)
def test_default_rules_merge(url: str, key: str) -> None:
    text = absolute(url)
    assert text is not None
    assert DEFAULT.key(text) == key


DISTINCT = [
    "http://h/", "https://h/", "http://h:8080/", "http://h/?", "http://h/a", "http://h/A", "http://h/a/", "http://h//a",
    "http://h/a?x=1&y=2", "http://h/a?y=2&x=1", "http://h/a?x=1", "http://h/a?X=1", "http://h/a?x=1&x=1", "http://h/a?",
    "http://h/index.html", "http://h/a/index.html", "http://h/a;x", "http://h/a;jsessionid=1", "http://u@h/", "http://u:p@h/",
    "http://www.h/", "http://h/a%2Fb", "http://h/a/b", "http://h/a%20b", "http://h/a+b", "http://h/a?b=c+d",
    "http://h/a?b=c%20d", "http://h/a?b=c%2Bd", "http://h/a%3Fb", "http://h/a?b", "http://h/a%25", "http://h/a%2541",
    "http://h/aA", "http://h/a%", "http://h/a%4", "http://h/a%zz", "http://h/a%ZZ", "http://h/a?utm_source=x", "http://h/a'",
    "http://h/a%27", "http://h/a!", "http://h/a%21", "http://h/a?b|c", "http://h/a?b%7Cc", "http://h/a@", "http://h/a%40",
]  # fmt: skip


@pytest.mark.promise(
    "What is fetched", "The default URL rules never merge two resources that a server may distinguish."
)
def test_default_rules_keep_distinct_what_a_server_may_distinguish() -> None:
    keys = [DEFAULT.key(str(absolute(url))) for url in DISTINCT]
    doubles = [(a, b) for (a, x), (b, y) in itertools.combinations(zip(DISTINCT, keys, strict=True), 2) if x == y]
    assert doubles == []


@pytest.mark.parametrize("url", ["http://h/%%34%31", "http://h/%%41", "http://h/%4%31", "http://h/a%?%41"])
def test_taking_escapes_away_makes_no_new_ones(url: str) -> None:
    key = DEFAULT.key(url)
    assert DEFAULT.key(key) == key
    assert key in {url, "http://h/a%?A"}


@pytest.mark.parametrize(
    ("rule", "url", "key"),
    [
        ("fragment", "http://h/#a", "http://h/"),
        ("unreserved_escapes", "http://h/%7e%c3", "http://h/~%c3"),
        ("escape_case", "http://h/%7e%c3", "http://h/%7E%C3"),
        ("host_case", "gopher://H/A", "gopher://h/A"),
        ("host_case", "gopher://H%41/", "gopher://H%41/"),
        ("default_port", "gopher://h:70/", "gopher://h/"),
        ("default_port", "gopher://h:71/", "gopher://h:71/"),
        ("default_port", "gopher://h:/", "gopher://h/"),
        ("host_dot", "http://h.:8/", "http://h:8/"),
        ("host_dot", "http://h../", "http://h../"),
        ("host_dot", "http://./", "http://./"),
        ("https_is_http", "https://h/a", "http://h/a"),
        ("https_is_http", "https://h:8443/a", "https://h:8443/a"),
        ("drop_www", "http://www.example.org/", "http://example.org/"),
        ("drop_www", "http://www.intra.test/", "http://intra.test/"),
        ("drop_www", "http://www.co.uk/", "http://www.co.uk/"),
        ("drop_www", "http://www.org/", "http://www.org/"),
        ("drop_www", "http://wwwx.example.org/", "http://wwwx.example.org/"),
        ("lower_path", "http://h/A%C3/B?C", "http://h/a%C3/b?C"),
        ("collapse_slashes", "http://h//a///b/?//", "http://h/a/b/?//"),
        ("drop_session_ids", "http://h/a;jsessionid=12.x?b=1", "http://h/a?b=1"),
        ("drop_session_ids", "http://h/a;jsessionid=1/b;c=2", "http://h/a/b;c=2"),
        ("drop_session_ids", "http://h/a?PHPSESSID=1&b=2", "http://h/a?b=2"),
        ("drop_session_ids", "http://h/a?b=2&ASPSESSIONIDABC=1", "http://h/a?b=2"),
        ("drop_session_ids", "http://h/a?phpsessid=1", "http://h/a"),
        ("drop_session_ids", "http://h/(S(abcdefghijklmnopqrstuvwx))/a.aspx", "http://h/a.aspx"),
        ("drop_session_ids", "http://h/a?sid=1", "http://h/a?sid=1"),
        ("drop_session_ids", f"http://h/a?t=5&sid={'0aF9' * 8}", "http://h/a?t=5"),
        ("drop_session_ids", f"http://h/a?s={'0af9' * 8}&t=5", "http://h/a?t=5"),
        ("drop_session_ids", f"http://h/a?SID={'0af9' * 8}", "http://h/a"),
        ("drop_session_ids", f"http://h/a?sid={'0af9' * 8}0", f"http://h/a?sid={'0af9' * 8}0"),
        ("drop_session_ids", f"http://h/a?sid={'0afg' * 8}", f"http://h/a?sid={'0afg' * 8}"),
        ("drop_session_ids", f"http://h/a?side={'0af9' * 8}", f"http://h/a?side={'0af9' * 8}"),
        ("drop_session_ids", f"http://h/a?{'0af9' * 8}", f"http://h/a?{'0af9' * 8}"),
        ("drop_tracking", "http://h/?utm_source=a&x=1&gclid=2", "http://h/?x=1"),
        ("drop_tracking", "http://h/?utm_source=a", "http://h/"),
        ("drop_tracking", "http://h/?", "http://h/?"),
        ("drop_tracking", "http://h/?xutm_source=a&gclids=1", "http://h/?xutm_source=a&gclids=1"),
        ("drop_index_file", "http://h/a/index.html?x", "http://h/a/?x"),
        ("drop_index_file", "http://h/Default.aspx", "http://h/Default.aspx"),
        ("drop_index_file", "http://h/default.aspx", "http://h/"),
        ("drop_index_file", "http://h/myindex.html", "http://h/myindex.html"),
        ("drop_index_file", "http://h/index.html/x", "http://h/index.html/x"),
        ("drop_trailing_slash", "http://h/a/?x/", "http://h/a?x/"),
        ("drop_trailing_slash", "http://h/a//", "http://h/a"),
        ("drop_trailing_slash", "http://h/", "http://h/"),
        ("sort_query", "http://h/?b=1&a=2&b=0", "http://h/?a=2&b=1&b=0"),
        ("sort_query", "http://h/?", "http://h/?"),
    ],
)
def test_one_rule(rule: str, url: str, key: str) -> None:
    assert Canonicalizer([rule]).key(url) == key


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("fragment", "http://h/#a"), ("unreserved_escapes", "http://h/%7E"), ("escape_case", "http://h/%c3"),
        ("host_case", "gopher://H/"), ("default_port", "gopher://h:70/"), ("host_dot", "http://h./"),
    ],
)  # fmt: skip
def test_each_default_rule_can_be_switched_off(rule: str, url: str) -> None:
    assert DEFAULT.key(url) != url
    assert Canonicalizer([name for name in DEFAULT_RULES if name != rule]).key(url) == url


def test_rules_that_make_work_for_each_other() -> None:
    both = Canonicalizer((*DEFAULT_RULES, "drop_trailing_slash", "drop_index_file"))
    assert both.key("http://h/a/index.html/") == "http://h/a"


def test_the_order_of_names_does_not_matter() -> None:
    assert Canonicalizer(list(RULES)[::-1]).rules == tuple(RULES)


def test_an_unknown_rule_is_named_with_its_nearest() -> None:
    with pytest.raises(ValueError, match=r"'drop_ww'.*drop_www"):
        Canonicalizer(["drop_ww"])
    with pytest.raises(ValueError, match="the rules are fragment"):
        check_rules(["?"])
    with pytest.raises(OptionsError, match="did you mean sort_query"):
        convert(UrlOptions, {"rules": ["sort_querry"]})
    assert UrlOptions().rules == DEFAULT_RULES


def test_what_has_no_authority_is_its_own_key() -> None:
    assert Canonicalizer(tuple(RULES)).key("mailto:A@b.example") == "mailto:A@b.example"


texts = st.text(st.sampled_from("aAzZ09./%27eE4cC1;=&?:@#-_~+!'|()ws"), max_size=24)
hosts = st.sampled_from(
    [
        "h",
        "h.",
        "H",
        "www.example.org",
        "www.co.uk",
        "u:p@h",
        "h:80",
        "h.:8080",
        "[::1]",
        "127.0.0.1",
        "a.b..",
        "a.:b@h",
    ]
)
urls = st.builds(
    lambda scheme, host, tail: absolute(f"{scheme}://{host}/{tail}"),
    st.sampled_from(["http", "https", "ftp", "gopher", "ftps", "file"]),
    hosts,
    st.one_of(
        texts,
        st.lists(
            st.sampled_from(
                [
                    "index.html",
                    "/",
                    "a/",
                    "A",
                    "?",
                    "&",
                    "utm_source=1",
                    "PHPSESSID=1",
                    ";jsessionid=1",
                    "%41",
                    "%",
                    "b=1",
                ]
            )
        ).map("".join),
    ),
).filter(lambda url: url is not None)
rule_sets = st.lists(st.sampled_from(list(RULES)), unique=True)


@given(urls, rule_sets)
def test_the_key_of_a_key_is_itself(url: str, rules: list[str]) -> None:
    for canonicalizer in (DEFAULT, Canonicalizer(rules)):
        key = canonicalizer.key(url)
        assert canonicalizer.key(key) == key


@given(urls)
def test_the_fast_path_is_the_readable_one(url: str) -> None:
    assert DEFAULT.key(url) == DEFAULT.key_by_rules(url)
    if is_plain(url):
        assert DEFAULT.key_by_rules(url) == url


@given(urls)
def test_a_default_key_is_an_address_in_joined_form(url: str) -> None:
    key = DEFAULT.key(url)
    assert absolute(key) == key


@given(urls)
def test_parts_give_back_what_they_were_taken_from(url: str) -> None:
    parts = split(url)
    assert isinstance(parts, Parts)
    assert parts.text() == url


def test_importing_a_key_maker_loads_no_suffix_list() -> None:
    code = "import sys; import gossamer.url.name; sys.exit('tldextract' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0
