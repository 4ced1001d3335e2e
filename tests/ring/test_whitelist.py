"""The preset `whitelist`: a list of domains, each crawled for itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.config import configure, effective_toml
from gossamer.config.gather import reopen
from gossamer.config.presets import PRESETS
from gossamer.config.seeds import domain_seeds, file_seeds
from gossamer.config.toml import starter_toml
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError
from gossamer.options import to_table
from tests.ring.crawls import crawl, rows
from tests.ring.test_seeds import Site, website

SITES = 400
QUICK = (
    "crawl.concurrency=64", "politeness.delay_s_min=0", "politeness.delay_s_max=0", "politeness.site_delay_s=0",
    "politeness.address_delay_s=0", "politeness.per_address=0",
)  # fmt: skip


def host_in(url: object) -> str:
    return str(url).split("/")[2].partition(":")[0]


@pytest.mark.heavy
@pytest.mark.promise("What is fetched", "With `own_site` no page leads to another site.")
def test_each_of_many_sites_is_fetched_whole_and_no_page_leads_to_another_site(tmp_path: Path) -> None:
    """`benchmarks/bench_whitelist.py` does the same with a hundred thousand."""
    options = SimwebOptions.plain(
        hosts=SITES, pages=SITES * 2, hosts_per_site=1, bare_names=True, names_per_address=50, links_per_page=10,
        same_host_share=0.5, bytes_median=2_000,
    )  # fmt: skip
    with SimwebProcess(options, tmp_path / "web") as simweb:
        lines = [f"{number},www.{host.site}:{simweb.port}" for number, host in enumerate(simweb.web.hosts, 1)]
        (tmp_path / "domains").write_text("# a list of top sites\n" + "\n".join(lines) + "\n")
        crawled = crawl(
            (), tmp_path / "crawl", *QUICK, preset="whitelist", domains=str(tmp_path / "domains"),
            hosts=str(simweb.hosts_file),
        )  # fmt: skip
        expected = {host.site: host.pages for host in simweb.web.hosts}
    assert crawled.end == "finished"
    fetched: dict[str, int] = {}
    for row in crawled.rows:
        assert row["outcome"] == "fetched"
        assert not row["referrer"] or host_in(row["referrer"]) == row["site"]
        fetched[str(row["site"])] = fetched.get(str(row["site"]), 0) + 1
    directory = next(iter(expected))  # The first one lists all hosts, on pages beside its ordinary ones.
    assert {site: count for site, count in fetched.items() if site != directory} == {
        site: count for site, count in expected.items() if site != directory
    }
    named = {(row["from_url"], row["to_url"]) for row in rows(tmp_path / "crawl/links")}
    away = sum(host_in(from_url) != host_in(to_url) for from_url, to_url in named)
    assert away > SITES, "links to other sites there are, and they are recorded"
    assert crawled.status["rejected"]["own_site"] == away  # type: ignore[index]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with website() as found:
        found.pages["http://shop.co.uk/"] = "x" * 300_000 + '<a href="/beyond">x</a>'
        found.pages["http://one.test/"] = (
            f'<a href="http://www.one.test:{found.port}/a">own</a><a href="http://two.test:{found.port}/b">other</a>'
            f'<a href="/picture.jpg">x</a>'
        )
        found.pages["http://www.one.test/a"] = (301, "http://two.test:PORT/c")
        (tmp_path / "hosts").write_text("127.0.0.1 shop.co.uk one.test www.one.test two.test\n")
        yield found


def test_what_the_preset_promises(site: Site, tmp_path: Path) -> None:
    (tmp_path / "domains").write_text(f"www.shop.co.uk:{site.port}\nsub.one.test:{site.port}\n")
    crawled = crawl(
        (), tmp_path / "crawl", *QUICK, preset="whitelist", domains=str(tmp_path / "domains"),
        hosts=str(tmp_path / "hosts"),
    )  # fmt: skip
    assert crawled.outcomes == {
        site.url("http://shop.co.uk/"): "fetched",
        site.url("http://one.test/"): "fetched",
        site.url("http://www.one.test/a"): "redirected",
    }
    long = next(row for row in crawled.rows if row["host"] == "shop.co.uk")
    assert (long["truncated"], long["body_bytes"]) == ("length", 250_000)
    assert crawled.status["rejected"] == {"own_site": 2, "media_type": 1}


def test_domains_are_stripped_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "domains"
    path.write_text("a.b.example.co.uk\n1,WWW.Example.org\n2,example.org\n127.0.0.1:80 # one at home\nmüller.de\n")
    assert list(domain_seeds(path)) == [
        "http://example.co.uk/", "http://example.org/", "http://127.0.0.1:80/", "http://xn--mller-kva.de/",
    ]  # fmt: skip
    # The lists of Majestic and of DomCop.
    path.write_text('GlobalRank,TldRank,Domain,TLD\n1,1,example.org,org,5\n"2","example.net","9.1"\n')
    assert list(domain_seeds(path)) == ["http://example.org/", "http://example.net/"]
    for line in (
        "http://example.org/",
        "example.org:http",
        "two words",
        "example.org,example.net",
        "5,",
        "example.org:",
    ):
        path.write_text(f"example.org\n{line}\n")
        with pytest.raises(ConfigError, match="line 2"):
            list(domain_seeds(path))
    path.write_text("https://example.org/\n1,example.net\n")
    with pytest.raises(ConfigError, match=r"line 2: '1,example\.net' looks like a rank and a domain; write --domains"):
        list(file_seeds(path, ("https",)))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_stands_below_file_options_and_set(tmp_path: Path, name: str) -> None:
    values = PRESETS[name].values
    config = configure(options={"preset": name})
    for key, value in values.items():
        shown = config.value(key)
        assert (list(shown) if isinstance(shown, tuple) else shown) == value
        assert config.origin(key) == f"preset {name}"
    file = tmp_path / "own.toml"
    file.write_text(f'preset = "{name}"\n[politeness]\npreset = "gentle"\n')
    mine = configure(file, options={"concurrency": 7}, sets=["scope.own_site=false"])
    assert (mine.politeness.preset, mine.crawl.concurrency, mine.scope.own_site) == ("gentle", 7, False)
    assert mine.fetch.body_bytes_max == 250_000
    (tmp_path / "crawl.toml").write_text(effective_toml(mine))
    assert to_table(reopen(tmp_path / "crawl.toml")) == to_table(mine)
    (tmp_path / "starter.toml").write_text(starter_toml(name))
    started = configure(tmp_path / "starter.toml")
    assert to_table(started) == to_table(config)


def test_a_preset_that_there_is_not_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean whitelist"):
        configure(options={"preset": "whitelst"})
