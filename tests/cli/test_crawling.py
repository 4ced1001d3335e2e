"""Crawling: whole runs of the commands: ends, signals, deaths, restarts, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Gossamer, until

LOCAL = "--allow-private"


def seed(path: str) -> str:
    return f"http://127.0.0.1/{path}"


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def child_of(run: Gossamer) -> int:
    file = run.directory / "crawl/state/pid"
    until(lambda: file.exists() and file.read_text())
    return int(file.read_text())


def test_a_crawl_runs_to_its_end_and_says_where_it_lies(run: Gossamer) -> None:
    status, out, err = run("crawl", seed("pages/5"), LOCAL, "-o", "here/it/is")
    assert (status, err) == (0, "")
    assert "5 pages" in out
    assert "The crawl finished" in out
    assert "Output: here/it/is (" in out
    assert (run.directory / "here/it/is/crawl.toml").exists()


def test_a_limit_is_an_end_like_any_other_and_is_named(run: Gossamer) -> None:
    status, out, _ = run("crawl", seed("limit"), LOCAL, "--max-pages", "3")
    assert status == 0
    assert "The crawl ended at its limit of 3 pages: " in out
    assert "of 3 (" in out


@pytest.mark.promise("Operation", "Text from the web never reaches a terminal unescaped.")
def test_what_strangers_wrote_cannot_move_the_cursor(run: Gossamer) -> None:
    _, out, _ = run("crawl", seed("pages/1"), LOCAL)
    assert r"note \x1b[2J \u202e end" in out
    assert "\x1b" not in out


def test_json_lines_are_json_and_nothing_else(run: Gossamer) -> None:
    status, out, err = run("crawl", seed("pages/5"), LOCAL, "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert events[-1]["event"] == "end"
    assert events[-1]["ended"] == "finished"
    assert events[-1]["pages"] == 5
    assert {event["event"] for event in events} == {"status", "note", "end"}


def test_quiet_says_nothing(run: Gossamer) -> None:
    assert run("crawl", seed("pages/5"), LOCAL, "--quiet") == (0, "", "")


def test_a_directory_that_holds_a_crawl_is_refused(run: Gossamer) -> None:
    run("crawl", seed("pages/1"), LOCAL)
    before = (run.directory / "crawl/crawl.toml").read_bytes()
    assert "gossamer resume crawl" in run.mistake("crawl", seed("pages/1"), LOCAL)
    assert (run.directory / "crawl/crawl.toml").read_bytes() == before


def test_what_is_shown_of_a_crawl_that_goes_on_is_up_to_who_looks(run: Gossamer) -> None:
    words = ("crawl", seed("pages/2"), LOCAL, "--or-resume")
    assert "2 pages" in run(*words, "--log-format", "plain")[1]
    assert run(*words, "--quiet", "--set", "crawl.concurrency=3") == (0, "", "")
    assert "crawl.concurrency                 3" not in run("config", "show", "crawl")[1], "it goes on as it began"


def test_a_repeated_command_takes_a_higher_limit_and_a_seed_without_its_slash(run: Gossamer) -> None:
    words = ("crawl", "http://127.0.0.1/", LOCAL, "--or-resume", "--log-format", "plain")
    assert run(*words, "--max-pages", "2")[0] == 0
    words = ("crawl", "http://127.0.0.1", *words[2:])
    assert run(*words, "--max-pages", "50")[0] == 0
    shown = run("config", "show", "crawl")[1]
    assert "limits.max_pages                  50" in shown
    other = run.mistake("crawl", "http://127.0.0.1/other", *words[2:])
    assert "crawl holds a crawl of other seeds or segments (http://127.0.0.1/); -o DIR starts another" in other
    says = run.mistake(*words, "--mode", "continuous")
    assert "crawl holds a batch crawl: gossamer resume crawl continues it, -o DIR starts another" in says


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ("depth_max=1", "depth_max=2", "depth_max"),
        ("depth_max=2", "depth_max=1", ""),
        ("exclude=['pages/3','x']", "exclude=['x']", "exclude"),
        ("exclude=['x']", "exclude=['x','y']", ""),
        ("include=['2']", "include=['2','3']", "include"),
        ("include=['2']", "include=[]", "include"),
        ("include=['2','3']", "include=['2']", ""),
        ("include=[]", "include=['2']", ""),
    ],
)
def test_resume_says_that_links_stay_left_out_that_a_filter_rejected(
    run: Gossamer, before: str, after: str, key: str
) -> None:
    run("crawl", seed("pages/2"), LOCAL, "--set", f"scope.{before}", "--quiet")
    said = run("resume", "crawl", "--set", f"scope.{after}", "--quiet")[2]
    assert said.startswith(f"gossamer: scope.{key}: links of fetched pages that it rejected") if key else said == ""


def test_resume_keeps_the_configuration_and_takes_changes(run: Gossamer) -> None:
    run("crawl", seed("pages/2"), LOCAL, "--max-depth", "7", "--quiet")
    status, out, _ = run("resume", "crawl", "--max-pages", "50", "--set", "progress.style=plain")
    assert status == 0
    assert "4 of 50" in out
    _, shown, _ = run("config", "show", "crawl")
    origins = {line.split()[0]: line.split(maxsplit=2)[1:] for line in shown.splitlines()}
    assert origins["scope.depth_max"] == ["7", "--max-depth"]
    assert origins["limits.max_pages"] == ["50", "--max-pages"]
    assert origins["progress.style"] == ['"plain"', "--set"]
    assert origins["resolve.allow_private"] == ["true", "--allow-private"]
    assert origins["crawl.concurrency"] == ["256", "default"]


def test_seeds_come_from_arguments_files_and_standard_input(run: Gossamer) -> None:
    (run.directory / "list").write_text(f"# mine\n\n{seed('a#b')} # the second\n")
    assert run("crawl", seed("pages/1"), LOCAL, "--seeds", "list", "-o", "one")[0] == 0
    assert run("crawl", "--seeds", "-", LOCAL, seed("pages/1"), "-o", "two", text=f"{seed('x')}\n")[0] == 0
    assert (run.directory / "two/seeds.txt").read_text() == f"{seed('x')}\n"


@pytest.mark.parametrize("form", ["--seeds", "--set=seeds.file"])
def test_seeds_come_through_a_pipe_that_the_shell_names(run: Gossamer, form: str) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours), os.fdopen(theirs, "w") as typed:
        typed.write(f"{seed('y')}\n")
        typed.close()
        named = f"/dev/fd/{ours}"
        words = (form, named) if form == "--seeds" else (f"{form}={named}",)
        process = run.start("crawl", *words, seed("pages/1"), LOCAL, "-o", "one", pass_fds=(ours,))
        _, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, "")
    assert (run.directory / "one/seeds.txt").read_text() == f"{seed('y')}\n"


def test_a_seed_that_came_on_standard_input_is_not_looked_for_in_a_file(run: Gossamer) -> None:
    status, _, err = run("crawl", "--seeds", "-", LOCAL, text="\n\nexample.org\n")
    assert status == 2
    assert err.startswith("gossamer: standard input line 3: the seed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_gently(run: Gossamer, number: signal.Signals) -> None:
    process = run.start("crawl", seed("forever"), LOCAL)
    child_of(run)
    process.send_signal(number)
    out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (130, "")
    assert "finishing what is in flight" in out
    assert "stopped, everything saved" in out
    assert (run.directory / "crawl/state/asked").read_text() == "gently"


def test_two_signals_stop_at_once(run: Gossamer) -> None:
    process = run.start("crawl", seed("deaf"), LOCAL, "--quiet")
    child_of(run)
    process.send_signal(signal.SIGINT)
    until((run.directory / "crawl/state/asked").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert process.returncode == 130
    assert (run.directory / "crawl/state/asked").read_text() == "gently now"


def test_stop_is_an_interruption_too(run: Gossamer) -> None:
    process = run.start("crawl", seed("forever"), LOCAL, "--quiet")
    child_of(run)
    assert run("stop", "crawl")[0] == 0
    process.communicate(timeout=100)
    assert process.returncode == 130


@pytest.mark.heavy
@pytest.mark.promise(
    "Crash safety", "A page that kills the process is quarantined, and the crawl restarts from its last commit."
)
@pytest.mark.parametrize(("number", "accused"), [("SIGSEGV", True), ("SIGABRT", True), ("SIGKILL", False)])
def test_a_child_that_dies_is_started_again(run: Gossamer, number: str, accused: bool) -> None:
    status, out, err = run("crawl", seed(f"dies/{number}"), LOCAL)
    assert status == 0
    hint = " (the memory of a container or of the machine may be used up)" if number == "SIGKILL" else ""
    assert err == f"gossamer: the crawl's process died of {number}{hint}; it continues from its last commit\n"
    assert "4 pages" in out  # One before it died, three after: it continued.
    assert (run.directory / "crawl/state/accused").exists() == accused


def test_a_child_that_hangs_in_a_page_is_ended(run: Gossamer) -> None:
    status, _, err = run("crawl", seed("hangs"), LOCAL, "--set", "crawl.process_s_max=0.2")
    assert status == 0
    assert "hung in a page" in err
    assert (run.directory / "crawl/state/accused").exists()


@pytest.mark.promise("Crash safety", "A crawl that crashes again and again without a commit ends.")
@pytest.mark.heavy
def test_a_child_that_keeps_dying_ends_the_crawl(run: Gossamer) -> None:
    status, _, err = run("crawl", seed("keepsdying"), LOCAL, "--quiet")
    assert status == 1
    assert "without progress; it has committed nothing" in err.splitlines()[-1]


def test_our_own_mistake_is_one_line_and_a_log_entry(run: Gossamer) -> None:
    status, _, err = run("crawl", seed("raises"), LOCAL, "--quiet")
    assert status == 1
    assert err.count("\n") == 1
    assert "ZeroDivisionError: no such" in err
    assert "gossamer resume crawl" in err
    entry = json.loads((run.directory / "crawl/logs/critical.log").read_text())
    assert "Traceback" in entry["traceback"]


def test_what_the_crawl_refuses_is_one_line(run: Gossamer) -> None:
    status, _, err = run("crawl", seed("refuses"), LOCAL, "--quiet")
    assert (status, err) == (2, "gossamer: the disk is full; make room\n")


@pytest.mark.promise("Crash safety", "No crawl process outlives its supervisor.")
def test_no_crawl_outlives_its_supervisor(run: Gossamer) -> None:
    process = run.start("crawl", seed("forever"), LOCAL, "--quiet")
    child = child_of(run)
    assert alive(child)
    assert os.getpgid(child) == child
    process.kill()
    until(lambda: not alive(child))


def test_a_reader_that_goes_away_does_not_end_the_crawl(run: Gossamer) -> None:
    process = run.start("crawl", seed("forever"), LOCAL, "--set", "progress.interval_s=0.05")
    child = child_of(run)
    assert process.stdout is not None
    process.stdout.close()
    time.sleep(0.3)
    assert alive(child)
    process.send_signal(signal.SIGINT)
    assert process.wait(100) == 130


def test_on_a_terminal_there_is_a_live_view_and_the_cursor_comes_back(run: Gossamer) -> None:
    ours, theirs = pty.openpty()
    process = run.start("crawl", seed("forever"), LOCAL, "--max-pages", "10", stdout=theirs)
    os.close(theirs)
    child_of(run)
    shown = b""
    while b"hosts" not in shown:
        shown += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # Everybody has closed the other end.
            break
    assert process.wait(100) == 130
    os.close(ours)
    text = shown.decode()
    for word in ("pages", "rate", "queued", "hosts", "3 active", "timeout 2", "1.2 MB", "0 of 10"):
        assert word in text, word
    assert r"note \x1b[2J" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_on_a_terminal_that_cannot_redraw_there_are_plain_lines(run: Gossamer) -> None:
    run.environment["TERM"] = "dumb"
    ours, theirs = pty.openpty()
    process = run.start("crawl", seed("pages/5"), LOCAL, stdout=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # Everybody has closed the other end.
            break
    os.close(ours)
    assert process.wait(100) == 0
    assert b"\x1b" not in shown
    assert b"5 pages" in shown


@pytest.mark.promise(
    "Operation", "A configuration error is one line that names the place and the remedy, and starts nothing."
)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["crawl"], "no seeds"),
        (["crawl", "example.org"], "did you mean https://example.org/ ?"),
        (["crawl", "https://"], "is not an address"),
        (["crawl", "mailto://x"], "those visited are http, https"),
        (["crawl", "http://127.0.0.1/"], "add --allow-private"),
        (["crawl", "http://[::1]/"], "add --allow-private"),
        (["crawl", "https://example.org/"], "--contact"),
        (["crawl", "https://example.org/", "--contact", "me"], "a mail address or a URL"),
        (["crawl", "--seeds", "absent"], "cannot read seeds"),
        (["crawl", "--seeds", "bad", LOCAL], "bad line 2: the seed 'nonsense' has no scheme"),
        (["crawl", "--hosts", "absent", "http://a.test/"], "cannot read hosts"),
        (["crawl", "-c", "absent.toml"], "cannot read"),
        (["crawl", "-c", "bad.toml"], "bad.toml line 2: no key limits.max_page; did you mean limits.max_pages?"),
        (["crawl", "--max-pages", "x"], '--max-pages "x": expected a whole number'),
        (["crawl", "--max-page", "3"], "did you mean --max-pages?"),
        (["crawl", "--scope", "hots"], "'prefix', 'host', 'domain' or 'any'"),
        (["crawl", "--set", "limits.maxpages=3"], "did you mean limits.max_pages?"),
        (["crawl", "--contact"], "requires an argument"),
        (["crawl", seed("x"), LOCAL, "-o", "bad/dir"], "cannot write to bad/dir"),
        (["crwl"], "did you mean crawl?"),
        (["config", "chek"], "did you mean check?"),
        (["resume"], "missing argument 'DIR'"),
        (["resume", "absent"], "no directory absent"),
        (["resume", "."], "holds no crawl"),
        (["resume", "absent", "--scope", "any"], "no option --scope"),
        (["status", "absent"], "no directory absent"),
        (["why", ".", "http://x/"], "holds no crawl"),
        (["stop", "absent"], "no directory absent"),
    ],
)
def test_every_mistake_is_one_line_that_says_how_to_mend_it(run: Gossamer, arguments: list[str], says: str) -> None:
    (run.directory / "bad").write_text(f"{seed('x')}\nnonsense\n")
    (run.directory / "bad.toml").write_text("[limits]\nmax_page = 3\n")
    assert says in run.mistake(*arguments)
    assert not (run.directory / "crawl").exists()


def test_names_of_the_hosts_file_are_private(run: Gossamer) -> None:
    (run.directory / "names").write_text("127.0.0.5 a.test b.test # mine\n93.184.215.14 c.test\n")
    assert run("crawl", "http://B.test/pages/1", LOCAL, "--hosts", "names")[0] == 0
    assert "add --allow-private" in run.mistake("crawl", "http://a.test/", "--hosts", "names", "-o", "x")
    assert "--contact" in run.mistake("crawl", "http://c.test/", LOCAL, "--hosts", "names", "-o", "x")


def test_with_a_contact_the_public_web_may_be_crawled(run: Gossamer) -> None:
    assert run("crawl", "https://example.org/pages/1", "--contact", "me@example.org", "--quiet") == (0, "", "")


def test_files_in_the_current_directory_are_not_imported(run: Gossamer) -> None:
    (run.directory / "ctypes.py").write_text("raise SystemExit('imported')")
    process = subprocess.run(
        [sys.executable, "-P", "-m", "gossamer", "crawl", seed("pages/1"), LOCAL, "--quiet"],
        cwd=run.directory,
        env=run.environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.heavy
@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize(("path", "status"), [("pages/5", 0), ("raises", 1), ("refuses", 2)])
def test_closed_streams_change_no_exit_status(run: Gossamer, closed: tuple[int, ...], path: str, status: int) -> None:
    code = """
import os, sys
for number in map(int, sys.argv[1].split()):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "gossamer", *sys.argv[2:]])
"""
    words = ["crawl", seed(path), LOCAL, "--set", "progress.interval_s=0.01"]
    ended = subprocess.run(
        [sys.executable, "-c", code, " ".join(map(str, closed)), *words],
        cwd=run.directory, env=run.environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, "Traceback" in ended.stderr) == (status, False)


@pytest.mark.parametrize("words", [["--json"], ["--log-format", "plain"], ["--set", "progress.style=live"]])
def test_readers_that_go_away_change_no_exit_status(run: Gossamer, words: list[str]) -> None:
    process = run.start("crawl", seed("pages/200"), LOCAL, "--set", "progress.interval_s=0.01", *words)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 0


@pytest.mark.parametrize("words", [["config", "schema"], ["--help"], ["demo"]], ids=" ".join)
def test_a_command_whose_reader_goes_away_is_no_failure(run: Gossamer, words: list[str]) -> None:
    process = run.start(*words)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
