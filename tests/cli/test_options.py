"""Options whose value may be left out, and command lines that are read without typer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from gossamer.cli.job import CrawlRequest
from gossamer.cli.main import status_of_command
from gossamer.cli.typed import SERVE_PORT, request_of, with_port
from gossamer.config.flags import FLAGS, Flag

NAMES = [f"--{flag.option}" for flag in FLAGS] + [f"-{flag.short}" for flag in FLAGS if flag.short]
WORDS = st.sampled_from([*NAMES, "--set", "--config", "-c", "--preset", "--or-resume", "--scop", "--", "-", "-q"])
VALUES = st.sampled_from(["5", "host", "scope.scope=host", "", "-1", "a b", "http://a.example/", "\u00e9", "=", "none"])
LINES = st.lists(st.one_of(WORDS, VALUES, st.builds("{}={}".format, WORDS, VALUES)), max_size=6)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["crawl", "--serve"], ["crawl", f"--serve={SERVE_PORT}"]),
        (["crawl", "--serve", "https://e.example/"], ["crawl", f"--serve={SERVE_PORT}", "https://e.example/"]),
        (["crawl", "--serve", "--quiet"], ["crawl", f"--serve={SERVE_PORT}", "--quiet"]),
        (["crawl", "--serve", "0", "x"], ["crawl", "--serve", "0", "x"]),
        (["crawl", "--serve=81"], ["crawl", "--serve=81"]),
        (["crawl", "--", "--serve"], ["crawl", "--", "--serve"]),
        ([], []),
    ],
)
def test_the_consoles_port_may_be_left_out(given: list[str], wanted: list[str]) -> None:
    assert with_port(given) == wanted


def by_typer(words: Sequence[str]) -> list[CrawlRequest]:
    """Return what typer makes of a command line; nothing where it refuses."""
    found: list[CrawlRequest] = []

    def carry_out(request: CrawlRequest) -> int:
        found.append(request)
        return 0

    status_of_command(words, carry_out)
    return found


@drawn(st.sampled_from(["crawl", "resume"]), LINES)
def test_what_is_read_without_typer_is_what_typer_reads(command: str, line: list[str]) -> None:
    request = request_of([command, *line])
    assert request is None or by_typer([command, *line]) == [request]


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.option)
def test_each_option_is_read_without_typer(flag: Flag) -> None:
    words = (
        [f"--{flag.option}"] if flag.kind is bool else [f"--{flag.option}", "5", f"--{flag.option}=6"][: 2 + flag.many]
    )
    line = ["crawl", *words, "http://a.example/", "--set", "a.b=1", "--set", "a.c=2", "-c", "x.toml", "--or-resume"]
    assert [request_of(line)] == by_typer(line) != []
    if flag.resumable:
        assert [request_of(["resume", "crawl", *words])] == by_typer(["resume", "crawl", *words]) != []
