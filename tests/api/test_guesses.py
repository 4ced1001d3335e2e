"""What one types out of habit from Scrapy, crawlee, Crawl4AI, requests and pandas: the error names what to write."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.api.page import CrawledPage
from gossamer.model.errors import ConfigError
from tests.stages.archive.web import visited

pytestmark = pytest.mark.promise(
    "Components and Python", "A name that another library uses is an error that names ours."
)

HERE = "http://127.0.0.1:1/"


@pytest.mark.parametrize("kind", [gossamer.Crawler, gossamer.crawl])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("start_urls", "the addresses are the first argument, seeds"),
        ("urls", "the addresses are the first argument, seeds"),
        ("max_requests_per_crawl", "use max_pages"),
        ("depth_limit", "use max_depth"),
        ("output_dir", "use output"),
        ("allowed_domains", "use scope"),
        ("max_concurrency", "did you mean concurrency?"),
        ("headers", "settings takes the key fetch.headers"),
        ("user_agent", 'use settings={"operator.agent": …}'),
        ("timeout", 'use settings={"fetch.request_s_max": …}'),
        ("verify", 'use settings={"fetch.verify_tls": …}'),
        ("callback", "pages come in a loop: for page in gossamer.crawl(…)"),
        ("headless", "use render"),
        ("commit_s", "settings takes the key crawl.commit_s or search.commit_s"),
        ("proxies", 'settings={"proxies.urls": …}'),
        ("max_requests", "use max_pages"),
        ("wait_for", "use render"),
        ("css_selector", "use page.css or page.xpath of each page"),
        ("word_count_threshold", 'page.columns["markdown"]'),
        ("on_error", "page.outcome and page.row.error"),
        ("cache_mode", "a crawl fetches each URL once"),
        ("session_id", "gossamer login DIR URL logs in by hand"),
        ("stream", "pages come in a loop"),
        ("qwertyuiop", "no option 'qwertyuiop'"),
    ],
)
def test_arguments_of_other_libraries(kind: Any, name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        kind(HERE, output=tmp_path / "crawl", allow_private=True, **{name: "x"})
    line = str(caught.value)
    assert line.startswith(f"no option {name!r}")
    assert told in line
    assert "--" not in line
    assert not list(tmp_path.iterdir())


def a_page() -> CrawledPage:
    return CrawledPage(visited(HERE), repr)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("markdown", 'page.columns["markdown"], with settings={"process.modules": ["markdown"]}'),
        ("html", "page.body, the bytes as sent"),
        ("content", "page.body"),
        ("status_code", "page.status"),
        ("soup", 'page.css("h1").text'),
        ("json", "json.loads(page.body)"),
        ("ok", 'page.outcome == "fetched"'),
        ("follow", "the crawl follows links itself"),
        ("encoding", "page.row.charset"),
        ("ip", "page.row.ip"),
        ("referrer", "page.row.referrer"),
        ("titel", "did you mean title?"),
        ("qwertyuiop", "has no attribute 'qwertyuiop'"),
    ],
)
def test_attributes_of_a_page(name: str, told: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(a_page(), name)
    assert told in str(caught.value)
    assert not hasattr(a_page(), name)


OPERATIONS: dict[str, Callable[[Any], object]] = {
    "len": len,
    "next": next,
    "first": lambda one: one[0],
    "slice": lambda one: one[:3],
    "key": lambda one: one["url"],
    "in": lambda one: "x" in one,
    "reversed": reversed,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_of_lists_name_how_to_read(operation: str, tmp_path: Path) -> None:
    crawl = gossamer.crawl(HERE, output=tmp_path / "crawl", allow_private=True)
    for one, said in (
        (crawl, "for page in crawl reads its pages, once"),
        (crawl.crawler, "async for page in crawler"),
        (crawl.pages, "to_pandas(), to_polars(), to_arrow()"),
        (a_page(), "page.columns is a dict"),
    ):
        with pytest.raises(TypeError) as caught:
            OPERATIONS[operation](one)
        assert said in str(caught.value)
        assert bool(one)
        assert hash(one)
    with pytest.raises(TypeError, match="to_arrow"):
        list(crawl.pages)  # type: ignore[call-overload]
    assert not (tmp_path / "crawl").exists(), "`in` once ran the crawl"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_crawl_is_not_copied_and_its_tables_are(copied: Callable[[object], object], tmp_path: Path) -> None:
    crawl = gossamer.crawl(HERE, output=tmp_path / "crawl", allow_private=True)
    for one in (crawl, crawl.crawler):
        with pytest.raises(TypeError, match=r"is not copied, pickled or sent to a process; gossamer\.Tables"):
            copied(one)
    copied(gossamer.Tables(tmp_path))


def test_a_page_is_copied_and_pickled_as_before() -> None:
    for again in (copy.copy(a_page()), pickle.loads(pickle.dumps(a_page()))):
        assert again.url == HERE
    with pytest.raises(AttributeError) as caught:
        _ = a_page().__array__  # type: ignore[attr-defined]  # Asked for by numpy.
    assert ";" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("run", "for page in crawl"),
        ("results", "for page in crawl"),
        ("items", 'crawl.table("items/NAME")'),
        ("to_pandas", "crawl.pages.to_pandas()"),
        ("df", "crawl.pages.to_pandas()"),
        ("stats", "crawl.status()"),
        ("stop", "crawl.crawler.stop()"),
        ("export", "gossamer export DIR --to FORMAT"),
        ("linsk", "did you mean links?"),
    ],
)
def test_attributes_of_a_crawl(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(gossamer.crawl(HERE, output=tmp_path / "crawl", allow_private=True), name)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [("arun", "await crawler.run()"), ("results", "async for page in crawler"), ("stats", "crawler.status()")],
)
def test_attributes_of_a_crawler(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(gossamer.Crawler(HERE, output=tmp_path / "crawl", allow_private=True), name)
    assert told in str(caught.value)


FORMS = """
async def awaited(crawl): await crawl
async def context(crawl):
    async with crawl: pass
async def loop(crawl):
    async for page in crawl: pass
async def plain_context(crawl):
    with crawl: pass
async def plain_loop(crawl):
    for page in crawl: pass
"""


def test_the_other_form_of_a_loop_is_named(tmp_path: Path) -> None:
    forms: dict[str, Any] = {}
    exec(FORMS, forms)  # A type checker would refuse some of them.
    for kind, wrong in (
        (gossamer.crawl, ("awaited", "context", "loop", "plain_context")),
        (gossamer.Crawler, ("awaited", "plain_context", "plain_loop")),
    ):
        for name in wrong:
            crawl = kind(HERE, output=tmp_path / "crawl", allow_private=True)
            with pytest.raises(TypeError, match=r"async with gossamer\.Crawler\(\.\.\.\) as crawler") as caught:
                asyncio.run(forms[name](crawl))
            assert "gossamer.crawl(...)" in str(caught.value), name


@pytest.mark.parametrize(
    ("name", "told"), [("to_df", "to_pandas()"), ("df", "to_pandas()"), ("write_parquet", "export")]
)
def test_attributes_of_a_table(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(gossamer.Tables(tmp_path).pages, name)
    assert told in str(caught.value)
    with pytest.raises(AttributeError, match=r'crawl\.table\("items/NAME"\)'):
        _ = gossamer.Tables(tmp_path).items  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Spider", "gossamer.crawl or gossamer.Crawler"),
        ("AsyncWebCrawler", "gossamer.crawl or gossamer.Crawler"),
        ("get", "gossamer.crawl or gossamer.Crawler"),
        ("resume", 'gossamer.Crawler.resume("DIR")'),
        ("ClusterCrawler", "from gossamer.api import ClusterCrawler"),
        ("status_of", "from gossamer.api import status_of"),
        ("Table", "did you mean Tables?"),
    ],
)
def test_names_of_the_module(name: str, told: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(gossamer, name)
    assert told in str(caught.value)
    with pytest.raises(ImportError):
        exec(f"from gossamer import {name}", {})


def test_a_notebook_shows_what_a_crawl_and_a_table_are(tmp_path: Path) -> None:
    crawl = gossamer.crawl(HERE, output=tmp_path, allow_private=True)
    assert repr(crawl) == f"<Crawl {tmp_path}: starting, 0 pages>"
    assert repr(crawl.crawler) == f"<Crawler {tmp_path}: starting, 0 pages>"
    assert repr(gossamer.Tables(tmp_path)) == f"<Tables of {tmp_path}: pages, links, table(NAME)>"
    assert repr(crawl.pages).startswith(f"<Table pages of {tmp_path}: to_pandas(), ")


def test_modules_are_imported_from_packages_that_look_for_names() -> None:
    """A module is no attribute before it is imported; then the import asks the package for its name first."""
    code = "from gossamer import testing, Crawler; from gossamer.api import status; from gossamer.config import toml"
    assert subprocess.run([sys.executable, "-c", code], check=True, timeout=60).returncode == 0
