"""Assembly: a configuration becomes a shard. The one place that builds its components.

Takes    Config, a directory
Gives    Kept, Ring, Outputs and Controls, closed together as Assembled; Opened, to be asked
Keeps    nothing
Imports  archive, cluster, config, crawl, fetch, frontier, model, plugins, ports, process, resolve, revisit, robots,
         scope, seen, state, url, world
Touches  the crawl's directory, its lock, checkpoints, the index
Never    decides what a component decides
"""

from gossamer.archive.cdxj import INDEX
from gossamer.assembly.building import Assembled, assemble
from gossamer.assembly.home import Home, homes
from gossamer.assembly.integrity import accept_loss, damaged_store, lost_views, require_files
from gossamer.assembly.parts import LOCK_S_MAX, budget_of, chosen_modules, examiner, locked, protocol_modules, text_of
from gossamer.assembly.scaling import Scaled, scale
from gossamer.assembly.schemes import namer_for
from gossamer.assembly.stopped import Opened, open_stopped
from gossamer.assembly.values import Controls, Kept, Outputs, Ring, Scope, Settings

__all__ = [
    "INDEX",
    "LOCK_S_MAX",
    "Assembled",
    "Controls",
    "Home",
    "Kept",
    "Opened",
    "Outputs",
    "Ring",
    "Scaled",
    "Scope",
    "Settings",
    "accept_loss",
    "assemble",
    "budget_of",
    "chosen_modules",
    "damaged_store",
    "examiner",
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
