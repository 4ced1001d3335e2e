"""A processing module for `process.modules`: the number of headings of a page as a column of `pages`.

gossamer crawl https://docs.example.org/ --contact you@example.org --set 'process.modules=["module.py:Headings"]'
"""

import re

from gossamer.model.pages import Findings, Page

HEADING = re.compile(rb"<h[1-6][\s>]", re.IGNORECASE)


class Headings:
    """Counts headings of HTML pages."""

    name = "headings"
    columns = {"headings": "int"}  # noqa: RUF012 - read once, when the crawl starts

    def wants(self, media_type: str) -> bool:
        return media_type in ("text/html", "application/xhtml+xml")

    def process(self, page: Page, findings: Findings) -> None:
        findings.columns["headings"] = len(HEADING.findall(page.body))
