"""Words: cuts text into the terms of an index, the same for pages and for queries.

Texts that are equal to a reader get equal terms: compatibility forms and case are folded (NFKC, Unicode 15, section
3.13), and invisible characters go. Scripts that are written without spaces become pairs of characters: words within a
run are then phrases. The second chance of a word, ranked lower, is its loose forms: without accents, and its stem.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import chain, pairwise

from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from gossamer.model.words import IGNORABLE

IGNORED = f"{IGNORABLE}\u0640"
"""Characters without a shape of their own, and the Arabic stretch."""
DENSE = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u104c-\u108f\u109a-\u109f\u1100-\u11ff"
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u1950-\u19df\u1a20-\u1a7c\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f\uaa80-\uaadf\uac00-\ud7fb"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)
"""Thai, Lao, Burmese, Khmer, Tai, Chinese, Japanese and Korean: their words are not divided, or bear particles."""
MARKS = "".join(chr(code) for code in range(0x300, 0x1E000) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
"""Marks that Python's `\\w` leaves out, though words of Arabic and of the scripts of India consist of them. 10 ms."""
WORD_CHARACTERS_MAX = 64
"""A longer word is cut."""
_IGNORED = re.compile(f"[{IGNORED}]+")
_RUN = re.compile(f"[{DENSE}]+")
_WORD = re.compile(rf"([\w{MARKS}{DENSE}]{{1,{WORD_CHARACTERS_MAX}}})[\w{MARKS}{DENSE}]*+")
_PUNCTUATION = "\xa0\xa9\xab\xb6\xb7\xbb\u02bb\u02bc\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2026"
_APOSTROPHES = "\xb7\u02bb\u02bc\u2019"
"""What joins the parts of a word as an apostrophe does: the dot of Catalan, letters of Ukrainian and Hawaiian."""
_PIECE = re.compile("[a-z0-9\x80-\U0010ffff]+")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}
_FOLDED = str.maketrans(  # With a stroke, and letters of Arabic that differ in Persian or at the end of a word.
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i", "ħ": "h", "ŧ": "t"}
    | {"\u0649": "\u064a", "\u06cc": "\u064a", "\u0629": "\u0647", "\u06a9": "\u0643"}
)
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?>(?:[-.'\u2019_&,\u2010\u2011\u200c][^\W_]++){1,8})")
_SEPARATORS = str.maketrans("", "", "-.'\u2019_&,\u2010\u2011\u200c")
_APART = {code: " " for code in range(128) if not chr(code).isalnum() and chr(code) not in "-.'_&,+#"}
"""Characters that are not part of a compound or symbol, and change none beside them."""
_AFTER = ".,;:!?)\"'"
_THOUSANDS = re.compile(r"\d{1,3}([,.'\u2019])\d{3}(?:\1\d{3})*")
_LATIN = re.compile("[A-Za-z0-9]+")
_HUMPS = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBERED = re.compile(r"([^\W\d_]++)(\d++)|(\d++)([^\W\d_]++)")
_AMOUNT = re.compile(r"(\d{1,3}(?:([,.'\u2019])\d{3})(?:\2\d{3})*|\d{4,})(?!\2)[.,](\d\d?)")
_SYMBOL = re.compile(
    r"(?<![\w+#])(?:[a-z](?:\+\+|#)(?![+#])|\.net\b)|[\U0001f1e6-\U0001f1ff]{2}"
    "|[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]",
    re.IGNORECASE,
)
"""Names of languages that would be a letter or another word without their marks; flags and other emoji."""
_EDGES = "$€£¥%.,;:!?\"'"
JOINED_CHARACTERS_MAX = 40
"""A longer joined form is not indexed."""
_LANGUAGES = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nb": "norwegian", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish",
}  # fmt: skip


def normal(text: str) -> str:
    """Return the one form of equal texts."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _IGNORED.sub("", text)).casefold())


def terms_of(text: str) -> list[str]:
    """Return a text's terms in order; of dense scripts, pairs and the last character. 100 ns a word of ASCII."""
    text = _without_marks(text.lower())
    if text.isascii():
        words = text.translate(_SPACES).split()  # Half of what a pattern costs.
        is_short = max(map(len, words), default=0) <= WORD_CHARACTERS_MAX
        return words if is_short else [word[:WORD_CHARACTERS_MAX] for word in words]
    found: list[str] = []
    for piece in _PIECE.findall(text):
        if piece.isascii():
            found.append(piece[:WORD_CHARACTERS_MAX])
        else:
            found += _terms[piece] if len(piece) <= WORD_CHARACTERS_MAX else _terms_of_piece(piece)
    return found


class _Remembered(dict[str, tuple[str, ...]]):
    """What a function returns for a text: of one that came before without a call of Python's code."""

    def __init__(self, find: Callable[[str], tuple[str, ...]], texts_max: int) -> None:
        """`texts_max` are remembered at once."""
        self._find = find
        self._texts_max = texts_max

    def __missing__(self, text: str) -> tuple[str, ...]:
        if len(self) >= self._texts_max:
            self.clear()
        found = self[text] = self._find(text)
        return found


def _terms_of_piece(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_RUN.sub(_pairs, normal(text)).replace("_", " ")))


_terms = _Remembered(_terms_of_piece, 25_000)


def _without_marks(text: str) -> str:
    """Return a text with spaces for typographic marks, which alone do not make it slow."""
    if not text.isascii():
        for mark in _PUNCTUATION:
            text = text.replace(mark, " ")
    return text


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(map(''.join, pairwise(text)))} {text[-1]} "


def is_dense(term: str) -> bool:
    """Return whether a term is of a script that is written without spaces."""
    return not term.isascii() and _RUN.match(term) is not None


def loose_terms(terms: list[str], language: str) -> list[str]:
    """Return the loose forms of a page's terms, where they differ from the term; each term's once."""
    return [*chain.from_iterable(map(_loose_in(_LANGUAGES.get(language, "")).__getitem__, dict.fromkeys(terms)))]


def joined_terms(text: str) -> list[str]:
    """Return other spellings of the words of a text: `email` for e-mail, `user` for getUserById, each once."""
    for mark in _APOSTROPHES:
        text = text.replace(mark, "'")
    text = _without_marks(text)
    if text.isascii():
        text = text.translate(_APART)
    return sorted({*chain.from_iterable(map(_parts.__getitem__, set(text.split())))})


def _parts_of(text: str) -> tuple[str, ...]:
    """Return the terms of a text without spaces that its words alone do not have."""
    text = text.rstrip(_AFTER)
    if text.isalpha() and text.islower():  # Most words.
        return ()
    found: list[str] = (
        symbols_of(text) if not text.isascii() or "#" in text or "++" in text or ".net" in text.lower() else []
    )
    for word in () if text.isalnum() else _COMPOUND.findall(text):
        found += joined_of(word)
        if "\u200c" in word:  # Persian writes such parts apart too.
            found += terms_of(word.replace("\u200c", " "))
    if not text.isalpha():
        found += (part for term in terms_of(text) for part in numbered_parts(term))
    for word in () if text.islower() else _LATIN.findall(text):
        if not word.isupper() and not word[1:].islower() and len(word) <= JOINED_CHARACTERS_MAX:
            found += [part.lower() for part in _HUMPS.split(word) if 1 < len(part) < len(word)]
    return tuple(found)


_parts = _Remembered(_parts_of, 50_000)


def joined_of(word: str) -> tuple[str, ...]:
    """Return a word of several parts without what divides them, and without accents; of an amount, `1299.99`; none of
    other numbers where the mark has a meaning.
    """
    word = word.strip(_EDGES)
    if amount := _AMOUNT.fullmatch(word):
        return (f"{amount[1].translate(_SEPARATORS)}.{amount[3]}",)
    joined = normal(word.translate(_SEPARATORS))
    if not joined.isalnum() or joined == word.lower() or len(joined) > JOINED_CHARACTERS_MAX:
        return ()
    is_number = joined.isdecimal() and "." in word
    return () if is_number and _THOUSANDS.fullmatch(word) is None else (*dict.fromkeys((joined, fold(joined))),)


def numbered_parts(term: str) -> tuple[str, ...]:
    """Return the parts of a term that is a word and a number, such as `5ghz`; none of another one."""
    numbered = _NUMBERED.fullmatch(term)
    return tuple(filter(None, numbered.groups())) if numbered is not None else ()


def symbols_of(text: str) -> list[str]:
    """Return the names with marks in a text, such as `c++`, `c#` and `.net`, and its emoji."""
    return list(map(str.lower, _SYMBOL.findall(text)))


def loose_of(term: str, language: str) -> tuple[str, ...]:
    """Return the loose forms of a term that differ from it: without accents, and its stem without them."""
    return _loose_in(_LANGUAGES.get(language, ""))[term]


@lru_cache(maxsize=4)
def _loose_in(language: str) -> _Remembered:
    """Return the loose forms of terms in a language with a stemmer (Snowball's name), or in any other."""
    builder = TextAnalyzerBuilder(Tokenizer.whitespace())
    stems_of = builder.filter(Filter.stemmer(language)).build().analyze if language else lambda _: []

    def find(term: str) -> tuple[str, ...]:
        if term.isascii():
            return tuple([stem for stem in stems_of(term) if stem != term])
        forms = () if is_dense(term) else dict.fromkeys((fold(term), *map(fold, stems_of(term))))
        return tuple([form for form in forms if form != term])

    return _Remembered(find, 25_000)


def fold(term: str) -> str:
    """Return a term without accents, vowel points and variants of letters and digits; marks that are letters stay."""
    if term.isascii():
        return term
    # 7 is the dot of loanwords in the scripts of India, 10 to 36 are vowel points.
    letters = ((one, unicodedata.combining(one)) for one in unicodedata.normalize("NFD", term))
    plain = "".join(
        str(unicodedata.decimal(one, one)) for one, kind in letters if (kind < 10 and kind != 7) or 37 <= kind < 200
    )
    return unicodedata.normalize("NFC", plain.translate(_FOLDED)) or term  # A mark alone.
