"""Quantities as commands, reports and simulations show them."""

from __future__ import annotations

from gossamer.model.words import bit_rate, count, counted, duration, shell_word, size


def test_bytes_and_bits_come_in_decimal_units() -> None:
    assert [size(n) for n in (0, 999, 1000, 1_500_000, 2e9, 3e15, 4e18)] == [
        "0 B", "999 B", "1.0 kB", "1.5 MB", "2.0 GB", "3.0 PB", "4,000.0 PB",
    ]  # fmt: skip
    assert [bit_rate(n) for n in (0, 1_500, 2e12)] == ["0.0 bit/s", "1.5 kbit/s", "2,000.0 Gbit/s"]


def test_paths_are_words_of_a_shell_and_no_options() -> None:
    assert [shell_word(one) for one in ("a/b", "a b", "-a", "-a b")] == ["a/b", "'a b'", "./-a", "'./-a b'"]


def test_counts_have_separators_and_their_noun() -> None:
    assert [count(1_234.0), counted(1, "page"), counted(20_000, "page")] == ["1,234", "1 page", "20,000 pages"]


def test_durations_have_two_units() -> None:
    assert [duration(s) for s in (0, 59, 59.6, 125, 3_600 * 5 + 60 * 7, 90_000)] == [
        "0 s", "59 s", "1 min 0 s", "2 min 5 s", "5 h 7 min", "1 d 1 h",
    ]  # fmt: skip
    assert [duration(s, 1) for s in (-1, 0.25, 8, 59, 61)] == ["0.0 s", "0.2 s", "8.0 s", "59.0 s", "1 min 1 s"]
