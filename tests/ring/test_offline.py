"""Offline crawls: a segment is fetched, its links are recorded and none is followed; what is left is a segment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gossamer
from gossamer import Crawler
from gossamer.api.status import status_of
from gossamer.cli.checking import check_request
from gossamer.cli.job import CrawlRequest
from gossamer.config import configure
from gossamer.model.errors import ConfigError
from gossamer.results.offline.segment import ABOUT, Segment
from tests import commands
from tests.results.offline.segments import segment_of, urls_of
from tests.ring.crawls import OWN, Crawled, crawl, rows, until
from tests.ring.test_seeds import Site, website

OFFLINE = (*OWN, "crawl.mode='offline'")
SLOW = ("politeness.delay_s_min=0.15", "politeness.per_host=1")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Pages that link to each other on four hosts, and redirects."""
    with website() as found:
        for host in ("a.test", "b.test", "c.test", "large.test"):
            found.pages[f"http://{host}/"] = f'<a href="/next">x</a> <a href="http://other.test:{found.port}/">y</a>'
            found.pages[f"http://{host}/next"] = "the next page"
            found.pages[f"http://{host}/moved"] = (301, f"http://{host}:PORT/next")
        found.pages |= {f"http://large.test/{number}": "page" for number in range(60)}
        found.pages["http://a.test/%7Euser"] = (301, "/~user")
        found.pages["http://a.test/~user"] = "home"
        (tmp_path / "hosts").write_text("127.0.0.1 a.test b.test c.test large.test other.test\n")
        yield found


def given(site: Site, path: Path, *texts: str, level: int = 3, depth: int = 2) -> Path:
    return segment_of(path, [(site.url(text), level, depth) for text in texts])


def offline(given: Path | None, directory: Path, hosts: Path, *sets: str, **options: object) -> Crawled:
    return crawl(() if given is None else (str(given),), directory, *OFFLINE, *sets, hosts=str(hosts), **options)


@pytest.mark.promise("Offline crawls", "An offline crawl fetches the URLs of its segments and nothing else.")
def test_a_segment_is_fetched_and_nothing_else(site: Site, tmp_path: Path) -> None:
    segment = given(site, tmp_path / "one.parquet", "http://a.test/", "http://b.test/moved", "http://c.test/nothing")
    crawled = offline(segment, tmp_path / "crawl", tmp_path / "hosts", scope="host")
    assert crawled.end == "finished"
    pages = [url for url in site.asked if not url.endswith("/robots.txt")]
    assert sorted(pages) == sorted(site.url(f"http://{name}") for name in ("a.test/", "b.test/moved", "c.test/nothing"))
    assert {str(row["outcome"]) for row in crawled.rows} == {"fetched", "redirected", "http_error"}
    assert len([url for url in site.asked if url.endswith("/robots.txt")]) == 3, "robots.txt is asked for as ever"
    assert crawled.links == {
        (site.url("http://a.test/"), site.url("http://a.test/next")),
        (site.url("http://a.test/"), site.url("http://other.test/")),
        (site.url("http://b.test/moved"), site.url("http://b.test/next")),
    }
    moved = next(row for row in rows(tmp_path / "crawl/links") if str(row["from_url"]).endswith("/moved"))
    assert moved["link_type"] == "redirect"


def test_the_way_that_led_to_a_url_is_kept(site: Site, tmp_path: Path) -> None:
    segment = given(site, tmp_path / "one.parquet", "http://a.test/next", depth=4)
    (row,) = offline(segment, tmp_path / "crawl", tmp_path / "hosts").rows
    assert (row["depth"], row["hops"], row["link_type"]) == (4, 0, "anchor")
    assert row["referrer"] == "http://a.test/"


def test_a_redirect_within_one_key_is_gone_on_with(site: Site, tmp_path: Path) -> None:
    """No later segment would hold its target: its key is known."""
    crawled = offline(
        given(site, tmp_path / "one.parquet", "http://a.test/%7Euser"), tmp_path / "crawl", tmp_path / "hosts"
    )
    assert [row["outcome"] for row in crawled.rows] == ["redirected", "fetched"]


def test_plain_lists_and_seeds_work_too(site: Site, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{site.url('http://a.test/')}\n{site.url('http://b.test/moved')}\n")
    listed = f"seeds.file='{tmp_path / 'list.txt'}'"
    crawled = crawl((site.url("http://c.test/"),), tmp_path / "crawl", *OFFLINE, listed, hosts=str(tmp_path / "hosts"))
    assert sorted(str(row["url"]) for row in crawled.rows) == sorted(
        site.url(f"http://{name}") for name in ("a.test/", "b.test/moved", "c.test/")
    )


def test_several_segments_are_one_crawl_and_what_is_in_both_is_fetched_once(site: Site, tmp_path: Path) -> None:
    first = given(site, tmp_path / "one.parquet", "http://a.test/", "http://b.test/")
    second = given(site, tmp_path / "two.parquet", "http://b.test/", "http://c.test/")
    crawled = offline(None, tmp_path / "crawl", tmp_path / "hosts", segment=[str(first), str(second)])
    assert len(crawled.rows) == 3
    assert any("took in" in note and "1 of 2 URLs are new" in note for note in crawled.notes)


def test_exclusions_hold_whatever_the_segment_says(site: Site, tmp_path: Path) -> None:
    segment = given(site, tmp_path / "one.parquet", "http://a.test/", "http://b.test/")
    crawled = offline(segment, tmp_path / "crawl", tmp_path / "hosts", "scope.exclude_hosts=['b.test']")
    assert [row["url"] for row in crawled.rows] == [site.url("http://a.test/")]
    assert crawled.status["rejected"] == {"excluded_host": 1}


def test_what_the_public_must_not_see_anonymous_crawls_of_is_refused(site: Site, tmp_path: Path) -> None:
    segment = given(site, tmp_path / "one.parquet", "http://a.test/", "http://public.example/")
    crawled = offline(segment, tmp_path / "crawl", tmp_path / "hosts")
    assert [row["url"] for row in crawled.rows] == [site.url("http://a.test/")]
    assert any("1 refused" in note for note in crawled.notes)
    assert "segment_url_refused" in (tmp_path / "crawl/logs/info.log").read_text()


def test_with_few_hosts_left_the_rest_is_a_segment(site: Site, tmp_path: Path) -> None:
    large = [f"http://large.test/{number}" for number in range(60)]
    segment = given(
        site, tmp_path / "one.parquet", *large, "http://a.test/", "http://b.test/", "http://c.test/", level=5
    )
    crawled = offline(segment, tmp_path / "crawl", tmp_path / "hosts", *SLOW, "frontier.hosts_min=2")
    assert crawled.end == "low_water"
    rest = tmp_path / "crawl/remainder.parquet"
    fetched = {str(row["url"]) for row in crawled.rows}
    assert 3 <= len(fetched) < 30
    assert sorted([*fetched, *urls_of(rest)]) == sorted(urls_of(segment))
    assert any("remainder.parquet" in note for note in crawled.notes)
    with closing(Segment(rest)) as found:
        (batch,) = found.links()
        assert set(batch.levels) == {5}
        assert {link.depth for link in batch.links} == {2}
        assert {link.referrer for link in batch.links} == {"http://large.test/"}
    # It is a segment like any other: the next crawl takes it, in another directory.
    second = offline(rest, tmp_path / "next", tmp_path / "hosts")
    assert second.end == "finished"
    assert len({str(row["url"]) for row in second.rows} | fetched) == len(urls_of(segment))
    assert len(set(site.asked) - {url for url in site.asked if url.endswith("robots.txt")}) == len(urls_of(segment))


@pytest.mark.promise("Offline crawls", "Each URL of a segment is fetched or listed in the remainder.")
def test_a_limit_leaves_a_remainder_that_a_resumed_crawl_takes_back(site: Site, tmp_path: Path) -> None:
    large = [f"http://large.test/{number}" for number in range(60)]
    segment = given(site, tmp_path / "one.parquet", *large)
    crawled = offline(segment, tmp_path / "crawl", tmp_path / "hosts", max_pages=10)
    assert crawled.end == "limit"
    assert len(urls_of(tmp_path / "crawl/remainder.parquet")) == 50
    again = crawl((), tmp_path / "crawl", "limits.max_pages=none", resuming=True)
    assert (again.end, len(again.outcomes)) == ("finished", 60)
    assert not (tmp_path / "crawl/remainder.parquet").exists()


def test_a_directory_is_watched_for_segments(site: Site, tmp_path: Path) -> None:
    """Each is taken in whole, in the order of names, and renamed; what is none is set aside; then the crawl ends."""
    watched = tmp_path / "watched"
    watched.mkdir()
    given(site, watched / "2.parquet", "http://b.test/")
    given(site, watched / "1.parquet", "http://a.test/", "http://a.test/next")
    given(site, watched / ".3.parquet", "http://c.test/")
    (watched / "4.parquet").write_text("this is none")
    crawled = offline(None, tmp_path / "crawl", tmp_path / "hosts", "seeds.watch_s_max=0.3", watch=str(watched))
    assert crawled.end == "finished"
    assert len(crawled.rows) == 3
    assert sorted(path.name for path in watched.iterdir()) == [
        ".3.parquet", "1.parquet.taken", "2.parquet.taken", "4.parquet.refused",
    ]  # fmt: skip
    assert any("set aside" in note for note in crawled.notes)


def test_a_command_may_name_the_next_segment(site: Site, tmp_path: Path) -> None:
    second = given(site, tmp_path / "two.parquet", "http://b.test/")
    segment = given(site, tmp_path / "one.parquet", "http://a.test/")
    command = f"frontier.more_seeds_command=['echo', '{second}']"
    crawled = offline(segment, tmp_path / "crawl", tmp_path / "hosts", command)
    assert (crawled.end, len(crawled.rows)) == ("finished", 2)


@pytest.mark.heavy
def test_a_crawl_that_has_ended_stays_as_it_is_when_it_is_only_settled(site: Site, tmp_path: Path) -> None:
    large = [f"http://large.test/{number}" for number in range(60)]
    segment = given(site, tmp_path / "one.parquet", *large, "http://a.test/", "http://b.test/")
    hosts = str(tmp_path / "hosts")
    command = [
        sys.executable, "-m", "gossamer", "crawl", str(segment), "--mode", "offline", "--or-resume", "--hosts", hosts,
        "-o", str(tmp_path / "crawl"), "--allow-private", "--quiet",
    ]  # fmt: skip
    for one in (*OWN, *SLOW, "frontier.hosts_min=2"):
        command += ["--set", one]
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
    for _ in range(2):
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        asked = len(site.asked)
        rest = urls_of(tmp_path / "crawl/remainder.parquet")
        assert status_of(tmp_path / "crawl")["ended"] == "low_water"
        (tmp_path / "crawl/remainder.parquet").unlink()  # As if it had died before it was written.
    assert len(site.asked) == asked
    assert len(rest) == len(urls_of(segment)) - len({url for url in site.asked if not url.endswith("robots.txt")})
    other = given(site, tmp_path / "other.parquet", "http://a.test/")
    command[4] = str(other)
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "other seeds or segments" in ran.stderr


@pytest.mark.parametrize(
    ("seeds", "options", "says"),
    [
        (("one.parquet",), {}, 'add mode="offline"'),
        (("missing.parquet",), {"mode": "offline"}, "there is no segment"),
        (("hosts",), {"mode": "offline"}, "is no segment"),
        ((), {"mode": "offline"}, "no segment; name one"),
        ((), {"mode": "offline", "watch": "nowhere"}, "make it, or name another"),
        ((), {"mode": "ofline"}, 'mode "ofline"'),
        (("http://a.test/",), {"mode": "offline", "segment": ["nothing"]}, "there is no segment"),
    ],
)
def test_mistakes_are_reported_before_anything_starts(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: tuple[str, ...], options: dict[str, object],
    says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    given(site, tmp_path / "one.parquet", "http://a.test/")
    with pytest.raises(ConfigError, match=says) as refused:
        Crawler(seeds, output="crawl", allow_private=True, hosts="hosts", **options)
    assert "\n" not in str(refused.value)
    assert not Path("crawl").exists()


def test_an_offline_crawl_does_not_walk(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot walk"):
        configure(options={"mode": "offline"}, sets=["frontier.strategy='walk'"])


@pytest.mark.parametrize(("begun", "resumed"), [("offline", "batch"), ("batch", "offline")])
def test_a_crawl_keeps_to_what_it_is(site: Site, tmp_path: Path, begun: str, resumed: str) -> None:
    seeds, hosts = (site.url("http://a.test/next"),), str(tmp_path / "hosts")
    crawl(seeds, tmp_path / "crawl", *OWN, mode=begun, hosts=hosts)
    with pytest.raises(ConfigError, match="begin another"):
        crawl((), tmp_path / "crawl", f"crawl.mode='{resumed}'", resuming=True)


def test_seeds_of_the_file_that_serves_builder_and_crawler_are_the_builders(site: Site, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(site.url("http://b.test/") + "\n")
    (tmp_path / "web.toml").write_text(
        f'[seeds]\nurls = ["{site.url("http://a.test/")}"]\nfile = "list.txt"\n[crawl]\nmode = "offline"\n'
    )
    segment = given(site, tmp_path / "one.parquet", "http://c.test/next")
    seeds = configure(tmp_path / "web.toml", seeds=[str(segment)]).seeds
    assert (seeds.urls, seeds.file, seeds.segments) == ((), "", (str(segment),))
    own = configure(tmp_path / "web.toml", seeds=[str(segment), site.url("http://a.test/next")]).seeds
    assert own.urls == (site.url("http://a.test/next"),)
    alone = configure(tmp_path / "web.toml").seeds
    assert (len(alone.urls), Path(alone.file).name) == (1, "list.txt")


def test_the_configuration_that_the_page_shows_is_right(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/how-to/offline.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "web.toml").write_text(shown)
    config = configure(tmp_path / "web.toml")
    assert config.state.hosts_store == str(tmp_path / "hosts")


@pytest.mark.heavy
def test_taking_in_goes_on_where_a_commit_left_it(site: Site, tmp_path: Path) -> None:
    """Killed while a segment is taken in, a crawl takes each URL once and loses none."""
    texts = [f"http://large.test/{number}" for number in range(60)]
    more = [f"http://a.test/{number}" for number in range(20_000)]
    segment = given(site, tmp_path / "one.parquet", *texts, *more)
    sets = [part for one in (*OFFLINE, *SLOW, "state.write_buffer_bytes=8388608") for part in ("--set", one)]
    arguments = ["crawl", str(segment), "-o", str(tmp_path / "crawl"), "--hosts", str(tmp_path / "hosts"), *sets]
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-m", "gossamer", *arguments, "--allow-private", "--json", "--max-pages", "30"],
        env=environment, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until((tmp_path / "crawl/crawl.toml").exists)
    finally:
        process.kill()
        process.wait()
    resumed = crawl((), tmp_path / "crawl", "limits.max_pages=40", resuming=True)
    assert resumed.end == "limit"
    fetched = {str(row["url"]) for row in resumed.rows}
    assert sorted([*fetched, *urls_of(tmp_path / "crawl/remainder.parquet")]) == sorted(urls_of(segment))


def test_addresses_of_other_tools_are_read_as_seeds_are(site: Site, tmp_path: Path) -> None:
    written = {"http://a.test/\x1b]0;x\r\ny": "/%1B]0;xy", "HTTP://A.test/é": "/%C3%A9", " http://a.test/b/../c ": "/c"}
    segment = given(site, tmp_path / "a.parquet", *[f"http://a.test/{number}" for number in range(len(written))])
    table = pq.read_table(segment)
    port = site.url("http://a.test/").removeprefix("http://a.test").removesuffix("/")
    texts = [text.replace(".test", f".test{port}") for text in written]
    column = table.schema.get_field_index("url")
    metadata = {ABOUT: pq.read_metadata(segment).metadata[ABOUT]}
    pq.write_table(table.set_column(column, "url", pa.array(texts)).replace_schema_metadata(metadata), segment)
    crawled = offline(segment, tmp_path / "crawl", tmp_path / "hosts")
    assert {row["url"] for row in crawled.rows} == {site.url(f"http://a.test{path}") for path in written.values()}


def test_a_scope_that_grows_says_how_to_fetch_what_was_left_out(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "crawl"
    crawl(
        (site.url("http://a.test/"),), directory, *OWN, "scope.depth_max=1", hosts=str(tmp_path / "hosts"), scope="host"
    )
    for depth, grows in [("9", True), ("none", True), ("1", False), ("0", False)]:
        check_request(CrawlRequest("resume", {}, (f"scope.depth_max={depth}",), directory=directory), lambda _: None)
        assert ("scope.depth_max: links of fetched pages that it rejected" in capsys.readouterr().err) == grows


def test_what_a_depth_left_out_is_listed_for_a_larger_one(site: Site, tmp_path: Path) -> None:
    crawl((site.url("http://a.test/"),), tmp_path / "c", *OWN, hosts=str(tmp_path / "hosts"), max_depth=0, scope="host")
    listed = tmp_path / "next.parquet"
    words = ["segment", "build", str(tmp_path / "c"), "-o", str(listed), "--set", "scope.depth_max=9"]
    assert commands.run(*words)[0] == 0
    assert urls_of(listed) == [site.url("http://a.test/next")]
