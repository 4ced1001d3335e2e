"""Patterns: RE2 sets, thousands at once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model import patterns as patterns_module
from gossamer.model.errors import ConfigError
from gossamer.model.patterns import PatternSet
from gossamer.options import OptionsError, convert
from gossamer.stages.scope.options import ScopeOptions


def test_thousands_in_one_pass() -> None:
    patterns = PatternSet([rf"/path{n}/.*\.(jpg|png)$" for n in range(5000)])
    assert patterns.matches("http://h/path4999/a/b.png")
    assert patterns.matches("http://h/path0/a/b.jpg")
    assert not patterns.matches("http://h/path5000/a/b.png")
    assert patterns.first("http://h/path17/x.png") == r"/path17/.*\.(jpg|png)$"
    assert patterns.first("http://h/") is None


def test_no_patterns_match_nothing() -> None:
    assert not PatternSet(()).matches("http://h/")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(b", "missing )"),
        ("(?=a)", "invalid perl operator"),
        ("a**", "bad repetition"),
        (r"(a)\1", "invalid escape"),
        ("\ud800", "half"),
        ("x" + ".{0,1000}" * 30, "too large"),
        (r"\pN" * 2_000, "too large"),
        ("(" * 5_000, "missing )"),
    ],
)
def test_a_bad_pattern_is_named_with_the_reason(pattern: str, reason: str) -> None:
    for make in (lambda: PatternSet(["fine", pattern]), lambda: convert(ScopeOptions, {"include": [pattern]})):
        with pytest.raises((ConfigError, OptionsError)) as caught:
            make()
        assert repr(pattern) in str(caught.value)
        assert reason in str(caught.value)


def test_too_much_for_the_memory_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns_module, "PATTERN_MEMORY_BYTES_MAX", 1 << 16)
    with pytest.raises(ConfigError, match="need more than"):
        PatternSet([f"a{n}.*b.*c[0-9]{{1,20}}" for n in range(500)])


def test_a_set_that_fails_is_not_taken_for_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    class OutOfMemory:
        def Match(self, text: str) -> Any:  # noqa: N802
            return None

    patterns = PatternSet(["/a$", "/b$"])
    monkeypatch.setattr(patterns, "_set", OutOfMemory())
    assert patterns.matches("http://h/b")
    assert not patterns.matches("http://h/c")


@given(st.lists(st.sampled_from(["a", "^b", "c$", "a.*b", "[ab]c", "(?i)A", "^$", ""])), st.text("abcA", max_size=6))
def test_a_set_says_what_its_patterns_say_one_by_one(patterns: list[str], text: str) -> None:
    assert PatternSet(patterns).matches(text) == any(re.search(pattern, text) for pattern in patterns)
