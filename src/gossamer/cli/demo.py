"""Demo: `demo` and `simweb`: a synthetic web on loopback, crawled or just served."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import typer

from gossamer.cli import ask, crawling, door
from gossamer.cli.directory import holds_crawl, make_directory
from gossamer.model.errors import ConfigError

# The made web misbehaves as the real one does; here its patience and ours are cut so that a demo ends in a minute.
QUICK_WEB = {"crawl_delay_s": 0.1, "slow_s_median": 0.1, "retry_after_s": 1, "drip_s": 0.2}
QUICK_CRAWL = (
    "frontier.retry_s_first=0.5",
    "frontier.host_sleep_s_first=1.0",
    "frontier.host_sleeps_max=1",
    "politeness.backoff_s_first=0.5",
    "fetch.request_s_max=2.5",
    "robots.retry_first_s=1.0",
    "robots.robots_wait_max_s=5.0",
)


def demo(directory: Path, size: str) -> int:
    """Crawl a synthetic web to its end with progress, print the report and where it lies."""
    web_process = door.simweb(directory / "web", size, **QUICK_WEB)
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"{directory} is a file; name a directory with -o DIR")
    if directory.exists() and not holds_crawl(directory) and any(directory.iterdir()):
        raise ConfigError(f"{directory} holds something else; name another with -o DIR")
    shutil.rmtree(directory, ignore_errors=True)  # The last demo.
    typer.echo("A synthetic web on loopback: no network is used. Ctrl-C stops, gossamer resume continues.")
    with web_process as web:
        words = ["crawl", *web.seeds, "--output", str(directory), "--hosts", str(web.hosts_file)]
        words += ["--allow-private", "--scope", "any", "--politeness", "weak"]
        status = crawling.carried_out([*words, *(word for key in QUICK_CRAWL for word in ("--set", key))])
    if status == 0:
        typer.echo("")
        ask.report(directory, as_json=False)
        typer.echo("")
        typer.echo(f"The output lies in {directory.absolute()}: WARC in warc/, tables in pages/ and links/.")
    return status


def simweb(directory: Path, size: str, seed: int, port: int) -> int:
    """Serve a synthetic web until a signal ends it; print what to crawl it with."""
    web_process = door.simweb(directory, size, seed=seed, port=port)
    make_directory(directory)
    stops = (signal.SIGINT, signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        with web_process as web:
            typer.echo(f"serving {len(web.seeds)} seeds; to crawl it:")
            typer.echo(f"gossamer crawl {web.seeds[0]} --hosts {web.hosts_file} --allow-private --scope any")
            signal.sigwait(stops)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 0
