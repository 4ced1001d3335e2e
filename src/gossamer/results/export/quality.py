"""Quality: figures of a text by which corpora for training are filtered, as columns; nothing is left out.

The rules are those of Gopher (Rae and others 2021, section A.1.1), C4 (Raffel and others 2020, section 2.2) and FineWeb
(Penedo and others 2024, section 3.6), as datatrove reads them; words are what white space separates.
"""

import re
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

STOP_WORDS = frozenset(("the", "be", "to", "of", "and", "that", "have", "with"))
"""Of Gopher: English text has at least two of them."""
ENDS = (".", "?", "!", '"', "'")
TOP_NGRAMS_MAX = {2: 0.20, 3: 0.18, 4: 0.16}
"""Largest share of characters in the most frequent run of that number of words."""
REPEATED_NGRAMS_MAX = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.10}
"""Largest share of characters in runs of that number of words that occurred before."""
TERMINALS = tuple(".?!…。．｡？！।॥؟۔።፧՜՞։។៕")  # noqa: RUF001 - in their own scripts
"""Characters that end sentences, in any script."""
BYTES_A_TOKEN = 4
SHORT_CHARACTERS = 30
_TERMS = re.compile(r"terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies|javascript")
_SENTENCE = re.compile(r"[.!?][\"')]?(?=\s|$)")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
Hashes = npt.NDArray[np.uint64]


class Quality(msgspec.Struct, frozen=True):
    """Figures of one text. Shares are between 0 and 1."""

    words: int
    tokens: int
    """Estimate: UTF-8 bytes divided by 4."""
    mean_word_length: float
    symbols_per_word: float
    """Hash signs or ellipses, whichever are more."""
    bullet_lines: float
    ellipsis_lines: float
    alphabetic_words: float
    stop_words: int
    """Of `STOP_WORDS`, how many different ones."""
    duplicate_lines: float
    duplicate_line_characters: float
    top_ngrams: float
    """Largest quotient of a share in `TOP_NGRAMS_MAX` and its limit; Gopher permits at most 1."""
    repeated_ngrams: float
    """The same for `REPEATED_NGRAMS_MAX`."""
    punctuated_lines: float
    short_lines: float
    lines_per_word: float
    c4_lines: float
    """Share of lines that C4 keeps."""
    passes_gopher: bool
    passes_c4: bool
    passes_fineweb: bool


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has. Between 0.7 and 1.5 times those of a current tokenizer, by language."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def quality_of(text: str) -> Quality:
    """Return the figures of a text. About 1 ms for a thousand words."""
    words = text.split()
    lines = [line for line in text.split("\n") if line.strip()]
    count = max(len(words), 1)
    line_count = max(len(lines), 1)
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    real = [word for word in words if any(map(str.isalnum, word))]
    repeats = _repeats(lines)
    repeated_characters = sum(map(len, repeats))
    c4 = [line for line in lines if _is_kept_by_c4(line)]
    top, repeated = _ngrams(words, lengths, max(len(text), 1))
    made = Quality(
        words=len(words),
        tokens=tokens_of(text),
        mean_word_length=sum(map(len, real)) / max(len(real), 1),
        symbols_per_word=max(text.count("#"), text.count("...") + text.count("…")) / count,
        bullet_lines=sum(line.lstrip().startswith(("•", "-")) for line in lines) / line_count,
        ellipsis_lines=sum(line.rstrip().endswith(("...", "…")) for line in lines) / line_count,
        alphabetic_words=sum(any(map(str.isalpha, word)) for word in words) / count,
        stop_words=len(STOP_WORDS.intersection(words)),
        duplicate_lines=len(repeats) / line_count,
        duplicate_line_characters=repeated_characters / max(len(text), 1),
        top_ngrams=top,
        repeated_ngrams=repeated,
        punctuated_lines=sum(line.endswith(TERMINALS) for line in lines) / line_count,
        short_lines=sum(len(line) <= SHORT_CHARACTERS for line in lines) / line_count,
        lines_per_word=text.count("\n") / count,
        c4_lines=len(c4) / line_count,
        passes_gopher=False,
        passes_c4=_passes_c4(c4),
        passes_fineweb=False,
    )
    return msgspec.structs.replace(
        made,
        passes_gopher=_passes_gopher(made, len(real)),
        passes_fineweb=bool(lines) and _passes_fineweb(made, repeated_characters / max(len("".join(lines)), 1)),
    )


def _repeats(lines: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    return [line for line in lines if line in seen or seen.add(line)]  # type: ignore[func-returns-value]


def _ngrams(words: Sequence[str], lengths: npt.NDArray[np.int64], characters: int) -> tuple[float, float]:
    """Return how near the most frequent and the repeated runs of words come to Gopher's limits."""
    hashes = np.fromiter((hash(word) & 0xFFFFFFFFFFFFFFFF for word in words), np.uint64, len(words))
    ends = np.concatenate(([0], np.cumsum(lengths)))
    runs = hashes
    top = repeated = 0.0
    for size in range(2, max(REPEATED_NGRAMS_MAX) + 1):
        if len(words) < size:
            break
        runs = runs[:-1] * _FACTOR + hashes[size - 1 :]
        if size in TOP_NGRAMS_MAX:
            top = max(top, _top(runs, ends, size) / characters / TOP_NGRAMS_MAX[size])
        else:
            repeated = max(repeated, _repeated(runs, ends, size) / characters / REPEATED_NGRAMS_MAX[size])
    return top, repeated


def _top(runs: Hashes, ends: npt.NDArray[np.int64], size: int) -> int:
    """Return the characters of the most frequent run; of several, that which occurs first."""
    number, uses = Counter(runs.tolist()).most_common(1)[0]
    first = int(np.argmax(runs == np.uint64(number)))
    return int(ends[first + size] - ends[first] + size - 1) * uses


def _repeated(runs: Hashes, ends: npt.NDArray[np.int64], size: int) -> int:
    """Return the characters in runs that occurred before; after one, the next begins behind it."""
    held = runs.tolist()
    if len(set(held)) == len(held):
        return 0
    seen: set[int] = set()
    at = found = 0
    while at < len(held):
        if held[at] in seen:
            found += int(ends[at + size] - ends[at])
            at += size
        else:
            seen.add(held[at])
            at += 1
    return found


def _is_kept_by_c4(line: str) -> bool:
    line = line.strip()
    return line.endswith(ENDS) and not line.endswith("...") and line.count(" ") >= 2 and not _TERMS.search(line.lower())


def _passes_c4(lines: Sequence[str]) -> bool:
    """Return whether C4 keeps a text with these lines: five sentences, no placeholder text, no code."""
    text = "\n".join(lines)
    return len(_SENTENCE.findall(text)) >= 5 and "lorem ipsum" not in text.lower() and "{" not in text


def _passes_gopher(of: Quality, words: int) -> bool:
    return (
        50 <= words <= 100_000
        and 3 <= of.mean_word_length <= 10
        and of.symbols_per_word <= 0.1
        and of.bullet_lines <= 0.9
        and of.ellipsis_lines <= 0.3
        and of.alphabetic_words >= 0.8
        and of.stop_words >= 2
        and of.duplicate_lines <= 0.3
        and of.duplicate_line_characters <= 0.2
        and of.top_ngrams <= 1
        and of.repeated_ngrams <= 1
    )


def _passes_fineweb(of: Quality, repeated: float) -> bool:
    """`repeated` is the share of characters in lines that occurred before, line ends not counted."""
    return of.punctuated_lines >= 0.12 and of.short_lines <= 0.67 and repeated <= 0.01 and of.lines_per_word <= 0.3
