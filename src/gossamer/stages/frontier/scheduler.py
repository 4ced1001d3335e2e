"""Scheduler: which hosts are on the workbench, which wait on disk, and when each host on the workbench has its next
turn; and the changes to one host that move its turn: a Crawl-delay, a longer delay, its closing, prerequisite fetches.
"""

from collections import deque
from collections.abc import Callable, Iterable

from gossamer.model.counters import Counters
from gossamer.model.links import Prerequisite
from gossamer.stages.frontier.budgets import LOOK_AGAIN_S, Budgets
from gossamer.stages.frontier.host import ADDRESS, ROBOTS, Host
from gossamer.stages.frontier.hosts import HostTable
from gossamer.stages.frontier.index import HostIndex, level_waiting
from gossamer.stages.frontier.limits import TURNS_MAX, Sites
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.stages.frontier.origins import NEVER, admit, key_of, name_of, set_crawl_delay
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.frontier.queues import Queues
from gossamer.stages.frontier.record import QueueCounts, level_of
from gossamer.stages.frontier.workbench import Workbench, WorkbenchSize
from gossamer.state.contacts import Contacts
from gossamer.url.url import Url

CLOSINGS_SHOWN_MAX = 10


class Scheduler:
    """Promises: each host with work is on the workbench, in the index of ready or sleeping hosts, or waits for its
    leases to end; a host without work is in none of them.
    """

    def __init__(
        self,
        hosts: HostTable,
        queues: Queues,
        index: HostIndex,
        workbench: Workbench,
        counts: QueueCounts,
        options: FrontierOptions,
        sites: Sites,
        budgets: Budgets | None = None,
        host_level: Callable[[Host], int] | None = None,
        is_turn_of_new: Callable[[], bool] | None = None,
    ) -> None:
        self._hosts = hosts
        self._queues = queues
        self._index = index
        self._workbench = workbench
        self._counts = counts
        self._options = options
        self._sites = sites
        self._budgets = budgets
        self._host_level = host_level
        self._is_turn_of_new = is_turn_of_new
        self._deferred = index.deferred
        self._deferred.budgets = budgets
        self.size = WorkbenchSize(options)
        self.active: dict[str, Host] = {}
        """Hosts in memory with work, by name."""
        self.closings: deque[tuple[str, str]] = deque(maxlen=CLOSINGS_SHOWN_MAX)
        """The last hosts that were closed, and why, for people."""

    def reconfigure(self, options: FrontierOptions, budgets: Budgets | None) -> None:
        """Apply new options."""
        self._options = options
        self._budgets = self._deferred.budgets = budgets
        self._sites.reconfigure(options)
        self.size.reconfigure(options)

    def schedule(self, host: Host, now: float) -> None:
        """Set the next turn of a host on the workbench, or remove the host if it has none for a long time."""
        if not host.on_workbench or (host.turns >= TURNS_MAX and self._makes_room(host, now)):
            return
        if host.out >= (host.most if host.place is not None else 1):
            self._workbench.withdraw(host)
            return
        record = host.record
        at: float | None = None
        if host.prerequisites:
            at = record.delay_until
        elif not host.parked and (ready_at := self._queues.ready_at(host)) is not None:
            at = max(record.delay_until, ready_at, host.aside_again_at)
        if at is not None and self._budgets is not None and not host.prerequisites:
            verdict = self._budgets.verdict(host)
            if verdict == "over" and not (host.out or host.leased):
                self._retire(host)
                self._index.enter_deferred(host, self._budgets.round)
                self._hosts.touch(host)
                return
            if verdict:  # Leased URLs end first. If they are another host's, no event follows: check later.
                at = None if host.leased or host.out else max(at, now + LOOK_AGAIN_S)
        if at is None:
            self._workbench.withdraw(host)
            if not (host.out or host.parked or record.urls_queued):
                self._retire(host)
                self._index.leave(host)
                self._hosts.touch(host)
        elif at - now > self._options.sleep_s_min and not (
            host.out or host.leased or host.prerequisites or host.parked
        ):
            self._retire(host)
            self._sleep(host, at)
        else:
            is_offered = host.turn_at is not None and (host.turn_at == at or max(host.turn_at, at) <= now)
            if not is_offered:
                # A host without a delay is free from now on, so that new hosts do not overtake waiting ones.
                self._workbench.offer(host, max(at, now))

    def bring(self, host: Host, level: int, now: float) -> None:
        """Put a host with new work on the workbench or into the index, unless it is there."""
        if host.on_workbench:
            if host.turn_at is None or host.turn_at > max(host.record.delay_until, now):
                self.schedule(host, now)
        elif host.record.index_family == "deferred":
            return  # New URLs wait with the others.
        elif (wake_at := self._wake_at(host)) - now > self._options.sleep_s_min:
            if not host.record.index_key or self._index.sleeps_past(host, wake_at):
                self._sleep(host, wake_at)
        elif len(self.active) < self.size.hosts and host.record.index_family != "waiting":
            self.activate(host, now)
        else:
            self._stand_by(host, level)

    def _wake_at(self, host: Host) -> float:
        """Return when a host that is not on the workbench may be requested, by its own delay and its origins."""
        delay_until = host.record.delay_until
        return delay_until if host.record.origins is None else max(delay_until, self._queues.ready_at(host) or 0.0)

    def await_url(self, host: Host, at: float, now: float) -> None:
        """Ensure that a host has a turn when one of its URLs is due."""
        self._hosts.touch(host)
        if host.on_workbench:
            self.schedule(host, now)
        elif not host.record.index_key or self._index.sleeps_past(host, at):
            self.await_due(host, max(at, host.record.delay_until), now)

    def await_due(self, host: Host, at: float, now: float) -> None:
        """Ensure that a host that is not on the workbench wakes when a URL of it is due."""
        if at - now > self._options.sleep_s_min:
            self._sleep(host, at)
        else:
            self.bring(host, 0, now)

    def fill(self, now: float) -> None:
        """Load hosts from disk while the workbench has places: those whose sleep is over, then random ready ones."""
        self._deferred.end_round(now)
        while len(self.active) < self.size.hosts and (self._index.may_have(now) or self._sites.may_have):
            # With revisits, hosts that wake could keep out hosts that wait with new URLs.
            found = self._index.draw() if self._is_turn_of_new is not None and self._is_turn_of_new() else None
            found = found or self._index.wake(now) or self._deferred.draw_in_turn() or self._sites.draw_in_turn()
            found = found or self._index.draw() or self._sites.draw()
            found = found or self._deferred.draw(now, others_done=not self.active)
            if found is None:
                return
            self.activate(self._hosts.get(found[1], found[0]), now)

    def widen(self, now: float) -> bool:
        """Enlarge the workbench because a request could go out; return whether a host was added."""
        if not (self._index.may_have(now) or self._sites.may_have):
            return False
        self._deferred.end_round(now)
        is_any = self._deferred.may_continue or self._index.has_ready or self._sites.may_have
        if not (is_any or (self._index.next_wake_at() or NEVER) <= now):
            return False
        before = len(self.active)
        if not self.size.widen(before, self._queues.window_bytes):
            return False
        self.fill(now)
        return len(self.active) > before

    def wake_at(self) -> float | None:
        """Return when `fill` or `widen` may find a host. None if no host has work: an outdated alarm, of a host that
        left the index early, must not keep a crawl open.
        """
        if not self._index.hosts or not self.size.may_widen(len(self.active), self._queues.window_bytes):
            return None
        if self._index.has_ready or self._sites.may_have:
            return 0.0
        wake_at = self._index.next_wake_at()
        if not self._deferred.hosts:
            return wake_at
        if not self.active or self._deferred.may_continue:
            return 0.0
        return min((at for at in (wake_at, self._deferred.round_ends_at) if at is not None), default=None)

    def activate(self, host: Host, now: float) -> None:
        """Put a host on the workbench, or let it wait: its site has enough there, and it has no prerequisite fetch."""
        if host.on_workbench:
            return
        if not (host.prerequisites or self._sites.has_room(host)):
            self._wait(host, self._level(host))
            return
        host.on_workbench = True
        host.turns = 0
        self.active[host.name] = host
        self._index.enter_workbench(host)
        self._hosts.touch(host)
        self._workbench.settle(host, host.place)
        self._sites.enter(host)
        self.schedule(host, now)

    def resume(self, host: Host, now: float) -> None:
        """Restore a host that was on the workbench when the previous process ended."""
        self._hosts.touch(host)
        if host.record.closed:
            self.close(host, now)
        elif not host.record.urls_queued:
            self._index.leave(host)  # It was there for a prerequisite fetch, which is lost.
        elif len(self.active) < self._options.active_hosts_max:
            self.size.hosts = max(self.size.hosts, len(self.active) + 1)
            self.activate(host, now)
        else:
            self._index.enter_ready(host, self._level(host))

    def forget(self, first: int, end: int) -> None:
        """Drop the hosts of some partitions from memory, but keep their entries in the index, which another shard gets:
        none of them is found, although the store has them.
        """
        hosts = list(self._hosts.of(first, end))
        for host in hosts:
            self._queues.forget_window(host)
            host.prerequisites = None
            host.parked = ""
            if host.on_workbench:
                self._retire(host)
        self._sites.forget(first, end)
        self._hosts.forget(hosts)
        self._index.forget(first, end)

    def admit(self, active: Iterable[Host], waiting: Iterable[tuple[int, str]], now: float) -> None:
        """Admit partitions from another shard: `active` hosts were on its workbench, `waiting` are partition and name
        of one host for each site with waiting hosts.
        """
        for host in active:
            self.resume(host, now)
        self._sites.admit(waiting)

    def unpark(self, host: Host, now: float) -> None:
        """Lease a host's URLs again."""
        host.parked = ""
        if host.record.urls_queued:
            self.bring(host, 0, now)
        self.schedule(host, now)

    def close(self, host: Host, now: float) -> None:
        """End the URLs and prerequisite fetches of a host that is closed in its record."""
        self.closings.append((host.name, host.record.closed))
        prerequisites = host.prerequisites or ()
        host.prerequisites = None
        host.parked = ""
        for prerequisite in prerequisites:
            # The parked host requests its robots.txt again, and learns that this host is closed.
            self.unpark(self._hosts.get(prerequisite.origin.host, prerequisite.origin.partition), now)
        if not host.on_workbench:
            self._index.leave(host)
        if dropped := self._queues.clear(host):
            self._counts.end("host_closed", dropped)

    def note_closed(self, host: Host, key: str) -> None:
        """Add an origin that was just given up to `closings`."""
        if (one := host.record.origin(key)) is not None and one.closed:
            self.closings.append((name_of(host.name, key), one.closed))

    def _stand_by(self, host: Host, level: int) -> None:
        """Let a host wait on disk for a place on the workbench, with a level at least as urgent as `level`."""
        if self._host_level is not None:
            level = self._host_level(host)
        family = host.record.index_family
        key = host.record.index_key
        if family == "waiting":
            if level < level_waiting(key):
                self._wait(host, level)
        elif family == "ready":
            if level < key[2]:
                self._ready(host, level)
        elif self._sites.is_here(host):
            self._wait(host, level)
        else:
            self._ready(host, level)

    def _ready(self, host: Host, level: int) -> None:
        self._index.enter_ready(host, level)
        self._hosts.touch(host)

    def _sleep(self, host: Host, at: float) -> None:
        self._index.enter_sleep(host, at)
        self._hosts.touch(host)

    def _wait(self, host: Host, level: int) -> None:
        """Move a host to the index of hosts that wait for a place of their site on the workbench."""
        self._index.enter_waiting(host, self._sites.crowd(host), level)
        self._hosts.touch(host)

    def _makes_room(self, host: Host, now: float) -> bool:
        """Replace a host that had many turns by a waiting host of its site, or by any waiting host if revisits keep it
        on the workbench. Return False if no host waits, or if this host has prerequisite fetches, waits for robots.txt,
        or has nothing queued.
        """
        for_its_site = host.site is not None and host.site.is_crowded
        if not for_its_site:
            comes_again = bool(host.record.due) and len(self.active) >= self.size.hosts
            if not (comes_again and self._index.has_ready):
                return False
        if host.prerequisites or host.parked or not host.record.urls_queued:
            return False
        if host.out or host.leased:
            self._workbench.withdraw(host)  # It leaves when its leases are returned.
            return True
        self._retire(host)
        if for_its_site:
            self._wait(host, self._level(host))
        elif (at := max(host.record.delay_until, self._queues.ready_at(host) or 0.0)) > now:
            self._sleep(host, at)
        else:
            self._ready(host, self._level(host))
        return True

    def _level(self, host: Host) -> int:
        if self._host_level is not None:
            return self._host_level(host)
        return min((level_of(key) for key, queue in host.record.levels.items() if queue.head < queue.tail), default=0)

    def _retire(self, host: Host) -> None:
        host.on_workbench = False
        self.active.pop(host.name, None)
        if not host.leased:
            self._queues.forget_window(host)
        self._workbench.settle(host, None)
        self._sites.leave(host)


PREREQUISITES_MAX = 64
"""Prerequisite fetches that may wait at a host, except those of its own robots.txt."""
PREREQUISITE_WAIT_S_MAX = 300.0
"""A host with a longer delay takes no such fetches."""


class HostControl:
    """Prerequisite fetches, waits and closings of hosts, durable with the epoch; a delay survives an earlier crash."""

    def __init__(
        self, hosts: HostTable, scheduler: Scheduler, contacts: Contacts, politeness: Politeness, remembered_s: float
    ) -> None:
        """An origin that was given up stays closed for `remembered_s`."""
        self._hosts = hosts
        self._scheduler = scheduler
        self._contacts = contacts
        self._politeness = politeness
        self._remembered_s = remembered_s
        self.prerequisites_only = False
        """Whether only prerequisite fetches are leased, and no queued URLs."""

    def reconfigure(self, politeness: Politeness) -> None:
        """Apply new rules."""
        self._politeness = politeness

    def prolong(self, host: Host, until: float, now: float) -> None:
        """Extend the delay of a host in memory to `until`, unless it is longer already."""
        self._prolong(host, until, now)
        self._scheduler.schedule(host, now)

    def run_prerequisite(self, prerequisite: Prerequisite, now: float) -> bool:
        """Schedule a request that is in no queue, through the gates of its host. Return False if the host is closed,
        also if the origin waits or the host has many such requests, except for the origin's own robots.txt.
        """
        url = prerequisite.url
        host = self._host(url)
        if host.record.closed or not (prerequisite.is_about(url) or self._takes(host, url, now)):
            return False
        host.prerequisites = [*(host.prerequisites or ()), prerequisite]
        self._scheduler.activate(host, now)
        self._scheduler.schedule(host, now)
        return True

    def free_at(self, url: Url) -> float:
        """Return when the delays of a host and its address end, or ended."""
        host = self._host(url)
        return max(host.record.delay_until, host.place.delay_until if host.place is not None else 0.0)

    def park(self, url: Url, now: float, waits_for: str = ROBOTS) -> None:
        """Lease only prerequisite fetches of a host until `unpark`."""
        host = self._host(url)
        host.parked = waits_for
        self._scheduler.schedule(host, now)

    def is_parked(self, url: Url) -> bool:
        """Return whether a URL's host waits for its robots.txt."""
        return self._host(url).parked == ROBOTS

    def locate(self, url: Url, now: float) -> None:
        """Lease URLs of a host that waits for its address, so that it is looked up."""
        if self._host(url).parked == ADDRESS:  # It may have been closed, or moved to another shard.
            self.unpark(url, now)

    def unpark(self, url: Url, now: float) -> None:
        """Lease a host's URLs again."""
        self._scheduler.unpark(self._host(url), now)

    def hold(self, url: Url, until: float, reason: str, now: float) -> None:
        """Send no request to a URL's origin before `until`; then request one URL at a time until it answers.

        The other origins of the host are not affected. Durable with the epoch.
        """
        host = self._host(url)
        one = admit(host, key_of(url), now, self._remembered_s) if not host.record.closed else None
        if one is not None:
            one.wait_until = max(one.wait_until, until)
            one.reason = reason
        self._hosts.touch(host)
        self._scheduler.schedule(host, now)

    def release(self, url: Url, now: float) -> None:
        """Lease URLs of a held origin again, one at a time until it answers."""
        host = self._host(url)
        if (one := host.record.origin(key_of(url))) is not None and not one.closed:
            one.wait_until = min(one.wait_until, now)
            self._hosts.touch(host)
        self._scheduler.schedule(host, now)

    def set_crawl_delay(self, url: Url, delay_s: float | None, now: float) -> None:
        """Set the Crawl-delay of a URL's origin; a delay that is too long closes the host.

        It applies from now on, since the request for robots.txt has just ended.
        """
        host = self._host(url)
        record = host.record
        longest_s = self._politeness.crawl_delay_s_max
        delay_s = set_crawl_delay(host, key_of(url), delay_s, longest_s, now, self._remembered_s)
        if record.crawl_delay_s == delay_s:
            return
        record.crawl_delay_s = delay_s
        host.contacted = True
        self._hosts.touch(host)
        if delay_s is not None and delay_s > longest_s:
            # The closing may be lost with its epoch, and the host contacted again.
            self._prolong(host, now + longest_s, now)
            self.close(url, f"its Crawl-delay of {delay_s:.0f} s is more than we wait", now)
            return
        self._prolong(host, now + (delay_s or 0.0), now)
        self._scheduler.schedule(host, now)

    def back_off(self, url: Url, nth: int, reason: str, now: float) -> None:
        """Delay a host as after the n-th 429 in a row: it refused us without such a status."""
        host = self._host(url)
        host.record.reason = reason
        self._prolong(host, now + host.rules.backoff_s(nth, 0.0), now)
        self._scheduler.schedule(host, now)

    def close(self, url: Url, reason: str, now: float) -> None:
        """End all URLs of a host, including those found later, with the outcome `host_closed`."""
        host = self._host(url)
        host.record.closed = reason
        host.contacted = True
        self._hosts.touch(host)
        self._scheduler.close(host, now)
        self._scheduler.schedule(host, now)

    def _takes(self, host: Host, url: Url, now: float) -> bool:
        """Return whether a host takes another prerequisite fetch, other than its robots.txt."""
        record = host.record
        if record.delay_until - now > PREREQUISITE_WAIT_S_MAX or len(host.prerequisites or ()) >= PREREQUISITES_MAX:
            return False
        one = record.origin(key_of(url))
        return one is None or one.wait_until <= now

    def _host(self, url: Url) -> Host:
        return self._hosts.get(url.host, url.partition)

    def count(self, into: Counters) -> None:
        """Set the counts of host records that were found in memory, and that were not."""
        into.records_hits = self._hosts.lookups - self._hosts.misses
        into.records_misses = self._hosts.misses

    def _prolong(self, host: Host, until: float, now: float) -> None:
        """Extend a host's delay beyond that of its last request; survives the death of the process."""
        self._hosts.touch(host)
        if until > host.record.delay_until:
            host.record.delay_until = until
            host.contacted = True
            self._contacts.prolong(host.fingerprint, until, now)
