"""Facts: a host's record told to people, from memory or from a crawl that is not running."""

from __future__ import annotations

from gossamer.frontier.budgets import budget_facts
from gossamer.frontier.deferred import round_of
from gossamer.frontier.host import Host
from gossamer.frontier.options import BudgetOptions
from gossamer.frontier.origins import facts_of_origins, key_of, name_of
from gossamer.frontier.record import HostRecord, decode_entry, decode_record, due_time, host_prefix, range_end
from gossamer.model.visits import BudgetFacts, HostFacts
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url


def facts_of(
    epochs: Epochs,
    url: Url,
    host: Host | None = None,
    site_gate: str = "",
    budget: BudgetOptions | None = None,
    stands: BudgetFacts | None = None,
) -> HostFacts:
    """Return what is known of a URL's host, and when the URL itself is due again. A pass over the host's due URLs.

    `budget` are the budgets, `stands` is where they stand now; None: as the last commit has it.
    """
    prefix = host_prefix(url.partition, url.host)
    if host is not None:
        record: HostRecord | None = host.record
    else:
        data = epochs.get("host", prefix)
        record = decode_record(data) if data is not None else None
    if record is None:
        return HostFacts(url.host)
    due_at, attempt, error = None, 1, ""
    if record.due:
        for key, value in epochs.scan("due", prefix, range_end(prefix)):
            if key.endswith(url.fingerprint.to_bytes(8)):
                entry = decode_entry(value)
                due_at, attempt, error = due_time(key), entry.attempt, entry.error
                break
    rest_until, reason = record.rest_until, record.reason
    if host is not None and host.site is not None and host.site.rest_until > rest_until:
        rest_until, reason = host.site.rest_until, f"its site {host.site.name} rests (politeness.site_delay_s)"
    if stands is None and budget is not None:
        stands = budget_facts(epochs, budget, url)
    name = name_of(record.name, key_of(url))
    origin = next((one for one in facts_of_origins(record) if one.origin == name), None)
    failures = origin.failures if origin is not None else 0
    return HostFacts(
        record.name, record.queued, rest_until, reason, record.closed, record.crawl_delay_s,
        record.requests, failures, host.out if host else 0, host.parked if host else False,
        due_at, attempt, error, site_gate,
        stands is not None and record.index_family == "deferred" and round_of(record.index_key) >= stands.round,
        stands, origin,
    )  # fmt: skip
