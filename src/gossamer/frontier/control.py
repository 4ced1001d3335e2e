"""Control: changes to one host, such as a Crawl-delay, a longer delay or its closing, and prerequisite fetches."""

from __future__ import annotations

from gossamer.frontier.host import ADDRESS, ROBOTS, Host
from gossamer.frontier.hosts import HostTable
from gossamer.frontier.origins import admit, key_of
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.scheduler import Scheduler
from gossamer.model.counters import Counters
from gossamer.model.links import Prerequisite
from gossamer.state.contacts import Contacts
from gossamer.url.url import Url

PREREQUISITES_MAX = 64
"""Prerequisite fetches that may wait at a host, except those of its own robots.txt."""
PREREQUISITE_WAIT_S_MAX = 300.0
"""A host with a longer delay takes no such fetches."""


class HostControl:
    """Prerequisite fetches, waits and closings of hosts. Each change is durable with the epoch; a delay also survives a
    crash before that.
    """

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
        """Schedule a request that is in no queue, through the gates of its host. Return False if the host is closed.
        Return False also if the origin waits or the host has many such requests, except for the origin's own
        robots.txt.
        """
        host = self._host(prerequisite.url)
        if host.record.closed or not (
            prerequisite.is_robots_of(prerequisite.url) or self._takes(host, prerequisite.url, now)
        ):
            return False
        host.prerequisites = [*(host.prerequisites or ()), prerequisite]
        self._scheduler.activate(host, now)
        self._scheduler.schedule(host, now)
        return True

    def free_at(self, url: Url) -> float:
        """Return when the delays of a host and its address end, or ended."""
        host = self._host(url)
        return max(host.record.rest_until, host.place.rest_until if host.place is not None else 0.0)

    def park(self, url: Url, now: float, waits_for: str = ROBOTS) -> None:
        """Lease only prerequisite fetches of a host until `unpark`."""
        host = self._host(url)
        host.parked = waits_for
        self._scheduler.schedule(host, now)

    def is_parked(self, url: Url) -> bool:
        """Say whether a URL's host waits for its robots.txt."""
        return self._host(url).parked == ROBOTS

    def locate(self, url: Url, now: float) -> None:
        """Lease URLs of a host that waits for its address, so that it is looked up."""
        if self._host(url).parked == ADDRESS:  # It may have been closed, or moved to another shard.
            self.unpark(url, now)

    def unpark(self, url: Url, now: float) -> None:
        """Lease a host's URLs again."""
        self._scheduler.unpark(self._host(url), now)

    def hold(self, url: Url, until: float, reason: str, now: float) -> None:
        """Send no request to a URL's origin before `until`; after that, request one URL at a time until the origin
        answers.

        The other origins of the host are not affected. Durable with the epoch.
        """
        host = self._host(url)
        one = admit(host, key_of(url), now, self._remembered_s) if not host.record.closed else None
        if one is not None:
            one.wait_until, one.reason = max(one.wait_until, until), reason
        self._hosts.touch(host)
        self._scheduler.schedule(host, now)

    def release(self, url: Url, now: float) -> None:
        """Lease URLs of a held origin again, one at a time until it answers."""
        host = self._host(url)
        one = host.record.origins.get(key_of(url)) if host.record.origins is not None else None
        if one is not None and not one.closed:
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
        key = key_of(url)
        if ":" in key:
            one = admit(host, key, now, self._remembered_s)
            is_too_long = delay_s is not None and delay_s > longest_s
            if one is not None:
                one.crawl_delay_s = None if is_too_long else delay_s
            if one is not None and is_too_long:
                # The origin gets no further request, so its delay does not apply to the host's other origins.
                one.closed = f"its Crawl-delay of {delay_s:.0f} s is more than we wait"
                one.wait_until = now + self._remembered_s
                delay_s = None
            elif is_too_long:
                delay_s = longest_s
            delay_s = max(delay_s or 0.0, record.crawl_delay_s or 0.0) or None
        elif record.origins is not None:
            delay_s = max((delay_s or 0.0, *(one.crawl_delay_s or 0.0 for one in record.origins.values()))) or delay_s
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

    @staticmethod
    def _is_waiting(host: Host, url: Url, now: float) -> bool:
        one = host.record.origins.get(key_of(url)) if host.record.origins is not None else None
        return one is not None and one.wait_until > now

    def _takes(self, host: Host, url: Url, now: float) -> bool:
        """Return whether a host takes another prerequisite fetch, other than its robots.txt."""
        is_soon = host.record.rest_until - now <= PREREQUISITE_WAIT_S_MAX
        return is_soon and len(host.prerequisites or ()) < PREREQUISITES_MAX and not self._is_waiting(host, url, now)

    def _host(self, url: Url) -> Host:
        return self._hosts.get(url.host, url.partition)

    def count(self, into: Counters) -> None:
        """Set the counts of host records that were found in memory, and that were not."""
        into.records_hits, into.records_misses = self._hosts.asked - self._hosts.misses, self._hosts.misses

    def _prolong(self, host: Host, until: float, now: float) -> None:
        """Extend a host's delay beyond that of its last request; survives the death of the process."""
        self._hosts.touch(host)
        if until > host.record.rest_until:
            host.record.rest_until = until
            host.contacted = True
            self._contacts.prolong(host.fingerprint, until, now)
