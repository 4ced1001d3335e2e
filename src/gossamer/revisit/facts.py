"""Facts: what is remembered of a page, and of all of them together, told to people."""

from __future__ import annotations

from gossamer.revisit.memory import FAMILY, decode_memory, memory_key
from gossamer.revisit.state import State, decode_state
from gossamer.state.epoch import Epochs
from gossamer.state.schema import REVISIT_STATE
from gossamer.url.url import Url


def page_facts(epochs: Epochs, url: Url) -> dict[str, object] | None:
    """Return what is remembered of a page; instants are wall times. None where nothing is."""
    data = epochs.get(FAMILY, memory_key(url))
    if data is None:
        return None
    memory = decode_memory(data)
    rate = memory.change_rate
    return {
        "next_due_at": memory.due_at or None,
        "visits": memory.visits,
        "changes": memory.changes,
        "last_visit_at": memory.visited_at,
        "changed_at": memory.changed_at or None,
        "change_rate_per_day": rate * 86_400.0,
        "importance": memory.importance,
        "expected_freshness": memory.freshness,
        "failures_in_a_row": memory.failures,
        "given_up": not memory.due_at,
        "etag": memory.etag,
        "last_modified": memory.last_modified,
        "told_of_change_at": memory.told_at or None,
        "recent": list(memory.recent),
    }


def whole_facts(state: State, now: float) -> dict[str, object]:
    """Return how fresh all pages are, about, and what is due. A pass over the calendar's spans, at most a thousand."""
    return {
        "pages": state.pages,
        "given_up": state.retired,
        "overdue": state.due.before(now),
        "due_in_an_hour": state.due.before(now + 3_600.0) - state.due.before(now),
        "importance": state.importance,
        "expected_freshness": state.fresh / state.importance if state.importance > 0.0 else None,
        "visits": state.visits,
        "changes_seen": state.changes,
        "unchanged": state.same,
        "not_modified": state.not_modified,
        "late": state.late,
        "hosts_at_their_limit": state.capped_hosts,
        "promises": [
            {
                "pattern": promise.pattern,
                "max_age_s": promise.age_s_max,
                "pages": promise.pages,
                "older_now": promise.deadlines.before(now),
                "kept": promise.kept,
                "broken": promise.broken,
                "late_s_worst": promise.late_s_worst,
            }
            for promise in state.promises
        ],
    }


def stored_state(epochs: Epochs) -> State | None:
    """Return the sums of a crawl that does not run; None where it never saw a page again."""
    data = epochs.get("meta", REVISIT_STATE)
    return decode_state(data) if data is not None else None
