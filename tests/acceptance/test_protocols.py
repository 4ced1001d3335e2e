"""FTP, FTPS, Gopher and files by the real command line, against real servers: the tree is what is fetched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
import trustme
from warcio.archiveiterator import ArchiveIterator

import gossamer
from tests.acceptance.conftest import Crawl
from tests.answering import free_port
from tests.stages.fetch.ftp_server import ftp_server

pytestmark = pytest.mark.acceptance

PYGOPHERD = Path("/usr/sbin/pygopherd")
SCRIPTS = Path(sysconfig.get_path("scripts"))
DIRECTORIES, FILES_EACH = 12, 8
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served").resolve() / "tree"
    for number in range(DIRECTORIES):
        directory = root / ("/".join(["deeper"] * (number % 4)) or ".") / f"dir {number}"
        directory.mkdir(parents=True)
        for file in range(FILES_EACH):
            suffix = (".txt", ".html", ".bin", ".gif")[file % 4]
            (directory / f"file {file}{suffix}").write_bytes(f"{number} {file} ".encode() * 50 * file)
    return root


def files_of(root: Path) -> Counter[bytes]:
    return Counter(path.read_bytes() for path in root.rglob("*") if path.is_file())


def rows(directory: Path) -> list[dict[str, object]]:
    return [row for file in (directory / "pages").glob("*.parquet") for row in pq.read_table(file).to_pylist()]


def check_archive(directory: Path, root: Path, listings: str) -> None:
    """Every file of the tree is archived once and byte for byte; nothing failed; others can read it."""
    found = rows(directory)
    assert {row["outcome"] for row in found} == {"fetched"}
    assert max(Counter(row["url"] for row in found).values()) == 1
    bodies: Counter[bytes] = Counter()
    records = 0
    for path in (directory / "warc").iterdir():
        check = subprocess.run([SCRIPTS / "warcio", "check", path], capture_output=True, text=True, timeout=120)
        assert check.returncode == 0, check.stdout + check.stderr
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                body = record.raw_stream.read()
                if record.rec_type == "resource":
                    records += 1
                    if record.rec_headers.get_header("Content-Type") != listings:
                        bodies[body] += 1
    assert bodies == files_of(root)
    assert records == len(found)


def addresses(root: Path, base: str) -> set[str]:
    named = {quote(str(path.relative_to(root)), "/!$&'()*+,;=:@~") + "/" * path.is_dir() for path in root.rglob("*")}
    return {base + name for name in named} | {base}


def crawled(command: Crawl, seed: str, directory: Path, *more: str) -> None:
    scheme = seed.partition(":")[0]
    options = ["--politeness", "own", "--allow-private", "--set", f'scope.schemes=["{scheme}"]', *more]
    end = command("crawl", seed, "-o", directory, *options)
    assert (end.returncode, end.stderr) == (0, "")


def test_ftp(tree: Path, tmp_path: Path, command: Crawl) -> None:
    with ftp_server(tree, tmp_path / "ftp") as server:
        base = f"ftp://127.0.0.1:{server.port}/"
        crawled(command, base, tmp_path / "crawl")
        # And robots.txt, which is missing: a server that refuses SIZE may still have a file.
        assert len(server.asked("RETR")) == sum(files_of(tree).values()) + 1
    assert {row["url"] for row in rows(tmp_path / "crawl")} == addresses(tree, base)
    check_archive(tmp_path / "crawl", tree, "text/x-ftp-listing")


def test_ftps_with_a_login_that_nobody_can_read_afterwards(tree: Path, tmp_path: Path, command: Crawl) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    (tmp_path / "logins").write_text("machine localhost login ann-the-user password s3cret-word\n")
    options = {"certificate": str(tmp_path / "server.pem"), "user": "ann-the-user", "password": "s3cret-word"}
    with ftp_server(tree, tmp_path / "ftp", **options) as server:
        base = f"ftps://localhost:{server.port}/"
        sets = (f"fetch.ca_bundle={tmp_path / 'ca.pem'}", f"fetch.logins_file={tmp_path / 'logins'}")
        crawled(command, base, tmp_path / "crawl", *(word for one in sets for word in ("--set", one)))
        assert set(server.asked("PROT")) == {"P"}
    assert {row["url"] for row in rows(tmp_path / "crawl")} == addresses(tree, base)
    check_archive(tmp_path / "crawl", tree, "text/x-ftp-listing")
    for path in (tmp_path / "crawl").rglob("*"):
        if path.is_file():
            assert b"s3cret-word" not in path.read_bytes(), path
            if path.suffix == ".gz":
                unpacked = subprocess.run(["gzip", "-dc", path], capture_output=True, check=True, timeout=60).stdout
                assert b"s3cret-word" not in unpacked
                assert b"ann-the-user" not in unpacked


def test_files(tree: Path, tmp_path: Path, command: Crawl) -> None:
    base = f"file://{tree}/"
    crawled(command, base, tmp_path / "crawl", "--set", f'fetch.file_roots=["{tree}"]')
    assert {row["url"] for row in rows(tmp_path / "crawl")} == addresses(tree, base)
    check_archive(tmp_path / "crawl", tree, "text/uri-list")


@contextmanager
def pygopherd(root: Path, at: Path) -> Iterator[int]:
    """Debian's Gopher server, on a free port of 127.0.0.1, with Debian's configuration but for its place."""
    assert PYGOPHERD.exists(), "install pygopherd (make acceptance does)"
    port = free_port()
    at.mkdir()
    text = Path("/etc/pygopherd/pygopherd.conf").read_text()
    for key, value in {
        "root": root, "port": port, "pidfile": at / "pid", "usechroot": "no", "servertype": "ThreadingTCPServer",
        "logmethod": "none", "servername": "127.0.0.1", "interface": "127.0.0.1", "cachetime": 0,
    }.items():  # fmt: skip
        text, changed = re.subn(rf"^(?:# )?{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
        assert changed, key
    (at / "conf").write_text(re.sub(r"^set[ug]id = .*$", "", text, flags=re.MULTILINE))
    process = subprocess.Popen(["/usr/bin/python3", PYGOPHERD, at / "conf"], stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + DEADLINE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def test_gopher(tree: Path, tmp_path: Path, command: Crawl) -> None:
    served = tmp_path / "served"
    shutil.copytree(tree, served)  # It keeps caches where it serves.
    with pygopherd(served, tmp_path / "pygopherd") as port:
        base = f"gopher://127.0.0.1:{port}/"
        crawled(command, base, tmp_path / "crawl")
    selectors = Counter(str(row["url"]).removeprefix(base)[1:] for row in rows(tmp_path / "crawl"))
    assert selectors == Counter(["", *(quote("/" + str(path.relative_to(tree))) for path in tree.rglob("*"))])
    check_archive(tmp_path / "crawl", tree, "application/gopher-menu")


@pytest.mark.long
def test_an_ftp_crawl_that_was_stopped_goes_on(tree: Path, tmp_path: Path, command: Crawl) -> None:
    with ftp_server(tree, tmp_path / "ftp") as server:
        base = f"ftp://127.0.0.1:{server.port}/"
        sets = [
            "--set",
            "scope.schemes=['ftp']",
            "--set",
            "politeness.per_host=1",
            "--set",
            "politeness.delay_s_min=0.03",
        ]
        arguments = ["crawl", base, "-o", tmp_path / "crawl", "--politeness", "own", "--allow-private", *sets]
        own = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parent.parent)}
        process = subprocess.Popen([sys.executable, "-m", "gossamer", *map(str, arguments)], env=own)
        try:
            until = time.monotonic() + DEADLINE_S
            while len(server.asked("RETR")) < FILES_EACH:
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
            process.wait()
        asked = len(server.asked("RETR"))
        end = command("resume", tmp_path / "crawl")
        assert (end.returncode, end.stderr) == (0, "")
        assert asked < len(server.asked("RETR"))
    assert {row["url"] for row in rows(tmp_path / "crawl")} == addresses(tree, base)
    check_archive(tmp_path / "crawl", tree, "text/x-ftp-listing")
