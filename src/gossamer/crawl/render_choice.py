"""Choice of the pages that are rendered (`--render auto`): learned for each host from samples that are taken both ways.

Pages of a host are alike that share a URL template and a signal in their markup that scripts make them. Such a group is
rendered while that gains, and sampled at a falling rate where it does not. Of groups without a sample some are sampled
too: the more, the more first samples with their signal gained on that host. Nothing here waits or reads a clock:
`rendering` asks before, and reports after.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from gossamer.process.scripted import SIGNALS
from gossamer.scope.templates import templates_of
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url
from gossamer.world.dice import Dice

FOR_SIGNAL, FOR_SAMPLE, FOR_GAIN, OVER_BUDGET = "signal", "sample", "gain", "budget"
"""Why a page is rendered (`PageRow.render_reason`), and why one is not that would have been."""
WAIT_FIRST: Final = 3.0
"""Pages between the first sample without a gain and the next, on average."""
WAIT_GROWTH, WAIT_GROWTH_NEW, WAIT_MAX = 2.0, 1.5, 10_000.0
"""Of that number from sample to sample of one group, and of groups without a sample, which may all differ."""
GAIN_WEIGHT: Final = 0.3
"""Of the last page in the share of pages that gain."""
GAINS_FROM: Final = 0.25
"""Share from which a group is rendered: after a gain on every page, it ends with the fourth without one in a row."""
ALONE: Final = 3
"""First pages of a group that are rendered one after another, as are those after one that gained nothing."""
TEXT_GAIN_BYTES_MIN, TEXT_GAIN_SHARE_MIN = 200, 0.5
"""Text that a page gains both of is a gain: a notice on cookies is none."""

HOSTS_MAX: Final = 500
"""In memory, 5 KB each, 40 KB at the most; the others wait in the store."""
GROUPS_MAX: Final = 128
"""Of one host; those with the fewest pages make room."""
KNOWN_MAX: Final = 256
"""Links that a host's pages gained of late: a menu that a script makes is a gain once, not on every page."""
_KEY: Final = b"\0gains:"


def gains_text(before: int, after: int) -> bool:
    """Say whether so much text was gained that it counts; both in bytes."""
    return after - before >= max(TEXT_GAIN_BYTES_MIN, TEXT_GAIN_SHARE_MIN * before)


class RenderGroup(msgspec.Struct, array_like=True):
    """Pages of one host that share a URL template and a signal; or all pages with a signal, and the first sample of
    each template among them.
    """

    pages: int = 0
    rendered: int = 0
    gained: int = 0
    """Of those rendered."""
    share: float = 0.0
    """The same as a share, late pages counting more."""
    due: int = 0
    """The next sample is taken when there are this many pages."""
    wait: float = WAIT_FIRST
    last_gained: bool = False

    @property
    def gains(self) -> bool:
        return self.rendered > 0 and self.share >= GAINS_FROM

    def note(self, *, gained: bool) -> None:
        """Take what rendering a page brought."""
        self.rendered += 1
        self.gained += gained
        self.share = float(gained) if self.rendered == 1 else self.share + (gained - self.share) * GAIN_WEIGHT
        self.last_gained = gained
        if gained:
            self.wait = WAIT_FIRST

    def put_off(self, dice: Dice, growth: float = WAIT_GROWTH) -> None:
        """Take no further sample for a while, and for a longer one the next time. Now, not when the result is there: a
        fast host has many pages until then.
        """
        self.due = self.pages + round(self.wait * dice.uniform(0.5, 1.5))
        self.wait = min(self.wait * growth, WAIT_MAX)

    def says(self) -> str:
        """Return a phrase for people."""
        if not self.rendered:
            return f"{self.pages:,} pages, none rendered yet"
        found = f"{self.gained:,} of {self.rendered:,} rendered pages gained links or text"
        if self.gains:
            return f"{found}; they are rendered"
        return f"{found}; the next sample is due in {max(0, self.due - self.pages):,} pages"


class RenderHostRecord(msgspec.Struct, array_like=True, frozen=True):
    """A host as the store keeps it."""

    groups: dict[int, RenderGroup]
    known: list[int]


class _Host:
    """What is learned of one host."""

    __slots__ = ("dirty", "groups", "known", "partition")

    def __init__(self, partition: int, record: RenderHostRecord | None = None) -> None:
        self.partition = partition
        self.groups: dict[int, RenderGroup] = dict(record.groups) if record is not None else {}
        self.known: dict[int, None] = dict.fromkeys(record.known) if record is not None else {}
        """Fingerprints, the last ones last."""
        self.dirty = False

    def group(self, number: int) -> RenderGroup:
        found = self.groups.get(number)
        if found is None:
            if len(self.groups) >= GROUPS_MAX:
                del self.groups[min(self.groups, key=lambda one: (self.groups[one].gains, self.groups[one].pages))]
            found = self.groups[number] = RenderGroup()
        return found

    def fresh(self, fingerprints: Iterable[int]) -> int:
        """Return how many links were not gained of late, and remember them."""
        known, count = self.known, 0
        for one in fingerprints:
            count += one not in known
            known.pop(one, None)
            known[one] = None
        while len(known) > KNOWN_MAX:
            del known[next(iter(known))]
        return count

    def dump(self) -> bytes:
        return _encode(RenderHostRecord(self.groups, list(self.known)))


class Place(NamedTuple):
    """Where what a page gains is learned."""

    partition: int
    host: str
    signal: str
    template: str


class RenderChoice:
    """Chooses pages to render. A page that has scripts costs about 5 µs beside its signal."""

    def __init__(self, epochs: Epochs, dice: Dice) -> None:
        self._epochs = epochs
        self._dice = dice
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def undecided(self, place: Place) -> tuple[str, str, str] | None:
        """Return a key for the group that a page is not to be chosen for while another of it is rendered; None where
        the result would hardly matter. Pages without a signal do not wait for other templates: most need no rendering.
        """
        pool, group = self._groups(place)
        if group.rendered and (not group.gains or (group.last_gained and group.rendered >= ALONE)):
            return None
        return place.host, place.signal, "" if place.signal and not pool.rendered else place.template

    def choose(self, place: Place) -> str:
        """Count a page; return why it is to be rendered, empty if it is not. Then `learn` what came of it."""
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
        """Take what rendering a page brought: fingerprints of the links that the page as sent lacks, and whether it
        gained text. A page that could not be rendered brought nothing.
        """
        host = self._host(place)
        gained = host.fresh(links) > 0 or gains_text
        pool, group = self._groups(place)
        if not group.rendered:
            pool.note(gained=gained)
        group.note(gained=gained)
        host.dirty = True

    def cut(self, now: float) -> None:  # noqa: ARG002 - every component's cut takes the time
        """Give the open epoch what was learned. Mere counts of pages may be lost with the process."""
        for name, host in self._hosts.items():
            if host.dirty:
                self._put(name, host)

    def _groups(self, place: Place) -> tuple[RenderGroup, RenderGroup]:
        host = self._host(place)
        group = host.group(_number(place.signal, place.template))
        return host.group(_number(place.signal)), group

    def _host(self, place: Place) -> _Host:
        host = self._hosts.get(place.host)
        if host is not None:
            self._hosts.move_to_end(place.host)
            return host
        if len(self._hosts) >= HOSTS_MAX:
            self._put(*self._hosts.popitem(last=False))
        host = self._hosts[place.host] = _Host(place.partition, _recalled(self._epochs, place.partition, place.host))
        return host

    def _put(self, name: str, host: _Host) -> None:
        self._epochs.put("content", _key(host.partition, name), host.dump())
        host.dirty = False


class RenderBudget:
    """Processor time that rendering may take: a share of the machine, two minutes of it in advance."""

    AHEAD_S: Final = 120.0
    SAMPLE_SHARE: Final = 0.5
    """Of the advance, for samples of pages that nothing says scripts make: the rest is for the others."""
    PAGE_S: Final = 1.0
    """Taken for a page before one was rendered."""

    def __init__(self, share: float, processors: int, now: float) -> None:
        self._rate = share * processors
        self._left_s = self._ahead_s = self._rate * self.AHEAD_S
        self._at = now
        self._page_s = self.PAGE_S

    def allows(self, now: float, under_way: int, *, sample: bool) -> bool:
        """Say whether a page may be rendered beside those that are under way."""
        self._left_s = min(self._ahead_s, self._left_s + max(0.0, now - self._at) * self._rate)
        self._at = now
        kept = (1.0 - self.SAMPLE_SHARE) * self._ahead_s if sample else 0.0
        return self._left_s - under_way * self._page_s > kept

    def spent(self, cpu_s: float) -> None:
        """Take off what a page took."""
        self._left_s -= cpu_s
        self._page_s += (cpu_s - self._page_s) * 0.1


def place_of(url: Url, signal: str) -> Place:
    """Return where what a page gains is learned."""
    return Place(url.partition, url.host, signal, templates_of(url.text)[0])


def learned_of(epochs: Epochs, url: Url) -> list[str]:
    """Return what is known of rendering the pages that share a URL's host and template, a line for each signal."""
    host = _recalled(epochs, url.partition, url.host)
    if host is None:
        return []
    template = templates_of(url.text)[0]
    lines = []
    for signal in SIGNALS:
        named = f"signal {signal}" if signal else "no signal"
        for about, number in ((template, _number(signal, template)), ("new templates", _number(signal))):
            if (group := host.groups.get(number)) is not None:
                lines.append(f"{about}, {named}: {group.says()}")
    return lines


def _reason(place: Place, pool: RenderGroup, group: RenderGroup) -> str:
    if group.gains:
        return FOR_GAIN
    if group.rendered:
        return FOR_SAMPLE if group.pages >= group.due else ""
    if pool.gains or (not pool.rendered and pool.pages > pool.due):
        return FOR_SIGNAL if place.signal else FOR_SAMPLE
    return FOR_SAMPLE if pool.rendered and pool.pages >= pool.due else ""


def _number(signal: str, template: str = "") -> int:
    """Return the number of a group: names would be longer, and name pages that were removed."""
    return xxh3_64_intdigest(f"{signal} {template}".encode())


def _key(partition: int, host: str) -> bytes:
    return partition.to_bytes(2) + _KEY + xxh3_64_digest(host.encode())


def _recalled(epochs: Epochs, partition: int, host: str) -> RenderHostRecord | None:
    value = epochs.get("content", _key(partition, host))
    return _decode(value) if value is not None else None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RenderHostRecord).decode
