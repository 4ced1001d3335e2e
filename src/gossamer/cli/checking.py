"""Checking: makes a job from a request, and checks all that can be checked before a page is fetched or stored."""

import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gossamer.cli.directory import holds_crawl, make_writable, refuse_foreign, unmake
from gossamer.cli.job import CrawlJob, CrawlRequest
from gossamer.cli.output import complain, harmless
from gossamer.config import Config, configure, effective_toml
from gossamer.config.flags import FLAGS
from gossamer.config.gather import reopen
from gossamer.config.lists import check_lists
from gossamer.config.sections import keys
from gossamer.config.seeds import check_seeds, is_private
from gossamer.config.synonyms import equivalent_of
from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word
from gossamer.url.join import absolute
from gossamer.url.name import host_of
from gossamer.url.url import drop_user_info
from gossamer.world.files import there_before
from gossamer.world.inputs import open_input

SPOOLED = "seeds.txt"
"""File in the crawl's directory with seeds that came on standard input or through a pipe."""
OURS = "GOSSAMER_"
"""Beginning of variables of the environment that seem to be for us."""
KEPT = ("progress.", "limits.")
"""Beginnings of keys that a command that continues a crawl changes."""
STANDARD_INPUT = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
SEEDS_SHOWN = 2
FILES = frozenset((".json", ".jsonl", ".jl", ".csv", ".xml", ".parquet", ".warc", ".wacz", ".gz", ".zip", ".html"))
"""Endings of a file that is meant, and not the directory of a crawl."""
_FOREIGN = re.compile(r"-\Z|\$|[A-Za-z]:\\|\\\\|%\w+%")
"""Matches the beginning of a path that another system or a shell is to read."""

Spool = Callable[[Path], None]
"""Copies standard input to a file."""


def check_request(request: CrawlRequest, spool: Spool) -> tuple[CrawlJob, Config]:
    """Return the job of a request, and its configuration. Raises ConfigError: a mistake that the operator can fix;
    nothing was started, and files made for it are removed.
    """
    if request.command == "resume":
        directory = request.directory
        before = reopen(directory / "crawl.toml")
        config = reopen(directory / "crawl.toml", options=request.options, sets=request.sets)
        if key := _loosened(before, config):
            complain(
                f"scope.{key}: links of fetched pages that it rejected before stay left out; after this run, gossamer "
                f"segment build {shell_word(directory)} -o next.parquet lists them, for gossamer crawl --mode offline "
                "next.parquet"
            )
        return job_of(config, directory, resume=True), config
    config = configure(request.file, options=request.options, sets=request.sets, seeds=request.seeds)
    directory = Path(config.output.directory)
    if holds_crawl(directory) and request.or_resume:
        return _to_go_on(directory, config, request)
    if holds_crawl(directory):
        word = shell_word(directory)
        how = f"gossamer resume {word} continues it, -o DIR starts another"
        if request.recipe == "check":
            how = f"gossamer check {word} lists its faults; -o DIR --since {word} makes another check, and compares"
        raise ConfigError(f"{directory} already holds a crawl: {how}")
    if foreign := _FOREIGN.match(str(directory)):
        why = {"$": "$ is replaced by the shell only outside of single quotes", "-": "a crawl is more than one file"}
        what = why.get(foreign[0], "a path of Windows")
        raise ConfigError(f"-o {directory}: {what}; name a directory of this system with -o DIR, as in -o crawl")
    if directory.suffix.partition(":")[0] in FILES:
        how = "which gossamer export turns into files"
        if request.recipe == "check":
            how = "and --html, --csv, --json-file, --junit, --sarif and --markdown name files"
        raise ConfigError(
            f"-o {directory}: a crawl makes a directory, {how}; name a directory with -o DIR, as in -o {directory.stem}"
        )
    if request.recipe == "check" and config.progress.style != "quiet":
        _advise_own(config)
    _advise_options(config)
    advise_login(request.seeds)
    return _to_begin(directory, config, spool)


def _loosened(config: Config, changed: Config) -> str:
    """Return the key of a filter that rejects less than before; empty: none."""
    before = config.scope
    now = changed.scope
    if before.depth_max is not None and (now.depth_max is None or now.depth_max > before.depth_max):
        return "depth_max"
    if not set(before.exclude) <= set(now.exclude):
        return "exclude"
    is_wider = not now.include or not set(now.include) <= set(before.include)
    return "include" if before.include and is_wider else ""


def _advise_own(config: Config) -> None:
    """Name the preset for one's own servers, if a check of private addresses names none."""
    urls = config.seeds.urls
    is_chosen = any(config.origin(f"politeness.{key}") != "default" for key in ("preset", "delay_s_min", "per_host"))
    if urls and not is_chosen and all(is_private((host_of(url, None) or "").strip("[]")) for url in urls):
        complain("a server of yours needs no delay between requests: --politeness own checks it faster")


def advise_login(urls: Iterable[str]) -> None:
    """Name the place of user name and password if an address has them: they are dropped, and never written down."""
    for url in urls:
        if (plain := drop_user_info(url)) != url:
            rule = f'request.{absolute(plain) or plain}={{basic = {{user = "NAME", password = "env:VARIABLE"}}}}'
            complain(
                f"{plain}: its user name and password are not sent; --set '{rule}' sends them (docs/how-to/login.md)"
            )
            return


def _advise_options(config: Config) -> None:
    """Name options for variables such as `GOSSAMER_MAX_PAGES`: a configuration reads only `env:NAME`."""
    for variable in sorted(name for name in os.environ if name.startswith(OURS)):
        name = variable.removeprefix(OURS).lower().replace("__", "_")
        key = next((f"use --set {one}=VALUE" for one in keys() if one.replace(".", "_") == name), "")
        if (said := key or equivalent_of(name, as_option=True)) and f"env:{variable}" not in effective_toml(config):
            complain(f"the variable {variable} of the environment sets nothing; {said}")


def _to_begin(directory: Path, config: Config, spool: Spool) -> tuple[CrawlJob, Config]:
    try:
        missing, before = there_before(directory)
    except OSError as error:
        raise ConfigError(f"cannot read {directory}: {error.strerror}; name another with -o DIR") from error
    refuse_foreign(directory, before)
    try:
        if config.seeds.file in STANDARD_INPUT or Path(config.seeds.file).is_fifo():
            config = _spool_seeds(config, directory, spool)
        else:
            _check_files(config)
        make_writable(directory)
        job = job_of(config, directory, seeds=config.seeds.urls)
    except BaseException:
        unmake(directory, missing, before)
        raise
    return job._replace(missing=tuple(map(str, missing)), before=tuple(before)), config


def _check_files(config: Config) -> None:
    check_lists(config)
    check_seeds(config)


def _to_go_on(directory: Path, given: Config, request: CrawlRequest) -> tuple[CrawlJob, Config]:
    """Return the job of continuing an interrupted crawl as it was begun; one that has ended stays unchanged. Only
    limits and options about the display of progress are taken from the command; those of a recipe are all its limits.
    Raises ConfigError: it was begun with something else.
    """
    changeable = {flag.name for flag in FLAGS if flag.key.startswith(KEPT)}
    kept = {name: value for name, value in request.options.items() if name in changeable}
    sets = [one for one in request.sets if one.startswith(KEPT)]
    begun = reopen(directory / "crawl.toml")
    config = reopen(directory / "crawl.toml", options=kept, sets=sets)
    if request.recipe:  # A `resume` between may have set some for itself.
        config = replace(config, limits=given.limits)
    if _seed_sources(given) != _seed_sources(config):
        named = " ".join(map(harmless, config.seeds.urls[:SEEDS_SHOWN]))
        shown = f" ({named})" if named else ""
        raise ConfigError(f"{directory} holds a crawl of other seeds or segments{shown}; -o DIR starts another")
    if given.crawl.mode != config.crawl.mode:
        how = f"gossamer resume {shell_word(directory)} continues it, -o DIR starts another"
        raise ConfigError(f"{directory} holds a {config.crawl.mode} crawl: {how}")
    return job_of(config, directory, resume=True)._replace(settle=config.limits == begun.limits), config


def _seed_sources(config: Config) -> tuple[object, ...]:
    seeds = config.seeds
    # Seeds of standard input are not compared: the crawl has a copy of those that it began with.
    file = "" if seeds.file in STANDARD_INPUT or Path(seeds.file).name == SPOOLED else seeds.file
    return tuple(absolute(url) or url for url in seeds.urls), file, seeds.domains_file, seeds.segments


def job_of(config: Config, directory: Path, *, seeds: tuple[str, ...] = (), resume: bool = False) -> CrawlJob:
    """Return the child's job, with the files that it may open. Raises ConfigError: `process.sandbox` is on, and that is
    not possible.
    """
    wanted = config.process.sandbox
    why = 'process.sandbox is "off"'
    rights = None
    if wanted != "off":
        from gossamer.config.confinement import rights_of, why_unconfined  # Without a sandbox, of no use.

        why = why_unconfined(config)
        rights = None if why else rights_of(config, directory)._asdict()
    return CrawlJob(
        directory=str(directory),
        values=msgspec.json.encode(config).decode(),
        seeds=seeds,
        resume=resume,
        process_s_max=config.crawl.process_s_max,
        beats=config.cluster.workers == 1,
        rights=rights,
        unconfined=why,
        is_required=wanted == "on",
    )


def job_as_written(job: CrawlJob) -> CrawlJob:
    """Return a job with its crawl's present configuration, so that changes since the crawl began stay in force."""
    directory = Path(job.directory)
    try:
        config = reopen(directory / "crawl.toml")
    except ConfigError:  # It is being edited.
        return job
    # The sandbox stays as it was: a page that took over the process may have written the file.
    sandbox = msgspec.json.decode(job.values, type=Config).process.sandbox
    config = replace(config, process=replace(config.process, sandbox=sandbox))
    return job._replace(values=msgspec.json.encode(config).decode(), process_s_max=config.crawl.process_s_max)


def _spool_seeds(config: Config, directory: Path, spool: Spool) -> Config:
    """Copy seeds that can be read only once to the crawl's directory, for a restart, and check them."""
    make_writable(directory)
    file = (directory / SPOOLED).absolute()
    source = "standard input" if config.seeds.file in STANDARD_INPUT else config.seeds.file
    if config.seeds.file in STANDARD_INPUT:
        spool(file)
    else:
        try:
            with open_input(Path(source), pipes=True) as pipe, file.open("wb") as copy:
                shutil.copyfileobj(pipe, copy)
        except OSError as error:
            what = f"cannot read seeds from {source}: {error.strerror}"
            raise ConfigError(f"{what}; see that a program writes them there, or name a file") from error
    config = replace(config, seeds=replace(config.seeds, file=str(file)))
    try:
        _check_files(config)
    except ConfigError as error:  # The copy goes; messages name where the lines came from.
        raise ConfigError(str(error).replace(str(file), source)) from error
    return config
