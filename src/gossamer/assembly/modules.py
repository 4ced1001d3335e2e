"""Modules: builds what judges links and reads pages: filters, the prioritizer, processing modules. Builders of segments
and isolated workers need only these parts of a crawl.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import cast

import msgspec
from msgspec.structs import replace

from gossamer.assembly.schemes import namer_for
from gossamer.config import Config
from gossamer.config.lists import all_forgotten, read_text, scope_lists
from gossamer.engine.examine import Examiner, NoSlots
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.pages import Findings, Page, Visited
from gossamer.plugins import build, component, fitting, naming
from gossamer.ports import Filter, HostPrioritizer, Prioritizer, ProcessingModule
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.frontier import priority
from gossamer.stages.process.chain import Modules, Watch
from gossamer.stages.process.choice import DEFAULT_TYPES, DIRECTIVES, ITEMS, MODULES, NEEDED, Chosen, make_modules
from gossamer.stages.process.links import redirect_target
from gossamer.stages.process.text import TitleAndText
from gossamer.stages.process.walls import Walls
from gossamer.stages.scope.chain import Chain, scope_chain
from gossamer.stages.scope.forgotten import Forgotten
from gossamer.stages.scope.roots import Roots
from gossamer.state.slots import ShardSlots
from gossamer.url.name import Namer
from gossamer.world.clock import Clock, WallClock
from gossamer.world.inputs import open_input
from gossamer.world.spill import Spills


class Judge(msgspec.Struct, frozen=True):
    """Names addresses and judges links as in a crawl with this configuration."""

    namer: Namer
    roots: Roots
    """Empty at first: the builder adds the seeds and the targets of their redirects."""
    chain: Chain
    prioritizer: Prioritizer


class Reader(msgspec.Struct, frozen=True):
    """Reads the links of a page."""

    decoder: BoundedDecoder
    find: Callable[[Page], Findings]
    redirect_target: Callable[[str, Sequence[tuple[str, str]]], str | None]
    """Returns the target of a redirect, by an address and its reply's headers."""


def judge_of(config: Config, places: Iterable[Path] = ()) -> Judge:
    """Return the judge of links. It rejects pages that were removed with `forget` from the crawls in `places`. Raises
    ConfigError: a list or a component cannot be loaded.
    """
    roots = Roots(config.scope.scope, config.scope.seed_redirects)
    entries = {entry.at + entry.pattern: entry for place in places for entry in all_forgotten(config, place)}
    forgotten = [Forgotten(tuple(entries.values()), WallClock().now)] if entries else []
    chain = scope_chain(config.scope, roots, None, [*filters_of(config), *forgotten], scope_lists(config))
    return Judge(namer_for(config), roots, chain, prioritizer_of(config))


def reader_of(config: Config) -> Reader:
    """Return the reader of pages, with the processing modules that the configuration names."""
    modules = choose_modules(config).inside
    return Reader(BoundedDecoder(config.fetch), lambda page: modules.process(page).findings, redirect_target)


def walls_of(config: Config) -> Walls:
    """Return the recognition of replies that are not pages. Raises ConfigError if the operator's rules are invalid."""
    file = config.process.walls_file
    return Walls.read(read_text(Path(file)), file) if file else Walls.ours()


def choose_modules(config: Config, watch: Watch | None = None) -> Chosen:
    """Build the configured processing modules. Raises ConfigError: a module or its package is missing."""
    # The search index needs the text.
    options = replace(config.process, text=config.process.text or config.search.enabled)
    rules = config.extract.rules
    if rules:
        options = replace(options, modules=(*options.modules, ITEMS))

    def make(name: str, key: str) -> ProcessingModule:
        if name == ITEMS:
            return cast("ProcessingModule", build(MODULES[name], key, options=options, rules=rules))
        if name in MODULES:
            if (needed := NEEDED.get(name)) is not None:
                require(needed, f"{key}: {name}")
            robots = {"tokens": config.robots.tokens, "obeys": config.robots.obey} if name == DIRECTIVES else {}
            return cast("ProcessingModule", build(MODULES[name], key, options=options, **robots))
        found = component(name, key, MODULES, "module")
        is_made = hasattr(found, "process") and not isinstance(found, type)
        module = found if is_made else build(name, key)
        parts = {"name": "name", "wants": "wants(media_type)", "process": "process(page, findings)"}
        if missing := [says for part, says in parts.items() if not hasattr(module, part)]:
            raise ConfigError(f"{key}: {name} has no {', '.join(missing)}; see docs/reference/processing.md")
        if not isinstance(getattr(module, "columns", {}), Mapping):
            raise ConfigError(f"{key}: columns of {name} is no dict of types; see docs/reference/processing.md")
        return cast("ProcessingModule", module)

    return make_modules(options, make, embeds=config.scope.embeds, watch=watch)


def item_modules(config: Config) -> Chosen:
    """Return the modules that extract items, without those of every crawl. Raises ConfigError as `choose_modules`."""
    process = replace(config.process, types=dict.fromkeys(DEFAULT_TYPES, ()), isolated=())
    return choose_modules(replace(config, process=process))


def text_of(visited: Visited, config: Config) -> str:
    """Return a page's visible text."""
    reply = visited.reply
    content = visited.content
    if reply is None or content is None:
        return ""
    options = replace(config.process, text=True)
    page = Page(reply.url, reply.media_type, reply.charset, reply.headers, content.body, content.file)
    return Modules([TitleAndText(options)], options).process(page).findings.text


def filters_of(config: Config) -> list[Filter]:
    """Return the operator's own filters."""
    return [cast("Filter", fitting(name, "components.filters", Filter)) for name in config.components.filters]


def prioritizer_of(config: Config) -> Prioritizer:
    """Return the configured prioritizer."""
    name = config.components.prioritizer
    if name:
        made = fitting(name, "components.prioritizer", Prioritizer)
        return cast("Prioritizer", naming(made, name, "components.prioritizer", "host_level", port=HostPrioritizer))
    if config.frontier.priority == "rank":
        return _by_rank(config.frontier.ranks_file)
    return priority.prioritizer_of(config.frontier)


def _by_rank(file: str) -> Prioritizer:
    if not file:
        raise ConfigError("frontier.priority is rank: set frontier.ranks_file to a file of gossamer rank")
    try:
        with open_input(Path(file)) as opened:
            return priority.ByRank(memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ)))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no file of gossamer rank"
        raise ConfigError(f"frontier.ranks_file: cannot read {file}: {why}; make it with gossamer rank DIR") from error


def examiner_of(
    config: Config, modules: Modules, clock: Clock, slots: ShardSlots | NoSlots, spills: Spills | None = None
) -> Examiner:
    """Return the stage that decodes and processes pages."""
    return Examiner(BoundedDecoder(config.fetch, spills), modules.process_in_slices, clock, slots)
