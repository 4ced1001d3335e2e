"""Demo: the commands `simweb`, `demo` and `conformance`: a synthetic web on loopback, served, crawled, compared."""

import shutil
import signal
import sys
from pathlib import Path
from typing import Annotated, cast, get_args

from typer import Option, Typer, echo

from gossamer.cli.directory import make_writable
from gossamer.cli.output import write_line
from gossamer.cli.supervisor import SIMWEB, run_supervised
from gossamer.lab.simweb.options import Preset, SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError
from gossamer.model.words import counted, shell_word
from gossamer.options import OptionsError
from gossamer.world.files import write_whole

commands = Typer()
Output = Annotated[Path, Option("--output", "-o", metavar="DIR", help="Output directory; replaced by each run.")]
Size = Annotated[str, Option("--size", metavar="SIZE", help="Size of the web: small, medium or large.")]
# What the web makes its crawlers wait for, cut so that a demo ends in a minute, as demo.toml cuts our patience.
QUICK_WEB = {"crawl_delay_s": 0.1, "slow_s_median": 0.1, "retry_after_s": 1, "drip_s": 0.2}


@commands.command("simweb")
def simweb(
    folder: Annotated[Path, Option("--output", "-o", metavar="DIR", help="Directory for its files.")] = Path("simweb"),
    size: Size = "small",
    seed: Annotated[int, Option("--seed", metavar="N", help="Random seed: the same seed gives the same web.")] = 1,
    port: Annotated[int, Option("--port", metavar="N", help="Port; 0 chooses a free one.")] = 0,
) -> int:
    """Serve a synthetic web on loopback."""
    web_process = _web(folder, size, seed=seed, port=port)
    make_writable(folder)
    stops = (signal.SIGINT, signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        with web_process as web:
            echo(f"serving {counted(len(web.seeds), 'seed')}; to crawl it:")
            echo(f"gossamer crawl {web.seeds[0]} --hosts {web.hosts_file} --allow-private --scope any")
            signal.sigwait(stops)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 0


@commands.command("demo")
def demo(directory: Output = Path("demo"), size: Size = "small") -> int:
    """Crawl a synthetic web on this machine and print a report."""
    # Interrupted or killed, it can be resumed: the options of the web, its port included, are kept beside the crawl.
    web_process = _web(directory / "web", size, **QUICK_WEB)
    replace_directory(directory, web_process)
    write_line(
        sys.stdout,
        "A synthetic web on loopback: no network is used. "
        f"Ctrl-C stops, gossamer resume {shell_word(directory)} continues.",
    )
    status = _crawl(directory, web_process, "demo.toml")
    if status == 0:
        from gossamer.cli.inspecting import report

        write_line(sys.stdout, "")
        report(directory, as_json=False)
        write_line(sys.stdout, "")
        write_line(sys.stdout, f"Output: {directory.absolute()}: WARC in warc/, tables in pages/ and links/.")
    return status


@commands.command("conformance")
def conformance(directory: Output = Path("conformance")) -> int:
    """Test the crawler against every behavior of the synthetic web."""
    # Status 1 when a row of the table is wrong.
    from gossamer.lab.simweb import conformance as expected
    from gossamer.lab.simweb.truth import Truth
    from gossamer.results.report.report import outcomes

    web_process = SimwebProcess(expected.showcase(), directory / "web")
    replace_directory(directory, web_process)
    status = _crawl(directory, web_process, "conformance.toml")
    if status != 0:
        return status
    web = web_process.web
    walked = Truth(web).walk(web.seeds, embeds=True)
    rows = expected.conformance(web, walked, web_process.requests(), outcomes(directory))
    echo(expected.table(rows))
    return 0 if all(row.right for row in rows) else 1


def _crawl(directory: Path, web_process: SimwebProcess, config: str) -> int:
    """Crawl a web while it is served, with a configuration of this folder; return the exit status."""
    with web_process as web:
        write_whole(directory / SIMWEB, web.options.encode())
        words = ["crawl", *web.seeds, "--output", str(directory), "--hosts", str(web.hosts_file)]
        words += ["--config", str(Path(__file__).with_name(config)), "--allow-private", "--scope", "any"]
        return run_supervised(words)


def replace_directory(directory: Path, web: SimwebProcess) -> None:
    """Create the directory for a crawl of a synthetic web; replace an earlier one. Raises ConfigError: the directory
    holds anything else, also a crawl of another web.
    """
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"{directory} is a file; name a directory with -o DIR")
    if directory.exists() and not (directory / SIMWEB).exists() and any(directory.iterdir()):
        raise ConfigError(f"{directory} holds something else; name another with -o DIR")
    shutil.rmtree(directory, ignore_errors=True)
    make_writable(directory)
    write_whole(directory / SIMWEB, web.options.encode())  # From now on it may be replaced.


def _web(directory: Path, size: str, **changes: object) -> SimwebProcess:
    """Return a synthetic web of a named size with its files in `directory`. Raises ConfigError: there is no such size,
    or an option is invalid.
    """
    sizes = get_args(Preset)
    if size not in sizes:
        raise ConfigError(f"--size {size}: expected {', '.join(sizes[:-1])} or {sizes[-1]}")
    try:
        options = SimwebOptions.preset(cast("Preset", size), **changes)
    except OptionsError as error:
        mistake = error.mistakes[0]
        raise ConfigError(f"--{mistake.path[0]} {mistake.given}: {mistake.message}") from error
    return SimwebProcess(options, directory)
