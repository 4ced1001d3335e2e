"""Fetching: one page as a crawl fetches it, with what the crawl would do with its links. Nothing is saved."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gossamer.api.crawler import Crawler
from gossamer.api.life import ShardLife
from gossamer.api.page import CrawledPage
from gossamer.assembly.modules import item_modules, text_of
from gossamer.assembly.revisits import scope_options
from gossamer.assembly.values import Shard
from gossamer.config import Config
from gossamer.engine.delivery import Delivery
from gossamer.engine.loop import End
from gossamer.model.errors import ConfigError
from gossamer.model.links import EMBED, Found, Link, Visit
from gossamer.model.modules import ModuleError
from gossamer.model.pages import PageRow
from gossamer.stages.scope.chain import Chain
from gossamer.world.clock import WallClock

LINKS_MAX = 10_000
FETCH_S_MAX = 120.0
"""How long a page may take with its robots.txt, redirects and delays, unless `limits.max_time_s` says less."""
CONTENT_MODULES = ("main_text", "markdown")


class Judged(msgspec.Struct, frozen=True):
    """A link of the page, and why a crawl would not follow it."""

    link: Found
    reason: str
    """Empty: it would be followed."""


class Fetched(msgspec.Struct, frozen=True):
    """One page."""

    page: CrawledPage
    redirects: list[str]
    """The addresses that led to it."""
    links: list[Judged]


async def fetch_of(url: str, config: Config) -> Fetched:
    """Fetch one page, with redirects, by the rules of a configuration: robots.txt, delays, filters, guards. Raises
    ConfigError: the address is not a URL, or the page could not be requested in time; the line says why.
    """
    with tempfile.TemporaryDirectory(prefix="gossamer-fetch-") as folder:
        one = _OnePage(url, config, Path(folder) / "crawl")
        end = await one.run()
        final = [page for page in one.pages if page.outcome != "redirected"]
        if end == "finished" and not final:
            final = one.pages[-1:]  # A redirect that leads nowhere.
        if not final:
            raise ConfigError(f"{one.pages[-1].url if one.pages else url} was not fetched: {one.why()}")
        before = [page for page in one.pages if page.outcome == "redirected" and page is not final[-1]]
        return Fetched(final[-1], [page.url for page in before], one.links)


def _for_one_page(config: Config, url: str) -> Config:
    """Return the configuration for a crawl that ends with its seed, and leaves nothing that takes time."""
    modules = dict.fromkeys((*config.process.modules, *CONTENT_MODULES))
    time_s = min(config.limits.max_time_s or FETCH_S_MAX, FETCH_S_MAX)
    changes: dict[str, dict[str, object]] = {
        "seeds": {"urls": (url,), "file": "", "domains_file": "", "segments": (), "watch_directory": ""},
        "scope": {"depth_max": 0, "embeds": False},
        "discovery": {"sitemaps": "never", "sitemap_guess": False, "feeds": "never"},
        "crawl": {"mode": "batch", "commit_s": 0.05, "patience_s": time_s},
        "limits": {"max_time_s": time_s},
        "frontier": {"attempts_max": 1, "unanswered_failures_max": 2},
        "robots": {"unanswered_first_s": 1.0},
        "process": {"modules": tuple(modules), "text": True},
        "archive": {"warc": False, "store": ""},
        "search": {"enabled": False},
        "console": {"port": None},
        "cluster": {"workers": 1},
    }
    return replace(config, **{name: replace(getattr(config, name), **values) for name, values in changes.items()})


class _OnePage(Crawler):
    """A crawl of one page that judges the page's links by the whole configuration before it ends."""

    def __init__(self, url: str, config: Config, output: Path) -> None:
        super().__init__(output=output, config=_for_one_page(config, url))
        self._judges = config
        self.pages: list[CrawledPage] = []
        self.links: list[Judged] = []
        self._proxy_error = ""
        self._waits_for = ""
        self.on_note(self._check_proxy)

    async def run(self) -> End:
        self._delivery = Delivery()
        return await super().run()

    def _check_proxy(self, _sentence: str) -> None:
        """End the crawl if its proxy fails: for one page, an error helps more than waiting for the proxy."""
        if self._shard is not None and (error := self._shard.controls.telemetry.counters.proxy_error):
            self._proxy_error = f"proxy: {error}"
            self.stop(now=True)

    def _attach(self, life: ShardLife) -> None:
        super()._attach(life)
        life.finish = partial(self._take_pages, life.shard)

    async def _take_pages(self, shard: Shard) -> None:
        """Take the pages, while robots.txt and filters are at hand. Files are not finished: they are thrown away."""
        assert self._delivery is not None
        self._delivery.end()
        self._waits_for = next((one.reason for one in shard.ring.frontier.next_hosts(1)), "")
        chain = shard.ring.scope.chain_of(scope_options(self._judges))
        while (visited := await self._delivery.next()) is not None:
            page = CrawledPage(visited, partial(text_of, config=self.config))
            self.pages.append(page)
            self.links = [Judged(found, self._reason(found, page, shard, chain)) for found in visited.links[:LINKS_MAX]]

        last = self.pages[-1].row if self.pages else None
        if last is not None and last.outcome == "redirected":
            last.error = last.error or self._dead_end(last, shard, chain)

    def _dead_end(self, last: PageRow, shard: Shard, chain: Chain) -> str:
        """Return why a redirect is not followed."""
        target = shard.ring.urls.namer.name(last.redirect_to)
        assert target is not None, "else it is no redirect"
        link = Link(target, chain.effective_type("redirect", target), last.depth, len(self.pages), last.url)
        rule = chain.explain(link)
        if not rule:
            return f"it redirects to {target.text}, which was requested before"
        detail = chain.detail(link)
        return f"it redirects to {target.text}, which the filter {rule} rejects{f': {detail}' if detail else ''}"

    def _reason(self, found: Found, page: CrawledPage, shard: Shard, chain: Chain) -> str:
        url = shard.ring.urls.namer.name(found.url)
        if url is None:
            return "it is not an address that can be visited"
        if found.nofollow and found.link_type != EMBED:
            return "its rel says nofollow"
        link = Link(url, chain.effective_type(found.link_type, url), page.depth + 1, 0, page.url)
        rule = chain.explain(link)
        if rule:
            detail = chain.detail(link)
            return f"the filter {rule} rejects it{f': {detail}' if detail else ''}"
        visit = Visit(url, link.depth, 0, link.link_type, page.url)
        verdict = shard.ring.features.middlewares.judge(visit, WallClock().now())
        return verdict.reason if verdict.outcome else ""

    def why(self) -> str:
        """Return why no page was fetched."""
        return self._proxy_error or self._waits_for or f"no answer within {self.config.limits.max_time_s:g} s"


def items_of(page: CrawledPage, config: Config) -> Iterator[tuple[str, list[dict[str, object]], list[ModuleError]]]:
    """Yield the items of a page by the rules and extractors of a configuration: table, items, and what did not fit.
    Raises ConfigError: an extractor cannot be imported.
    """
    found = item_modules(config).inside.process(page.parsed)
    for table, rows in found.findings.rows.items():
        yield table, rows, [one for one in found.errors if one.module.startswith(f"{table}.")]
