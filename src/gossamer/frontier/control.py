"""Control: what is asked of a host from outside, besides its URLs."""

from __future__ import annotations

from gossamer.frontier.host import Host
from gossamer.frontier.hosts import Hosts
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.turns import Turns
from gossamer.model.visits import Errand
from gossamer.state.contacts import Contacts
from gossamer.url.url import Url


class Control:
    """Errands, rests and closings (`ports.HostControl`). Each is durable with the epoch; a rest outlives any death."""

    def __init__(self, hosts: Hosts, turns: Turns, contacts: Contacts, politeness: Politeness) -> None:
        self._hosts = hosts
        self._turns = turns
        self._contacts = contacts
        self._politeness = politeness

    def reconfigure(self, politeness: Politeness) -> None:
        """Go by other rules from now on."""
        self._politeness = politeness

    def prolong(self, host: Host, until: float, now: float) -> None:
        """Leave a host in memory alone until an instant, unless it rests for longer."""
        self._prolong(host, until)
        self._turns.schedule(host, now)

    def run_errand(self, errand: Errand, now: float) -> bool:
        """Have a request made that no queue holds, through the gates of its host; False when that host is closed."""
        host = self._host(errand.url)
        if host.record.closed:
            return False
        host.errands = [*(host.errands or ()), errand]
        self._turns.activate(host, now)
        self._turns.schedule(host, now)
        return True

    def park(self, url: Url, now: float) -> None:
        """Lend nothing of a host but errands: it waits for its robots.txt."""
        host = self._host(url)
        host.parked = True
        self._turns.schedule(host, now)

    def unpark(self, url: Url, now: float) -> None:
        """Lend a host's URLs again."""
        self._turns.unpark(self._host(url), now)

    def rest(self, url: Url, until: float, reason: str, now: float) -> None:
        """Leave a host alone until an instant."""
        host = self._host(url)
        failed = host.record.error if host.record.failures or host.record.sleeps else ""
        host.record.reason = f"{reason}: {failed}" if failed and failed not in reason else reason
        self._prolong(host, until)
        self._turns.schedule(host, now)

    def set_crawl_delay(self, url: Url, delay_s: float | None, now: float) -> None:
        """Obey a Crawl-delay; one that is too long closes the host.

        It counts from now: that of robots.txt itself was a request too, and ended a moment ago.
        """
        host = self._host(url)
        record = host.record
        if record.crawl_delay_s == delay_s:
            return
        record.crawl_delay_s = delay_s
        host.contacted = True
        self._hosts.touch(host)
        longest_s = self._politeness.crawl_delay_s_max
        if delay_s is not None and delay_s > longest_s:
            self._prolong(host, now + longest_s)  # The closing may be lost with its epoch, and the host asked again.
            self.close(url, f"its Crawl-delay of {delay_s:.0f} s is more than we wait", now)
            return
        self._prolong(host, now + (delay_s or 0.0))
        self._turns.schedule(host, now)

    def close(self, url: Url, reason: str, now: float) -> None:
        """End all URLs of a host, those to come included, with the outcome `host_closed`."""
        host = self._host(url)
        host.record.closed = reason
        host.contacted = True
        self._hosts.touch(host)
        self._turns.close(host, now)
        self._turns.schedule(host, now)

    def _host(self, url: Url) -> Host:
        return self._hosts.get(url.host, url.partition)

    def _prolong(self, host: Host, until: float) -> None:
        """Let a host rest for longer than its last request said; survives the death of the process."""
        self._hosts.touch(host)
        if until > host.record.rest_until:
            host.record.rest_until = until
            host.contacted = True
            self._contacts.prolong(host.fingerprint, until)
