"""Looking at a crawl that may not be written: somebody else's, or one on a disk that is mounted to be read."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.cli import control
from gossamer.cli.directory import write_file
from gossamer.cli.main import refusal_of
from gossamer.world.process import DirectoryLock
from tests import commands
from tests.cli.conftest import Real

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24
AS_ANYBODY = f"""
import ctypes, os, sys
for right in ({CAP_DAC_OVERRIDE}, {CAP_DAC_READ_SEARCH}):
    ctypes.CDLL(None).prctl({PR_CAPBSET_DROP}, right, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Modes of files hold for root too, once it has let go of its right to pass them by."""
FOLDER, FILE = 0o555, 0o444


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a page, and a crawl of it."""
    directory = tmp_path_factory.mktemp("original")
    page = directory / "page.html"
    page.write_text("<title>Here</title>")
    status, _, err = Real(directory)(
        "crawl", page.as_uri(), "--allow-private", "-o", "crawl", "--quiet", "--set", "scope.schemes=['file']",
        "--set", f"fetch.file_roots=['{directory}']", "--set", "search.enabled=true",
    )  # fmt: skip
    assert (status, err) == (0, "")
    return directory


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Real:
    """Runs commands beside a copy of the crawl."""
    shutil.copytree(original / "crawl", tmp_path / "crawl")
    return Real(tmp_path)


@pytest.fixture
def kept(run: Real, tmp_path: Path) -> Path:
    """A finished crawl that nobody may write."""
    for folder, _, files in os.walk(tmp_path / "crawl"):
        for file in files:
            Path(folder, file).chmod(FILE)
        Path(folder).chmod(FOLDER)
    tmp_path.chmod(FOLDER)
    return tmp_path


def as_anybody(directory: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", AS_ANYBODY, "-m", "gossamer", *arguments],
        cwd=directory, env=Real(directory).environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.heavy
@pytest.mark.promise("Operation", "A crawl in a read-only directory can be inspected.")
@pytest.mark.long
def test_what_only_looks_needs_not_write(kept: Path, original: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    url = (original / "page.html").as_uri()
    status, out, err = as_anybody(kept, "status", "crawl", "--json")
    assert (status, err) == (0, "")
    assert (json.loads(out)["state"], json.loads(out)["pages"]) == ("finished", 1)
    status, out, err = as_anybody(kept, "why", "crawl", url)
    assert (status, err) == (0, "")
    assert "fetched" in out
    status, out, err = as_anybody(kept, "report", "crawl", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["fetched"] == 1
    status, out, err = as_anybody(kept, "search", "crawl", "here", "--json")
    assert (status, err) == (0, "")
    assert [hit["url"] for hit in json.loads(out)["hits"]] == [url]
    target = tmp_path_factory.mktemp("elsewhere") / "pages.csv"
    assert as_anybody(kept, "export", "crawl", "--to", "csv", "-o", str(target), "--quiet")[0] == 0
    assert url in target.read_text()
    assert "has no table of links" in as_anybody(kept, "rank", "crawl", "-o", str(target.with_name("ranks")))[2]


@pytest.mark.promise("Operation", "A crawl in a read-only directory can be inspected.")
def test_it_can_be_served(kept: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AS_ANYBODY, "-m", "gossamer", "serve", "crawl", "--port", "0"],
        cwd=kept, env=Real(kept).environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as serving:  # fmt: skip
        try:
            assert serving.stdout is not None
            address, _, token = serving.stdout.readline().strip().partition("/#token=")
            assert len(token) >= 32
            with urllib.request.urlopen(f"{address}/api/status", timeout=60) as answer:
                assert json.load(answer)["pages"] == 1
        finally:
            serving.terminate()


@pytest.mark.heavy
@pytest.mark.parametrize(
    "arguments",
    [
        ("resume", "crawl", "--quiet"),
        ("search", "crawl", "--build"),
        ("export", "crawl", "--to", "csv", "-o", "pages.csv"),
        ("scale", "crawl", "--workers", "2"),
        ("forget", "crawl", "http://a.test/"),
        ("resume", "crawl", "--quiet", "only the top"),
        ("scale", "crawl", "--workers", "2", "only the top"),
        ("forget", "crawl", "page[.]html", "--all", "only the top"),
    ],
)
def test_what_must_write_says_in_one_line_that_it_cannot(kept: Path, arguments: tuple[str, ...]) -> None:
    if arguments[-1] == "only the top":
        arguments = arguments[:-1]
        for path in (kept / "crawl").rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
    status, _, err = as_anybody(kept, *arguments)
    assert status == 2
    assert err.startswith("gossamer: ")
    assert err.count("\n") == 1
    assert "Permission denied" in err or "written" in err
    assert "; " in err, "it says what to do"


def test_a_resume_that_may_not_write_says_so_at_once(kept: Path) -> None:
    status, out, err = as_anybody(kept, "resume", "crawl", "--log-format", "plain")
    assert (status, out) == (2, ""), "it does not wait, as it does for another process"
    assert err.startswith(
        f"gossamer: cannot write to crawl: Permission denied (crawl belongs to user {os.geteuid()}, and"
    )
    assert err.endswith("; see that you may write there, or work on a copy\n")


def test_a_new_crawl_where_another_user_may_write_says_whose_the_folder_is(kept: Path) -> None:
    status, out, err = as_anybody(kept, "crawl", "http://127.0.0.1:9/", "--allow-private", "-o", "new/one")
    assert (status, out) == (2, "")
    whose = f"{kept} belongs to user {kept.stat().st_uid}, and this runs as user {os.geteuid()}"
    assert err == f"gossamer: cannot write to new/one: Permission denied ({whose}); name another with -o DIR\n"


@pytest.mark.parametrize("command", ["status", "resume"])
def test_a_store_with_files_of_another_user_is_a_mistake_and_no_failing_disk(run: Real, command: str) -> None:
    """Service managers start again what failed, and not what was a mistake."""
    (run.directory / "crawl/state/store/CURRENT").chmod(0)
    status, _, err = as_anybody(run.directory, command, "crawl")
    remedy = f"to give them back: chown -R {os.geteuid()} crawl"
    assert (status, err) == (2, f"gossamer: crawl/state/store has files of another user; {remedy}\n")


def test_root_that_looks_leaves_no_file_that_the_owner_may_not_read(run: Real) -> None:
    owner = 12_345
    paths = [run.directory / "crawl", *(run.directory / "crawl").rglob("*")]
    for path in paths:
        os.chown(path, owner, owner)
    for words in (["status"], ["why", "http://127.0.0.1/"], ["report"], ["search", "here"], ["verify"]):
        done = run(words[0], "crawl", *words[1:])
        assert (done[0], done[2]) == (0, ""), words
    assert {path.stat().st_uid for path in (run.directory / "crawl").rglob("*")} == {owner}


@pytest.mark.parametrize(
    "words",
    [
        ["resume"],
        ["search", "--build"],
        ["forget", "http://127.0.0.1/"],
        ["check"],
        ["rank"],
        ["scale", "--workers", "2"],
        ["release", "127.0.0.1"],
        ["verify", "--accept-loss"],
    ],
    ids=lambda words: words[0],
)
def test_root_that_writes_is_refused_in_a_crawl_of_another_user(run: Real, words: list[str]) -> None:
    """What it would make with a umask of 077, its owner could not read."""
    owner = 12_345
    for path in (run.directory / "crawl", *(run.directory / "crawl").rglob("*")):
        os.chown(path, owner, owner)
    status, out, err = run(words[0], "crawl", *words[1:])
    why = f"crawl belongs to user {owner}, and files of root would shut out its owner; run this as that user"
    assert (status, out, err) == (2, "", f"gossamer: {why}\n")
    assert {path.stat().st_uid for path in (run.directory / "crawl").rglob("*")} == {owner}


def test_root_goes_on_with_its_own_crawl_in_the_directory_of_another_user(run: Real) -> None:
    """So it is with a directory that a container has of the machine."""
    os.chown(run.directory / "crawl", 12_345, 12_345)
    assert run("resume", "crawl", "--quiet")[0] == 0


def test_output_that_finds_no_room_says_what_to_do() -> None:
    line = "cannot write the output: No space left on device; make room there, or write it elsewhere"
    assert refusal_of(OSError(errno.ENOSPC, "No space left on device")) == line
    assert refusal_of(OSError(errno.ENOSPC, "cannot open the store x: full")) == "cannot open the store x: full"


def test_a_current_directory_that_was_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError) as error:
        Path.cwd()
    assert refusal_of(error.value) == "the current directory was removed; change to one that exists"


def test_a_dash_is_standard_output(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kept)
    before = sorted(kept.iterdir())
    for words, begins in (
        (("report", "crawl", "--html", "-"), "<!doctype html>"),
        (("cookies", "crawl", "-o", "-"), "# Netscape HTTP Cookie File"),
        (("init", "-"), "#"),
    ):
        status, out, err = commands.run(*words)
        assert (status, err, out.startswith(begins)) == (0, "", True)
        assert "The report is in" not in out
    assert sorted(kept.iterdir()) == before


def test_a_file_to_write_may_be_a_pipe_or_a_link(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "text", "-o")
    assert os.read(reader, 9) == b"text"
    os.close(reader)
    assert pipe.is_fifo(), "it is not replaced by a file"
    link.symlink_to(target)
    for text in ("one", "two"):
        write_file(link, text, "-o")
        assert (link.is_symlink(), target.read_text()) == (True, text)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errno.EACCES, "x: Permission denied; run this as its owner, or have them permit it"),
        (errno.EROFS, "cannot write to x: Read-only file system; see that you may write there, or work on a copy"),
        (errno.EIO, "x: Input/output error"),
        (
            errno.ELOOP,
            "x: Too many levels of symbolic links; a link in it leads to itself: put the directory in its place",
        ),
    ],
)
def test_what_the_system_refuses_says_what_to_do(error: int, says: str) -> None:
    assert refusal_of(OSError(error, os.strerror(error), "x")) == says


@pytest.mark.heavy
def test_a_crawl_with_secrets_of_another_user_is_reported_as_far_as_it_may_be_read(run: Real, tmp_path: Path) -> None:
    (tmp_path / "crawl" / "crawl.toml").chmod(0)
    closed = "you may not read crawl/crawl.toml; run this as its owner, or have them permit it"
    for command in ("status", "verify"):
        assert as_anybody(tmp_path, command, "crawl") == (2, "", f"gossamer: {closed}\n")
    status, out, err = as_anybody(tmp_path, "report", "crawl")
    assert (status, err) == (0, "")
    assert "1 page fetched" in out
    assert "Damaged" not in out
    assert out.endswith(f"Warning: figures that only the crawl's state has are left out: {closed}\n")
    (tmp_path / "crawl").chmod(0)
    status, out, err = as_anybody(tmp_path, "report", "crawl")
    (tmp_path / "crawl").chmod(0o700)
    assert (status, err) == (2, "gossamer: you may not read crawl; run this as its owner, or have them permit it\n")


def test_a_lock_that_is_read_is_a_lock(kept: Path) -> None:
    path = kept / "crawl/state/lock"
    held = DirectoryLock(path, reading=True)
    assert held.acquire(0.0)
    other = DirectoryLock(path, reading=True)
    assert not other.acquire(0.0)
    held.release()
    assert other.acquire(0.0)
    other.release()


@pytest.mark.heavy
def test_a_crawl_whose_process_does_not_answer_yet_is_starting(
    run: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several shards need longer for that than a command waits."""
    monkeypatch.setattr(control, "BEGIN_S_MAX", 0.0)
    held = DirectoryLock(tmp_path / "crawl/state/lock")
    assert held.acquire(0.0)
    try:
        status, out, err = run("status", "crawl")
        assert (status, err) == (0, "")
        assert "starting: its process, which does not answer yet" in out
        assert run("report", "crawl")[0] == 0
        # Several shards have saved what they wait for, and the figures of before.
        saved = {"state": "starting", "waiting_for": "the Ray cluster at a:1", "pages": 7_654, "pages_s": 3.0}
        (tmp_path / "crawl/state/standing.json").write_text(json.dumps(saved))
        out = run("status", "crawl")[1]
        assert "starting: the Ray cluster at a:1" in out
        assert "7,654" in out
        (tmp_path / "crawl/state/standing.json").unlink()
    finally:
        held.release()
    assert "finished" in run("status", "crawl")[1]


@pytest.mark.promise("Crash safety", "A crawl or shard that lost its state never starts again over its files.")
@pytest.mark.parametrize(
    "arguments", [("resume", "crawl", "--quiet"), ("status", "crawl"), ("why", "crawl", "file:///x")]
)
@pytest.mark.heavy
def test_a_crawl_that_lost_its_state_is_not_begun_anew_over_what_it_has(
    run: Real, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    shutil.rmtree(tmp_path / "crawl/state")
    before = {
        path: path.read_bytes() for folder in ("warc", "pages") for path in (tmp_path / "crawl" / folder).iterdir()
    }
    assert len(before) == 2
    status, _, err = run(*arguments)
    assert status == 2
    assert "holds what was crawled but not its state" in err
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in before} == before
    assert run("report", "crawl")[0] == 0


@pytest.mark.promise("Files and exports", "No file that was cut short is exported or indexed as if it were whole.")
@pytest.mark.parametrize(("folder", "to"), [("warc", "markdown"), ("pages", "csv")])
def test_files_that_end_early_are_not_exported_as_if_they_were_whole(
    run: Real, tmp_path: Path, folder: str, to: str
) -> None:
    [file] = (tmp_path / "crawl" / folder).iterdir()
    os.truncate(file, file.stat().st_size // 2)
    status, _, err = run("export", "crawl", "--to", to, "-o", "made", "--quiet")
    assert status == 1
    assert f"crawl/{folder}/{file.name} has " in err
    assert "were written" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "made").exists()


def test_a_damaged_page_of_a_table_is_reported_like_one_that_is_cut(run: Real, tmp_path: Path) -> None:
    [file] = (tmp_path / "crawl/pages").iterdir()
    data = file.read_bytes()
    file.write_bytes(data[:4] + bytes(200) + data[204:])
    status, _, err = run("export", "crawl", "--to", "csv", "-o", "made", "--quiet")
    assert status == 1
    assert err.startswith(f"gossamer: crawl/pages/{file.name} cannot be read: it was damaged")
    assert err.count("\n") == 1
    assert not (tmp_path / "made").exists()


@pytest.mark.heavy
@pytest.mark.parametrize(
    "damage",
    ["cut", "a bit of the footer", *(pytest.param(one, marks=pytest.mark.long) for one in ("other bytes", "empty"))],
)
def test_a_damaged_table_is_named_by_resume_and_nothing_is_lost(run: Real, tmp_path: Path, damage: str) -> None:
    crawl = tmp_path / "crawl"
    [table] = (crawl / "pages").iterdir()
    index, sound = (crawl / "index.cdxj").read_text(), table.read_bytes()
    footer = sound[:-100] + bytes([sound[-100] ^ 4]) + sound[-99:]
    bytes_of = {"cut": sound[:-300], "a bit of the footer": footer, "other bytes": bytes(len(sound)), "empty": b""}
    table.write_bytes(bytes_of[damage])
    kept = {path: path.read_bytes() for folder in ("warc", "links", "epochs") for path in crawl.glob(f"{folder}/*")}
    status, _, err = run("resume", "crawl", "--quiet")
    assert status == 1
    said = {"cut": "has ", "empty": "has 0 bytes"}.get(damage, "does not hold what was written into it")
    assert err.startswith(f"gossamer: crawl/pages/{table.name} {said}")
    assert "put a sound copy in its place" in err
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in kept} == kept
    assert (crawl / "index.cdxj").read_text() == index
    table.rename(tmp_path / "aside")
    status, _, err = run("resume", "crawl", "--quiet")
    assert status == 1
    assert err.startswith(f"gossamer: crawl/pages/{table.name} is missing; affected: rows of `pages`")
    assert (crawl / "index.cdxj").read_text() == index, "no smaller index takes the place of a larger one"
    table.write_bytes(sound)
    assert run("resume", "crawl", "--quiet") == (0, "", "")
    assert (crawl / "index.cdxj").read_text() == index


def test_a_directory_whose_name_is_no_text_is_one_line(run: Real, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (tmp_path / "crawl").rename(odd / "crawl")
    status, out, err = as_anybody(odd, "export", "crawl", "--to", "csv", "-o", "pages.csv")
    assert (status, out) == (2, "")
    assert err.endswith(" is no text in UTF-8; rename the directory, or work in another\n")
    assert err.count("\n") == 1


PAGES = "pages-000-0001-000001.parquet"
STRAYS = (
    "._{}", "{} (1)", "{} (conflicted copy)", "Copy of {}", "{} - Copy", "{} copy", "{} 2", "{}-LAPTOP-7", "{}_1",
    "{}~", "{}.sync-conflict-20260101-120000-ABCDEFG",
)  # fmt: skip
"""Names that macOS, file managers and sync programs give to files beside the true ones, before the ending."""


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "crawl"], ["check", "crawl"], ["export", "crawl", "--to", "parquet", "-o", "made"],
        ["export", "crawl", "--to", "wacz", "-o", "made"], ["changes", "crawl"], ["verify", "crawl"],
        ["segment", "build", "crawl", "-o", "made"], ["import", "crawl/warc", "-o", "made"],
        ["forget", "crawl", "page[.]html", "--all"],
    ],
)  # fmt: skip
def test_what_other_programs_put_beside_tables_is_not_read(run: Real, tmp_path: Path, arguments: list[str]) -> None:
    shutil.copytree(tmp_path / "crawl", tmp_path / "plain" / "crawl")
    copied = (".parquet",) if arguments[0] == "import" else (".parquet", ".gz")  # An import reads what it is given.
    for path in [path for path in (tmp_path / "crawl").glob("*/*.*") if path.suffix in (".parquet", ".gz")]:
        stem, _, ending = path.name.partition(".")
        path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7 of macOS")
        for stray in STRAYS[1:] if path.suffix in copied else ():
            shutil.copy(path, path.with_name(f"{stray.format(stem)}.{ending}"))
    quantity = re.compile(r"[\d.,]+ (?:k?B|m?s)\b|crawl/\w+/.* (?:is removed|was not touched).*\n")
    answers = []
    for runs in (Real(tmp_path / "plain"), run):
        status, out, err = runs(*arguments)
        made = runs.directory / "made"
        members = zipfile.ZipFile(made).namelist() if zipfile.is_zipfile(made) else []
        rows = [pq.read_metadata(path).num_rows for path in sorted(made.glob("*/*.parquet"))]
        answers.append((status, quantity.sub("", out.partition("\nCost")[0]), quantity.sub("", err), members, rows))
        if arguments[0] == "forget":
            assert "1 page with 1 row" in out, err
            assert [path.name for path in (runs.directory / "crawl/pages").glob("*.parquet")] == [PAGES]
            assert out.count("was not touched") == (0 if runs is not run else len(STRAYS))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_damaged_store_is_one_damage_by_its_own_name(
    run: Real, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    for path in (tmp_path / "crawl/state/store").glob("*.sst"):
        damage(path)
    for deep in ((), ("--deep",)):
        status, out, _ = run("verify", "crawl", *deep)
        assert status == 1
        assert out.startswith("crawl/state/store cannot be read (Corruption: ")
        assert "gossamer-store-" not in out
        assert "crawl is damaged: 1 damage (" in out
    status, out, _ = run("restore", "crawl", "-o", "again")
    assert (status, "again is damaged: 1 damage (" in out) == (1, True)
    assert "gossamer resume" not in out


def test_an_import_into_a_file_is_refused(run: Real, tmp_path: Path) -> None:
    (tmp_path / "made").write_text("mine")
    assert run("import", "crawl/warc", "-o", "made") == (
        2, "", "gossamer: cannot write to made: File exists; name another with -o DIR\n"
    )  # fmt: skip
    assert (tmp_path / "made").read_text() == "mine"


def test_robots_of_a_crawl_without_its_warc_files_names_them(run: Real, tmp_path: Path) -> None:
    [warc] = (tmp_path / "crawl/warc").iterdir()
    warc.unlink()
    status, _, err = run("robots", "crawl", "example.org")
    assert status == 1
    assert err.startswith(f"gossamer: crawl/warc/{warc.name} is missing")
