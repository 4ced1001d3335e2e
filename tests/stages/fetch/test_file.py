from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply, Request
from gossamer.options import convert
from gossamer.stages.fetch.bodies import media_type_of
from gossamer.stages.fetch.file import FileModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import WallClock
from tests.stages.fetch.speaking import AGENT, failed, replied


def fetched(url: str, *roots: Path, most: int = 0, **options: object) -> Reply | Failure:
    module = FileModule(
        convert(FetchOptions, {"file_roots": [str(root) for root in roots], **options}), AGENT, WallClock()
    )
    return asyncio.run(module.fetch(Request(url, "127.0.0.1", 0, body_bytes_max=most)))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "tree"
    (root / "a dir").mkdir(parents=True)
    (root / "a dir" / "ä#?%;.html").write_bytes(b"<p>")
    (root.parent / "tree-beside").mkdir()
    (root.parent / "tree-beside" / "secret").write_bytes(b"secret")
    return root


def test_a_file_is_its_bytes_and_its_name_says_its_type(tree: Path) -> None:
    answer = replied(fetched(f"file://{tree}/a%20dir/%C3%A4%23%3F%25%3B.html", tree))
    assert (answer.status, answer.body, answer.media_type) == (200, b"<p>", "text/html")
    assert replied(fetched(f"file://localhost{tree}/a%20dir/../a%20dir/%C3%A4%23%3F%25%3B.html", tree)).body == b"<p>"


def test_a_file_is_cut_at_its_bound(tree: Path) -> None:
    (tree / "long").write_bytes(b"x" * 1000)
    for most, bound in ((10, 1000), (0, 10)):
        answer = replied(fetched(f"file://{tree}/long", tree, most=most, body_bytes_max=bound))
        assert (answer.body, answer.truncated) == (b"x" * 10, "length")
    assert replied(fetched(f"file://{tree}/long", tree, body_bytes_max=1000)).truncated == ""


def test_a_directory_is_a_list_of_addresses(tree: Path) -> None:
    (tree / "link").symlink_to("a dir/ä#?%;.html")
    (tree / "a dir" / "up").symlink_to("..")
    (tree / "broken").symlink_to("nowhere")
    (tree / "out").symlink_to(tree.parent / "tree-beside")
    os.mkfifo(tree / "pipe")
    answer = replied(fetched(f"file://{tree}", tree))
    assert answer.media_type == "text/uri-list"
    page = f"file://{tree}/a%20dir/%C3%A4%23%3F%25;.html"
    assert answer.body.decode().splitlines() == [f"file://{tree}/a%20dir/", page]
    assert replied(fetched(f"file://{tree}/a%20dir/", tree)).body.decode().split() == [f"file://{tree}/", page]


def test_names_that_are_no_text_can_be_followed(tree: Path) -> None:
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff")).write_bytes(b"odd")
    assert f"file://{tree}/%FF\r\n".encode() in replied(fetched(f"file://{tree}/", tree)).body
    assert replied(fetched(f"file://{tree}/%FF", tree)).body == b"odd"


@pytest.mark.parametrize(
    "path",
    ["/../tree-beside/secret", "/%2e%2e/tree-beside/secret", "-beside/secret", "-beside/", "/out/secret", "/out",
     "/..", "/../nothing", "-beside/nothing", "/chain"],
)  # fmt: skip
def test_what_lies_outside_the_roots_is_excluded_by_whatever_way(tree: Path, path: str) -> None:
    (tree / "out").symlink_to(tree.parent / "tree-beside")
    (tree / "chain").symlink_to("a dir/on")
    (tree / "a dir" / "on").symlink_to("/etc/passwd")
    failure = failed(fetched(f"file://{tree}{path}", tree))
    assert (failure.outcome, failure.error) == ("excluded", "outside fetch.file_roots")


def test_nothing_is_served_without_roots(tree: Path) -> None:
    assert failed(fetched(f"file://{tree}/")).outcome == "excluded"


def test_a_root_may_be_reached_by_a_link_and_be_all(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(tree)
    assert replied(fetched(f"file://{tmp_path}/way/", tmp_path / "way")).body
    assert replied(fetched(f"file://{tree}/", Path("/"))).body


@pytest.mark.parametrize("kind", ["missing", "pipe", "socket", "loop", "beneath a file"])
def test_what_is_neither_file_nor_directory_is_an_error_and_holds_nobody_up(
    tree: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "thing"
    monkeypatch.chdir(tree)
    if kind == "pipe":
        os.mkfifo("thing")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("thing")
    elif kind == "loop":
        (tree / "thing").symlink_to("thing")
    elif kind == "beneath a file":
        path = "a%20dir/%C3%A4%23%3F%25%3B.html/x"
    failure = failed(fetched(f"file://{tree}/{path}", tree))
    assert (failure.outcome, failure.retry, failure.host_level) == ("http_error", False, False)


@pytest.mark.parametrize(
    "url", ["file://other.test/etc/passwd", "file:///a%00b", "file:///a?b", "http://h/", "file://["]
)
def test_urls_of_no_path_here(tree: Path, url: str) -> None:
    assert failed(fetched(url, tree)).outcome == "unsupported"


@pytest.mark.parametrize("root", ["relative", "/nowhere/at/all"])
def test_a_root_that_is_none_is_named(root: str) -> None:
    with pytest.raises(ConfigError, match=f"fetch.file_roots: {root}"):
        fetched("file:///", Path(root))


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("a.html", "text/html"), ("x/A.TXT", "text/plain"), ("a.tar.gz", "application/gzip"),
     ("a.bz2", "application/x-bzip2"), ("README", ""), ("", ""),
     ("data:text/html,x", ""), ("a.png", "image/png"), (".html", "")],
)  # fmt: skip
def test_a_name_says_its_type(name: str, media_type: str) -> None:
    assert media_type_of(name) == media_type
