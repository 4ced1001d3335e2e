"""Main: the tree of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import gossamer
from gossamer.cli.configuring import config_app
from gossamer.cli.exits import epilog
from gossamer.cli.help import made_plain
from gossamer.cli.options import with_flags
from gossamer.cli.order import Order
from gossamer.cli.safekeeping import safekeeping
from gossamer.cli.segmenting import segment_app

app = typer.Typer(
    help="A polite, crash-safe, fast web crawler.",
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    epilog=epilog(),
)
app.add_typer(config_app, name="config")
app.add_typer(segment_app, name="segment")
app.registered_commands += safekeeping.registered_commands

CarryOut = Callable[[Order], int]
"""Crawls, and returns the exit status."""

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The crawl's directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any configuration key (repeatable).")
]
PresetName = Annotated[
    str | None, typer.Option("--preset", metavar="NAME", help="Start from a set of values: whitelist.")
]
Urls = Annotated[list[str], typer.Argument(metavar="URL", help="More seeds.")]
Hosts = Annotated[list[str], typer.Argument(metavar="HOST", help="Hosts to exclude.")]
Trap = Annotated[str, typer.Argument(metavar="NAME", help="A trap as `status` names it, or a host.")]
DemoDirectory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Output directory; replaced by each run.")
]
Size = Annotated[str, typer.Option("--size", metavar="SIZE", help="Size of the web: small, medium or large.")]


@app.command("crawl", epilog=epilog())
@with_flags()
def crawl(
    context: typer.Context,
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="SEED", help="URLs to start from; segments for --mode offline.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="Read a TOML configuration file.")
    ] = None,
    preset: PresetName = None,
    or_resume: Annotated[
        bool, typer.Option("--or-resume", help="Continue the crawl if the directory holds one that has not ended.")
    ] = False,
    sets: Sets = None,
    **options: object,
) -> None:
    """Start a crawl in a new directory."""
    options["preset"] = preset
    order = Order("crawl", options, sets or (), seeds=urls or (), file=config, or_resume=or_resume)
    _end(_carry_out(context)(order))


@app.command("resume", epilog=epilog())
@with_flags(resumable_only=True)
def resume(context: typer.Context, directory: Directory, sets: Sets = None, **options: object) -> None:
    """Continue a crawl after a stop or a crash.

    Options given here replace those of the crawl from now on.
    """
    _end(_carry_out(context)(Order("resume", options, sets or (), directory=directory)))


@app.command("status")
def status(
    directory: Directory,
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until the crawl ends; q quits.")] = False,
) -> None:
    """Show the status of a crawl."""
    from gossamer.cli import ask

    _end(ask.status(directory, as_json=as_json, again=watch))


@app.command("metrics")
def metrics(directory: Directory) -> None:
    """Print the metrics of a running crawl (Prometheus)."""
    from gossamer.cli import ask

    _end(ask.metrics(directory))


@app.command("why")
def why(
    directory: Directory,
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL to explain.")],
    as_json: Json = False,
) -> None:
    """Explain the state of one URL.

    Shows its state, the rule that decided, its history and when it is due.
    """
    from gossamer.cli import ask

    _end(ask.why(directory, url, as_json=as_json))


@app.command("report")
def report(
    directory: Directory,
    page: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report to an HTML file with charts.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the statistics of a crawl."""
    from gossamer.cli import ask

    _end(ask.report(directory, as_json=as_json, page=page))


@app.command("search")
def search(
    directory: Directory,
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Words, "phrases", -without, title:word.')] = "",
    as_json: Json = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Maximum number of results.")] = 10,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Search this host only.")] = "",
    site: Annotated[str, typer.Option("--site", metavar="DOMAIN", help="Search this registrable domain only.")] = "",
    language: Annotated[
        str, typer.Option("--language", metavar="LANG", help="Search pages in this language only, such as en.")
    ] = "",
    build: Annotated[bool, typer.Option("--build", help="Build the index from the archive first.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Hide the progress of --build.")] = False,
) -> None:
    """Search the full text of a crawl."""
    from gossamer.cli import search as searching

    status = searching.build(directory, quiet=quiet) if build else 0
    if query or not build:
        status = searching.search(
            directory, query, limit=limit, host=host, site=site, language=language, as_json=as_json
        )
    _end(status)


@app.command("changes")
def changes(
    directory: Directory,
    since: Annotated[
        str, typer.Option("--since", metavar="T", help="Start time: 2026-01-31T12:00 (UTC), or 12h or 3d ago.")
    ] = "",
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Show all versions of one page.")] = "",
    as_json: Json = False,
) -> None:
    """List new, changed and removed pages by time."""
    from gossamer.cli import changes as changing

    _end(changing.changes(directory, since=since, url=url, as_json=as_json))


@app.command("export")
def export(
    directory: Directory,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="Format: parquet, jsonl, csv, markdown, cdxj, wacz or pagefiles."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="PATH", help="Output path; - is standard output.")],
    table: Annotated[
        str, typer.Option("--table", metavar="NAME", help="Table: pages, links, or one of a module.")
    ] = "",
    where: Annotated[
        str, typer.Option("--where", metavar="SQL", help="Export only rows that match this SQL condition.")
    ] = "",
    memory_mb: Annotated[int, typer.Option("--memory", metavar="MB", help="Memory limit in megabytes.")] = 512,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show errors only.")] = False,
) -> None:
    """Export a crawl to other formats.

    Repeat the command to finish an export that was interrupted.
    """
    from gossamer.cli import views

    _end(views.export(directory, to, output, table, where, memory_mb, quiet=quiet))


@app.command("sample")
def sample(
    directory: Directory,
    size: Annotated[int, typer.Option("--size", "-n", metavar="N", help="Number of pages.")] = 100,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Random seed: the same seed gives the same pages.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Sample pages of a random-walk crawl near-uniformly.

    The crawl needs `--set frontier.form=walk`.
    """
    from gossamer.cli import ask

    _end(ask.sample(directory, size, seed, as_json=as_json))


@app.command("scale")
def scale(
    directory: Directory,
    workers: Annotated[int, typer.Option("--workers", metavar="N", help="New number of shards.")],
    *,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show errors only.")] = False,
) -> None:
    """Change the number of shards of a stopped crawl.

    Repeat the command to finish a change that was interrupted.
    """
    from gossamer.cli import scaling

    _end(scaling.scale(directory, workers, quiet=quiet))


@app.command("seed")
def seed(directory: Directory, urls: Annotated[list[str], typer.Argument(metavar="URL", help="Seeds to add.")]) -> None:
    """Add seeds to a running crawl."""
    from gossamer.cli import ask

    _end(ask.act(directory, "seed", urls=ask.seeds_for(urls)))


@app.command("exclude")
def exclude(directory: Directory, hosts: Hosts) -> None:
    """Exclude hosts from a running crawl."""
    from gossamer.cli import ask

    _end(ask.act(directory, "exclude", hosts=hosts))


@app.command("release")
def release(directory: Directory, name: Trap) -> None:
    """Release a URL pattern that was taken for a trap.

    The crawl fetches its URLs again, or does so after `resume`.
    """
    from gossamer.cli import ask

    _end(ask.release(directory, name))


@app.command("set")
def set_keys(
    directory: Directory,
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="New values; without any, list the keys that can change."),
    ] = None,
) -> None:
    """Change configuration keys of a running crawl."""
    from gossamer.cli import steer

    _end(steer.set_keys(directory, assignments or ()))


@app.command("host")
def host(
    directory: Directory,
    name: Annotated[str, typer.Argument(metavar="HOST", help="Host name, such as example.org.")],
    assignments: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE", help="delay_s, per_host or pages; the value none removes one.")
    ],
) -> None:
    """Override settings for one host of a running crawl."""
    from gossamer.cli import steer

    _end(steer.set_host(directory, name, assignments))


@app.command("pause")
def pause(directory: Directory) -> None:
    """Pause a running crawl."""
    from gossamer.cli import ask

    _end(ask.act(directory, "pause"))


@app.command("unpause")
def unpause(directory: Directory) -> None:
    """Continue a paused crawl."""
    from gossamer.cli import ask

    _end(ask.act(directory, "unpause"))


@app.command("checkpoint")
def checkpoint(directory: Directory) -> None:
    """Create a checkpoint of a running crawl and print its path."""
    from gossamer.cli import ask

    _end(ask.act(directory, "checkpoint"))


@app.command("stop")
def stop(
    directory: Directory,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for requests in flight.")] = False,
) -> None:
    """Stop a running crawl and save everything."""
    from gossamer.cli import ask

    _end(ask.act(directory, "stop", now=now))


@app.command("serve")
def serve(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The crawl to show; without it, all crawls of a folder.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Folder of crawls; new crawls are created there."),
    ] = None,
    port: Annotated[str, typer.Option("--port", metavar="N", help="Port; 8817 by default, 0 chooses a free one.")] = "",
    address: Annotated[
        str,
        typer.Option(
            "--address",
            metavar="IP",
            help="Address to listen on; 127.0.0.1 by default. On others every request needs the token.",
        ),
    ] = "",
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="Read the section [console] of a TOML file.")
    ] = None,
    sets: Sets = None,
) -> None:
    """Serve the dashboard and the JSON API.

    Serves one crawl, running or not, or a folder of crawls, and runs the crawls of a folder on request.
    """
    from gossamer.cli import serving

    _end(serving.serve(directory, folder=folder, port=port, address=address, file=config, sets=sets or ()))


@app.command("init")
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")] = Path("gossamer.toml"),
    preset: PresetName = None,
) -> None:
    """Write a configuration file with all keys explained."""
    from gossamer.cli import settings

    _end(settings.init(file, preset or ""))


@app.command("simweb")
def simweb(
    directory: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory for its files.")] = Path(
        "simweb"
    ),
    size: Size = "small",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Random seed: the same seed gives the same web.")
    ] = 1,
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port; 0 chooses a free one.")] = 0,
) -> None:
    """Serve a synthetic web on loopback."""
    from gossamer.cli import demo

    _end(demo.simweb(directory, size, seed, port))


@app.command("demo")
def demo(directory: DemoDirectory = Path("demo"), size: Size = "small") -> None:
    """Crawl a synthetic web on this machine and print a report."""
    from gossamer.cli.demo import demo as run

    _end(run(directory, size))


@app.command("conformance")
def conformance(directory: DemoDirectory = Path("conformance")) -> None:
    """Test the crawler against every behavior of the synthetic web."""
    from gossamer.cli.conformance import conformance as run

    _end(run(directory))


@app.command("simulate")
def simulate(
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="Published crawl or web to simulate; web2025 by default."),
    ] = None,
    revisits: Annotated[
        bool, typer.Option("--revisits", help="Simulate revisits of changing pages by each policy.")
    ] = False,
    pages: Annotated[str | None, typer.Option("--pages", metavar="N", help="Stop after this many pages.")] = None,
    shards: Annotated[str | None, typer.Option("--shards", metavar="N", help="Number of shards.")] = None,
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="N", help="Random seed: the same seed gives the same result.")
    ] = None,
    max_time: Annotated[
        str | None, typer.Option("--max-time", metavar="S", help="Stop after this many simulated seconds.")
    ] = None,
    politeness: Annotated[
        str | None, typer.Option("--politeness", metavar="PRESET", help="Preset: polite, gentle, broad, weak or own.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option("--delay", metavar="S", help="Minimum delay for every host, in seconds.")
    ] = None,
    price_hour: Annotated[
        str | None, typer.Option("--price-hour", metavar="X", help="Price of one machine per hour.")
    ] = None,
    cpu_page_us: Annotated[
        str | None, typer.Option("--cpu-page-us", metavar="US", help="CPU time per page, in microseconds.")
    ] = None,
    scale: Annotated[str | None, typer.Option("--scale", metavar="K", help="Simulate one host in K.")] = None,
    simulated_pages: Annotated[
        str | None,
        typer.Option("--simulated-pages", metavar="N", help="Approximate number of pages to simulate without --scale."),
    ] = None,
    simulated_shards: Annotated[
        str | None,
        typer.Option("--simulated-shards", metavar="N", help="Number of shards to simulate; the rest is extrapolated."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Write a chart to an .html or .svg file.")
    ] = None,
    sets: Sets = None,
    as_json: Json = False,
    list_presets: Annotated[bool, typer.Option("--list-presets", help="List the presets.")] = False,
) -> None:
    """Simulate a crawl: the real frontier on a modelled web."""
    from gossamer.cli import simulating

    if list_presets:
        _end(simulating.presets())
    options = {
        "shards": shards,
        "time_s_max": max_time,
        "politeness.preset": politeness,
        "politeness.delay_s_min": delay,
        "machine.price_per_hour": price_hour,
        "machine.cpu_us_per_page": cpu_page_us,
        "scale": scale,
        "pages_simulated": simulated_pages,
        "shards_simulated": simulated_shards,
    }
    if revisits:
        others = {"preset": preset, "figure": figure, **options}
        _end(simulating.revisits(pages, seed, others, sets or (), as_json=as_json))
    options |= {"pages": pages, "seed": seed}
    _end(simulating.simulate(preset or simulating.PRESET, options, sets or (), figure, as_json=as_json))


@app.command("completion")
def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="Shell: bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell."""
    from gossamer.cli.help import completion_script

    typer.echo(completion_script(shell))


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Print help when no command is given."""
    if version:
        typer.echo(gossamer.__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _app in (app, config_app, segment_app):
    made_plain(_app)


def _carry_out(context: typer.Context) -> CarryOut:
    carry_out: CarryOut = context.obj
    return carry_out


def _end(status: int) -> None:
    raise typer.Exit(status)
