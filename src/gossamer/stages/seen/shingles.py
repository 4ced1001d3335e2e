"""Shingles: a page's words in runs of three, hashed all at once.

There is no loop over words. Each byte value maps to a number, which is multiplied by the power of an odd constant for
the byte's position. In the running sum of these products, the hash of a word is the difference of two entries times the
inverse of the power at the word's beginning (Karp and Rabin 1987, modulo 2**64). This takes some twenty passes over
arrays: about 130 µs for a page of 26 KB (`benchmarks/bench_near.py`).
"""

import re

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from gossamer.model.pages import Sketch

TEXT_BYTES_MAX = 1 << 16
"""Bytes of a page's text that are used, so that time and memory are bounded for any page."""
BODY_BYTES_MAX = 1 << 18
"""Bytes of a page in which text is searched for."""
WORD_BYTES_MIN = 3
"""Shorter words, and what remains of numbers and ids without their digits, mean nothing."""
ADDRESS_WORDS_MAX = 256
"""Words of a page's address that are ignored in its text."""
ADDRESS_BYTES_MAX = 1 << 15
"""Bytes of an address in which these words are searched for."""
LOWEST_MAX = 512
"""Hashes that a sketch keeps."""
SIGNATURE_VALUES = 128
"""16-bit values of a signature."""
SHINGLES_MIN = 24
"""Texts with fewer shingles have no meaningful signature."""

Hashes = npt.NDArray[np.uint64]
_U64 = np.uint64
_BASE = 0x9E3779B97F4A7C15
_SECOND = _U64(0xC2B2AE3D27D4EB4F)
_THIRD = _U64(0x165667B19E3779F9)
_TEXTS = re.compile(rb">\s*+([^<]{3,}+)").findall
_HIDDEN = ((b"<script", b"</script"), (b"<style", b"</style"))


def sketch(body: bytes, charset: str = "", address: str = "", *, lowest: bool = True) -> Sketch:
    """Return the sketch of a page. `charset` matters only if a letter is not a byte (UTF-16). Words in the path of its
    `address` are ignored: error pages and searches repeat them. Without `lowest` the smallest hashes are left out:
    near-duplicates do not need them.

    Works for any bytes; a page without words has the sketch of an empty page. Costs about 130 µs for 26 KB with 61
    links, at most 2 ms.
    """
    if charset.startswith("utf-16"):
        body = body[:BODY_BYTES_MAX].decode(charset, "replace").encode("utf-8", "replace")
    text = text_of(body)
    path = address[address.find("/", address.find("://") + 3) :].encode("ascii", "ignore")[:ADDRESS_BYTES_MAX]
    words, blocks = words_of(text + b"\0" + path)  # Both at once: a pass over few bytes costs as much.
    end = int(np.searchsorted(blocks, text.count(b"\0") + 1))
    asked = _distinct(words[end:])[:ADDRESS_WORDS_MAX]
    words = words[:end]
    blocks = blocks[:end]
    if len(asked):
        kept = asked[np.searchsorted(asked, words) % len(asked)] != words
        words = words[kept]
        blocks = blocks[kept]
    if not len(words):
        return Sketch(0, 0, 0)
    shingles = shingles_of(words, blocks)
    least = lowest_of(shingles) if lowest else ()
    return Sketch(xxh3_64_intdigest(words.tobytes()), simhash_of(shingles), len(shingles), least)


def text_of(body: bytes) -> bytes:
    """Return the text between tags, its pieces separated by zero bytes; the whole page if there are no tags. Does not
    parse: it is enough that equal pages have equal texts.
    """
    body = _without_scripts(body[:BODY_BYTES_MAX])
    return (b"\0".join(_TEXTS(body)) if b"<" in body else body)[:TEXT_BYTES_MAX]


def words_of(text: bytes) -> tuple[Hashes, npt.NDArray[np.int32]]:
    """Return the hash of each word, in order, and the number of its piece.

    A word is a run of at least three ASCII letters or non-ASCII bytes. Scripts without spaces have other words: each
    character of the East Asian ones, a consonant with the marks that follow it in Thai, Lao, Khmer and Burmese, a
    syllable in Tibetan.
    """
    codes = np.frombuffer(text, np.uint8)
    if not len(codes):
        return np.empty(0, _U64), np.empty(0, np.int32)
    letter = _LETTER.take(codes)
    lead = _LEAD.take(codes)
    if b"\xe0" in text or b"\xe1" in text:
        _mark_syllables(codes, lead)
    sums = np.empty(len(codes) + 1, _U64)
    sums[0] = 0
    np.cumsum(_VALUES.take(codes) * _POWERS[: len(codes)], out=sums[1:])
    after = np.zeros(len(codes) + 1, np.bool_)  # Whether the byte before is a letter.
    after[1:] = letter
    begins = letter & (lead | ~after[:-1])
    ends = np.zeros(len(codes) + 1, np.bool_)
    ends[:-1] = after[:-1] & (lead | ~letter)
    ends[-1] = letter[-1]
    first = np.flatnonzero(begins)
    last = np.flatnonzero(ends)
    long = last - first >= WORD_BYTES_MIN
    first = first[long]
    last = last[long]
    words = (sums[last] - sums[first]) * _INVERSES[first]
    return words, np.cumsum(codes == 0, dtype=np.int32)[first]


def _mark_syllables(codes: npt.NDArray[np.uint8], lead: npt.NDArray[np.bool_]) -> None:
    """Mark the characters of U+0800 to U+1FFF that begin a syllable."""
    at = np.flatnonzero((codes[:-2] & 0xFE) == 0xE0)
    first, second, third = (codes[at + step].astype(np.int32) for step in range(3))
    lead[at] |= _SYLLABLES[(first & 1) << 12 | (second & 0x3F) << 6 | third & 0x3F]


def shingles_of(words: Hashes, blocks: npt.NDArray[np.int32]) -> Hashes:
    """Return a hash for each three consecutive words of a piece. Shingles do not cross pieces, so the neighbours of a
    list entry do not change its hashes.
    """
    hashes = words * _U64(_BASE)
    hashes[:-1] += np.where(blocks[1:] == blocks[:-1], words[1:], _U64(0)) * _SECOND
    hashes[:-2] += np.where(blocks[2:] == blocks[:-2], words[2:], _U64(0)) * _THIRD
    hashes ^= hashes >> _U64(31)
    hashes *= _U64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> _U64(29)
    hashes *= _U64(0x94D049BB133111EB)
    hashes ^= hashes >> _U64(32)
    return hashes


def simhash_of(hashes: Hashes) -> int:
    """Return the simhash: the majority of each bit over all hashes (Charikar 2002); repeated ones count each time."""
    bits = np.unpackbits(hashes.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8), axis=1)
    ones = bits.sum(axis=0, dtype=np.uint32)
    return int.from_bytes(np.packbits(2 * ones > len(hashes)).tobytes(), "little")


def lowest_of(hashes: Hashes) -> tuple[int, ...]:
    """Return the `LOWEST_MAX` smallest distinct hashes, ascending."""
    most = 2 * LOWEST_MAX  # Some occur more than once.
    few = hashes if len(hashes) <= most else np.partition(hashes, most)[:most]
    lowest: list[int] = _distinct(few)[:LOWEST_MAX].tolist()
    return tuple(lowest)


def signature(text: str) -> bytes:
    """Return the MinHash signature of a text by one permutation (Li, Owen and Zhang 2012), with empty bins filled from
    the next bin (Shrivastava and Li 2014): 256 bytes. The share of equal values in two signatures estimates the share
    of shingles that the texts have in common (Jaccard), with a standard error of 0.04. Empty for a text of few words.
    At most 1.2 ms.
    """
    words, blocks = words_of(text.encode("utf-8", "replace")[:TEXT_BYTES_MAX])
    if len(words) < SHINGLES_MIN:
        return b""
    hashes = _distinct(shingles_of(words, blocks))
    bins = (hashes >> _U64(57)).astype(np.int64)
    filled, first = np.unique(bins, return_index=True)
    least = hashes[first].astype(np.uint16)
    at = np.searchsorted(filled, np.arange(SIGNATURE_VALUES))
    distance = (np.append(filled, filled[0] + SIGNATURE_VALUES)[at] - np.arange(SIGNATURE_VALUES)).astype(np.uint16)
    return (least[at % len(filled)] + distance * np.uint16(0x9E37)).astype("<u2").tobytes()


def _distinct(hashes: Hashes) -> Hashes:
    """Return each hash once, ascending. `np.unique` does the same but imports `numpy.ma`, which takes 10 ms."""
    ascending = np.sort(hashes)
    kept = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=kept[1:])
    return ascending[kept]


def _without_scripts(body: bytes) -> bytes:
    for begin, end in _HIDDEN:
        at = body.find(begin)
        if at < 0:
            continue
        kept = []
        done = 0
        while at >= 0:
            kept.append(body[done:at])
            done = body.find(end, at)
            if done < 0:
                done = len(body)
            at = body.find(begin, done)
        body = b"".join((*kept, body[done:]))
    return body


def _tables() -> tuple[Hashes, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return for each byte value its number, whether it is part of words, and whether it begins a word by itself."""
    values = np.zeros(256, _U64)
    lead = np.zeros(256, np.bool_)
    for code in range(256):
        low = code | 0x20 if 0x41 <= code <= 0x5A else code
        if low >= 0x80 or 0x61 <= low <= 0x7A:
            values[code] = xxh3_64_intdigest(bytes([low])) | 1
    lead[0xE3:0xEA] = True  # In UTF-8: U+3000 to U+9FFF.
    return values, values != 0, lead


_SYLLABLE_RANGES = (
    (0x0E01, 0x0E2E), (0x0E40, 0x0E44),  # Thai: consonants, and the vowels that are written before them.
    (0x0E81, 0x0EAE), (0x0EC0, 0x0EC4),  # Lao, likewise.
    (0x0EDC, 0x0EDF),
    (0x0F0B, 0x0F0B),  # Tibetan: the mark between syllables.
    (0x1000, 0x1021),  # Burmese.
    (0x1780, 0x17A2),  # Khmer.
)  # fmt: skip
"""First and last characters that begin a syllable, in scripts without spaces between words."""


def _syllables() -> npt.NDArray[np.bool_]:
    """Return for each character up to U+1FFF whether it begins a syllable."""
    begins = np.zeros(0x2000, np.bool_)
    for first, last in _SYLLABLE_RANGES:
        begins[first : last + 1] = True
    return begins


def _powers(base: int) -> Hashes:
    powers = np.full(TEXT_BYTES_MAX + ADDRESS_BYTES_MAX + 2, base, _U64)
    powers[0] = 1
    return np.cumprod(powers, dtype=_U64)


_VALUES, _LETTER, _LEAD = _tables()
_SYLLABLES = _syllables()
_POWERS = _powers(_BASE)
_INVERSES = _powers(pow(_BASE, -1, 1 << 64))
