"""Sketches of words: the quick form equals the plain one, and what it does not look at changes nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest

from gossamer.stages.scope.templates import TemplateNode
from gossamer.stages.seen import shingles
from gossamer.stages.seen.shingles import BODY_BYTES_MAX, LOWEST_MAX, TEXT_BYTES_MAX, sketch, text_of

MASK = (1 << 64) - 1
PARAGRAPH = (
    "The spider waits where the wind is strong and lets its thread go; whatever the branch may be on which it lands, "
    "a bridge is made of it, and from the bridge a web, before the dew of the morning has gone from the grass. "
)


BEGIN = (
    rb"[\xe3-\xe9]|\xe0\xb8[\x81-\xae]|\xe0\xb9[\x80-\x84]|\xe0\xba[\x81-\xae]|\xe0\xbb[\x80-\x84\x9c-\x9f]"
    rb"|\xe0\xbc\x8b|\xe1\x80[\x80-\xa1]|\xe1\x9e[\x80-\xa2]"
)
"""Characters that begin a word: of East Asian scripts, Thai, Lao, Tibetan, Burmese and Khmer."""
WORD = re.compile(rb"(?:%b)(?:(?!%b).)*|^(?:(?!%b).)+" % (BEGIN, BEGIN, BEGIN), re.DOTALL)


def plainly(text: bytes) -> tuple[list[int], list[int]]:
    """Return words and shingles of a text, one byte after the other."""
    values = [int(value) for value in shingles._VALUES]
    words: list[tuple[int, int]] = []
    for block, piece in enumerate(text.split(b"\0")):
        for run in re.findall(rb"(?:[A-Za-z\x80-\xff])+", piece):
            for word in WORD.findall(run):
                if len(word) >= 3:
                    total = sum(values[byte] * pow(shingles._BASE, at, 1 << 64) for at, byte in enumerate(word))
                    words.append((total & MASK, block))
    found = []
    for at, (word, block) in enumerate(words):
        following = [one if other == block else 0 for one, other in (*words[at + 1 : at + 3], (0, -1), (0, -1))]
        mixed = word * shingles._BASE + following[0] * int(shingles._SECOND) + following[1] * int(shingles._THIRD)
        mixed &= MASK
        for shift, factor in ((31, 0xBF58476D1CE4E5B9), (29, 0x94D049BB133111EB), (32, 1)):
            mixed = (mixed ^ mixed >> shift) * factor & MASK
        found.append(mixed)
    return [word for word, _ in words], found


def plain_simhash(hashes: list[int]) -> int:
    return sum((2 * sum(one >> bit & 1 for one in hashes) > len(hashes)) << bit for bit in range(64))


@pytest.mark.parametrize(
    "text",
    [
        PARAGRAPH.encode(),
        b"one\0two three\0four five six seven\0\0eight",
        "Der Weiße Bär müßte — naïve café 蜘蛛网络在风中 паутина 2024 x9y".encode(),
        "แมงมุมรอลม ແມງມຸມລໍຖ້າ ពីងពាងរង់ចាំ ပင့်ကူသည် སྡོམ་གྱིས་རླུང་ मकड़ी हवा".encode(),
        bytes(range(256)) * 3,
        b"ab abc abcd",
        b"word",
    ],
    ids=["prose", "pieces", "scripts", "syllables", "bytes", "short", "one"],
)
def test_the_quick_form_equals_the_plain_one(text: bytes) -> None:
    words, blocks = shingles.words_of(text)
    plain_words, plain_shingles = plainly(text)
    assert words.tolist() == plain_words
    quick = shingles.shingles_of(words, blocks)
    assert quick.tolist() == plain_shingles
    assert shingles.simhash_of(quick) == plain_simhash(plain_shingles)
    assert shingles.lowest_of(quick) == tuple(sorted(set(plain_shingles))[:LOWEST_MAX])


def test_numbers_case_markup_and_scripts_count_for_nothing() -> None:
    page = f"<html><script>var a = 'something'</script><p class=x>{PARAGRAPH}</p> <p>seen 17 times</p>"
    other = f"<div id=y><p>{PARAGRAPH.upper()}</p></div><style>p {{ color: red }}</style><em>seen 4,321 times</em>"
    assert sketch(page.encode()) == sketch(other.encode())
    assert sketch(page.encode()).digest != sketch(page.replace("spider", "bee").encode()).digest


def test_the_words_of_its_own_address_count_for_nothing() -> None:
    def answer(word: str) -> bytes:
        return f"<h1>Nothing about {word}</h1><p>{PARAGRAPH}</p>".encode()

    pages = [sketch(answer(word), "", f"http://h.example/find?about={word}") for word in ("honey", "tigers")]
    assert pages[0] == pages[1]
    assert sketch(answer("honey")) != sketch(answer("tigers"))


def test_charsets_whose_letters_are_no_bytes() -> None:
    page = f"<p>{PARAGRAPH}</p>"
    assert sketch(page.encode("utf-16-le"), "utf-16le") == sketch(page.encode())


@pytest.mark.parametrize("body", [b"", b"<p></p>", b"12 34", b"\0" * 1000, b"<" * 1000])
def test_pages_without_words_have_the_empty_sketch(body: bytes) -> None:
    assert sketch(body).shingles == 0
    assert sketch(body).lowest == ()


def test_of_a_page_without_end_a_bounded_part_is_read() -> None:
    text = text_of(b"<p>" + PARAGRAPH.encode() * 10_000)
    assert len(text) == TEXT_BYTES_MAX
    before = b"<p>" + PARAGRAPH.encode() + b"<i>" * BODY_BYTES_MAX
    assert sketch(before + b"<p>much else entirely") == sketch(before)


@pytest.mark.parametrize(
    ("letters", "marks"),
    [
        (range(0x0E01, 0x0E2F), "ะาำิีึืุู่้็์"),
        ((0x0E81, 0x0E82, 0x0E84, 0x0E87, 0x0E88, 0x0E8A, *range(0x0E94, 0x0E98), *range(0x0E99, 0x0EA0)), "ະາິີຸູ່້"),
        (range(0x1780, 0x17A0), "ាិីុូេោះ"),
        (range(0x1000, 0x1020), "ာိီုူေံ့း"),
        (range(0x4E00, 0x4F00), ("",)),
        (range(0x3042, 0x3090), ("",)),
    ],
    ids=["thai", "lao", "khmer", "burmese", "chinese", "japanese"],
)
def test_short_texts_without_spaces_have_something_new(letters: Sequence[int], marks: Sequence[str]) -> None:
    """So a site of such pages is no trap: each has some thirty syllables, about fifteen words."""
    node, fresh, dice = TemplateNode(), 0, random.Random(1)
    for _ in range(200):
        text = "".join(chr(dice.choice(letters)) + dice.choice(marks) for _ in range(30))
        fresh += node.judge(sketch(f"<p>{text}</p>".encode()))
    assert fresh >= 190
    assert not node.is_suspected


def test_tibetan_is_counted_by_syllables() -> None:
    words, _ = shingles.words_of("སྡོམ་གྱིས་རླུང་ཆེན་པོ་ལ་སྒུག་ནས་རང་གི་སྐུད་པ་".encode())
    assert len(words) == 13
