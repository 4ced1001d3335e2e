"""Rendering: the browsers of a shard, as the configuration names them. Imported only where pages are rendered."""

from __future__ import annotations

from collections.abc import Callable
from platform import node
from typing import TYPE_CHECKING

from gossamer.assembly.home import Setup
from gossamer.engine.counters import Telemetry
from gossamer.engine.examine import Examiner
from gossamer.engine.optional import ShardExchange
from gossamer.features.render.behaviors import behaviors_of
from gossamer.features.render.browser import require_browser
from gossamer.features.render.choice import RenderBudget, RenderChoice
from gossamer.features.render.renderer import Renderer
from gossamer.features.render.rendering import Auto, Gates, PageRendering, PageResources
from gossamer.features.render.session import SiteSessions
from gossamer.model.links import Verdict
from gossamer.ports import PrerequisiteArchive
from gossamer.stages.frontier.scheduler import HostControl
from gossamer.stages.scope.chain import Chain
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.process import processors

if TYPE_CHECKING:
    from gossamer.features.logins.sessions import Sessions

    RenderGates = tuple[Namer, Chain, Callable[[Url, float], Verdict], HostControl, Sessions | None, ShardExchange]


def page_rendering(
    setup: Setup,
    gates: RenderGates,
    archive: PrerequisiteArchive,
    examiner: Examiner,
    telemetry: Telemetry,
    epochs: Epochs,
) -> PageRendering:
    """Return the renderer of pages; browsers start with the first pages. Raises ConfigError: there is no browser, it
    would run without a sandbox, or a file of behaviors cannot be read.
    """
    config = setup.config
    require_browser(config.render)
    own = behaviors_of(config.render.behavior_files)
    namer, chain, judge, control, sessions, exchange = gates
    kept = SiteSessions(sessions.jars.find, sessions.jars.keep, sessions.headers) if sessions is not None else None
    passes = Gates(namer, chain, judge, control, kept, exchange)
    resources = PageResources(passes, archive, examiner, telemetry, config.render)
    if sessions is not None:
        sessions.is_without_session = resources.is_without_session
    auto = None
    if config.crawl.render == "auto":
        budget = RenderBudget(config.render.cpu_share_max, processors(), telemetry.clock.now())
        auto = Auto(RenderChoice(epochs, setup.dice), budget)
    state = setup.home.directory / "state"
    places = [state / f"browser-{node()}-{n}.lock" for n in range(config.render.browsers) if setup.home.shards > 1]
    rendering = PageRendering(config.render, Renderer(config.render, own, places), resources, telemetry, auto)
    setup.closing.push_async_callback(rendering.close)
    return rendering
