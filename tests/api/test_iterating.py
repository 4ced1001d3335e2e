"""A crawl as a plain loop reads it, with and without a running event loop, and its tables in other libraries."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import gossamer
from gossamer import Crawler, Tables
from gossamer.api import status_of
from gossamer.api.iterating import Crawl
from gossamer.api.page import CrawledPage
from gossamer.config.flags import FLAGS, Options
from gossamer.model.errors import ConfigError
from tests.answering import Answering, serving

pytestmark = pytest.mark.promise(
    "Components and Python", "A plain `for` loop reads a crawl, in a script as in a notebook."
)
PAGES = 12
SETTINGS: dict[str, object] = {
    "crawl.commit_s": 0.05, "state.cache_bytes": 1 << 20, "state.write_buffer_bytes": 1 << 20,
}  # fmt: skip


class _Site(Answering):
    def get(self) -> None:
        links = "".join(f'<a href="/{n}">{n}</a>' for n in range(PAGES))
        found = self.path == "/" or self.path.strip("/").isdecimal()
        self.answer(200 if found else 404, f"<title>Page {self.path}</title>{links}".encode() if found else b"")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/"


def made(site: str, output: Path, **options: Any) -> Crawl:
    return gossamer.crawl(site, output=output, allow_private=True, politeness="own", settings=SETTINGS, **options)


def test_a_page_can_be_sent_to_another_process(site: str, tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for page in made(site, tmp_path / "crawl", max_pages=1):
            assert page.css("a").text, "what was parsed stays here"
            assert pool.submit(_text_and_links, page).result(60) == (page.text, len(page.links))
            assert len(page.links) == PAGES


def _text_and_links(page: CrawledPage) -> tuple[str, int]:
    return page.text, len(page.links)


def test_a_crawler_that_was_not_entered_says_how_to_iterate(site: str, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match="async with Crawler"):
            await anext(aiter(Crawler(site, output=tmp_path / "crawl", allow_private=True)))

    asyncio.run(main())


def test_a_plain_loop_reads_every_page(site: str, tmp_path: Path) -> None:
    before = threading.enumerate()
    crawl = made(site, tmp_path / "crawl")
    titles = {page.title for page in crawl}
    assert titles == {"Page /", *(f"Page /{n}" for n in range(PAGES))}
    assert crawl.status()["state"] == "finished"
    names = [thread.name for thread in threading.enumerate() if thread not in before]
    assert [name for name in names if name.startswith(("gossamer", "asyncio", "ThreadPool"))] == []
    with pytest.raises(ConfigError, match="this crawl was read before"):
        list(crawl)


def test_a_loop_that_runs_already_is_no_hindrance(site: str, tmp_path: Path) -> None:
    async def notebook() -> int:
        return sum(1 for _ in made(site, tmp_path / "crawl"))

    assert asyncio.run(notebook()) == PAGES + 1


def test_leaving_the_loop_ends_the_crawl_and_another_continues_it(site: str, tmp_path: Path) -> None:
    first = []
    for page in made(site, tmp_path / "crawl", per_host=1):
        first.append(page.url)
        if len(first) == 2:
            break
    crawl = Crawl(Crawler.resume(tmp_path / "crawl"))  # It runs no more: its directory is free.
    rest = [page.url for page in crawl]
    assert len({*first, *rest}) <= PAGES + 1
    assert crawl.status()["state"] == "finished"
    assert crawl.pages.to_arrow().num_rows == PAGES + 1


def test_an_error_of_the_crawl_comes_out_of_the_loop(site: str, tmp_path: Path) -> None:
    reading = iter(made(site, tmp_path / "crawl", delay=5.0))
    other = made(site, tmp_path / "crawl")
    assert next(reading).status == 200
    with pytest.raises(ConfigError, match="in use by another crawl"):
        list(other)
    reading.close()  # type: ignore[attr-defined]


LEAVING = {
    "interrupted as it begins": """
async def enter(self, entering=Crawler.__aenter__):
    interrupt()
    return await entering(self)

Crawler.__aenter__ = enter
read()
""",
    "interrupted, and again while it stops": """
def on_page():
    interrupt()
    until(lambda: crawl.crawler._stop is not None)
    interrupt()
    until(ended.is_set)  # The second does not wait for this request.

read()
""",
    "left open at the end of the program": """
sys.modules["reading"] = iter(crawl)  # What a module holds, the interpreter frees last.
next(sys.modules["reading"])
print("state", "stopped")
""",
}
PROGRAM = """
import os, signal, sys, threading, time
from http.server import ThreadingHTTPServer
import gossamer
from gossamer import Crawler
from tests.answering import Answering

on_page = lambda: None
ended = threading.Event()
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)

def until(is_so, deadline=time.monotonic() + 200):
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.001)

class Site(Answering):
    def get(self):
        if self.path == "/":
            on_page()
        self.answer(200, b"<a href=/1>1</a>")

def read():
    try:
        for page in crawl:
            pass
    except KeyboardInterrupt:
        ended.set()
        print("state", crawl.status()["state"])

server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
threading.Thread(target=server.serve_forever, daemon=True).start()
site = f"http://127.0.0.1:{server.server_address[1]}/"
crawl = gossamer.crawl(site, output=sys.argv[1], allow_private=True, politeness="own", delay=5.0)
"""


@pytest.mark.parametrize("how", LEAVING)
def test_a_program_that_leaves_its_loop_ends(tmp_path: Path, how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + LEAVING[how], str(tmp_path / "crawl")],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "state stopped\n", "")
    assert status_of(tmp_path / "crawl")["state"] == "stopped"


CELLS = (
    "import gossamer\nmore = dict(allow_private=True, politeness='own')",
    "for page in gossamer.crawl({site!r}, output='looped', max_pages=4, **more):\n    pass",
    "async with gossamer.Crawler({site!r}, output='awaited', **more) as crawler:\n    async for page in crawler: pass",
    "for page in gossamer.crawl({site!r}, output='quiet', quiet=True, **more):\n    pass",
)


@pytest.mark.promise("Components and Python", "In a notebook a crawl shows a progress bar; `quiet` leaves it out.")
@pytest.mark.heavy
def test_a_notebook_shows_a_progress_bar(site: str, tmp_path: Path) -> None:
    import nbclient
    import nbformat

    cells = [nbformat.v4.new_code_cell(cell.format(site=site)) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert [len(cell.outputs) for cell in notebook.cells] == [0, 1, 1, 0], "each bar is redrawn in its place"
    looped, awaited = (cell.outputs[0].data for cell in notebook.cells[1:3])
    assert looped["text/html"].startswith('<progress value="1.000" max="1"')
    assert re.match(r"[45] pages, .*, limit of 4 pages reached$", looped["text/plain"])
    assert awaited["text/plain"].startswith(f"{PAGES + 1} pages, ")
    assert looped["text/plain"] in looped["text/html"]


@pytest.mark.heavy
@pytest.mark.parametrize("what", ["to_arrow", "to_polars", "to_duckdb"])
def test_tables_in_other_libraries(site: str, tmp_path: Path, what: str) -> None:
    crawl = made(site, tmp_path / "crawl")
    assert len(list(crawl)) == PAGES + 1
    for tables in (crawl, Tables(str(tmp_path / "crawl"))):
        rows = getattr(tables.pages, what)()
        assert len(rows) == PAGES + 1
        assert sorted(rows["title"].to_pylist() if what == "to_arrow" else _titles(rows)) == sorted(
            ["Page /", *(f"Page /{n}" for n in range(PAGES))]
        )
        assert len(getattr(tables.pages, what)("title = 'Page /3'")) == 1
        assert len(getattr(tables.links, what)()) > PAGES
    with pytest.raises(ConfigError, match=r"^no table items/offer: the crawl has"):
        crawl.table("items/offer").to_arrow()


PANDAS = Path(__file__).parents[2] / ".parts/pandas"
FRAMES = """
from gossamer import Tables
tables = Tables("crawl")
pages = tables.pages.to_pandas()
print(type(pages).__module__.partition(".")[0], len(pages), sorted(pages["title"])[:2])
print(list(tables.pages.to_pandas("title = 'Page /3'")["status"]), len(tables.links.to_pandas()))
"""


@pytest.mark.acceptance
def test_tables_in_pandas(site: str, tmp_path: Path) -> None:
    assert PANDAS.is_dir(), "pandas is missing: `make pandas` installs it beside the environment"
    pages = list(made(site, tmp_path / "crawl"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PANDAS), *filter(None, sys.path)])}
    said = subprocess.run(
        [sys.executable, "-c", FRAMES], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    first, second = said.stdout.splitlines()
    assert first == f"pandas {len(pages)} ['Page /', 'Page /0']"
    assert second.startswith("[200] ")


def _titles(rows: Any) -> list[str]:
    return [one[0] for one in rows.project("title").fetchall()] if hasattr(rows, "fetchall") else list(rows["title"])


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_library_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=f"to_{name} needs the package {name}: pip install {name}"):
        getattr(Tables(tmp_path).pages, f"to_{name}")()


def test_the_keywords_are_the_options() -> None:
    assert set(Options.__annotations__) == {flag.name for flag in FLAGS} - {"seeds", "output"} | {"preset"}
    hints = get_type_hints(Options)
    for flag in FLAGS:
        if flag.name in hints:
            text = str(hints[flag.name])
            assert flag.kind.__name__ in text
            assert flag.many == ("list" in text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_pages": 0}, "max_pages 0: "),
        ({"max_depth": "deep"}, 'max_depth "deep": '),
        ({"max_page": 1}, "no option 'max_page'; did you mean max_pages?"),
        ({"json": True, "quiet": True}, "json and quiet exclude each other"),
    ],
)
def test_mistakes_name_the_keyword(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        gossamer.crawl("http://127.0.0.1/", output=tmp_path / "crawl", **options)
    assert str(caught.value).startswith(says)
    assert "--" not in str(caught.value)


def test_crawl_is_the_function_whatever_was_imported_before() -> None:
    code = "import gossamer, gossamer.engine.loop; print(gossamer.crawl.__name__, gossamer.crawl.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "crawl gossamer.api.iterating\n"
