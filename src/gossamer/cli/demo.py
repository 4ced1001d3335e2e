"""Demo: `demo` and `simweb`: a synthetic web on loopback, crawled or just served."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from gossamer.cli import ask, crawling, door
from gossamer.cli.directory import make_directory
from gossamer.cli.words import write_line
from gossamer.model.errors import ConfigError
from gossamer.world.files import write_whole

FREE_S_MAX, FREE_LOOK_S = 5.0, 0.25
"""How long the port of a web whose crawl was killed may still be taken, and how often we look."""

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
    """Crawl a synthetic web to its end with progress, print the report and where it lies.

    Interrupted or killed, it can be resumed: what the web is made from, its port included, is kept beside the crawl.
    """
    web_process = door.simweb(directory / "web", size, **QUICK_WEB)
    make_anew(directory, web_process)
    write_line(
        sys.stdout,
        f"A synthetic web on loopback: no network is used. Ctrl-C stops, gossamer resume {directory} continues.",
    )
    with web_process as web:
        write_whole(directory / crawling.SIMWEB, web.options.encode())
        words = ["crawl", *web.seeds, "--output", str(directory), "--hosts", str(web.hosts_file)]
        words += ["--allow-private", "--scope", "any", "--politeness", "weak"]
        status = crawling.carried_out([*words, *(word for key in QUICK_CRAWL for word in ("--set", key))])
    if status == 0:
        write_line(sys.stdout, "")
        ask.report(directory, as_json=False)
        write_line(sys.stdout, "")
        write_line(sys.stdout, f"Output: {directory.absolute()}: WARC in warc/, tables in pages/ and links/.")
    return status


def make_anew(directory: Path, web: door.Web) -> None:
    """Make a directory for a crawl of a synthetic web, in the place of an earlier one.

    Raises:
        ConfigError: it holds anything else, a crawl of another web too.
    """
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"{directory} is a file; name a directory with -o DIR")
    if directory.exists() and not (directory / crawling.SIMWEB).exists() and any(directory.iterdir()):
        raise ConfigError(f"{directory} holds something else; name another with -o DIR")
    shutil.rmtree(directory, ignore_errors=True)
    make_directory(directory)
    write_whole(directory / crawling.SIMWEB, web.options.encode())  # From now on it may be made anew.


@contextmanager
def simweb_again(file: Path) -> Iterator[None]:
    """Serve the web whose options a file holds, at the addresses and the port that it had.

    Raises:
        ConfigError: the port is taken, or the file is damaged.
    """
    from pydantic import ValidationError

    from gossamer.lab.simweb.options import SimwebOptions
    from gossamer.lab.simweb.process import SimwebProcess

    try:
        options = SimwebOptions.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{file} does not say what web was crawled; gossamer demo makes a new one") from error
    web, gives_up_at = SimwebProcess(options, file.parent / "web"), time.monotonic() + FREE_S_MAX
    while True:
        try:
            web.start()
            break
        except RuntimeError as error:
            if time.monotonic() > gives_up_at:
                raise ConfigError(
                    f"{' '.join(str(error).split())}; the synthetic web of {file.parent} needs the same port again: "
                    "end the program that uses it"
                ) from error
            time.sleep(FREE_LOOK_S)
    try:
        yield
    finally:
        web.stop()


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
