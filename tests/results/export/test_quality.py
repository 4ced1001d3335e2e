"""Quality: the figures of a text, computed by hand or in the plainest way; test_corpus.py compares with datatrove."""

from __future__ import annotations

import random

import pytest

from gossamer.results.export.quality import REPEATED_NGRAMS_MAX, TOP_NGRAMS_MAX, Quality, quality_of, tokens_of

SENTENCE = "The keeper of that old lighthouse walked to the shore with a lantern, and looked at the sea."
PROSE = "\n".join(
    f"{SENTENCE} On day {number} of the year the wind came from the {side} and took {number * 7} leaves with it."
    for number, side in enumerate(("north", "south", "east", "west", "valley"))
)


def test_prose_passes_and_its_figures_are_those_counted_by_hand() -> None:
    made = quality_of("One two. Three four five.\nSix # seven…\nSix # seven…\n- eight nine?")
    words = ["One", "two.", "Three", "four", "five.", "Six", "#", "seven…", "Six", "#", "seven…", "-", "eight", "nine?"]
    assert made.words == len(words)
    assert made.mean_word_length == sum(len(word) for word in words if word not in "#-") / 11
    assert made.symbols_per_word == 2 / 14
    assert made.bullet_lines == 1 / 4
    assert made.ellipsis_lines == made.punctuated_lines - 2 / 4 == 2 / 4
    assert made.alphabetic_words == 11 / 14
    assert made.stop_words == 0
    assert made.duplicate_lines == 1 / 4
    assert made.short_lines == 1
    assert made.lines_per_word == 3 / 14
    prose = quality_of(PROSE)
    assert not prose.passes_gopher, "one sentence five times is repetition"
    assert prose.passes_c4
    assert prose.passes_fineweb


def longest_share(text: str) -> tuple[float, float]:
    """What Gopher's table A1 says of runs of words, word by word."""
    words = text.split()
    top = repeated = 0.0
    for size, limit in TOP_NGRAMS_MAX.items():
        runs = [" ".join(words[at : at + size]) for at in range(len(words) - size + 1)]
        if runs:
            best = max(dict.fromkeys(runs), key=runs.count)
            top = max(top, len(best) * runs.count(best) / len(text) / limit)
    for size, limit in REPEATED_NGRAMS_MAX.items():
        seen: set[str] = set()
        at = found = 0
        while at <= len(words) - size:
            run = "".join(words[at : at + size])
            found += len(run) if run in seen else 0
            at += size if run in seen else 1
            seen.add(run)
        repeated = max(repeated, found / len(text) / limit)
    return top, repeated


@pytest.mark.parametrize("seed", range(40))
def test_runs_of_words_are_counted_as_the_paper_says(seed: int) -> None:
    dice = random.Random(seed)
    words = ["a", "bb", "ccc", "dddd", "eeeee", "f", "gg"][: dice.randrange(1, 8)]
    text = " ".join(dice.choices(words, k=dice.randrange(1, 60)))
    made = quality_of(text)
    top, repeated = longest_share(text)
    assert made.top_ngrams == pytest.approx(top)
    assert made.repeated_ngrams == pytest.approx(repeated)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("", (False, False, False)),
        (PROSE.replace("leaves", "{leaves}"), (False, False, True)),
        ("\n".join(line + " Lorem ipsum dolor sit amet." for line in PROSE.split("\n")), (False, False, True)),
        ("Menu\nHome\nAbout\nContact\nImprint\n" * 3, (False, False, False)),
    ],
)
def test_what_the_filters_leave_out(text: str, passes: tuple[bool, bool, bool]) -> None:
    made = quality_of(text)
    assert (made.passes_gopher, made.passes_c4, made.passes_fineweb) == passes


def test_every_text_has_figures() -> None:
    for text in ("", " ", "\n\n", "\ud800", "#" * 9, "東京都" * 50):
        made = quality_of(text)
        assert all(getattr(made, name) >= 0 for name in Quality.__struct_fields__)
    assert [tokens_of(text) for text in ("", "a", "abcd", "abcde", "東京")] == [0, 1, 1, 2, 2]
