"""Help, completion, and what users of other crawlers type."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import typer
from typer.core import TyperGroup

from gossamer.cli import main
from gossamer.cli.arguments import CommandGroup
from gossamer.cli.control import pairs_text
from gossamer.cli.main import status_of_command, tree
from gossamer.cli.output import Exit
from gossamer.config.flags import FLAGS
from gossamer.config.sections import keys, sections
from gossamer.config.synonyms import equivalent_of, synonyms
from gossamer.options import keys_of
from tests.cli.conftest import Gossamer

REPOSITORY = Path(__file__).parents[2]


def every_command() -> list[list[str]]:
    top = typer.main.get_command(tree())
    assert isinstance(top, TyperGroup)
    found = []
    for name, command in top.commands.items():
        inner = list(command.commands) if isinstance(command, TyperGroup) else []
        found += [[name], *([name, under] for under in inner)]
    return found


def shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert status_of_command(words) == 0
    return capsys.readouterr().out


@pytest.mark.heavy
def test_help_and_version_in_every_spelling(run: Gossamer) -> None:
    help_text = run("--help")[1]
    assert run("-h")[1] == run("help")[1] == help_text
    assert run("crawl", "-h")[1] == run("help", "crawl")[1] == run("crawl", "--help")[1]
    assert run("help", "segment", "build")[1] == run("segment", "build", "--help")[1]
    assert run("-V")[1] == run("--version")[1]
    assert "no command 'nonsense'" in run.mistake("help", "nonsense")


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_help_is_plain(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown([*words, "--help"], capsys)
    assert not re.search(r"<\w+(\[\w+\])?>", text), "types of the code are no words for people"
    assert "with ." not in text, "a name in brackets was taken for markup"
    assert "..." not in text.partition("Options:")[0].partition("\n")[2], "a help line is cut short"
    summary = text.partition("\n\n")[2].split()[0]
    assert summary.isalpha(), summary
    assert not summary.endswith("ing"), f"{summary}: a help line begins with an imperative"


def test_brackets_in_help_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert "[console]" in shown(["serve", "--help"], capsys)


def test_commands_are_listed_without_being_cut(capsys: pytest.CaptureFixture[str]) -> None:
    listed = shown(["--help"], capsys).partition("Options:")[2].partition("Exit status")[0]
    assert "Start a crawl in a new directory." in listed
    assert "..." not in listed


def test_commands_are_listed_by_task_as_in_the_reference() -> None:
    group = typer.main.get_command(tree([]))
    assert isinstance(group, CommandGroup)
    listed = {task: list(names) for task, names in group.tasks.items()}
    assert sorted(name for names in listed.values() for name in names) == sorted(group.commands)
    table = (REPOSITORY / "docs/reference/commands.md").read_text("utf-8").partition("| task |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z ]+) \|(.*)\|$", table, re.MULTILINE)
    assert listed == {task.capitalize(): list(dict.fromkeys(re.findall(r"`([a-z]+)", names))) for task, names in rows}


def test_the_list_of_commands_says_what_their_own_help_says() -> None:
    """The list is made without them: it would cost the imports of all."""
    listed, whole = (typer.main.get_command(tree(words)) for words in ([], None))
    assert isinstance(listed, TyperGroup)
    assert isinstance(whole, TyperGroup)
    lines = [
        sorted((name, command.get_short_help_str(200)) for name, command in group.commands.items())
        for group in (listed, whole)
    ]
    assert lines[0] == lines[1]


def test_a_version_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(["--version", "pause"], capsys) == shown(["-V"], capsys)
    assert status_of_command(["--", "status", "nowhere"]) == Exit.REFUSED
    assert "nowhere" in capsys.readouterr().err


def complete(words: list[str]) -> list[str]:
    """Return what bash would offer after these words, by the script that `completion` prints."""
    script = subprocess.run(
        [sys.executable, "-m", "gossamer", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    program = f'gossamer() {{ "{sys.executable}" -m gossamer "$@"; }}; export -f gossamer\n'
    call = "COMP_WORDS=(" + " ".join(words) + f"); COMP_CWORD={len(words) - 1}\n"
    # The script calls its first argument as a program: a file that starts this interpreter.
    runner = f'printf \'#!/bin/sh\\nexec "{sys.executable}" -m gossamer "$@"\\n\' > "$HOME/g"; chmod +x "$HOME/g"\n'
    asked = runner + program + script + "\n" + call + '_gossamer_completion "$HOME/g"; printf "%s\\n" "${COMPREPLY[@]}"'
    ran = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.heavy
@pytest.mark.long
def test_bash_completes_commands_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    assert complete(["gossamer", "checkp"]) == ["checkpoint"]
    assert complete(["gossamer", "crawl", "--max"]) == ["--max-pages", "--max-depth", "--max-time", "--max-bytes"]
    assert complete(["gossamer", "segment", "b"]) == ["build"]
    assert complete(["gossamer", "crawl", "--scope", "''"]) == ["prefix", "host", "domain", "any"]
    assert complete(["gossamer", "crawl", "--render", "a"]) == ["auto", "always"]
    assert complete(["gossamer", "resume", "crawl", "--politeness", "g"]) == ["gentle"]
    assert complete(["gossamer", "export", "crawl", "--to", "w"]) == ["wacz"]
    assert complete(["gossamer", "completion", "z"]) == ["zsh"]
    assert complete(["gossamer", "crawl", "--set", "revisit.interval_s_m"]) == [
        "revisit.interval_s_mean=", "revisit.interval_s_min=", "revisit.interval_s_max=",
    ]  # fmt: skip
    assert complete(["gossamer", "crawl", "--seeds", "x"]) == [], "the shell offers files"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "_GOSSAMER_COMPLETE" in shown(["completion", shell], capsys)


def test_an_unknown_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_command(["completion", "ksh"]) == Exit.REFUSED
    assert capsys.readouterr().err == "gossamer: completion ksh: expected bash, zsh or fish\n"


ATTEMPTS = {
    # wget
    "--wait=2": "--delay S", "--random-wait": "--delay S", "--limit-rate=20k": "no limit on bytes a second",
    "--tries=3": "frontier.attempts_max", "-t": "frontier.attempts_max", "--level=2": "--max-depth N",
    "-l": "--max-depth N", "--recursive": "always follows links", "-r": "always follows links",
    "--mirror": "gossamer mirror", "--no-parent": "--scope SCOPE", "-np": "--scope prefix",
    "--span-hosts": "--scope SCOPE",
    "-H": "--scope SCOPE", "--page-requisites": "--embeds", "-p": "--embeds", "--reject=x": "--exclude RE",
    "--reject-regex=x": "--exclude RE", "--accept-regex=x": "--include RE", "-R": "--exclude RE",
    "--input-file=x": "--seeds FILE", "-i": "--seeds FILE", "--directory-prefix=x": "--output DIR",
    "-P": "--output DIR", "--user-agent=x": "operator.agent", "-U": "operator.agent",
    "--header=x": "fetch.headers=", "--load-cookies=x": "--cookies FILE", "--timeout=3": "fetch.request_s_max",
    "-T": "fetch.request_s_max", "--dns-timeout=3": "resolve.timeout_s", "--connect-timeout=3": "fetch.connect_s_max",
    "--quota=1m": "--max-bytes N", "-Q": "--max-bytes N", "--no-check-certificate": "fetch.verify_tls=false",
    "--ca-certificate=x": "fetch.ca_bundle", "--http-user=x": "{basic = {user", "--continue": "gossamer resume",
    "--no-clobber": "gossamer resume", "--background": "nohup", "--max-redirect=3": "scope.hops_max",
    "--exclude-domains=x": "scope.exclude_hosts", "--warc-file=x": "always writes WARC files",
    "--no-verbose": "--quiet",
    "-nv": "-nv is --quiet", "-e": "--no-robots", "--execute=robots=off": "--no-robots", "-D": "--scope domain",
    "--convert-links": "gossamer mirror URL", "--frobnicate": "", "--verbose": "logs.level=debug",
    # curl
    "--proxy=x": "fetch.proxy=", "-x": "fetch.proxy=", "--insecure": "fetch.verify_tls=false",
    "-k": "fetch.verify_tls=false", "--cookie=x": "--cookies", "-b": "request.",
    "--max-filesize=3": "fetch.body_bytes_max", "--retry=3": "frontier.attempts_max",
    "--retry-delay=3": "frontier.retry_s_first", "--location": "scope.hops_max", "--parallel": "--concurrency N",
    "-u": "{basic = {user", "--ipv4": "resolve.family=ipv4", "--http1.1": "fetch.http_versions",
    "--dns-servers=x": "--dns SERVER[:PORT]", "--cacert=x": "fetch.ca_bundle", "--silent": "--quiet",
    # Scrapy, crawlee, Nutch, Heritrix, HTTrack, browsertrix
    "--download-delay=1": "--delay S", "--concurrent-requests=3": "--concurrency N", "--depth-limit=3": "--max-depth N",
    "--depth=3": "--max-depth N", "--rate=3": "--delay S", "--threads=3": "--concurrency N", "-j": "--concurrency N",
    "--jobs=3": "--concurrency N", "--max-concurrency=3": "--concurrency", "--limit=3": "--max-pages N",
    "--max-requests-per-crawl=3": "--max-pages N", "--time-limit=3": "--max-time S",
    "--allowed-domains=x": "--scope SCOPE", "--robotstxt-obey": "--no-robots",
    "--ignore-robots": "--no-robots",
    "--log-level=x": "logs.level=debug", "-L": "logs.level=debug",
    "--nolog": "--quiet", "-s": "--set section.key=value",
    "--sitemap": "discovery.sitemaps=", "--language=x": "scope.languages=",
    "--output-dir=x": "--output", "--out=x": "--output", "--urls=x": "--seeds FILE", "--email=x": "--contact",
    "--format=x": "gossamer export", "--ram=x": "--memory SIZE", "--nodes=x": "--workers N",
    "--generateWACZ": "gossamer archive", "--combineWARC": "always writes WARC", "--scopeType=page": "--scope",
    "--maxRequestsPerCrawl=3": "--max-pages", "--pageExtraDelay=3": "--delay", "--behaviors=autoscroll": "--render",
    "--spider": "gossamer check", "-N": "--mode continuous", "--saveState": "resume",
    "--url=http://a.test/": "arguments", "--profile=p": "--cookies", "--post-data=a": "seeds.requests_file",
}  # fmt: skip
"""What people type, and what must be in the answer; empty: nothing is suggested."""


@pytest.mark.parametrize("typed", ATTEMPTS)
def test_an_option_of_another_program_is_answered_with_ours(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_command(["crawl", "http://127.0.0.1/", typed]) == Exit.REFUSED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    suggested = said.partition("for gossamer crawl")[2].partition("; gossamer crawl --help")[0]
    assert ATTEMPTS[typed] in suggested
    assert ATTEMPTS[typed] or not suggested


def test_a_command_that_sets_no_keys_suggests_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_command(["report", "crawl", "--proxy=x"]) == Exit.REFUSED
    assert capsys.readouterr().err == (
        "gossamer: no option --proxy for gossamer report; gossamer report --help lists them\n"
    )


GUESSES = {
    ("replay", "a.wacz"): "gossamer serve DIR", ("runspider", "a.py"): "did you mean crawl?", ("ls",): "--folder",
    ("dashboard",): "gossamer serve DIR", ("convert", "a"): "gossamer export DIR", ("links", "a"): "gossamer check URL",
    ("startproject", "a"): "gossamer init", ("info", "a"): "gossamer report DIR", ("rm", "a"): "gossamer forget DIR",
    ("serve", "a", "--host=0.0.0.0"): "use --address", ("serve", "--bind=::"): "use --address",
    ("export", "a", "--chunk-size=3"): "use --chunk-tokens", ("export", "a", "--filter=b"): "use --where",
    ("check", "a", "--format=json"): "--json-file", ("check", "a", "--check-extern"): "always checked",
    ("check", "a", "--accept=403"): "--baseline FILE", ("check", "a", "--include-fragments"): "always checked",
    ("crawl", "a.test", "--recrawl"): "gossamer watch URL", ("crawl", "a.test", "--since=b"): "--against DIR",
    ("crawl", "a.test", "--no-warc"): "archive.warc=false", ("checkpoint", "a", "-o", "b"): "state.checkpoint_uri",
    ("search", "a", "b", "-n", "3"): "use --limit N", ("search", "a", "-i", "b"): "ignore case",
    ("search", "a", "b", "--count"): "--json", ("search", "a", "b", "-news"): "before words to leave out write --",
    ("export", "a", "--unique"): "the view latest", ("export", "a", "--overwrite"): "delete it, or name another",
    ("export", "a", "--sql=b"): "use --where with a condition", ("export", "a", "-f", "csv"): "use --to FORMAT",
    ("resume", "a", "--recrawl"): "fetches no page again",
    ("resume", "a", "--force"): "fetches no page again", ("resume", "a", "--retry-failed"): "build DIR --retry 1",
    ("resume", "a", "--seeds=b"): "gossamer seed DIR URL", ("status", "a", "-f"): "--watch",
    ("status", "--all"): "--folder", ("du", "a"): "--json",
    ("stop", "a", "--force"): "--now", ("stop", "a", "-9"): "--now", ("pause", "--all"): "name each directory",
    ("report", "a", "-o", "b.html"): "use --html FILE", ("report", "a", "--csv=b"): "--to csv",
    ("fetch", "a.test", "-O", "b"): "gossamer fetch URL > FILE", ("watch", "a.test", "-n", "60"): "use --every S",
    ("rank", "a", "--top=3"): "use --limit N", ("sample", "a", "--limit=3"): "use --size N",
    ("verify", "a", "--fix"): "it changes nothing", ("forget", "a", "b", "--yes"): "it asks no questions",
    ("serve", "a", "--password=b"): "token", ("changes", "a", "--against=b"): "--folder FOLDER compares",
    ("cookies", "a", "--json"): "Netscape", ("metrics", "a", "--port=1"): "at /metrics",
    ("config", "list"): "gossamer config show DIR", ("config", "set", "a"): "gossamer set DIR KEY=VALUE",
    ("config", "get", "a"): "gossamer config show DIR", ("launch", "a.test"): "gossamer crawl SEED",
    (".tables", "a"): "--to duckdb", ("urls", "a"): "--table pages", ("recrawl", "a"): "gossamer watch URL",
    ("retry", "a"): "--retry 1", ("merge", "a", "b"): "gossamer import", ("upgrade",): "pip install",
    ("clean", "a"): "while nothing runs", ("cat", "a", "b"): "gossamer fetch URL",
    ("export", "a", "--type=csv"): "use --to", ("report", "a", "--host=b"): "report --help lists them",
}  # fmt: skip
"""Commands and options that people guess, and what must be in the answer."""


@pytest.mark.parametrize("typed", GUESSES, ids=" ".join)
def test_a_guess_is_answered_with_what_we_call_it(typed: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_command(list(typed)) == Exit.REFUSED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert GUESSES[typed] in said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("search", "some words", "crawl"), "search crawl 'some words'"),
        (("search", "one", "two", "crawl", "--json"), "search crawl one two"),
        (("exclude", "a.test", "crawl"), "exclude crawl a.test"),
        (("robots", "a.test", "crawl"), "robots crawl a.test"),
        (("set", "limits.max_pages=3", "crawl"), "set crawl limits.max_pages=3"),
    ],
)
def test_a_directory_that_comes_last_is_put_first(
    typed: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl/crawl.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert status_of_command(list(typed)) == Exit.REFUSED
    assert capsys.readouterr().err == f"gossamer: the directory comes first; write gossamer {said}\n"


def test_what_is_suggested_exists() -> None:
    others = synonyms()
    known = {name for names in main.COMMANDS.values() for name in names}
    assert not known & set(others.commands)
    for clause in set(others.commands.values()) - known:
        assert set(re.findall(r"gossamer (\w+)", clause)) <= known
    for command, clauses in others.of.items():
        assert command.partition(" ")[0] in known | {"any"}
        for clause in clauses.values():
            assert set(re.findall(r"gossamer (\w+)", clause)) <= known
    assert set(others.keys.values()) | others.examples.keys() <= {*keys(), *sections()}
    assert not set(others.keys) & set(others.clauses)
    typed = {flag.option for flag in FLAGS} | {flag.short for flag in FLAGS}
    for key, example in others.examples.items():
        assert key in example
    assert all(equivalent_of(word, as_option=True) for word in others.keys.keys() - typed)
    assert equivalent_of("frobnicate", as_option=True) == ""


def test_each_value_that_is_suggested_is_valid_and_no_valid_one_is_corrected() -> None:
    for key, clauses in synonyms().values.items():
        assert key in keys()
        section, _, name = key.partition(".")
        choices = {*get_args(keys_of(sections()[section])[name].type)}
        assert not choices & clauses.keys()
        for clause in set(clauses.values()):
            assert set(re.findall("'([^']+)'", clause)) <= choices


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[fetch]\ntimeout = 3", "fetch.request_s_max"),
        ("[fetch]\nuser_agent = 'x'", "operator.agent"),
        ("[politeness]\ndelay = 3", "politeness.delay_s_min"),
        ("[scope]\nmax_depth = 3", "scope.depth_max"),
        ("[crawl]\nthreads = 3", "crawl.concurrency"),
        ("DOWNLOAD_DELAY = 3", "politeness.delay_s_min"),
    ],
)
def test_a_key_of_another_program_is_answered_with_ours(
    tmp_path: Path, text: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.toml").write_text(text)
    assert status_of_command(["config", "check", str(tmp_path / "x.toml")]) == Exit.REFUSED
    assert key in capsys.readouterr().err


def test_check_names_every_mistake_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        "max_pages = 3\n[limits]\nmax_page = 1\nmax_time_s = 'x'\n[fetch]\nproxy = 5\n[scope]\nscope = 'hosts'\n"
        "include = ['(']\n[nonsense]\na = 1\n[robots]\nobey = true\n"
    )
    assert status_of_command(["config", "check", str(file)]) == Exit.REFUSED
    lines = capsys.readouterr().err.splitlines()
    assert [re.findall(r"line (\d+): ", line) for line in lines] == [["1"], ["3"], ["4"], ["6"], ["8"], ["9"], ["10"]]
    file.write_text("[limits]\nmax_pages = 1\n")
    assert status_of_command(["config", "check", str(file)]) == 0


def test_objects_inside_objects_are_indented() -> None:
    budget = {"round": 2, "host": {"pages": {"spent": 3, "of": 10}, "used_up": ["pages"]}, "site": {}}
    assert pairs_text({"url": "x", "budget": budget}).splitlines() == [
        "url     x", "budget:", "  round  2", "  host:", "    pages    3 of 10 spent", "    used_up:", "      pages",
    ]  # fmt: skip


def test_a_misprint_is_answered_with_the_option_that_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_command(["crawl", "http://127.0.0.1/", "--delays", "3"]) == Exit.REFUSED
    assert capsys.readouterr().err == (
        "gossamer: no option --delays for gossamer crawl; did you mean --delay? gossamer crawl --help lists them\n"
    )
