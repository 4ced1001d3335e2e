"""Roots: what is in scope, and how redirects of seeds widen it."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.errors import ConfigError
from gossamer.model.links import NOT_SEED, SEED_ARGUMENT, SEED_FILE
from gossamer.stages.scope import roots as roots_module
from gossamer.stages.scope.options import Mode, SeedRedirects
from gossamer.stages.scope.roots import Roots, authority_of, directory_of, is_moved
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.url.url import Url

from .links import named


def rooted(mode: Mode, *seeds: str, redirects: SeedRedirects = "site") -> Roots:
    roots = Roots(mode, redirects)
    for seed in seeds:
        roots.add_seed(named(seed))
    return roots


@pytest.mark.parametrize(
    ("mode", "seed", "inside", "outside"),
    [
        (
            "host",
            "http://h.example/a/",
            [
                "http://h.example/",
                "https://h.example/b",
                "http://h.example:80/",
                "http://u@h.example./",
                "https://h.example:443",
            ],
            ["http://www.h.example/", "http://h.example:8080/", "http://example/", "http://h.example.org/"],
        ),
        (
            "host",
            "http://127.0.0.1:8123/",
            ["http://127.0.0.1:8123/a?b=/c", "https://127.0.0.1:8123/", "http://u:p@127.0.0.1:8123/"],
            ["http://127.0.0.1/", "http://127.0.0.1:9123/", "http://127.0.0.2:8123/", "http://127.0.0.1:812/"],
        ),
        (
            "host",
            "http://[::1]:8123/",
            ["http://[0:0::1]:8123/x"],
            ["http://[::1]/", "http://[::2]:8123/", "http://[::1]:1/"],
        ),
        ("host", "https://[2001:db8::1]/", ["http://[2001:DB8::1]/x"], ["http://[2001:db8::1]:81/"]),
        (
            "host",
            "gopher://h",
            ["gopher://h/1", "gopher://H:70?x/y"],
            ["gopher://h:7070/", "gopher://hx", "gopher://hx/"],
        ),
        ("host", "file:///a/b", ["file:///c"], ["file://server/a/b"]),
        (
            "domain",
            "http://www.example.co.uk:8080/",
            ["https://example.co.uk/", "http://a.b.example.co.uk:99/"],
            ["http://co.uk/", "http://other.co.uk/", "http://example.co.uk.org/"],
        ),
        ("domain", "http://127.0.0.1:8123/", ["http://127.0.0.1:1/"], ["http://127.0.0.2:8123/"]),
        ("domain", "http://me.github.io/", ["http://x.me.github.io/"], ["http://you.github.io/", "http://github.io/"]),
        (
            "prefix",
            "http://h/a/b.html?c=/d/",
            ["http://h/a/", "https://h/a/x", "http://h/a/x/y/z?q", "http://h:443/a/b.html"],
            [
                "http://h/",
                "http://h/ab",
                "http://h/a",
                "http://h/b/a/",
                "http://h:81/a/",
                "http://g/a/",
                "http://h/?/a/",
            ],
        ),
        ("prefix", "http://h/a", ["http://h/a", "http://h/a/b", "http://h/"], ["http://g/"]),
        ("prefix", "http://h/a/", ["http://h/a/", "http://h/a/b"], ["http://h/a", "http://h/"]),
        ("prefix", "http://h/%7Eme/", ["http://h/~me/x", "http://h/%7eme/"], ["http://h/~you/"]),
        ("prefix", "http://[::1]:8123/a/", ["http://[::1]:8123/a/b"], ["http://[::1]:8123/b"]),
        ("prefix", "gopher://h", ["gopher://h/1/a", "gopher://h"], ["gopher://g"]),
        ("any", "http://h/", ["http://g/", "gopher://x"], []),
    ],
)
def test_what_a_seed_brings_in(mode: Mode, seed: str, inside: list[str], outside: list[str]) -> None:
    roots = rooted(mode, seed)
    for _ in range(2):  # The second time from memory.
        assert [text for text in inside if not roots.contains(named(text))] == []
        assert [text for text in outside if roots.contains(named(text))] == []
    assert roots.contains(named(seed))


def test_a_root_added_later_counts_at_once() -> None:
    roots = rooted("host", "http://h/")
    assert not roots.contains(named("http://g/"))
    roots.add_seed(named("http://g/"))
    assert roots.contains(named("http://g/"))


@pytest.mark.parametrize(
    ("mode", "seed", "target", "from_argument", "said", "inside", "outside"),
    [
        ("host", "http://h.org/", "https://h.org/", True, None, [], ["https://www.h.org/"]),
        (
            "host", "https://h.org/", "https://www.h.org/a/b", False,
            "https://www.h.org/ is now in scope: the seed https://h.org/ leads there",
            ["https://www.h.org/", "http://www.h.org/x"], ["https://x.h.org/"],
        ),
        (
            "host", "https://h.org/", "https://g.org:81/a/b", True,
            "https://g.org:81/ is now in scope: the seed https://h.org/ leads there",
            ["https://g.org:81/"], ["https://g.org/"],
        ),
        (
            "host", "https://h.org/", "https://u:p@g.org/a/b", False,
            "https://g.org/a/ is now in scope: the seed https://h.org/ leads there",
            ["https://g.org/a/", "https://g.org/a/b/c"], ["https://g.org/", "https://g.org/ab"],
        ),
        (
            "prefix", "https://h.org/docs/", "https://h.org/manual/a", False,
            "https://h.org/manual/ is now in scope: the seed https://h.org/docs/ leads there",
            ["https://h.org/manual/b"], ["https://h.org/"],
        ),
        (
            "prefix", "https://h.org/docs/", "https://g.org/manual/a", True,
            "https://g.org/manual/ is now in scope: the seed https://h.org/docs/ leads there",
            ["https://g.org/manual/b"], ["https://g.org/"],
        ),
        ("domain", "https://h.org/", "https://www.h.org/", False, None, ["https://x.h.org/"], []),
        (
            "domain", "https://h.org/", "https://www.g.org/a/", True,
            "the domain g.org is now in scope: the seed https://h.org/ leads there",
            ["https://g.org/", "http://x.g.org/"], ["https://i.org/"],
        ),
        (
            "domain", "https://h.org/", "https://www.g.org/a/", False,
            "https://www.g.org/a/ is now in scope: the seed https://h.org/ leads there",
            ["https://www.g.org/a/b"], ["https://g.org/", "https://www.g.org/"],
        ),
        ("any", "https://h.org/", "https://g.org/", True, None, ["https://g.org/"], []),
    ],
)  # fmt: skip
def test_redirects_of_seeds(
    mode: Mode, seed: str, target: str, from_argument: bool, said: str | None, inside: list[str], outside: list[str]
) -> None:
    roots = rooted(mode, seed)
    outcomes = [roots.contains(named(text)) for text in outside]
    assert not any(outcomes)
    assert roots.widen(named(seed), named(target), SEED_ARGUMENT if from_argument else SEED_FILE) == said
    assert roots.contains(named(target))
    assert [text for text in inside if not roots.contains(named(text))] == []
    assert [text for text in outside if roots.contains(named(text))] == []
    assert roots.widen(named(seed), named(target), SEED_ARGUMENT if from_argument else SEED_FILE) is None


@pytest.mark.parametrize("mode", ["prefix", "host", "domain"])
@pytest.mark.parametrize(
    ("seed", "target", "adds"),
    [
        ("http://h.org/", "https://www.h.org/", True),
        ("https://www.h.org/", "http://h.org:8080/", True),
        ("https://h.org/", "https://h.de/", False),
        ("https://h.co.uk/", "https://g.co.uk/", False),
        ("https://me.github.io/", "https://you.github.io/", False),
        ("http://127.0.0.1/", "http://127.0.0.2/", False),
        ("https://login.sso.net/", "https://app.h.org/", True),  # The way back of a seed of h.org.
        ("https://login.sso.net/", "https://www.sso.net/", False),
    ],
)
@pytest.mark.parametrize("from_argument", [True, False])
def test_by_default_a_redirect_to_another_site_adds_nothing(
    mode: Mode, seed: str, target: str, adds: bool, from_argument: bool
) -> None:
    seeds = ("https://h.org/", "https://h.co.uk/", "https://me.github.io/", "http://127.0.0.1/", "http://[::1]:8080/x")
    roots = rooted(mode, *seeds, redirects="page")
    reloaded = Roots(mode)
    reloaded.load(roots.dump())
    for one in (roots, reloaded):
        one.widen(named(seed), named(target), SEED_ARGUMENT if from_argument else SEED_FILE)
        assert one.contains(named(target)) == adds


@pytest.mark.parametrize(
    ("mode", "target", "inside", "outside"),
    [
        ("host", "https://www.h.org/a/b?c", ["https://www.h.org/"], ["https://x.h.org/"]),
        ("prefix", "https://www.h.org/a/b?c", ["https://www.h.org/a/z"], ["https://www.h.org/z"]),
        ("host", "https://www.h.org/", [], ["https://www.h.org/"]),  # No page's own address.
        ("host", "https://www.h.org/a/b?d", [], ["https://www.h.org/"]),
        ("host", "https://ww.h.org/a/b?c", [], ["https://ww.h.org/"]),
        ("host", "https://www.h.de/a/b?c", [], ["https://www.h.de/"]),
    ],
)
@pytest.mark.parametrize("back", [False, True])
def test_a_page_that_moves_to_www_brings_its_site_into_scope(
    mode: Mode, target: str, inside: list[str], outside: list[str], back: bool
) -> None:
    """Of spatie/crawler#450 and yujiosaka/headless-chrome-crawler#338: the crawl stops where a site moves to www."""

    def turned(text: str) -> Url:
        return named(text.replace("//h.", "//www.h.") if "//h." in text else text.replace("//www.h.", "//h."))

    one = turned if back else named
    seed, page, led = one("http://h.org/a/"), one("http://h.org/a/b?c"), one(target)
    roots = rooted(mode, seed.text)
    assert is_moved(page, led) == bool(inside)
    if inside:
        root = one(inside[0]).text.removesuffix("z")
        assert roots.widen(page, led, NOT_SEED) == f"{root} is now in scope: {page.text} leads there"
    assert all(roots.contains(one(text)) for text in inside)
    assert not any(roots.contains(one(text)) for text in outside)


@pytest.mark.parametrize("mode", ["prefix", "host", "domain", "any"])
def test_a_host_is_touched_where_any_of_its_pages_can_be_in_scope(mode: Mode) -> None:
    roots = rooted(mode, "http://h.example:81/a/b/")
    assert roots.touches(named("http://h.example:81/robots.txt"))
    others = ("http://h.example/", "http://h.example:811/", "http://www.h.example/", "http://other.example/")
    touched = {"prefix": 0, "host": 0, "domain": 3, "any": 4}[mode]
    assert [roots.touches(named(other)) for other in others] == [number < touched for number in range(4)]


@pytest.mark.parametrize("mode", ["prefix", "host", "domain", "any"])
def test_roots_survive(mode: Mode) -> None:
    roots = rooted(mode, "http://h.org/a/", "https://g.org:81/b/c")
    roots.widen(named("http://h.org/a/"), named("http://i.org/x/y"), SEED_FILE)
    again = Roots(mode)
    again.load(roots.dump())
    for text in ("http://h.org/a/b", "https://g.org:81/b/", "http://i.org/x/z", "http://i.org/", "http://j.org/"):
        assert again.contains(named(text)) == roots.contains(named(text))
    assert again.dump() == roots.dump()


def test_news_alone_are_enough() -> None:
    roots = rooted("host", "http://h.org/")
    dumped = [roots.take_new()]
    assert roots.take_new() is None
    roots.add_seed(named("http://h.org/again"))
    assert roots.take_new() is None
    roots.widen(named("http://h.org/"), named("http://www.h.org/"), SEED_FILE)
    roots.widen(named("http://h.org/"), named("http://i.org/x/y"), SEED_FILE)
    dumped.append(roots.take_new())
    again = Roots("host")
    for one in reversed(dumped):
        assert one is not None
        again.load(one)
    assert again.dump() == roots.dump()
    assert again.take_new() is None


def test_the_mode_cannot_change() -> None:
    with pytest.raises(ConfigError, match="begun with scope 'host'"):
        Roots("domain").load(rooted("host", "http://h/").dump())


def test_memory_for_verdicts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots_module, "STARTS_MAX", 300)
    roots = rooted("host", "http://h/")
    for n in range(1_000):
        assert not roots.contains(named(f"http://h{n}/"))
    assert roots.contains(named("http://h/"))
    assert not roots.contains(named(f"http://{'u' * 999}@g/"))
    assert len(roots._starts) <= 300
    assert all(len(start) <= roots_module.START_BYTES_MAX for start in roots._starts)


def test_directories() -> None:
    assert directory_of("http://h") == "/"
    assert directory_of("http://h?/a/") == "/"
    assert directory_of("http://h/a/b?c/d") == "/a/"
    assert directory_of("http://h//") == "//"
    assert authority_of(named("http://u@h:8080/?x")) == "h:8080"


def naive(mode: Mode, seeds: Iterable[Url], url: Url) -> bool:
    """The same by a loop and another library's eyes."""
    default = Canonicalizer()

    def taken_apart(one: Url) -> tuple[str | None, int | None, str]:
        parts = urlsplit(default.key(one.text))
        port = parts.port if parts.port not in {None, 80, 443} else None
        return parts.hostname, port, parts.path.rpartition("/")[0] + "/"

    host, port, path = taken_apart(url)
    for seed in seeds:
        seed_host, seed_port, seed_path = taken_apart(seed)
        same_host = (host, port) == (seed_host, seed_port)
        if (
            mode == "any"
            or (mode == "domain" and url.site == seed.site)
            or (mode == "host" and same_host)
            or (mode == "prefix" and same_host and path.startswith(seed_path))
        ):
            return True
    return False


addresses = st.builds(
    lambda scheme, userinfo, host, port, path: Namer().name(f"{scheme}://{userinfo}{host}{port}/{path}"),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "", "u@"]),
    st.sampled_from(["h", "a.example.org", "b.example.org", "example.org", "[::1]", "127.0.0.1", "example.org."]),
    st.sampled_from(["", "", ":8000", ":9000"]),
    st.text(st.sampled_from("ab//?%~"), max_size=8),
)


@given(
    st.sampled_from(["prefix", "host", "domain", "any"]),
    st.lists(addresses, min_size=1, max_size=6),
    st.lists(addresses, max_size=6),
)
def test_contains_is_what_a_naive_loop_says(mode: Mode, seeds: list[Url], urls: list[Url]) -> None:
    roots = Roots(mode)
    for seed in seeds:
        roots.add_seed(seed)
    for url in urls:
        assert roots.contains(url) == naive(mode, seeds, url)
