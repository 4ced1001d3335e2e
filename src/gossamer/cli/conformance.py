"""Conformance: a crawl of a synthetic web that shows every behaviour, and the table of what was right."""

from __future__ import annotations

from pathlib import Path

import typer

from gossamer.cli import crawling, door
from gossamer.cli.demo import make_anew
from gossamer.world.files import write_whole

# The defaults, but for patience: servers that never answer are there by design, and everybody waits for them. The maze
# is given up after fewer pages, for the same reason.
SETTINGS = (
    "progress.form='quiet'",
    "fetch.request_s_max=5.0",
    "fetch.connect_s_max=3.0",
    "frontier.attempts_max=3",
    "frontier.retry_s_first=0.2",
    "frontier.retry_s_max=1.0",
    "frontier.host_failures_max=3",
    "frontier.host_sleep_s_first=0.2",
    "frontier.host_sleeps_max=1",
    "politeness.backoff_s_first=0.2",
    "robots.retry_first_s=0.2",
    "robots.retry_s_max=1.0",
    "robots.robots_wait_max_s=4.0",
    "resolve.timeout_s=1.0",
    "resolve.servers=['127.0.0.1:9']",
    "scope.trap_maze_pages_max=2000",
)


def conformance(directory: Path) -> int:
    """Crawl a web of every behaviour and print a table: behaviour, expected, seen. 1 when a row is wrong."""
    web_process = door.showcase(directory / "web")
    make_anew(directory, web_process)
    with web_process as web:
        write_whole(directory / crawling.SIMWEB, web.options.encode())
        words = ["crawl", *web.seeds, "--output", str(directory), "--hosts", str(web.hosts_file)]
        words += ["--allow-private", "--scope", "any", "--politeness", "own", "--embeds"]
        status = crawling.carried_out([*words, *(word for key in SETTINGS for word in ("--set", key))])
    if status != 0:
        return status
    text, right = door.conformance_of(web, directory)
    typer.echo(text)
    return 0 if right else 1
