"""Assembly: a configuration becomes a shard. The one place that builds its components.

Takes    Config, a directory
Gives    Kept, Ring, Outputs and Controls, closed together as Assembled; Opened, to be asked
Keeps    nothing
Imports  archive, cluster, config, crawl, fetch, frontier, identity, model, plugins, ports, process, render, resolve,
         revisit, robots, scope, seen, state, url, world
Touches  the crawl's directory, its lock, checkpoints, the index
Never    decides what a component decides
"""

from gossamer.archive.cdxj import INDEX
from gossamer.assembly.building import Assembled, assemble
from gossamer.assembly.home import Home, homes
from gossamer.assembly.integrity import accept_loss, damaged_store, half_forgotten, lost_views, require_files
from gossamer.assembly.parts import LOCK_S_MAX, budget_of, chosen_modules, examiner, locked, text_of
from gossamer.assembly.protocols import protocol_modules
from gossamer.assembly.scaling import Scaled, scale
from gossamer.assembly.schemes import namer_for
from gossamer.assembly.stopped import Opened, open_stopped
from gossamer.assembly.values import Controls, CrawlRing, CrawlScope, DurableState, Outputs, Settings

__all__ = [
    "INDEX",
    "LOCK_S_MAX",
    "Assembled",
    "Controls",
    "CrawlRing",
    "CrawlScope",
    "DurableState",
    "Home",
    "Opened",
    "Outputs",
    "Scaled",
    "Settings",
    "accept_loss",
    "assemble",
    "budget_of",
    "chosen_modules",
    "damaged_store",
    "examiner",
    "half_forgotten",
    "homes",
    "locked",
    "lost_views",
    "namer_for",
    "open_stopped",
    "protocol_modules",
    "require_files",
    "scale",
    "text_of",
]
