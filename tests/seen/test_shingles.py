"""Sketches of words: the quick form equals the plain one, and what it does not look at changes nothing."""

from __future__ import annotations

import re

import pytest

from gossamer.seen import shingles
from gossamer.seen.shingles import BODY_BYTES_MAX, LOWEST_MAX, TEXT_BYTES_MAX, sketch, text_of

MASK = (1 << 64) - 1
PARAGRAPH = (
    "The spider waits where the wind is strong and lets its thread go; whatever the branch may be on which it lands, "
    "a bridge is made of it, and from the bridge a web, before the dew of the morning has gone from the grass. "
)


def plainly(text: bytes) -> tuple[list[int], list[int]]:
    """Return words and shingles of a text, one byte after the other."""
    values = [int(value) for value in shingles._VALUES]
    words: list[tuple[int, int]] = []
    for block, piece in enumerate(text.split(b"\0")):
        for run in re.findall(rb"(?:[A-Za-z\x80-\xff])+", piece):
            for word in re.findall(rb"[\xe3-\xe9][^\xe3-\xe9]*|^[^\xe3-\xe9]+", run):
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
        bytes(range(256)) * 3,
        b"ab abc abcd",
        b"word",
    ],
    ids=["prose", "pieces", "scripts", "bytes", "short", "one"],
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
