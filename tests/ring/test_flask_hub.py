"""WebSub with a hub that others wrote: flask-websub."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.ring.crawls import until
from tests.ring.flask_hub import FlaskHub
from tests.ring.hostile import whole
from tests.ring.test_websub import Publisher, ask, crawling, status

pytestmark = pytest.mark.promise(
    "Continuous crawls", "A WebSub notification that is answered with 2xx leads to a visit, also after kills."
)

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    for name in ("werkzeug", "flask_websub"):  # It tells of callbacks that were refused while the crawl was dead.
        logging.getLogger(name).setLevel(logging.CRITICAL)


@pytest.mark.heavy
def test_subscribe_publish_fetch_die_publish_fetch(tmp_path: Path) -> None:
    with FlaskHub(tmp_path) as hub, Publisher(hub) as publisher:  # type: ignore[arg-type]
        link = f'<{hub.url}>; rel="hub", <{publisher.topic}>; rel="self"'

        def written() -> str:
            """Have news, in a feed whose hub stands in its header alone."""
            path = publisher.write()
            body = b"".join(publisher.answers["/feed.atom"].pieces()).replace(b"rel='hub'", b"rel='x'")
            publisher.answers["/feed.atom"] = whole(body, "application/atom+xml")._replace(headers=(("Link", link),))
            return path

        written()
        with crawling(publisher, tmp_path / "c") as (running, root):
            until(lambda: hub.callbacks(publisher.topic))
            ((callback, secret),) = hub.callbacks(publisher.topic)
            assert callback.startswith(f"{root}/websub/")
            assert secret
            publish = f"hub.mode=publish&hub.topic={publisher.topic}".encode()
            for number in (1, 2):
                news = written()
                assert ask(hub.url, publish, FORM) == 202
                until(lambda news=news: publisher.counts[news])
                told = until(lambda number=number: [
                    one for one in status(root).get("subscriptions", []) if one["pings"] == number
                ])  # fmt: skip
                assert told[0]["signed"]
                until(hub.answered)  # It repeats what was not answered, so a kill before that would be told twice.
                if number == 1:
                    running.until_commit()
                    running.kill_child()
                    until(lambda: status(root))
            assert len(hub.callbacks(publisher.topic)) == 1
    assert (tmp_path / "c/logs/critical.log").read_text() == ""
