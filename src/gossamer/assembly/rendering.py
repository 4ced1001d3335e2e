"""Rendering: the browsers of a shard, as the configuration names them. Imported only where pages are rendered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gossamer.assembly.home import Setup
from gossamer.engine.counters import Telemetry
from gossamer.engine.examine import Examiner
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


def page_rendering(
    setup: Setup,
    gates: tuple[Namer, Chain, Callable[[Url, float], Verdict], HostControl, Sessions | None],
    archive: PrerequisiteArchive,
    examiner: Examiner,
    telemetry: Telemetry,
    epochs: Epochs,
) -> PageRendering:
    """Return the renderer of pages; browsers start with the first pages.

    Raises:
        ConfigError: there is no browser, it would run without a sandbox, or a file of behaviors cannot be read.
    """
    config = setup.config
    require_browser(config.render)
    own = behaviors_of(config.render.behavior_files)
    namer, chain, judge, control, sessions = gates
    own_sessions = SiteSessions(sessions.jar, sessions.keep, sessions.headers) if sessions is not None else None
    resources = PageResources(
        Gates(namer, chain, judge, control, own_sessions), archive, examiner, telemetry, config.render
    )
    if sessions is not None:
        sessions.is_without_session = resources.is_without_session
    auto = None
    if config.crawl.render == "auto":
        budget = RenderBudget(config.render.cpu_share_max, processors(), telemetry.clock.now())
        auto = Auto(RenderChoice(epochs, setup.dice), budget)
    rendering = PageRendering(config.render, Renderer(config.render, own), resources, telemetry, auto)
    setup.closing.push_async_callback(rendering.close)
    return rendering
