"""The last attempts: few, numbered, and what strangers wrote in them cut."""

from __future__ import annotations

from gossamer.engine.counters import KEPT_MAX, RecentList
from gossamer.model.pages import PageRow
from gossamer.model.status import RECENT_CHARACTERS_MAX


def row(number: int, outcome: str = "fetched", **more: object) -> PageRow:
    url = f"http://a.test/{number}"
    found = PageRow(url, url, "a.test", "a.test", float(number), outcome)
    for name, value in more.items():
        setattr(found, name, value)
    return found


def urls(told: object) -> list[str]:
    assert isinstance(told, list)
    return [one["url"].rpartition("/")[2] for one in told]


def test_each_is_reported_once_to_a_reader_that_names_its_position() -> None:
    recent = RecentList()
    for number in (1, 2, 3):
        recent.add(row(number, "timeout" if number == 2 else "fetched"))
    told = recent.since(0)
    assert (urls(told["pages"]), urls(told["errors"]), told["last"], told["left_out"]) == (["1", "3"], ["2"], 3, 0)
    assert recent.since(3) == {"last": 3, "pages": [], "errors": [], "left_out": 0}
    recent.add(row(4))
    assert urls(recent.since(3)["pages"]) == ["4"]


def test_what_is_left_out_is_counted() -> None:
    recent = RecentList()
    for number in range(1, 101):
        recent.add(row(number))
    told = recent.since(50, 10)
    assert urls(told["pages"]) == [str(number) for number in range(91, 101)]
    assert told["left_out"] == 40
    assert len(urls(recent.since(0)["pages"])) == KEPT_MAX


def test_who_saw_another_run_begins_anew() -> None:
    recent = RecentList()
    recent.add(row(1))
    assert urls(recent.since(5_000)["pages"]) == ["1"]


def test_errors_are_not_pushed_out_by_pages() -> None:
    recent = RecentList()
    recent.add(row(1, "dns_error"))
    for number in range(2, 1_000):
        recent.add(row(number, "not_modified" if number % 2 else "redirected"))
    assert urls(recent.since(0)["errors"]) == ["1"]


def test_texts_of_strangers_are_bounded() -> None:
    recent = RecentList()
    recent.add(row(1, title="t" * 5_000, error="e" * 5_000, media_type="m" * 5_000))
    [told] = recent.since(0)["pages"]  # type: ignore[misc]
    assert {len(told[name]) for name in ("title", "error", "media_type")} == {RECENT_CHARACTERS_MAX}  # type: ignore[index]
