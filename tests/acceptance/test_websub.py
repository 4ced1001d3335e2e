"""WebSub: what a hub was told is taken is not lost by any death that follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub
from tests.ring.crawls import until
from tests.ring.test_websub import Publisher, crawling, status

pytestmark = pytest.mark.acceptance
DEATHS = 5


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as running:
        yield running


@pytest.fixture
def publisher(hub: Hub) -> Iterator[Publisher]:
    with Publisher(hub) as running:
        yield running


@pytest.mark.long
def test_who_is_killed_right_after_a_ping_was_taken_fetches_when_it_is_back(
    publisher: Publisher, hub: Hub, tmp_path: Path
) -> None:
    """A hub that heard 2xx says it once: the ping is durable by then."""
    with crawling(publisher, tmp_path / "c", "politeness.delay_s_min=1.0") as (running, root):
        until(lambda: hub.subscribers)
        for number in range(1, DEATHS + 1):
            running.until_commit()
            news = publisher.write()
            assert until(lambda: hub.publish(publisher.topic)) == [204]
            running.kill_child()
            until(lambda news=news: publisher.counts[news])
            told = until(lambda: status(root))["subscriptions"]
            assert told[0]["pings"] == number  # type: ignore[index]
    assert (tmp_path / "c/logs/critical.log").read_text() == ""
