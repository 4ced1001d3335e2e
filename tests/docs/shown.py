"""What the documentation shows: its blocks of code, and a place in which a shell runs them as a reader would.

The word after the three backticks says what happens to a block. `sh` runs. `python` and `toml` that begin with a
comment `# NAME` become that file; other `toml` is checked as a configuration. `console` shows commands that need more
than this machine: each is parsed, none runs. Everything else is output.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import gossamer
from tests.answering import free_port, serving

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "docs/index.md", *ROOT.glob("docs/[!d]*/*.md")])
"""The README and every page but lists that are made from the tests, and decisions, which record what was run once."""
SHOWN = "https://docs.example.org/"
HOST = "docs.example.org"
DEADLINE_S = 240
GOSSAMER = """\
import sys
from gossamer.cli.entry import main

words = sys.argv[1:]
if words[:1] in (["crawl"], ["fetch"], ["shell"], ["check"], ["archive"], ["corpus"]):
    words += ["--allow-private", "--set", "politeness.delay_s_min=0.01"]
    words += ["--quiet"] if words[0] in ("crawl", "check", "archive", "corpus") else []
    words += [] if "--hosts" in words else ["--hosts", "{hosts}"]
sys.argv[1:] = words
main()
"""
PYTHON = """\
import runpy, sys
import gossamer
from gossamer import Crawler

class Local(Crawler):
    def __init__(self, seeds=(), *, settings=None, **options):
        local = {{"resolve.hosts_file": "{hosts}", "politeness.delay_s_min": 0.01}}
        super().__init__(seeds, settings=local | (settings or {{}}), allow_private=True, **options)

gossamer.Crawler = Local
sys.path.insert(0, "")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Block(NamedTuple):
    """A fenced block of a page: its language, its text, and the line where it begins."""

    language: str
    text: str
    line: int

    @property
    def ends(self) -> int:
        """Return the line of its last fence."""
        return self.line + self.text.count("\n") + 1


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order, indentation removed."""
    found: list[Block] = []
    language, begins, lines, indent = None, 0, [], ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"^( *)```(\w*)", line)
        if language is None and fence:
            indent, language, begins, lines = fence[1], fence[2] or "text", number, []
        elif language is not None and fence:
            found.append(Block(language, "".join(f"{one}\n" for one in lines), begins))
            language = None
        elif language is not None:
            lines.append(line.removeprefix(indent))
    assert language is None, f"{page}:{begins}: the block has no end"
    return found


def body(path: str, visits: int) -> tuple[str, bytes] | None:
    """Return type and content of a page of the site, which the documentation calls docs.example.org."""
    if path == "/robots.txt":
        return "text/plain", f"User-agent: *\nDisallow: /private/\nSitemap: http://{HOST}:PORT/sitemap.xml\n".encode()
    if path == "/sitemap.xml":
        places = "".join(f"<url><loc>http://{HOST}:PORT/{name}</loc></url>" for name in ("", "news/", "hidden.html"))
        return "application/xml", f"<urlset>{places}</urlset>".encode()
    if path == "/style.css":
        return "text/css", b"body { font-family: sans-serif }"
    names = [
        "",
        "guide/",
        "guide/start.html",
        "guide/search.html",
        "guide/archive.html",
        "news/",
        "status",
        "hidden.html",
    ]
    if path.removeprefix("/") not in names:
        return None
    links = "".join(f'<li><a href="/{name}">{name or "home"}</a></li>' for name in names[:-1])
    words = " ".join(f"Sentence {n} of {path} says how a crawler works and why it waits." for n in range(12))
    version = f"<p>Version {'abcdefghijklmnop'[visits % 16] * 3} of this page.</p>" if path == "/status" else ""
    return "text/html", (
        f'<!doctype html><html lang="en"><title>Docs {path}</title><link rel="stylesheet" href="/style.css">'
        f"<nav><ul>{links}</ul></nav><main><h1>About {path}</h1>{version}<p>{words}</p></main></html>"
    ).encode()


@contextmanager
def served() -> Iterator[int]:
    """Serve the site on loopback for any name, and yield its port."""
    visits: dict[str, int] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            visits[self.path] = visits.get(self.path, 0) + 1
            found = body(self.path, visits[self.path])
            kind, content = found or ("text/html", b"not here")
            content = content.replace(b"PORT", str(self.server.server_address[1]).encode())
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield server.server_address[1]


class Place:
    """A directory in which the commands of one page run, one block after the other.

    They run with the interpreter of these tests and the source under test, or with what is installed for another one.
    """

    def __init__(self, directory: Path, port: int, *, python: Path | None = None) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)
        bin_ = directory.parent / f"{directory.name}-bin"
        bin_.mkdir()
        self._swaps = {SHOWN: f"http://{HOST}:{port}/", "8817": str(free_port())}
        self._swaps['"seeds": {'] = f'"resolve": {{"allow_private": true, "hosts_file": "{bin_}/hosts"}}, "seeds": {{'
        (bin_ / "hosts").write_text(f"127.0.0.1 {HOST}\n")
        for name, program in (("gossamer", GOSSAMER), ("python", PYTHON)):
            (bin_ / f"{name}_here.py").write_text(program.format(hosts=bin_ / "hosts"))
            (bin_ / name).write_text(f'#!/bin/sh\nexec {python or sys.executable} {bin_}/{name}_here.py "$@"\n')
            (bin_ / name).chmod(0o755)
        source = str(Path(gossamer.__file__).parents[1])
        path = os.pathsep.join([str(bin_), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
        if python is None:
            self._environment["PYTHONPATH"] = source

    def local(self, text: str) -> str:
        """Return the text with the addresses of this machine in the place of those shown."""
        for shown, here in self._swaps.items():
            text = text.replace(shown, here)
        return text

    def write(self, name: str, text: str) -> Path:
        path = self._directory / name
        path.write_text(self.local(text), encoding="utf-8")
        return path

    def run(self, script: str) -> str:
        """Run commands in a shell and return what they print; each of them must succeed."""
        shell = subprocess.Popen(
            ["bash", "-euc", self.local(script)], cwd=self._directory, env=self._environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            said, _ = shell.communicate(timeout=DEADLINE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)  # What a block that failed left behind.
        assert shell.returncode == 0, f"{script}\n{said}"
        return said
