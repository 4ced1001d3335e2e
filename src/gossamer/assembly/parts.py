"""Parts: builds each component as the configuration names it."""

import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from gossamer.assembly.modules import choose_modules, judge_of
from gossamer.config import Config
from gossamer.engine.copies import CopyMarks, NearCopies
from gossamer.engine.history import UrlMemory, page_key
from gossamer.engine.options import CrawlOptions
from gossamer.engine.quarantine import Quarantine
from gossamer.engine.ring import Retries
from gossamer.engine.traps import watch_key
from gossamer.features.isolation import IsolatedModules
from gossamer.features.revisit.policies import POLICIES
from gossamer.features.revisit.state import page_facts
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.links import LINK_TYPES
from gossamer.plugins import build, component, fitting, naming
from gossamer.ports import KNOWN, NEW, SHORTER, ContentSeen, Resolver, RevisitPolicy, UrlSeen
from gossamer.stages.archive.archive import Archives
from gossamer.stages.fetch.certificates import check_certificate, check_trusted
from gossamer.stages.frontier.options import BudgetOptions, BudgetOverride, politeness
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.process.chain import Modules
from gossamer.stages.resolve.guard import GuardedResolver
from gossamer.stages.resolve.resolver import DnsResolver
from gossamer.stages.scope.chain import Chain
from gossamer.stages.scope.traps import Traps
from gossamer.stages.seen.content import ExactContentSeen, NearContentSeen, sketch
from gossamer.stages.seen.popular import POPULAR_BYTES
from gossamer.stages.seen.urls import RocksUrlSeen
from gossamer.state.epoch import Epochs, begun_with
from gossamer.state.journals import Journals
from gossamer.state.schema import FILTERS, OFFLINE, SEEN_FORM
from gossamer.state.slots import ShardSlots
from gossamer.url.url import Url
from gossamer.world.clock import Clock
from gossamer.world.dice import Dice
from gossamer.world.process import child_environment

SEEN_COMPONENT = "component"
"""Backend name for a `components.url_seen` from outside this package."""
SEEN_BACKENDS = {
    "memory": "gossamer.stages.seen.urls:MemoryUrlSeen",
    "diskmerge": "gossamer.stages.seen.diskmerge:DiskMergeUrlSeen",
    "bloom": "gossamer.stages.seen.bloom:BloomUrlSeen",
}
"""Names and not classes, so that the imports of a backend are needed, and slow the start, only if it is chosen."""


def require_components(config: Config) -> None:
    """Build the modules, filters and rules that a configuration names, and find its other components and its files of
    certificates. Raises ConfigError: a crawl could not start with them.
    """
    check_trusted(config.fetch)
    for where, rule in config.request.rules.items():
        if rule.certificate or rule.certificate_key:
            check_certificate(where, rule.certificate, rule.certificate_key)
    choose_modules(config)
    judge_of(config)
    policy_of(config.revisit.policy)
    for key, name in config.components.entries():
        if key not in ("components.filters", "components.prioritizer"):  # Of the judge of links.
            component(name, key)


def quarantine_of(config: Config, directory: Path, epochs: Epochs, slots: ShardSlots) -> Quarantine:
    """Return the quarantine, with the pages that the last crash accuses."""
    limit_s = config.crawl.process_s_max
    return Quarantine(epochs, slots.take_suspects(), _isolation_command(directory), limit_s, child_environment())


def isolation_of(config: Config, directory: Path, modules: Modules) -> IsolatedModules:
    """Return the modules that run in separate processes."""
    options = config.process
    command = (*_isolation_command(directory), "modules")
    return IsolatedModules(
        command, modules.modules_for, options.module_s_max, options.isolated_processes, child_environment()
    )


def _isolation_command(directory: Path) -> tuple[str, ...]:
    return sys.executable, "-m", "gossamer.results.isolated", str(directory / "crawl.toml")


def keep_mode(config: Config, epochs: Epochs) -> None:
    """Raise ConfigError if `offline` has changed: links of pages fetched offline are not queued."""
    now = b"1" if config.crawl.mode == "offline" else b"0"
    begun = begun_with(epochs, OFFLINE, b"0" if epochs.number > 1 else now)
    if begun != now:
        kept = "began with --mode offline and keeps it" if begun == b"1" else "did not begin with --mode offline"
        raise ConfigError(f"crawl.mode: this crawl {kept}; set it back, or begin another")


def with_scope_in_force(config: Config) -> Config:
    """Return the configuration with the scope in force: in an offline crawl only exclusions apply."""
    if config.crawl.mode != "offline":
        return config
    chosen = {
        "scope": "any", "own_site": False, "whitelist_file": "", "include": (), "include_file": "", "depth_max": None,
        "embeds": True, "follow": LINK_TYPES,
    }  # fmt: skip
    return replace(config, scope=replace(config.scope, **chosen))


def crawl_options_of(config: Config) -> CrawlOptions:
    """Return the crawl options, with a patience that is no shorter than the delays that the operator configured."""
    options = config.crawl
    if options.patience_s is None:
        return options
    return replace(options, patience_s=max(options.patience_s, _longest_delay_s(config) + 1.0))


def short_patience(config: Config) -> str:
    """Return a sentence about a patience that the operator set and that is raised; empty: it is not."""
    given = config.crawl.patience_s
    least_s = _longest_delay_s(config)
    if given is None or given > least_s or "crawl.patience_s" not in config.origins:
        return ""
    return (
        f"crawl.patience_s = {given:g} is below the longest delay of the politeness in force ({least_s:g} s), "
        "which is waited for; lower that delay to end earlier"
    )


def _longest_delay_s(config: Config) -> float:
    rules = politeness_of(config)
    own_s = [max(one.delay_s_min, one.delay_s_max) for one in (rules, *rules.hosts.values())]
    return max(*own_s, rules.site_delay_s, rules.address_delay_s)


def retries_of(config: Config, dice: Dice) -> Retries:
    """Return the schedule of retries."""
    options = config.frontier
    return Retries(options.attempts_max, options.retry_s_first, options.retry_s_max, dice)


def url_seen_of(config: Config, epochs: Epochs, journals: Journals) -> UrlSeen:
    """Return the duplicate URL eliminator, with the backend that the crawl began with."""
    name = config.components.url_seen
    kind = config.seen.backend
    chosen = SEEN_COMPONENT if name else kind
    # Another backend would know none of the URLs. Crawls without this record had no choice of backends.
    first = b"rocksdb" if epochs.number > 1 and chosen != SEEN_COMPONENT else chosen.encode()
    begun = begun_with(epochs, SEEN_FORM, first).decode()
    if begun != chosen and SEEN_COMPONENT in (begun, chosen):
        began = "a component of its own" if begun == SEEN_COMPONENT else f"seen.backend = {begun!r}"
        raise ConfigError(f"components.url_seen: this crawl began with {began} and keeps it; set it back")
    if begun != chosen:
        raise ConfigError(f"seen.backend: this crawl began with {begun!r} and keeps it; set it back")
    if name:
        key = "components.url_seen"
        made = fitting(name, key, UrlSeen, epochs=epochs)
        return cast(
            "UrlSeen",
            naming(made, name, key, "offer", "way", "knows", "cut", "close", port=UrlSeen, offer=check_answers),
        )
    if kind == "rocksdb":
        return RocksUrlSeen(epochs, config.seen.popular_bytes_max // POPULAR_BYTES)
    if kind == "bloom":
        require("rbloom", "seen.backend=bloom")
    given = {"epochs": epochs} if kind == "memory" else {"epochs": epochs, "journals": journals, "options": config.seen}
    return cast("UrlSeen", build(SEEN_BACKENDS[kind], "seen.backend", **given))


def check_answers(answers: object, given: tuple[object, ...]) -> None:
    """Raise TypeError or ValueError unless there is one answer for each URL: otherwise links would be lost."""
    urls = given[0]
    if not isinstance(answers, Collection) or not isinstance(urls, Collection):
        raise TypeError(f"it returned a {type(answers).__name__}, not a list with an answer for each URL")
    if len(answers) != len(urls):
        raise ValueError(f"it returned {len(answers)} answers for {len(urls)} URLs")
    if wrong := [answer for answer in answers if answer not in (KNOWN, NEW, SHORTER)]:
        raise ValueError(f"it returned {wrong[0]!r}, not KNOWN (0), NEW (1) or SHORTER (2)")


def traps_of(config: Config, epochs: Epochs) -> Traps:
    """Return the detection of traps."""
    split = config.url.split
    return Traps(
        config.scope,
        lambda partition, host: epochs.get("content", watch_key(partition, host, split)),
        lambda partition, fingerprint: epochs.get("page", page_key(partition, fingerprint)) is not None,
    )


def copies_of(config: Config, epochs: Epochs, content_seen: ContentSeen, urls: UrlMemory) -> CopyMarks:
    """Return the tests for copies and near-duplicates."""
    near_seen = near_seen_of(config, epochs)
    crawl = config.crawl
    return CopyMarks(
        content_seen,
        NearCopies(near_seen, partial(sketch, lowest=False)) if near_seen is not None else None,
        urls,
        follow=crawl.follow_copies,
        every=config.frontier.strategy == "walk",
        process=crawl.process_copies,
    )


def near_seen_of(config: Config, epochs: Epochs) -> NearContentSeen | None:
    """Return the test for near-duplicates; None if it is not enabled."""
    options = config.seen
    if options.near_scope == "off":
        return None
    return NearContentSeen(epochs, options.near_scope, options.near_bits_max, config.url.split)


def content_seen_of(config: Config, epochs: Epochs) -> ContentSeen:
    """Return the content-seen test."""
    name = config.components.content_seen
    if name:
        key = "components.content_seen"
        made = fitting(name, key, ContentSeen, epochs=epochs)
        return cast("ContentSeen", naming(made, name, key, "find", "remember", port=ContentSeen))
    scope = config.seen.content_scope
    if not config.crawl.process_copies and config.origin("seen.content_scope") == "default":
        scope = "shard"
    return ExactContentSeen(epochs, scope, config.url.split)


def resolver_of(config: Config, clock: Clock, archives: Archives) -> Resolver:
    """Return the resolver."""
    name = config.components.resolver
    if name:
        key = "components.resolver"
        made = fitting(name, key, Resolver, options=config.resolve, clock=clock)
        made = naming(made, name, key, "cached", "resolve", port=Resolver)
        return GuardedResolver(cast("Resolver", made), allow_private=config.resolve.allow_private)
    on_answer = partial(archives.add_prerequisite, via="", link_type="dns") if config.archive.warc_dns else None
    return DnsResolver(config.resolve, clock, on_answer)


def close(thing: object) -> None:
    """Close a component that has a `close` method."""
    closes = getattr(thing, "close", None)
    if closes is not None:
        closes()


def budget_of(config: Config) -> BudgetOptions:
    """Return the budgets, with those in the overrides of hosts."""
    pages = {
        host: replace(config.budget.overrides.get(host, BudgetOverride()), pages=one.pages)
        for host, one in config.host.overrides.items()
        if one.pages is not None
    }
    return replace(config.budget, overrides={**config.budget.overrides, **pages}) if pages else config.budget


def politeness_of(config: Config) -> Politeness:
    """Return the politeness rules."""
    return politeness(config.politeness, config.host.overrides)


def judges_again(chain: Chain, epochs: Epochs) -> bool:
    """Return whether the filters differ from those at the crawl's beginning, and store these at the first start."""
    return begun_with(epochs, FILTERS, chain.made_of) != chain.made_of


def explainers_of(config: Config, epochs: Epochs) -> list[Callable[[Url], dict[str, object]]]:
    """Return functions that tell what features know of a URL; imports nothing of features that are off."""
    explainers: list[Callable[[Url], dict[str, object]]] = [partial(page_facts, epochs)]
    if config.crawl.render == "auto":
        from gossamer.features.render.choice import evidence_of  # noqa: PLC0415 - as the docstring says

        explainers.append(partial(evidence_of, epochs))
    return explainers


def policy_of(name: str) -> RevisitPolicy:
    """Return the policy with a name (`revisit.policy`). Raises ConfigError: there is no such policy."""
    if name in POLICIES:
        return POLICIES[name]()
    component(name, "revisit.policy", POLICIES, "policy")
    made = fitting(name, "revisit.policy", RevisitPolicy)
    return cast("RevisitPolicy", naming(made, name, "revisit.policy", "rate", port=RevisitPolicy))
