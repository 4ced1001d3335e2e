"""Options and seeds: what the operator writes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.model.errors import ConfigError
from gossamer.options import OptionsError, convert
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import seed_url


def test_defaults() -> None:
    options = ScopeOptions()
    assert (options.scope, options.hops_max, options.url_bytes_max, options.schemes) == (
        "host",
        5,
        2048,
        ("http", "https"),
    )
    assert (options.depth_max, options.include, options.exclude, options.path_repeats_max) == (None, (), (), 40)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scope": "site"}, "'prefix', 'host', 'domain' or 'any'"),
        ({"follow": ["cannonical"]}, "did you mean canonical?"),
        ({"schemes": ["https:"]}, "'https:' is no scheme"),
        ({"depth_max": -1}, "expected 0 or more"),
        ({"depht_max": 1}, "depht_max: there is no such key"),
    ],
)
def test_mistakes_are_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(OptionsError) as caught:
        convert(ScopeOptions, options)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.org", "https://example.org/"),
        (" HTTP://Example.org:80/a/../b#c\n", "http://example.org/b"),
        ("http:/example.org", "http://example.org/"),
        ("http://127.0.0.1:8123/", "http://127.0.0.1:8123/"),
        ("http://[::1]:8123", "http://[::1]:8123/"),
        ("https://münchen.example/ü", "https://xn--mnchen-3ya.example/%C3%BC"),
    ],
)
def test_seeds(text: str, url: str) -> None:
    assert seed_url(text) == url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty seed"),
        ("example.org", "did you mean https://example.org/ ?"),
        ("example.org:8080/x", "did you mean https://example.org:8080/x ?"),
        ("//example.org/x", "did you mean https://example.org/x ?"),
        ("localhost:8000", "did you mean http://localhost:8000/ ?"),
        ("127.0.0.1/a", "did you mean http://127.0.0.1/a ?"),
        ("[::1]:81", "did you mean http://[::1]:81/ ?"),
        ("http//example.org", "did you mean http://example.org/ ?"),
        ("exa mple", "give an address such as"),
        ("*.example.org", "has a * in its host"),
        ("http://*.example.org/x", "has a * in its host"),
        ("/etc/passwd", "a path cannot be crawled"),
        ("htp://example.org", "did you mean http://example.org ?"),
        ("mailto:me@example.org", "those visited are http, https"),
        ("ftp://example.org", 'has the scheme \'ftp\'; --set \'scope.schemes=["http","https","ftp"]\' has it visited'),
        ("http://", "not an address"),
        ("http://exa mple/", "not an address"),
        ("http://a..b/", "not an address"),
        ("http://h:99999/", "not an address"),
    ],
)
def test_seeds_that_are_none(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        seed_url(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_seeds_of_other_schemes() -> None:
    assert seed_url("gopher://h/1", ("http", "gopher")) == "gopher://h/1"


def test_where_any_scheme_will_do_an_address_is_still_asked_for() -> None:
    assert seed_url("ftp://example.org/x", None) == "ftp://example.org/x"
    with pytest.raises(ConfigError, match="has no scheme"):
        seed_url("example.org", None)
    with pytest.raises(ConfigError, match="is not an address"):
        seed_url("mailto:me@example.org", None)


def test_bytes_that_are_no_text_are_not_blamed_on_the_host() -> None:
    with pytest.raises(
        ConfigError, match=r"'http://a.test/h.udcc3.udca9' is not UTF-8; escape its bytes, as in %C3%A9"
    ):
        seed_url("http://a.test/h\udcc3\udca9")


def test_a_byte_order_mark_where_files_were_joined_is_no_part_of_a_seed() -> None:
    assert seed_url("\ufeffhttp://example.org/") == "http://example.org/"


@example("`\x1e0")
@example("a\x1e.txt")
@given(st.text())
def test_a_seed_is_an_address_or_a_word_about_it(text: str) -> None:
    try:
        said = seed_url(text)
    except ConfigError as error:
        said = str(error)
    assert len(said.splitlines()) == 1
