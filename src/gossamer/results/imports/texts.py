"""Texts: what browsers showed of pages, as their crawlers archive it beside the pages (`urn:text:` records, lists)."""

from xxhash import xxh3_64_intdigest

from gossamer.engine.examine import Examined
from gossamer.results.imports.capture import Item, Skipped, Source
from gossamer.results.imports.content import address_of
from gossamer.stages.process.html import HTML_TYPES
from gossamer.stages.process.links import cut
from gossamer.stages.process.scripted import TEXT_FEW_BYTES, text_bytes
from gossamer.stages.process.text import DOCUMENT
from gossamer.world.spill import Spill, Spills

TEXTS_MAX = 100_000
"""Texts that are kept, with some 200 bytes of memory each; further pages have the text of their HTML."""
TEXTS_BYTES_MAX = 4 << 30
GAIN_MIN = 1.5
"""Text beside that of the HTML as sent, from which it is taken: what rendering has to add to a page."""
PREFIXES = ("urn:text:", "urn:textFinal:")
"""Of Browsertrix Crawler: as a page was loaded, and after its behaviors ran."""


class PageTexts:
    """Texts by archive and URL, in a file without a name. Of several of one page the longest."""

    def __init__(self, spills: Spills, text_bytes_max: int) -> None:
        self._spills = spills
        self._text_bytes_max = text_bytes_max
        self._spill: Spill | None = None
        self._places: dict[int, tuple[int, int]] = {}

    def note(self, source: Source, item: Item) -> bool:
        """Keep the text that a record holds, and return whether it holds one."""
        is_text = isinstance(item, Skipped) and item.url.startswith(PREFIXES)
        if isinstance(item, Skipped) and item.text:
            self.add(source, item.url.split(":", 2)[2], item.text.decode("utf-8", "replace"))
        return is_text

    def add(self, source: Source, url: str, text: str) -> None:
        """Keep the text of a page of an archive. Raises OSError: the disk refuses."""
        lines = (" ".join(line.split()) for line in text.splitlines())
        data = cut("\n".join(filter(None, lines)), self._text_bytes_max).encode("utf-8", "replace")
        key = _key(source, url)
        _, length = self._places.get(key, (0, 0))
        if len(data) <= length or (not length and len(self._places) >= TEXTS_MAX):
            return
        self._spill = self._spill or self._spills.make()
        if self._spill.size <= TEXTS_BYTES_MAX:
            self._places[key] = (self._spill.size, len(data))
            self._spill.write(data)

    def find(self, source: Source, url: str) -> str:
        """Return the text of a page of an archive; empty if none is kept."""
        offset, length = self._places.get(_key(source, url), (0, 0)) if self._places else (0, 0)
        return self._spill.pread(length, offset).decode() if self._spill is not None and length else ""


def complete(examined: Examined, media_type: str, text: str) -> None:
    """Take the text for that of an HTML page which has next to none of its own, as scripts add it."""
    content = examined.content
    if not text or media_type not in HTML_TYPES or content.file is not None or examined.died:
        return
    own = text_bytes(content.body, TEXT_FEW_BYTES)
    if own < TEXT_FEW_BYTES and len("".join(text.split()).encode()) > own * GAIN_MIN:
        findings = examined.findings
        findings.text = findings.columns["main_text"] = text
        findings.text_method = DOCUMENT


def _key(source: Source, url: str) -> int:
    """Return the key of a page in the package, or the folder, of an archive."""
    place = source.place if source.is_packaged else source.place.rpartition("/")[0]
    return xxh3_64_intdigest(f"{place} {address_of(url)}".encode("utf-8", "replace"))
