"""What an offline crawl leaves is what it has not fetched, whatever form remembers its URLs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gossamer.api.feeding import REMAINDER, write_remainder
from gossamer.config import Config
from gossamer.model.links import Link
from gossamer.results.offline.segment import Segment
from tests.stages.seen.opened import FORMS, Opened, named


@pytest.mark.parametrize("form", FORMS)
def test_segments_that_were_not_read_leave_what_was_never_offered(form: str, tmp_path: Path) -> None:
    opened = Opened(form, tmp_path / "crawl")
    urls = [named(f"http://a.example/{number}") for number in range(20)]
    opened.offer(urls[:15])
    opened.commit()
    unread = ((Link(url, "anchor", 1), 5) for url in urls[10:])

    left = write_remainder(tmp_path / REMAINDER, Config(), opened.store, named, [unread], opened.seen)

    assert left == 5
    with closing(Segment(tmp_path / REMAINDER)) as found:
        assert [link.url.text for batch in found.links() for link in batch.links] == [url.text for url in urls[15:]]
    opened.crash()
