"""Schema: the families of a shard's store, and each durable key in them that belongs to no URL, host or site.

Every key begins with two bytes of partition. Keys of hosts and URLs are built by their owners under the partition of
their site (for a split site: of the host), and move with it. A shard's own key begins with `META_PARTITION`, after all
partitions; it is declared only here. `assembly.scaling` derives from `sharing` what a new shard gets.
"""

from enum import Enum
from typing import Final, NamedTuple

FAMILIES: Final = (
    "queue", "host", "ready", "sleep", "due", "seen", "content", "page", "outbox", "inbox", "meta", "deferred",
    "account", "walk", "scope", "trap", "revisit", "rhythm",
    "hints", "websub", "waiting", "cookie",
)  # fmt: skip
"""Redo records name families by their place, so new ones go last."""
HOSTS_STORE: Final = "hosts store"
"""In place of a family: the key is in the store of hosts that is kept from crawl to crawl."""
META_PARTITION: Final = b"\xff\xff"
"""The last partition is 4095, so keys of the shard itself sort after all partitions."""
PARTITIONED: Final = (b"\0\0", META_PARTITION)
"""First key and end key (not included) of everything that belongs to a partition."""
LAST: Final = b"\xff" * 8
"""Sorts after all keys."""


def partition_range(first: int, end: int) -> tuple[bytes, bytes]:
    """Return the first key and the end key (not included) of the partitions in [`first`, `end`)."""
    return first.to_bytes(2), end.to_bytes(2)


class FamilyPart(NamedTuple):
    """The keys of partitions that one module has in a family: one of its marks follows the partition."""

    family: str
    marks: bytes
    owner: str


WALKED: Final = FamilyPart("walk", b"pni", "gossamer.stages.frontier.walked")
LISTED: Final = FamilyPart("walk", b"s", "gossamer.stages.seen.moved")
"""It shares a family, because older versions cannot open a store with one more."""
SUBSCRIBED: Final = FamilyPart(
    "websub", b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", "gossamer.features.revisit.websub"
)
MENTIONED: Final = FamilyPart("websub", b"\0", "gossamer.features.mentions.mentions")
SHARED_FAMILIES: Final = (WALKED, LISTED, SUBSCRIBED, MENTIONED)


class Sharing(Enum):
    """Treatment of a key's value when the number of shards changes."""

    COPIED = "copied"
    """The same in all shards: a new shard gets the value of shard 0."""
    ADDED = "added"
    """Separate for each shard: a new one begins without a value, and that of a removed one is added to shard 0's."""
    OWN = "own"
    """Separate for each shard: a new shard begins without a value, and that of a removed shard is deleted."""
    CLEARED = "cleared"
    """About other shards, by their numbers: deleted in all shards."""


class DurableKey(NamedTuple):
    """A declared key, or a prefix of keys."""

    family: str
    key: bytes
    owner: str
    """The module that writes it."""
    value: str
    """The type that a MessagePack value decodes to; `bytes` for a value that is kept as it is."""
    sharing: Sharing
    is_prefix: bool
    version: int
    """Version of the value's layout: increased by 1 with each change that cannot read the value of an older crawl."""

    @property
    def range(self) -> tuple[bytes, bytes]:
        """Return the first key that this declares, and the end key (not included)."""
        return under(self.key) if self.is_prefix else (self.key, self.key + b"\0")


_declared: list[DurableKey] = []


def _key(
    family: str, name: bytes, owner: str, value: str, sharing: Sharing, *, prefix: bool = False, version: int = 1
) -> bytes:
    key = META_PARTITION + name
    _declared.append(DurableKey(family, key, owner, value, sharing, prefix, version))
    return key


_COPIED = Sharing.COPIED
_ADDED = Sharing.ADDED
_OWN = Sharing.OWN
_CLEARED = Sharing.CLEARED

# The store itself.
REDO: Final = _key("meta", b"redo:", "gossamer.state.redo", "gossamer.state.redo.Chunk", _OWN, prefix=True)
COMMITTED: Final = _key("meta", b"committed", "gossamer.state.redo", "gossamer.state.redo.CommitRecord", _OWN)
APPLIED: Final = _key("meta", b"applied", "gossamer.state.redo", "gossamer.state.redo.CommitRecord", _OWN)

# What a crawl began with, and keeps.
URL_RULES: Final = _key("meta", b"url_rules", "gossamer.assembly.schemes", "bytes", _COPIED)
ADDED_SCHEMES: Final = _key("meta", b"schemes", "gossamer.assembly.schemes", "dict[str, int]", _COPIED)
"""Schemes of components, each with its default port."""
OFFLINE: Final = _key("meta", b"offline", "gossamer.assembly.parts", "bytes", _COPIED)
SEEN_FORM: Final = _key("meta", b"seen_form", "gossamer.assembly.parts", "bytes", _COPIED)
FRONTIER_COMPONENT: Final = _key("meta", b"components.frontier", "gossamer.assembly.frontiers", "bytes", _COPIED)
FILTERS: Final = _key("meta", b"filters", "gossamer.assembly.parts", "bytes", _COPIED)
COMPONENTS: Final = _key("meta", b"component:", "gossamer.plugins", "bytes", _COPIED, prefix=True)
"""For third-party components: the name of one follows."""

# Seeds, segments and settings.
SEEDED: Final = _key("meta", b"seeded", "gossamer.api.seeding", "bytes", _COPIED)
SEGMENTS: Final = _key(
    "meta", b"segment:", "gossamer.api.feeding", "gossamer.api.feeding.SegmentProgress", _COPIED, prefix=True
)
"""The segment's identity follows."""
CHANGES: Final = _key(
    "meta", b"set:", "gossamer.api.setting", "list[gossamer.api.setting.StoredSetting]", _COPIED, prefix=True
)
"""The number of the epoch follows."""
IMPORTED: Final = _key(
    "meta", b"import:", "gossamer.results.imports.progress", "gossamer.results.imports.progress.SourceProgress",
    _COPIED, prefix=True,
)  # fmt: skip
"""The SHA-256 of an archive that was imported follows."""

# The scope.
ROOTS: Final = _key("meta", b"roots:", "gossamer.engine.pending_scope", "bytes", _COPIED, prefix=True)
"""The number of the epoch follows."""
EXCLUDED: Final = _key("meta", b"excluded", "gossamer.engine.pending_scope", "bytes", _COPIED)
REJECTED: Final = _key("meta", b"rejected", "gossamer.engine.pending_scope", "dict[str, int]", _OWN)
PENDING_SCOPE: Final = _key(
    "meta", b"beyond", "gossamer.engine.pending_scope", "gossamer.engine.pending_scope.PendingCounts", _OWN
)
"""Counted again after scaling."""

# What was done.
MANIFEST: Final = _key(
    "meta", b"manifest", "gossamer.engine.commit", "list[gossamer.state.journals.ManifestEntry]", _ADDED
)
TOTALS: Final = _key("meta", b"tally", "gossamer.engine.counters", "gossamer.engine.counters.Totals", _ADDED)
SUSPECTS: Final = _key("meta", b"suspects", "gossamer.engine.quarantine", "dict[int, str]", _OWN)
ENROLLED: Final = _key("meta", b"enrolled", "gossamer.features.revisit.revisiting", "bytes", _OWN)
"""The lowest of all shards' after scaling."""
ABSORBED: Final = _key("meta", b"absorbed", "gossamer.assembly.scaling", "int", _OWN)
"""Version of the partition map when the shard last added the values of removed shards."""

# The frontier.
FRONTIER_COUNTS: Final = _key(
    "meta", b"frontier", "gossamer.stages.frontier.frontier", "gossamer.stages.frontier.record.QueueCounts", _ADDED
)
CLOCK_SET_BACK: Final = _key(
    "meta", b"set_back", "gossamer.stages.frontier.set_back", "gossamer.stages.frontier.set_back.SetBack", _OWN
)
"""Only while hosts are brought to a clock that was set back."""
BUDGET_ROUND: Final = _key(
    "meta", b"budgets", "gossamer.stages.frontier.budgets", "gossamer.stages.frontier.budgets.Round", _COPIED
)
LINKING_MAX: Final = _key("meta", b"linking_max", "gossamer.stages.frontier.accounts", "float", _COPIED)
WALK_COUNTS: Final = _key(
    "walk", b"c", "gossamer.stages.frontier.walked", "gossamer.stages.frontier.walked.WalkCounts", _OWN
)
WALKERS: Final = _key(
    "walk", b"w", "gossamer.stages.frontier.walked", "gossamer.stages.frontier.walked.Walker", _OWN, prefix=True
)
"""The walker's number follows."""
WALKED_HOSTS: Final = _key("walk", b"h", "gossamer.stages.frontier.walked", "tuple[int, str]", _OWN, prefix=True)
"""The host's number follows."""

# Visits again, duplicates.
REVISIT_STATE: Final = _key(
    "meta", b"revisit", "gossamer.features.revisit.state", "gossamer.features.revisit.state.RevisitState", _ADDED
)
"""Due pages are counted again after scaling."""
HELD_LINKS: Final = _key(
    "seen", b"held:", "gossamer.stages.seen.held", "gossamer.stages.seen.held.HeldPart", _OWN, prefix=True
)
"""Links that await the duplicate check: an increasing number follows."""
CONTENT: Final = _key("content", b"", "gossamer.stages.seen.content", "bytes", _OWN, prefix=True)
"""Where duplicates are found within a shard: the digest, or a block of the simhash, follows."""

# Sessions.
COOKIES_TAKEN: Final = _key("meta", b"cookies", "gossamer.features.logins.sessions", "bytes", _COPIED)
"""Digest of the cookie file that was imported."""

# Other shards.
OUTBOX: Final = _key("meta", b"outbox", "gossamer.cluster.channels", "gossamer.cluster.channels.OutboxRecord", _OWN)
"""Scaling repacks the content of the outboxes."""
BATCHES: Final = _key("outbox", b"", "gossamer.cluster.channels", "gossamer.cluster.frames.Batch", _OWN, prefix=True)
"""The receiver's number and the batch's follow."""
PLACES: Final = _key("meta", b"places", "gossamer.cluster.places", "gossamer.cluster.places.PlacesRecord", _CLEARED)
"""Partitions that moved while the crawl ran, which are not in the map's file."""
POSITIONS: Final = _key("inbox", b"", "gossamer.cluster.inbox", "dict[int, int]", _CLEARED, prefix=True)
"""The sender's number follows."""

# What is kept of hosts from crawl to crawl.
HOSTS_VERSION: Final = _key(HOSTS_STORE, b"version", "gossamer.state.store", "bytes", _OWN)
HOSTS_ROUND: Final = _key(HOSTS_STORE, b"round", "gossamer.stages.frontier.hosts", "tuple[int, float]", _OWN)
KEYS: Final = tuple(_declared)


def with_sharing(sharing: Sharing) -> list[DurableKey]:
    """Return the keys with this kind of sharing."""
    return [one for one in KEYS if one.sharing is sharing]


def under(prefix: bytes) -> tuple[bytes, bytes]:
    """Return the first key with a prefix, and the end key (not included)."""
    return prefix, LAST if prefix == META_PARTITION else prefix[:-1] + bytes((prefix[-1] + 1,))
