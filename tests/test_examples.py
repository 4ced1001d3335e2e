"""Every file of `examples/` runs, against a site on loopback, and prints what it is there for."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.answering import Answering, serving
from tests.docs.shown import HOST, ROOT, Place

EXAMPLES = ROOT / "examples"
TOPIC = "The archive keeps WARC files, and replay shows them. " * 8
OTHER = "Something else is said here, in many words that differ from page to page: {0}. " * 8
LOCAL = """\
import gossamer, gossamer.api

def here(made):
    class Local(made):
        def __init__(self, seeds=(), **options):
            super().__init__(seeds, hosts="{hosts}", delay=0.01, allow_private=True, **options)
    return Local

gossamer.Crawler = here(gossamer.Crawler)
gossamer.api.ClusterCrawler = here(gossamer.api.ClusterCrawler)
"""


class Site(ThreadingHTTPServer):
    """Pages about a topic and others, offers with prices that rise, a copy, and a page that refuses training."""

    daemon_threads = True

    def __init__(self) -> None:
        self.price = 10.0
        site = self

        class Handler(Answering):
            def get(self) -> None:
                page = site.page(self.path)
                headers = [("Content-Usage", "train-ai=n")] if self.path == "/refused" else []
                self.answer(404 if page is None else 200, (page or "").encode(), *headers)

        super().__init__(("127.0.0.1", 0), Handler)

    def page(self, path: str) -> str | None:
        links = {
            "/": ["/about", "/warc", "/offers/1", "/copy", "/refused"],
            "/about": ["/other", "/far"],
            "/warc": ["/replay"],
        }
        texts = {
            "/warc": TOPIC, "/replay": f"{TOPIC} At last.", "/copy": OTHER.format("about"),
            "/about": OTHER.format("about"), "/offers/1": f'<b class="price">{self.price}</b>',
        }  # fmt: skip
        if path not in {"/", "/refused", *texts, *links["/"], *links["/about"], *links["/warc"]}:
            return None
        anchors = "".join(f'<a href="{one}">{one}</a> ' for one in links.get(path, ()))
        title = "Twice" if path in ("/about", "/copy") else f"Page {path}"
        named = (
            f"<p>{anchors}</p>" if path != "/copy" else '<p><a href="/other">/other</a> <a href="/far">/far</a> </p>'
        )
        return f"<!doctype html><title>{title}</title>{named}<main>{texts.get(path) or OTHER.format(path)}</main>"


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with serving(site):
        yield site


class Shell(Place):
    """A directory with the examples, in which `gossamer` and `python` reach the site."""

    def __init__(self, directory: Path, port: int) -> None:
        directory.mkdir()
        super().__init__(directory, port)
        self.directory = directory
        bin_ = directory.parent / f"{directory.name}-bin"
        self.hosts = bin_ / "hosts"
        self.hosts.write_text(f"127.0.0.1 {HOST} www.example.net\n")
        start = LOCAL.format(hosts=self.hosts) + "import runpy, sys\nsys.argv = sys.argv[1:]\n"
        (bin_ / "python_here.py").write_text(start + 'runpy.run_path(sys.argv[0], run_name="__main__")\n')
        self._swaps["https://www.example.net/"] = f"http://www.example.net:{port}/"
        for file in EXAMPLES.iterdir():
            self.write(file.name, file.read_text())


@pytest.fixture
def shell(site: Site, tmp_path: Path) -> Shell:
    return Shell(tmp_path / "work", site.server_port)


def test_the_list_names_every_example() -> None:
    named = re.findall(r"^\| \[([\w.]+)\]\(\1\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(file.name for file in EXAMPLES.iterdir() if file.name != "README.md")


@pytest.mark.heavy
def test_archive(shell: Shell) -> None:
    said = shell.run("sh archive.sh")
    assert "docs.wacz" in said
    assert (shell.directory / "docs.wacz").stat().st_size > 1_000


@pytest.mark.heavy
@pytest.mark.long
def test_corpus(shell: Shell) -> None:
    shell.run("sh corpus.sh")
    urls = [json.loads(line)["url"] for line in (shell.directory / "permitted.jsonl").read_text().splitlines()]
    assert any(url.endswith("/about") for url in urls)
    assert not any(url.endswith("/refused") for url in urls)
    assert list((shell.directory / "corpus-markdown").rglob("*.md"))


@pytest.mark.heavy
def test_price_watch(shell: Shell, site: Site) -> None:
    assert "/offers/1 new -> 10.0" in shell.run("python price_watch.py")
    site.price = 12.5
    time.sleep(1.0)  # Each run has a directory that is called after its second.
    assert "/offers/1 10.0 -> 12.5" in shell.run("python price_watch.py")


@pytest.mark.heavy
def test_focused_crawl(shell: Shell) -> None:
    paths = [line.split()[0].rpartition("/")[2] for line in shell.run("python focused_crawl.py").splitlines()]
    assert {"warc", "replay", "about", "other", "far"} <= set(paths)
    said = shell.run("gossamer export topic --to jsonl --table items/topic -o -")
    assert {line["title"] for line in map(json.loads, said.splitlines())} == {"Page /warc", "Page /replay"}


@pytest.mark.heavy
def test_link_graph_and_near_duplicates(shell: Shell) -> None:
    shell.run("gossamer crawl https://docs.example.org/ --contact you@example.org --set seen.near_scope=shard -o crawl")
    lines = shell.run("python link_graph.py crawl").splitlines()
    assert lines[-1] == "sum of all ranks: 1.0"
    ranks = [float(line.split()[0]) for line in lines[:-1]]
    assert ranks == sorted(ranks, reverse=True)
    assert len(ranks) == 9
    assert lines[0].split()[1].endswith(("/other", "/far", "/replay"))
    said = shell.run("python near_duplicates.py crawl")
    assert re.search(r"/(about|copy) has copies:\n +\S+/(about|copy)\n", said)


@pytest.mark.heavy
@pytest.mark.long
def test_scheduled_and_frames(shell: Shell) -> None:
    assert re.fullmatch(r"\{'fetched': \d+, 'failed': \d+\}\n", shell.run("python scheduled.py crawl"))
    assert shell.run("python scheduled.py crawl") == "{'fetched': 0, 'failed': 0}\n"
    said = shell.run("python frames.py crawl")
    assert said.startswith("polars: [(0, 1), (1, ")
    assert re.search(r"^most linked: \('http://\S+', \d+\)$", said, re.MULTILINE)


@pytest.mark.heavy
def test_search_engine(shell: Shell) -> None:
    script = """\
python search_engine.py & engine=$!
trap 'kill $engine' EXIT
for _ in $(seq 2000); do
    sleep 0.1
    curl -sf 'http://127.0.0.1:8817/?q=replay' && break
done
"""
    said = shell.run(script)
    assert "Page /replay" in said
    assert "/far" not in said


@pytest.mark.acceptance
@pytest.mark.timeout(900)  # Ray starts, with four processes.
@pytest.mark.long
def test_cluster_crawl(shell: Shell) -> None:
    said = shell.run("python cluster_crawl.py")
    assert "The crawl ended: finished" in said
    assert re.search(r"^\d+ pages, shard 0: \d+ shard 1: \d+ shard 2: \d+ shard 3: \d+$", said, re.MULTILINE)


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_notebook(shell: Shell) -> None:
    import nbclient
    import nbformat

    notebook = nbformat.read(shell.directory / "crawl.ipynb", as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(LOCAL.format(hosts=shell.hosts)))
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(shell.directory)}}).execute()
    count, kinds, linked = (
        cell.outputs[-1].data["text/plain"] for cell in notebook.cells if cell.cell_type == "code" and cell.outputs
    )
    assert count == "9"
    assert "text/html" in kinds
    assert "anchor" in linked
