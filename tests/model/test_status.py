"""Status: whether a crawl that does not run can go on, and the limit at which one ended."""

from __future__ import annotations

import pytest

from gossamer.api.status import end_text
from gossamer.model.status import Status, is_resumable


@pytest.mark.parametrize(
    ("status", "resumable"),
    [
        ({"state": "finished", "ended": "finished", "queued": 0}, False),
        ({"state": "finished", "ended": "limit", "queued": 0}, False),
        ({"state": "finished", "ended": "limit", "queued": 3}, True),
        ({"state": "finished", "ended": "patience", "queued": 1}, True),
        ({"state": "finished", "ended": "limit", "queued": 0, "links_held": 2}, True),
        ({"state": "finished", "ended": "limit", "queued": 0, "mode": "continuous"}, True),
        ({"state": "stopped", "queued": 0}, True),
        ({"state": "failed"}, True),
        ({"state": "running", "queued": 3}, False),
        ({"state": "reading"}, False),
    ],
)
def test_a_crawl_goes_on_where_something_is_left(status: dict[str, object], resumable: bool) -> None:
    assert is_resumable(status) is resumable


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (
            Status(state="finished", ended="limit", pages=1200, max_pages=1200, max_time_s=9.0),
            "limit of 1,200 pages reached",
        ),
        (Status(state="finished", ended="limit", pages=1, max_pages=1, max_bytes=5), "limit of 1 page reached"),
        (
            Status(state="finished", ended="limit", wire_bytes=70_000, max_bytes=60_000, max_pages=9),
            "limit of 60.0 kB reached",
        ),
        (Status(state="finished", ended="limit", elapsed_s=7300.5, max_time_s=7200.0), "limit of 2 h 0 min reached"),
        (Status(state="finished", ended="limit", pages=9, max_pages=100), "limit reached"),  # It was raised since.
        (Status(state="finished", ended="finished", pages=9, max_pages=9), "no URLs left"),
    ],
)
def test_a_crawl_names_the_limit_that_ended_it(status: Status, says: str) -> None:
    assert end_text(status) == says
