"""Demo: `demo` and `simweb`: a synthetic web on loopback, crawled or just served."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import typer

from gossamer.cli import ask, crawling, door
from gossamer.model.errors import ConfigError


def demo(directory: Path, preset: str) -> int:
    """Crawl a synthetic web to its end with progress, print the report and where it lies."""
    if directory.exists() and not crawling.holds_crawl(directory) and any(directory.iterdir()):
        raise ConfigError(f"{directory} holds something else; name another with -o DIR")
    shutil.rmtree(directory, ignore_errors=True)  # The last demo.
    typer.echo("A synthetic web on loopback: no network is used. Ctrl-C stops, gossamer resume continues.")
    with door.simweb(directory / "web", preset=preset) as web:
        options = {
            "output": str(directory),
            "hosts": str(web.hosts_file),
            "allow_private": True,
            "scope": "any",
            "delay": 0.0,
        }
        sets = ["politeness.preset=weak"]
        status = crawling.crawl(tuple(web.seeds), None, options, sets)
    if status == 0:
        typer.echo("")
        ask.report(directory, as_json=False)
        typer.echo("")
        typer.echo(f"The output lies in {directory.absolute()}: WARC in warc/, tables in pages/ and links/.")
    return status


def simweb(directory: Path, preset: str, seed: int, port: int) -> int:
    """Serve a synthetic web until a signal ends it; print what to crawl it with."""
    directory.mkdir(parents=True, exist_ok=True)
    stops = (signal.SIGINT, signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        with door.simweb(directory, preset=preset, seed=seed, port=port) as web:
            typer.echo(f"serving {len(web.seeds)} seeds; to crawl it:")
            typer.echo(f"gossamer crawl {web.seeds[0]} --hosts {web.hosts_file} --allow-private --scope any")
            signal.sigwait(stops)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 0
