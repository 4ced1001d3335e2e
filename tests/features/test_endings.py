"""What ends a session, step by step: what excludes a kind of URLs, and what never does."""

from __future__ import annotations

import pytest

from gossamer.features.logins import endings
from gossamer.features.logins.endings import SessionEndings
from gossamer.url.name import Namer
from gossamer.url.url import Url


def named(path: str) -> Url:
    url = Namer().name(f"https://www.a.test{path}")
    assert url is not None
    return url


def begun(paths: tuple[str, ...], now: float = 0.0, step_s: float = 1.0) -> SessionEndings:
    """Return what is known after a session of pages; one that an account needs a session for is the last."""
    found = SessionEndings([])
    found.begin(now)
    for number, path in enumerate(paths, 1):
        found.note_reply(named(path), now + number * step_s)
        found.note_page(named(path), now + number * step_s)
    return found


def is_kept(found: SessionEndings, path: str, now: float) -> bool:
    found.note_reply(named(path), now)
    return found.note_end(named(path), now)[0]


def test_the_first_reply_of_a_session_that_shows_none_is_looked_into() -> None:
    found = begun(("/a", "/b"))
    found.begin(10.0)
    assert is_kept(found, "/x/1?from=a", 11.0)
    assert found.checks
    assert found.good == named("/a")
    assert found.note_check(12.0, is_out=True) == "https://www.a.test/x/1?from=a"
    assert found.excludes(named("/x/1?from=a"))
    assert not found.excludes(named("/x/1?from=b")), "one is not enough for its kind"
    assert found.is_on_trial(named("/x/1?from=b")), "it would not be the first of this session"
    assert not found.is_on_trial(named("/y"))
    found.begin(20.0)
    assert is_kept(found, "/x/1?from=b", 21.0)
    assert found.note_check(22.0, is_out=True) == "https://www.a.test/x/1?from="
    assert found.excludes(named("/x/1?from=c"))
    assert not found.excludes(named("/x/2?from=c"))


def test_a_session_that_goes_on_excludes_nothing() -> None:
    found = begun(("/a", "/b"))
    found.begin(10.0)
    assert is_kept(found, "/admin", 11.0)
    assert found.note_check(12.0, is_out=False) == ""
    assert found.note_check(12.0, is_out=True) == "", "nothing is in doubt"
    assert found.excluded == []


def test_a_session_that_ended_in_a_pause_excludes_nothing() -> None:
    found = begun(("/a", "/b"))
    found.begin(10.0)
    assert is_kept(found, "/c", 5_000.0)
    assert found.note_check(5_001.0, is_out=True) == ""
    assert found.excluded == []


def test_a_parameter_that_a_page_shares_is_not_excluded() -> None:
    found = begun(("/i?a=show&p=1", "/i?a=show&p=2", "/i?a=show&p=8"))
    assert not is_kept(found, "/i?a=show&p=9", 4.0)
    found.begin(10.0)
    found.note_reply(named("/i?a=show&p=9"), 11.0)
    found.note_page(named("/i?a=show&p=9"), 11.0)
    found.begin(20.0)
    found.note_reply(named("/i?a=x&p=8"), 21.0)
    assert found.checks, "it has a parameter of the page that is suspected"
    assert found.note_check(22.0, is_out=True) == "https://www.a.test/i?a=x&p=8"
    assert not found.excludes(named("/i?a=show&p=8"))
    found.begin(30.0)
    found.note_reply(named("/i?a=x&p=7"), 31.0)
    assert found.note_check(32.0, is_out=True) == "https://www.a.test/i?a=x"


def test_a_check_that_failed_tells_nothing() -> None:
    found = begun(("/a", "/b"))
    found.begin(10.0)
    assert is_kept(found, "/c", 11.0)
    assert found.note_check(12.0, is_out=None) == ""
    assert found.excluded == []


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "KINDS_MAX", 50)
    monkeypatch.setattr(endings, "EXCLUDED_MAX", 5)
    found = begun(tuple(f"/a{'x' * number}?n={number}" for number in range(100)))
    assert len(found._kinds) <= 52
    for number in range(100):
        found.begin(1_000.0 + number)
        assert is_kept(found, f"/y{'x' * number}?n={number}", 1_000.5 + number)
        found.note_check(1_001.0 + number, is_out=True)
    assert len(found.excluded) == 5
    assert len(found._kinds) <= 60
    assert len(found._out) <= 60
