"""Health: what a request's end says about its host, and what follows for its rest. Pure."""

from __future__ import annotations

from gossamer.frontier.options import FrontierOptions
from gossamer.frontier.politeness import SAMPLES, Politeness, grown_s
from gossamer.frontier.record import HostRecord
from gossamer.model.visits import Contact


def settle(
    record: HostRecord,
    contact: Contact,
    ended: float,
    politeness: Politeness,
    options: FrontierOptions,
    dice: float,
    *,
    nobody_answered: bool = False,
) -> None:
    """Note a request's end in the host's record: until when it rests, whether it sleeps, whether it is closed.

    A host that fails `host_failures_max` times in a row sleeps, each time twice as long; after `host_sleeps_max`
    sleeps without an answer it is closed. As long as no host at all has answered (`nobody_answered`) it is closed
    after `unanswered_failures_max` failures: what the crawl begins with is wrong, and waiting mends nothing. `dice` in
    [0, 1) is the jitter.
    """
    record.requests += 1
    if contact.fetch_s:  # A host that could not be looked up was not asked: it says nothing of its speed.
        del record.fetches_s[: 1 - SAMPLES]
        record.fetches_s.append(contact.fetch_s)
    rest_s = politeness.rest_s(record.fetches_s, record.crawl_delay_s)
    record.reason = ""
    if contact.kind == "answered":
        record.failures = record.sleeps = record.backoffs = 0
        record.error = ""
    elif contact.kind == "busy":
        rest_s = max(rest_s, _busy_s(record, contact, politeness, dice))
    elif contact.kind == "failed":
        record.error = contact.error
        rest_s = max(rest_s, _failed_s(record, contact, options, nobody_answered=nobody_answered))
    record.rest_until = max(record.rest_until, ended + rest_s)


def _busy_s(record: HostRecord, contact: Contact, politeness: Politeness, dice: float) -> float:
    record.backoffs += 1
    record.failures = record.sleeps = 0
    if contact.retry_after_s is None:
        record.reason = "the server said that it is busy"
        return politeness.backoff_s(record.backoffs, dice)
    if contact.retry_after_s > politeness.retry_after_s_max:
        record.closed = f"it asked to be left alone for {contact.retry_after_s:.0f} s"
    record.reason = f"the server asked for {contact.retry_after_s:.0f} s (Retry-After)"
    return min(contact.retry_after_s, politeness.retry_after_s_max)


def _failed_s(record: HostRecord, contact: Contact, options: FrontierOptions, *, nobody_answered: bool) -> float:
    record.failures += 1
    if nobody_answered and 0 < options.unanswered_failures_max <= record.failures:
        record.closed = f"it never answered: {contact.error}"
        return 0.0
    if record.failures < options.host_failures_max:
        return 0.0
    record.failures = 0
    record.sleeps += 1
    record.reason = f"it failed {options.host_failures_max} times in a row: {contact.error}"
    if record.sleeps > options.host_sleeps_max:
        record.closed = f"it failed again after {options.host_sleeps_max} sleeps: {contact.error}"
        return 0.0
    return grown_s(options.host_sleep_s_first, record.sleeps, options.host_sleep_s_max)
