"""Main: the tree of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import gossamer
from gossamer.cli.exits import epilog
from gossamer.cli.options import with_flags
from gossamer.cli.order import Order
from gossamer.cli.segmenting import segment_app

app = typer.Typer(
    help="A polite, crash-safe, fast web crawler.",
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    epilog=epilog(),
)
config_app = typer.Typer(help="Look at configurations.")
app.add_typer(config_app, name="config")
app.add_typer(segment_app, name="segment")

CarryOut = Callable[[Order], int]
"""Crawls, and returns the exit status."""

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The crawl's directory.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any key; repeatable.")]
PresetName = Annotated[
    str | None, typer.Option("--preset", metavar="NAME", help="Begin with a way to crawl: whitelist.")
]
Urls = Annotated[list[str], typer.Argument(metavar="URL", help="More seeds.")]
Hosts = Annotated[list[str], typer.Argument(metavar="HOST", help="Hosts to leave alone.")]
Trap = Annotated[str, typer.Argument(metavar="NAME", help="A trap as `status` names it; or a host, for all of its.")]
DemoDirectory = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Made anew each time.")]
ConformanceDirectory = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Made anew each time.")]
Size = Annotated[str, typer.Option("--size", metavar="SIZE", help="small, medium or large.")]


@app.command("crawl", epilog=epilog())
@with_flags()
def crawl(
    context: typer.Context,
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="SEED", help="Where to begin: URLs; segments of an offline crawl.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="A TOML file.")] = None,
    preset: PresetName = None,
    or_resume: Annotated[
        bool, typer.Option("--or-resume", help="Continue the crawl that is there; one that has ended is left as it is.")
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
    """Continue after a stop or a crash; what is given here changes from now on."""
    _end(_carry_out(context)(Order("resume", options, sets or (), directory=directory)))


@app.command("status")
def status(
    directory: Directory,
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again until the crawl is over; q quits.")] = False,
) -> None:
    """Show how a running or stopped crawl stands."""
    from gossamer.cli import ask

    _end(ask.status(directory, as_json=as_json, again=watch))


@app.command("metrics")
def metrics(directory: Directory) -> None:
    """Print a running crawl's metrics as Prometheus reads them."""
    from gossamer.cli import ask

    _end(ask.metrics(directory))


@app.command("why")
def why(
    directory: Directory,
    url: Annotated[str, typer.Argument(metavar="URL", help="Any address.")],
    as_json: Json = False,
) -> None:
    """Tell everything known about one URL: its state, the rule that decided, when it is due."""
    from gossamer.cli import ask

    _end(ask.why(directory, url, as_json=as_json))


@app.command("report")
def report(
    directory: Directory,
    page: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one page with figures.")] = None,
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
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many pages.")] = 10,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Only pages of this host.")] = "",
    site: Annotated[str, typer.Option("--site", metavar="DOMAIN", help="Only pages of this domain.")] = "",
    language: Annotated[str, typer.Option("--language", metavar="LANG", help="Only pages that say so: en, de.")] = "",
    build: Annotated[bool, typer.Option("--build", help="Make the index of what was crawled.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress of --build.")] = False,
) -> None:
    """Find pages by what stands in them."""
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
        str, typer.Option("--since", metavar="T", help="From then on: 2026-01-31T12:00 (UTC), or 12h, 3d ago.")
    ] = "",
    url: Annotated[str, typer.Option("--url", metavar="URL", help="All versions of one page.")] = "",
    as_json: Json = False,
) -> None:
    """List what appeared, changed and vanished, in the order of time."""
    from gossamer.cli import changes as changing

    _end(changing.changes(directory, since=since, url=url, as_json=as_json))


@app.command("export")
def export(
    directory: Directory,
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="parquet, jsonl, csv, markdown, cdxj, wacz, pagefiles.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="PATH", help="Where to; - is standard output.")],
    table: Annotated[str, typer.Option("--table", metavar="NAME", help="pages, links, or a module's.")] = "",
    where: Annotated[str, typer.Option("--where", metavar="SQL", help="Only rows of which this is true.")] = "",
    memory_mb: Annotated[int, typer.Option("--memory", metavar="MB", help="Its budget.")] = 512,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, errors only.")] = False,
) -> None:
    """Make of a crawl what other tools read; repeat the command to finish one that was interrupted."""
    from gossamer.cli import views

    _end(views.export(directory, to, output, table, where, memory_mb, quiet=quiet))


@app.command("sample")
def sample(
    directory: Directory,
    size: Annotated[int, typer.Option("--size", "-n", metavar="N", help="How many pages.")] = 100,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="The same seed gives the same pages.")] = None,
    as_json: Json = False,
) -> None:
    """Draw near-uniform pages from a crawl that walked (`--set frontier.form=walk`)."""
    from gossamer.cli import ask

    _end(ask.sample(directory, size, seed, as_json=as_json))


@app.command("scale")
def scale(
    directory: Directory,
    workers: Annotated[int, typer.Option("--workers", metavar="N", help="Shards that it is to have.")],
    *,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing while it moves.")] = False,
) -> None:
    """Divide a stopped crawl among more shards, or fewer; repeat the command to finish what was interrupted."""
    from gossamer.cli import scaling

    _end(scaling.scale(directory, workers, quiet=quiet))


@app.command("seed")
def seed(directory: Directory, urls: Annotated[list[str], typer.Argument(metavar="URL", help="More seeds.")]) -> None:
    """Give a running crawl more seeds."""
    from gossamer.cli import ask

    _end(ask.act(directory, "seed", urls=ask.seeds_for(urls)))


@app.command("exclude")
def exclude(directory: Directory, hosts: Hosts) -> None:
    """Have a running crawl leave hosts alone, from now on."""
    from gossamer.cli import ask

    _end(ask.act(directory, "exclude", hosts=hosts))


@app.command("release")
def release(directory: Directory, name: Trap) -> None:
    """Let go of what was taken for a trap, for good; it is crawled on, or will be when the crawl is resumed."""
    from gossamer.cli import ask

    _end(ask.release(directory, name))


@app.command("set")
def set_keys(
    directory: Directory,
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="What changes; none: list what may.")
    ] = None,
) -> None:
    """Change keys of a running crawl, from its next commit on and for good."""
    from gossamer.cli import steer

    _end(steer.set_keys(directory, assignments or ()))


@app.command("host")
def host(
    directory: Directory,
    name: Annotated[str, typer.Argument(metavar="HOST", help="As in a URL: example.org")],
    assignments: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE", help="delay_s, per_host or pages; none: as for all.")
    ],
) -> None:
    """Treat one host of a running crawl otherwise: its delay, its requests at once, its pages in a round."""
    from gossamer.cli import steer

    _end(steer.set_host(directory, name, assignments))


@app.command("pause")
def pause(directory: Directory) -> None:
    """Have a running crawl send no more requests until `unpause`."""
    from gossamer.cli import ask

    _end(ask.act(directory, "pause"))


@app.command("unpause")
def unpause(directory: Directory) -> None:
    """Have a paused crawl go on."""
    from gossamer.cli import ask

    _end(ask.act(directory, "unpause"))


@app.command("checkpoint")
def checkpoint(directory: Directory) -> None:
    """Have a running crawl make a checkpoint and print where."""
    from gossamer.cli import ask

    _end(ask.act(directory, "checkpoint"))


@app.command("stop")
def stop(
    directory: Directory,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for what is in flight.")] = False,
) -> None:
    """Have a running crawl end, everything saved; `resume` continues it."""
    from gossamer.cli import ask

    _end(ask.act(directory, "stop", now=now))


@app.command("serve")
def serve(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="One crawl; without it, all of a folder.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Where crawls lie, and new ones go."),
    ] = None,
    port: Annotated[str, typer.Option("--port", metavar="N", help="8817; 0 takes any.")] = "",
    address: Annotated[
        str, typer.Option("--address", metavar="IP", help="127.0.0.1; on others every request needs the token.")
    ] = "",
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="A TOML file with [console].")
    ] = None,
    sets: Sets = None,
) -> None:
    """Serve the console of a crawl, running or not; or of a folder, and run its crawls on request."""
    from gossamer.cli import serving

    _end(serving.serve(directory, folder=folder, port=port, address=address, file=config, sets=sets or ()))


@app.command("init")
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write.")] = Path("gossamer.toml"),
    preset: PresetName = None,
) -> None:
    """Write a configuration file that explains every key."""
    from gossamer.cli import settings

    _end(settings.init(file, preset or ""))


@config_app.command("check")
def config_check(file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file.")]) -> None:
    """Say whether a configuration file is right."""
    from gossamer.cli import settings

    _end(settings.check(file))


@config_app.command("show")
def config_show(directory: Directory) -> None:
    """Print what a crawl runs with, and where each value came from."""
    from gossamer.cli import settings

    _end(settings.show(directory))


@config_app.command("schema")
def config_schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page about every key.")] = False,
) -> None:
    """Print the JSON schema of the configuration."""
    from gossamer.cli import settings

    _end(settings.schema(markdown=markdown))


@app.command("simweb")
def simweb(
    directory: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="For its files.")] = Path("simweb"),
    size: Size = "small",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same web.")] = 1,
    port: Annotated[int, typer.Option("--port", metavar="N", help="0 takes any.")] = 0,
) -> None:
    """Serve a synthetic web on loopback until Ctrl-C."""
    from gossamer.cli import demo

    _end(demo.simweb(directory, size, seed, port))


@app.command("demo")
def demo(directory: DemoDirectory = Path("demo"), size: Size = "small") -> None:
    """Crawl a synthetic web now, with progress and a report: no network, no arguments."""
    from gossamer.cli.demo import demo as run

    _end(run(directory, size))


@app.command("conformance")
def conformance(directory: ConformanceDirectory = Path("conformance")) -> None:
    """Crawl a synthetic web of every behaviour and print what was expected and what was seen; about a minute."""
    from gossamer.cli.conformance import conformance as run

    _end(run(directory))


@app.command("simulate")
def simulate(
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="NAME", help="A published crawl, or a web; web2025 unless named.")
    ] = None,
    revisits: Annotated[
        bool, typer.Option("--revisits", help="Instead, visit pages that change again, by each revisit.policy.")
    ] = False,
    pages: Annotated[str | None, typer.Option("--pages", metavar="N", help="Pages after which the crawl ends.")] = None,
    shards: Annotated[str | None, typer.Option("--shards", metavar="N", help="Shards of the crawl.")] = None,
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="N", help="The same seed gives the same result.")
    ] = None,
    max_time: Annotated[
        str | None, typer.Option("--max-time", metavar="S", help="Simulated seconds after which the crawl ends.")
    ] = None,
    politeness: Annotated[
        str | None, typer.Option("--politeness", metavar="PRESET", help="polite, gentle, broad, weak or own.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option("--delay", metavar="S", help="Least delay for every host, in seconds.")
    ] = None,
    price_hour: Annotated[
        str | None, typer.Option("--price-hour", metavar="X", help="Price of a machine per hour.")
    ] = None,
    cpu_page_us: Annotated[
        str | None, typer.Option("--cpu-page-us", metavar="US", help="Processor's time of a page, in microseconds.")
    ] = None,
    scale: Annotated[str | None, typer.Option("--scale", metavar="K", help="Simulate one host of so many.")] = None,
    simulated_pages: Annotated[
        str | None,
        typer.Option("--simulated-pages", metavar="N", help="Pages to simulate when no scale is given, about."),
    ] = None,
    simulated_shards: Annotated[
        str | None,
        typer.Option("--simulated-shards", metavar="N", help="Shards to simulate; the others are like them."),
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="Draw it: .html or .svg.")] = None,
    sets: Sets = None,
    as_json: Json = False,
    list_presets: Annotated[bool, typer.Option("--list-presets", help="Name the presets.")] = False,
) -> None:
    """Run the real frontier against a modelled web in simulated time."""
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


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print help when no command is named."""
    if version:
        typer.echo(gossamer.__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _carry_out(context: typer.Context) -> CarryOut:
    carry_out: CarryOut = context.obj
    return carry_out


def _end(status: int) -> None:
    raise typer.Exit(status)
