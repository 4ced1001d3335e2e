"""Crawls by FTP, Gopher and of files: the set of what is fetched is the tree, each address once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.ring.crawls import OWN, Crawled, crawl
from tests.stages.archive import strict
from tests.stages.fetch.ftp_server import ftp_server
from tests.stages.fetch.test_gopher import Hole

NAMES = ("a.txt", "sub dir/b c;d.txt", "sub dir/deep/größe#1?.html", "sub dir/deep/%41.bin", "page.html")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "tree"
    for number, name in enumerate(NAMES):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\n" % number)
    (root / "page.html").write_text('<a href="a.txt">a</a><a href="sub%20dir/">sub</a><a href="missing">x</a>')
    (root / "empty").mkdir()
    (root / "sub dir" / "up").symlink_to("..")
    (root / "again.txt").symlink_to("a.txt")
    return root


def addresses(root: Path, base: str) -> set[str]:
    paths = [path for path in root.rglob("*") if not path.is_symlink()]
    named = (quote(str(path.relative_to(root)), "/!$&'()*+,=:@~") + "/" * path.is_dir() for path in paths)
    return {base + name for name in named} | {base}


def fetched(crawled: Crawled) -> Counter[str]:
    assert crawled.end == "finished"
    assert crawled.critical() == ""
    archives = sorted((crawled.directory / "warc").iterdir())
    assert strict.faults(archives) == []
    assert {record.kind for path in archives for record in strict.read(path)} & {"resource"}
    return Counter(str(row["url"]) for row in crawled.rows if row["outcome"] == "fetched")


@pytest.mark.parametrize("command", ["LIST", "MLSD"])
def test_an_ftp_tree_is_crawled_and_its_robots_txt_obeyed(tree: Path, tmp_path: Path, command: str) -> None:
    (tree / "robots.txt").write_text("User-agent: *\nDisallow: /hidden/\n")
    (tree / "hidden").mkdir()
    (tree / "hidden" / "x.txt").write_text("x")
    if command == "MLSD":  # pyftpdlib does not say of a link that it is one, and its listings go round.
        (tree / "sub dir" / "up").unlink()
        (tree / "again.txt").unlink()
    sets = (*OWN, "scope.schemes=['ftp']", f"fetch.ftp_listing='{command}'")
    with ftp_server(tree, tmp_path / "ftp") as server:
        base = f"ftp://127.0.0.1:{server.port}/"
        crawled = crawl((base,), tmp_path / "crawl", *sets)
        asked = Counter(server.asked("RETR"))
        assert len(server.asked("LIST", "MLSD")) == 4
    expected = addresses(tree, base) - {base + "hidden/", base + "hidden/x.txt"}
    assert fetched(crawled) == Counter(expected)
    # robots.txt once by the gate, once as a page; a server that refuses SIZE may still have the file.
    names = [name.rpartition("/")[2] for name in NAMES]
    assert asked == Counter([*names, "robots.txt", "robots.txt", "missing"])
    outcomes = {row["url"]: (row["outcome"], row["status"]) for row in crawled.rows}
    assert outcomes[base + "hidden/"] == ("robots_denied", None)
    assert outcomes[base + "missing"] == ("http_error", None)
    assert outcomes[base + "a.txt"] == ("fetched", 226)


def test_a_tree_of_files_is_crawled_below_its_root_alone(tree: Path, tmp_path: Path) -> None:
    (tree / "page.html").write_text(
        '<a href="a.txt">a</a><a href="../crawl/crawl.toml">no</a><a href="//h.test/x">o</a>'
    )
    sets = (*OWN, "scope.schemes=['file']", f"fetch.file_roots=['{tree}']")
    crawled = crawl((f"file://{tree}/",), tmp_path / "crawl", *sets)
    got = fetched(crawled)
    assert got == Counter(url.replace("%3B", ";") for url in addresses(tree, f"file://{tree}/"))
    assert (crawled.directory / "crawl.toml").is_file()
    outcomes = {str(row["url"]): row["outcome"] for row in crawled.rows}
    assert outcomes[f"file://{tmp_path.resolve()}/crawl/crawl.toml"] == "excluded"


@contextmanager
def digging(hole: Hole) -> Iterator[Hole]:
    """Serve from a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(hole.serve, "127.0.0.1", 0))
    hole.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield hole
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()


def test_a_gopher_hole_is_crawled_without_a_robots_txt(tmp_path: Path) -> None:
    answers: dict[bytes, bytes] = {}
    with digging(Hole(answers)) as hole:

        def item(kind: str, selector: str) -> bytes:
            return f"{kind}Some {selector}\t{selector}\t127.0.0.1\t{hole.port}\r\n".encode()

        answers[b""] = item("1", "/menu") + item("0", "/a b.txt") + item("7", "/find") + item("1", "") + b".\r\n"
        answers[b"/menu"] = (
            item("9", "/x.bin") + item("0", "/missing") + item("1", "/menu") + item("h", "URL:http://h/")
        )
        answers[b"/menu"] += b"iwords\t\terror.host\t1\r\n0Far\t/far\t127.0.0.2\t70\r\n.\r\n"
        answers[b"/a b.txt"], answers[b"/x.bin"] = b"text\r\n.\r\n", bytes(range(256))
        base = f"gopher://127.0.0.1:{hole.port}"
        crawled = crawl((base + "/",), tmp_path / "crawl", *OWN, "scope.schemes=['gopher']")
        assert fetched(crawled) == Counter([f"{base}{path}" for path in ("/", "/1/menu", "/0/a%20b.txt", "/9/x.bin")])
        asked = Counter(hole.asked)
        assert asked == Counter([b"\r\n", b"/menu\r\n", b"/a b.txt\r\n", b"/x.bin\r\n", b"/missing\r\n"])
        again = crawl((), tmp_path / "crawl", resuming=True)
        assert again.end == "finished"
        assert Counter(hole.asked) == asked
    outcomes = {row["url"]: (row["outcome"], row["error"]) for row in crawled.rows}
    assert outcomes[base + "/0/missing"] == ("http_error", "Gopher: no such thing")
    assert (base + "/1/menu", "http://h/") in crawled.links
