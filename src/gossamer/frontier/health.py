"""Health: what a request's end says about its host and its origin, and what follows for their delays. Pure."""

from __future__ import annotations

from gossamer.frontier.host import Host
from gossamer.frontier.options import FrontierOptions
from gossamer.frontier.origins import PROBE_SHARE, admit, has_answered, note_answered
from gossamer.frontier.politeness import SAMPLES, Politeness, grown_s
from gossamer.frontier.record import HostRecord, Origin
from gossamer.model.visits import Contact


def settle(
    host: Host,
    origin: str,
    contact: Contact,
    ended: float,
    options: FrontierOptions,
    dice: float,
    *,
    nobody: bool = False,
    is_robots: bool = False,
) -> None:
    """Note a request's end in the host's record: until when the host is left alone, what becomes of the origin.

    An answer delays the whole host, and so does a failed request; what follows from failures concerns the origin alone:

    - One that answered before waits after `host_failures_max` failures in a row, each time twice as long, and is closed
      after `host_sleeps_max` such waits.
    - One that never answered waits after each failure, like a URL that is tried again, and is closed after
      `unanswered_failures_max` failures in a row or when it failed for `unanswered_s_max`.
    - `is_robots`: the request was for its own robots.txt. The package robots says when it is tried again and when it is
      given up, except while no host at all has answered (`nobody`): then the seeds are wrong, and waiting
      changes nothing.

    `dice` in [0, 1) is the jitter.
    """
    record, politeness = host.record, host.rules
    record.requests += 1
    has_failed = contact.kind == "failed"
    # A host that could not be looked up was not requested, and one that never answered says nothing of its speed.
    if contact.fetch_s and not (has_failed and not has_answered(record, origin)):
        del record.fetches_s[: 1 - SAMPLES]
        record.fetches_s.append(contact.fetch_s)
    rest_s = politeness.rest_s(record.fetches_s, record.crawl_delay_s)
    record.reason = ""
    if contact.kind in ("answered", "busy"):
        note_answered(record, origin)
    if contact.kind == "answered":
        record.backoffs = 0
    elif contact.kind == "busy":
        rest_s = max(rest_s, _busy_s(record, contact, politeness, dice))
    elif has_failed:
        one = admit(host, origin, ended, options.errors_remembered_s)
        if one is not None:
            answered = has_answered(record, origin)
            _failed(one, contact, ended, options, answered=answered, nobody=nobody, is_robots=is_robots)
        host.probe_from = max(host.probe_from, ended + contact.fetch_s * (1.0 / PROBE_SHARE - 1.0))
    record.rest_until = max(record.rest_until, ended + rest_s)


def _busy_s(record: HostRecord, contact: Contact, politeness: Politeness, dice: float) -> float:
    record.backoffs += 1
    if contact.retry_after_s is None:
        record.reason = "the server said that it is busy"
        return politeness.backoff_s(record.backoffs, dice)
    if contact.retry_after_s > politeness.retry_after_s_max:
        record.closed = f"it asked to be left alone for {contact.retry_after_s:.0f} s"
    record.reason = f"the server asked for {contact.retry_after_s:.0f} s (Retry-After)"
    return min(contact.retry_after_s, politeness.retry_after_s_max)


def _failed(
    one: Origin,
    contact: Contact,
    ended: float,
    options: FrontierOptions,
    *,
    answered: bool,
    nobody: bool,
    is_robots: bool,
) -> None:
    one.failures += 1
    one.error = contact.error
    one.first_failed_at = one.first_failed_at or ended
    failed_s = ended - one.first_failed_at
    wait_s = 0.0
    if answered:
        if one.failures % options.host_failures_max:
            return
        one.sleeps += 1
        one.reason = f"it failed {one.failures} times in a row: {contact.error}"
        if one.sleeps > options.host_sleeps_max:
            one.closed = f"it failed again after {options.host_sleeps_max} waits: {contact.error}"
        wait_s = grown_s(options.host_sleep_s_first, one.sleeps, options.host_sleep_s_max)
    elif (nobody or not is_robots) and 0 < options.unanswered_failures_max <= one.failures:
        one.closed = f"it never answered: {contact.error} ({one.failures} attempts)"
    elif not is_robots:
        one.reason = f"it never answered: {contact.error} ({one.failures} attempt{'s' * (one.failures > 1)})"
        if failed_s >= options.unanswered_s_max:
            one.closed = f"it never answered: {contact.error} ({one.failures} attempts within {failed_s:.0f} s)"
        grown = grown_s(options.retry_s_first, one.failures, options.retry_s_max)
        wait_s = min(grown, max(options.unanswered_s_max - failed_s, 0.0))
    if one.closed:
        wait_s = options.errors_remembered_s
    one.wait_until = max(one.wait_until, ended + wait_s)
