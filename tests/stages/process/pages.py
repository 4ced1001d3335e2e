"""Pages for the tests of this room."""

from gossamer.model.pages import Findings, Page
from gossamer.ports import ProcessingModule
from gossamer.stages.process.announcements import Announcements
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.links import HeaderLinks, LinkExtractor
from gossamer.stages.process.listings import ListingLinks
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.text import TitleAndText
from gossamer.stages.process.usage import Directives

TREE = ProcessOptions()
SCAN = ProcessOptions(tree_tags_max=0, tree_bytes_max=0, text=True)
URL = "https://example.org/dir/page.html?q=1"


def standard_modules(options: ProcessOptions) -> tuple[ProcessingModule, ...]:
    """Return the modules that a crawl has unless configured otherwise, all of them for each type."""
    return (
        LinkExtractor(options),
        Announcements(options),
        ListingLinks(options),
        HeaderLinks(options),
        TitleAndText(options),
        Directives(options),
    )


def page(
    body: bytes | str,
    *,
    url: str = URL,
    headers: tuple[tuple[str, str], ...] = (),
    charset: str = "",
    media_type: str = "text/html",
    fetched_at: float = 0.0,
) -> Page:
    if isinstance(body, str):
        body = body.encode()
    return Page(url=url, media_type=media_type, charset=charset, headers=headers, body=body, fetched_at=fetched_at)


def findings(body: bytes | str, options: ProcessOptions = TREE, **more: object) -> Findings:
    processed = Modules(standard_modules(options), options).process(page(body, **more))  # type: ignore[arg-type]
    assert processed.errors == ()
    return processed.findings


def urls(found: Findings, link_type: str | None = None) -> list[str]:
    return [link.url for link in found.links if link_type in (None, link.link_type)]
