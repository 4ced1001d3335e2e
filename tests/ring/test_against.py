"""A crawl against earlier ones: what they have is not fetched again, and `why` says which of them has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.api import forget_of
from gossamer.model.errors import ConfigError
from tests.ring.crawls import opened
from tests.ring.test_seeds import Site, crawled, found, website

HOME = "".join(f'<a href="/{name}">{name}</a>' for name in "abcd")
PAGES = {f"http://a.test/{name}": f"page {name}" for name in "abc"}


@pytest.fixture
def site() -> Iterator[Site]:
    with website() as made:
        made.pages = {"http://a.test/": HOME, **PAGES}
        yield made


@pytest.fixture
def earlier(site: Site, tmp_path: Path) -> Path:
    """A crawl that has the home page, a and b; c was excluded, and d did not exist."""
    (tmp_path / "earlier").mkdir()
    first = crawled(site, tmp_path / "earlier", "http://a.test/", sets=("scope.exclude=['/c$']",))
    assert found(site, first)["http://a.test/d"] == "http_error"
    site.asked.clear()
    return first.directory


def asked(site: Site) -> list[str]:
    return sorted(url.replace(f":{site.port}", "") for url in site.asked if not url.endswith("robots.txt"))


def against(*directories: Path) -> str:
    return f"scope.against={[str(one) for one in directories]}"


@pytest.mark.heavy
def test_only_what_the_earlier_crawl_has_not_is_fetched(site: Site, tmp_path: Path, earlier: Path) -> None:
    second = crawled(site, tmp_path, "http://a.test/", sets=(against(earlier),))
    assert asked(site) == ["http://a.test/", "http://a.test/c", "http://a.test/d"]
    with opened(second.directory) as why:
        answer = why(site.url("http://a.test/a"))
    assert answer["rule"] == "against"
    assert f"{earlier} has it" in json.dumps(answer)


def test_a_seed_that_redirects_to_what_the_earlier_crawl_has_is_fetched(
    site: Site, tmp_path: Path, earlier: Path
) -> None:
    site.pages |= {"http://a.test/old": (301, "http://a.test:PORT/"), "http://a.test/c": (301, "http://a.test:PORT/a")}
    crawled(site, tmp_path, "http://a.test/old", sets=(against(earlier),))
    wanted = ["http://a.test/", "http://a.test/c", "http://a.test/d", "http://a.test/old"]
    assert asked(site) == wanted, "what another page redirects to is left out"


def test_each_of_several_earlier_crawls_counts(site: Site, tmp_path: Path, earlier: Path) -> None:
    (tmp_path / "other").mkdir()
    other = crawled(site, tmp_path / "other", "http://a.test/c").directory
    site.asked.clear()
    crawled(site, tmp_path, "http://a.test/", sets=(against(earlier, other),))
    assert asked(site) == ["http://a.test/", "http://a.test/d"]


def test_what_was_forgotten_in_the_earlier_crawl_stays_out(site: Site, tmp_path: Path, earlier: Path) -> None:
    forget_of(earlier, site.url("http://a.test/b"), reason="a letter")
    second = crawled(site, tmp_path, "http://a.test/", sets=(against(earlier),))
    assert asked(site) == ["http://a.test/", "http://a.test/c", "http://a.test/d"]
    with opened(second.directory) as why:
        answer = why(site.url("http://a.test/b"))
    assert answer["rule"] == "forgotten"
    assert "a letter" in str(answer["reason"])


def test_what_is_no_crawl_or_names_pages_otherwise_is_refused(site: Site, tmp_path: Path, earlier: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"scope\.against: \S+empty holds no crawl \(it has no crawl\.toml\)"):
        crawled(site, tmp_path / "empty", "http://a.test/", sets=(against(tmp_path / "empty"),))
    with pytest.raises(ConfigError, match=r"other rules in the section \[url\]"):
        crawled(site, tmp_path, "http://a.test/", sets=(against(earlier), "url.rules=['fragment']"))
    assert site.asked == []
