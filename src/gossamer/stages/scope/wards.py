"""Wards: hosts whose templates are watched: the pages of each template, and the evidence of those with many."""

import msgspec

from gossamer.model.decodable import decodable
from gossamer.stages.scope.mirrors import Mirrors
from gossamer.stages.scope.templates import WATCHED_PAGES, NodeRecord, TemplateNode, node_of, templates_of

COUNTS_MAX = 64
NODES_MAX = 16
"""Templates of one host that are counted, the most frequent ones (Misra and Gries 1982), and that are watched (4 KB
each); of these, those with the fewest pages make room."""


@decodable
class WardRecord(msgspec.Struct, array_like=True, frozen=True):
    """The stored form of a watched host."""

    counts: dict[str, int]
    nodes: list[NodeRecord]


class Ward:
    """One watched host."""

    __slots__ = ("counts", "dirty", "mirrors", "nodes", "partition", "touched")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.counts: dict[str, int] = {}
        """Pages per template, while they are too few to watch it."""
        self.nodes: dict[str, TemplateNode] = {}
        self.mirrors = Mirrors()
        self.touched = False
        self.dirty = False
        """Whether a watched template changed: the next commit stores it. Counts alone may be lost with the process."""

    def node(self, name: str) -> TemplateNode | None:
        """Count a page of a template; return the template if it is watched, from now on or already."""
        self.touched = True
        node = self.nodes.get(name)
        if node is None:
            count = self.counts.get(name, 0) + 1
            if count <= WATCHED_PAGES:
                if len(self.counts) >= COUNTS_MAX and name not in self.counts:
                    self.counts = {one: pages - 1 for one, pages in self.counts.items() if pages > 1}
                else:
                    self.counts[name] = count
                return None
            if len(self.nodes) >= NODES_MAX and not self._make_room():
                return None
            self.counts.pop(name, None)
            node = self.nodes[name] = TemplateNode(count - 1)
        node.visit()
        return node

    @property
    def is_suspected(self) -> bool:
        for node in self.nodes.values():  # noqa: SIM110 - for each page, so without a generator
            if node.is_suspected:
                return True
        return False

    @property
    def pages_max(self) -> int:
        """Pages of the template that has most."""
        return max([node.pages for node in self.nodes.values()], default=0)

    def first_watched(self, address: str) -> TemplateNode | None:
        """Return the narrowest watched template of an address, which gets its evidence."""
        if not self.nodes:
            return None
        for name in templates_of(address):
            if name in self.nodes:
                return self.nodes[name]
        return None

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(WardRecord(self.counts, [node.record(name) for name, node in self.nodes.items()]))

    def load(self, dumped: bytes) -> None:
        record = msgspec.msgpack.decode(dumped, type=WardRecord)
        self.counts = record.counts
        self.nodes = {node.name: node_of(node) for node in record.nodes}

    def _make_room(self) -> bool:
        idle = [name for name, node in self.nodes.items() if not node.is_suspected]
        if idle:
            del self.nodes[min(idle, key=lambda name: self.nodes[name].pages)]
        return bool(idle)
