"""Status: whether a crawl that does not run can go on."""

from __future__ import annotations

import pytest

from gossamer.model.status import is_resumable


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
