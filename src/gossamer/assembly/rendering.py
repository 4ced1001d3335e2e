"""Rendering: the browsers of a shard, as the configuration names them. Imported only where pages are rendered."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.assembly.home import Setup
from gossamer.engine.counters import Telemetry
from gossamer.engine.examine import Examiner
from gossamer.features.render.behaviors import behaviors_of
from gossamer.features.render.browser import require_browser
from gossamer.features.render.choice import RenderBudget, RenderChoice
from gossamer.features.render.renderer import Renderer
from gossamer.features.render.rendering import Auto, Gates, PageRendering, PageResources
from gossamer.model.errors import ConfigError
from gossamer.model.links import Verdict
from gossamer.ports import PrerequisiteArchive
from gossamer.stages.frontier.scheduler import HostControl
from gossamer.stages.scope.chain import Chain
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.process import processors


def page_rendering(
    setup: Setup,
    gates: tuple[Namer, Chain, Callable[[Url, float], Verdict], HostControl],
    archive: PrerequisiteArchive,
    examiner: Examiner,
    telemetry: Telemetry,
    epochs: Epochs,
) -> PageRendering:
    """Return the renderer of pages; browsers start with the first pages.

    Raises:
        ConfigError: there is no browser, it would run without a sandbox, a file of behaviors cannot be read, or the
        crawl has cookies or logins.
    """
    config = setup.config
    if config.cookies.is_on or config.login.rules:
        raise ConfigError(
            "crawl.render: browsers get no cookies; leave out [cookies] and [login], or set crawl.render = 'never'"
        )
    require_browser(config.render)
    own = behaviors_of(config.render.behavior_files)
    resources = PageResources(Gates(*gates), archive, examiner, telemetry, config.render)
    auto = None
    if config.crawl.render == "auto":
        budget = RenderBudget(config.render.cpu_share_max, processors(), telemetry.clock.now())
        auto = Auto(RenderChoice(epochs, setup.dice), budget)
    rendering = PageRendering(config.render, Renderer(config.render, own), resources, telemetry, auto)
    setup.closing.push_async_callback(rendering.close)
    return rendering
