"""Render choice: which pages are rendered with `--render auto`, learned by host from samples with and without it.

Pages of a host form a group if they share a URL template and a signal in their markup, which shows that scripts create
content. A group is rendered while rendering gains content, and otherwise sampled at a falling rate. Groups without a
sample are sampled too, more often if other first samples with the same signal gained on that host. Nothing here waits
or reads a clock: `rendering` calls `choose` before and `learn` after.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from gossamer.stages.process.scripted import SIGNALS
from gossamer.stages.scope.templates import templates_of
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url
from gossamer.world.dice import Dice

FOR_SIGNAL = "signal"
FOR_SAMPLE = "sample"
FOR_GAIN = "gain"
BUDGET = "budget"
"""Why a page is rendered (`PageRow.render_reason`); `budget`: why a chosen page is not."""
WAIT_FIRST: Final = 3.0
"""Mean number of pages between the first sample without a gain and the next sample."""
WAIT_GROWTH = 2.0
WAIT_GROWTH_NEW = 1.5
WAIT_MAX = 10_000.0
"""Growth of that number a sample: of a group, and of groups without a sample, which may all differ; and its bound."""
GAIN_WEIGHT: Final = 0.3
"""Weight of the last page in the share of pages that gain."""
GAINS_FROM: Final = 0.25
"""Share from which a group is rendered. If every page gained, the fourth in a row without a gain ends rendering."""
ALONE: Final = 3
"""First pages of a group that are rendered one after another, also after a page that gained nothing."""
TEXT_GAIN_BYTES_MIN = 200
TEXT_GAIN_SHARE_MIN = 0.5
"""More text counts as a gain if it exceeds both, so that a cookie notice does not count."""
HOSTS_MAX: Final = 500
"""Hosts in memory, 5 KB each, at most 40 KB; others are in the store."""
GROUPS_MAX: Final = 128
"""Groups of one host; those with the fewest pages are dropped."""
KNOWN_MAX: Final = 256
"""Recently gained links of a host that are remembered, so that a menu made by a script is a gain only once."""
_KEY: Final = b"\0gains:"


def gains_text(before: int, after: int) -> bool:
    """Return whether the gain of text counts; both arguments are in bytes."""
    return after - before >= max(TEXT_GAIN_BYTES_MIN, TEXT_GAIN_SHARE_MIN * before)


class RenderGroup(msgspec.Struct, array_like=True):
    """Pages of a host with a URL template and a signal; or all with a signal, and first samples of each template."""

    pages: int = 0
    rendered: int = 0
    gained: int = 0
    """Rendered pages that gained links or text."""
    share: float = 0.0
    """The same as a share, weighted towards recent pages."""
    due: int = 0
    """The next sample is taken when `pages` reaches this."""
    wait: float = WAIT_FIRST
    last_gained: bool = False

    @property
    def gains(self) -> bool:
        return self.rendered > 0 and self.share >= GAINS_FROM

    def note(self, *, gained: bool) -> None:
        """Count a rendered page."""
        self.rendered += 1
        self.gained += gained
        self.share = float(gained) if self.rendered == 1 else self.share + (gained - self.share) * GAIN_WEIGHT
        self.last_gained = gained
        if gained:
            self.wait = WAIT_FIRST

    def put_off(self, dice: Dice, growth: float = WAIT_GROWTH) -> None:
        """Schedule the next sample, later each time. Called before the result: a fast host has many pages by then."""
        self.due = self.pages + round(self.wait * dice.uniform(0.5, 1.5))
        self.wait = min(self.wait * growth, WAIT_MAX)

    def says(self) -> str:
        if not self.rendered:
            return f"{self.pages:,} pages, none rendered yet"
        found = f"{self.gained:,} of {self.rendered:,} rendered pages gained links or text"
        if self.gains:
            return f"{found}; they are rendered"
        return f"{found}; the next sample is due in {max(0, self.due - self.pages):,} pages"


class RenderHostRecord(msgspec.Struct, array_like=True, frozen=True):
    """The stored form of a host."""

    groups: dict[int, RenderGroup]
    known: list[int]


class _Host:
    """Statistics of one host."""

    __slots__ = ("dirty", "groups", "known", "partition")

    def __init__(self, partition: int, record: RenderHostRecord | None = None) -> None:
        self.partition = partition
        self.groups: dict[int, RenderGroup] = dict(record.groups) if record is not None else {}
        self.known: dict[int, None] = dict.fromkeys(record.known) if record is not None else {}
        """Fingerprints of gained links, the most recent last."""
        self.dirty = False

    def group(self, number: int) -> RenderGroup:
        found = self.groups.get(number)
        if found is None:
            if len(self.groups) >= GROUPS_MAX:
                del self.groups[min(self.groups, key=lambda one: (self.groups[one].gains, self.groups[one].pages))]
            found = self.groups[number] = RenderGroup()
        return found

    def fresh(self, fingerprints: Iterable[int]) -> int:
        """Return how many links were not gained recently, and remember them."""
        known = self.known
        count = 0
        for one in fingerprints:
            count += one not in known
            known.pop(one, None)
            known[one] = None
        while len(known) > KNOWN_MAX:
            del known[next(iter(known))]
        return count


class Place(NamedTuple):
    """Key of the group of a page."""

    partition: int
    host: str
    signal: str
    template: str


class RenderChoice:
    """Chooses pages to render. A page with scripts costs about 5 µs in addition to finding its signal."""

    def __init__(self, epochs: Epochs, dice: Dice) -> None:
        self._epochs = epochs
        self._dice = dice
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def sample_key(self, place: Place) -> tuple[str, str, str] | None:
        """Return a key if a page should wait while another with it is rendered; None if that would hardly matter."""
        pool, group = self._groups(place)
        if group.rendered and (not group.gains or (group.last_gained and group.rendered >= ALONE)):
            return None
        return place.host, place.signal, "" if place.signal and not pool.rendered else place.template

    def choose(self, place: Place) -> str:
        """Count a page; return why it is to be rendered, empty if it is not. Call `learn` with the result."""
        pool, group = self._groups(place)
        group.pages += 1
        pool.pages += 1
        reason = _reason(place, pool, group)
        if reason and reason != FOR_GAIN:
            if not group.rendered:
                pool.put_off(self._dice, WAIT_GROWTH_NEW)
            group.put_off(self._dice)
        return reason

    def learn(self, place: Place, links: Iterable[int], *, gains_text: bool) -> None:
        """Learn from a rendered page: `links` are fingerprints of those gained; empty if it was not rendered."""
        host = self._host(place)
        gained = host.fresh(links) > 0 or gains_text
        pool, group = self._groups(place)
        if not group.rendered:
            pool.note(gained=gained)
        group.note(gained=gained)
        host.dirty = True

    def cut(self, now: float) -> None:
        """Put changes into the open epoch. Counts of pages alone may be lost with the process."""
        for name, host in self._hosts.items():
            if host.dirty:
                self._put(name, host)

    def _groups(self, place: Place) -> tuple[RenderGroup, RenderGroup]:
        host = self._host(place)
        return host.group(_number(place.signal)), host.group(_number(place.signal, place.template))

    def _host(self, place: Place) -> _Host:
        host = self._hosts.get(place.host)
        if host is not None:
            self._hosts.move_to_end(place.host)
            return host
        if len(self._hosts) >= HOSTS_MAX:
            self._put(*self._hosts.popitem(last=False))
        host = self._hosts[place.host] = _Host(place.partition, _load_host(self._epochs, place.partition, place.host))
        return host

    def _put(self, name: str, host: _Host) -> None:
        record = RenderHostRecord(host.groups, list(host.known))
        self._epochs.put("content", _key(host.partition, name), msgspec.msgpack.encode(record))
        host.dirty = False


class RenderBudget:
    """Processor time that rendering may take: a share of the machine, of which two minutes are available in advance."""

    AHEAD_S: Final = 120.0
    SAMPLE_SHARE: Final = 0.5
    """Share of the advance for samples of pages without a signal."""
    PAGE_S: Final = 1.0
    """Estimated processor seconds of a page before one was rendered."""

    def __init__(self, share: float, processors: int, now: float) -> None:
        self._rate = share * processors
        self._left_s = self._ahead_s = self._rate * self.AHEAD_S
        self._at = now
        self._page_s = self.PAGE_S

    def allows(self, now: float, under_way: int, *, sample: bool) -> bool:
        """Return whether a page may be rendered in addition to `under_way` pages."""
        self._left_s = min(self._ahead_s, self._left_s + max(0.0, now - self._at) * self._rate)
        self._at = now
        kept = (1.0 - self.SAMPLE_SHARE) * self._ahead_s if sample else 0.0
        return self._left_s - under_way * self._page_s > kept

    def charge(self, cpu_s: float) -> None:
        self._left_s -= cpu_s
        self._page_s += (cpu_s - self._page_s) * 0.1


def place_of(url: Url, signal: str) -> Place:
    """Return the key of the group of a page."""
    return Place(url.partition, url.host, signal, templates_of(url.text)[0])


def evidence_of(epochs: Epochs, url: Url) -> dict[str, object]:
    """Return the evidence about rendering pages with a URL's host and template, a line for each signal."""
    host = _load_host(epochs, url.partition, url.host)
    if host is None:
        return {}
    template = templates_of(url.text)[0]
    lines = []
    for signal in SIGNALS:
        named = f"signal {signal}" if signal else "no signal"
        for about, number in ((template, _number(signal, template)), ("new templates", _number(signal))):
            if (group := host.groups.get(number)) is not None:
                lines.append(f"{about}, {named}: {group.says()}")
    return {"rendering": lines} if lines else {}


def _reason(place: Place, pool: RenderGroup, group: RenderGroup) -> str:
    if group.gains:
        return FOR_GAIN
    if group.rendered:
        return FOR_SAMPLE if group.pages >= group.due else ""
    if pool.gains or (not pool.rendered and pool.pages > pool.due):
        return FOR_SIGNAL if place.signal else FOR_SAMPLE
    return FOR_SAMPLE if pool.rendered and pool.pages >= pool.due else ""


def _number(signal: str, template: str = "") -> int:
    """Return the number of a group, a hash: a name would be longer, and would show addresses of removed pages."""
    return xxh3_64_intdigest(f"{signal} {template}".encode())


def _key(partition: int, host: str) -> bytes:
    return partition.to_bytes(2) + _KEY + xxh3_64_digest(host.encode())


def _load_host(epochs: Epochs, partition: int, host: str) -> RenderHostRecord | None:
    value = epochs.get("content", _key(partition, host))
    return _decode(value) if value is not None else None


_decode = msgspec.msgpack.Decoder(RenderHostRecord).decode
