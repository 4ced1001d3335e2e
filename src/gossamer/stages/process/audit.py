"""Audit: facts about a page's markup from which `gossamer check` tells its faults."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from urllib.parse import unquote

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.model.links import Found
from gossamer.model.modules import ROWS_MAX
from gossamer.model.pages import Findings, Page
from gossamer.stages.process.announcements import ANNOUNCEMENT_TYPES
from gossamer.stages.process.embeds import addresses, srcset
from gossamer.stages.process.feeds import LANGUAGE_CHARACTERS_MAX
from gossamer.stages.process.html import HTML_TYPES, HtmlDocument, document_of
from gossamer.stages.process.jsonld import without_marks
from gossamer.stages.process.links import AT_ONCE, Base, base_href, collapse_spaces, link_values, slices_of, utf8_again
from gossamer.stages.process.options import TypedModule
from gossamer.stages.process.usage import Directives
from gossamer.url.name import host_of

IDS_MAX = 20_000
"""Targets of fragments kept of one page; of a page with more, none: its fragments cannot be judged."""
ID_CHARACTERS_MAX = 500
FRAGMENTS_MAX = 5_000
"""Links with a fragment kept of one page."""
LISTED_MAX = 50
"""Values kept of each other column."""
COUNTED_BYTES_MAX = 65_536
"""Longer pages are not short, and to count their words would be half of the cost."""
_TEXT_DIRECTIVE = ":~:"
# Routes of programs in a page (`#!/a`, `#/a`) and arguments of viewers are no places in it.
NO_PLACE = re.compile(r"(?:[!/].*|top|[a-z]{1,12}=.*|L\d+(?:C\d+)?(?:-L?\d+(?:C\d+)?)?)", re.IGNORECASE | re.DOTALL)
_IMAGE = "".join((":is(img, input[type=image i])", *(f":not([{one}])" for one in (
    "alt", "aria-hidden=true", "role=presentation", "role=none", "aria-label", "aria-labelledby", 'height="0"',
    'height="1"',
))))  # fmt: skip
"""Images that need a text and have none; those that count visits are one pixel high."""
_robots = Directives(tokens=("googlebot",)).words_of
_PREVIEWS = ("og:image", "og:image:url", "og:image:secure_url", "twitter:image", "twitter:image:src", "image",
             "msapplication-tileimage")  # fmt: skip
_PARTS = frozenset(("image_src", "apple-touch-startup-image", "fluid-icon"))
"""Relations to images that other programs show."""
_REQUIRED = {
    "BreadcrumbList": "itemListElement", "Course": "name description", "Event": "name startDate location",
    "FAQPage": "mainEntity", "JobPosting": "title description datePosted hiringOrganization",
    "LocalBusiness": "name address", "Product": "name", "QAPage": "mainEntity", "Recipe": "name image",
    "Review": "author reviewRating", "VideoObject": "name thumbnailUrl uploadDate",
}  # fmt: skip
"""Properties without which Google shows no rich result of a type (its gallery of structured data)."""
# `htp://`; mail to no address, unless a script writes it, as of `me(at)example.org`; a number without digits.
_MISSPELT = re.compile(
    r"(?!https?:)h*+t++p++s*+:/|mailto:(?!\?)[^@?%()\[\]#]*+(?:\?|\Z)|tel:[^0-9#%]*+\Z", re.IGNORECASE
).match
_LOADED = (
    ("script[src], iframe[src], img[src], audio[src], video[src], source[src], embed[src], track[src]", "src"),
    ("link[rel~=stylesheet][href]", "href"),
    ("object[data]", "data"),
    ("video[poster]", "poster"),
    ("input[type=image i][src]", "src"),
    ("form[action]", "action"),
)
"""Elements by which a browser loads or sends data, and the attribute with the address."""


class Audit(TypedModule):
    """Collects what checkers of sites judge, in one reading of a page's tree; about 5 ms for a page of 100 KB.

    A page without a tree (`HtmlDocument.tree`) has only the columns that need none; the others are null.
    """

    name = "audit"
    media_types = (*HTML_TYPES, *ANNOUNCEMENT_TYPES, "application/pdf")
    reads_announced = True
    columns = {  # noqa: RUF012 - declared once, never changed
        "h1": "texts",
        "title_count": "int",
        "description_count": "int",
        "robots_meta": "text",
        "alternates": "texts",
        "outside_head": "texts",
        "images_without_alt": "texts",
        "json_ld_error": "text",
        "json_ld_lacks": "texts",
        "insecure": "texts",
        "invalid_links": "texts",
        "words": "int",
        "ids": "texts",
    }
    tables = {  # noqa: RUF012 - as above
        "fragments": {"to_url": "text", "fragment": "text", "name": "text"},
        "sitemap_versions": {"entries": "texts", "alternates": "texts"},
    }

    def process(self, page: Page, findings: Findings) -> None:
        for _ in self.process_in_slices(page, findings):
            pass

    def process_in_slices(self, page: Page, findings: Findings) -> Iterator[None]:
        """As `process`. Yields each few milliseconds of a sitemap, where other work may run."""
        if page.media_type in HTML_TYPES and findings.announcement is None:  # Some sitemaps are served as pages.
            self._read_page(page, findings)
        elif page.media_type == "application/pdf":  # Its versions are in the head of its reply.
            self._read_relations(page, None, Base(page.url), findings)
        if findings.announcement is None:
            return
        # Of a sitemap, the sets of versions in other languages that it names, and the pages of each set.
        base = Base(page.url)
        for sets in slices_of(list(findings.announcement.versions.items())[:ROWS_MAX]):
            for versions, entries in sets:
                named = (one.partition(" ") for one in versions)
                alternates = [f"{code} {base.join(href) or href}" for code, _, href in named if code]
                pages = [url for one in entries if one and (url := base.join(one)) is not None]
                row: dict[str, object] = {"entries": pages, "alternates": alternates}
                findings.rows.setdefault("sitemap_versions", []).append(row)
            if len(sets) == AT_ONCE:
                yield

    def _read_page(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        base = Base(page.url, base_href(document.markup.elements), document.charset)
        columns = findings.columns
        self._read_links(document, base, findings)
        self._add_previews(document, base, findings)
        if len(document.utf8()) <= COUNTED_BYTES_MAX:
            columns["words"] = len(document.text().split())
        tree = document.tree
        if tree is not None:
            self._read_tree(tree, page, columns)
        self._read_relations(page, document, base, findings)

    def _read_links(self, document: HtmlDocument, base: Base, findings: Findings) -> None:
        """Note links to a place in a page, and invalid addresses."""
        wanted: dict[tuple[str, str], None] = {}
        invalid: dict[str, None] = {}
        for href, _, _ in document.markup.anchors:
            shown, _, fragment = href.strip().partition("#")
            if len(href) > self._options.url_bytes_max:
                continue
            if is_place(fragment) and len(wanted) < FRAGMENTS_MAX:
                to_url = base.join(shown)
                if to_url is not None:
                    wanted[to_url, fragment.partition(_TEXT_DIRECTIVE)[0]] = None
            names_host = shown[:4].lower() == "http" or shown[:2] == "//"
            # A host such as a..b has an empty label.
            is_invalid = _MISSPELT(href.strip()) or (names_host and host_of(base.join(shown) or "") is None)
            if is_invalid and len(invalid) < LISTED_MAX:
                invalid[collapse_spaces(href, ID_CHARACTERS_MAX)] = None
        findings.columns["invalid_links"] = list(invalid)
        if wanted:
            findings.rows["fragments"] = [
                {"to_url": url, "fragment": fragment, "name": unquote(fragment, errors="replace")}
                for url, fragment in wanted
            ]

    def _add_previews(self, document: HtmlDocument, base: Base, findings: Findings) -> None:
        """Add what other sites and programs show of the page, such as its image: a reader finds it broken there."""
        shown: dict[str, None] = {}
        for tag, found in document.markup.elements:
            content = ""
            if tag == "meta":
                name = found.get("property") or found.get("name") or found.get("itemprop") or ""
                content = (found.get("content") or "") if name.strip().lower() in _PREVIEWS else ""
            elif tag == "link":
                is_part = not _PARTS.isdisjoint((found.get("rel") or "").lower().split())
                content = (found.get("href") or "") if is_part or "opensearch" in (found.get("type") or "") else ""
            url = base.join(content) if content and len(shown) < LISTED_MAX else None
            if url is not None and len(url) <= self._options.url_bytes_max:
                shown[url] = None
        findings.links.extend(Found(url, "embed") for url in shown)

    def _read_tree(self, tree: LexborHTMLParser, page: Page, found: dict[str, object]) -> None:
        bytes_max = self._options.title_bytes_max
        found["h1"] = [collapse_spaces(_heading(one), bytes_max) for one in tree.css("h1")[:LISTED_MAX]]
        found["title_count"] = len(tree.css("head > title"))
        found["description_count"] = len(tree.css('meta[name="description" i]'))
        found["images_without_alt"] = [_value(one, "src")[:ID_CHARACTERS_MAX] for one in tree.css(_IMAGE)][:LISTED_MAX]
        _read_json_ld(tree, found)
        policies = [_value(one, "content") for one in tree.css('meta[http-equiv="content-security-policy" i]')]
        policies += [value for name, value in page.headers if name.lower() == "content-security-policy"]
        # By that policy browsers load all of it by https.
        if page.url.startswith("https:") and not any("upgrade-insecure-requests" in one.lower() for one in policies):
            insecure = [one for one in _loaded(tree) if one.strip()[:7].lower() == "http://"]
            found["insecure"] = [one[:ID_CHARACTERS_MAX] for one in dict.fromkeys(insecure)][:LISTED_MAX]
        ids = dict.fromkeys(_value(one, "id") for one in tree.css("[id]"))
        ids |= dict.fromkeys(_value(one, "name") for one in tree.css("a[name]"))
        if len(ids) <= IDS_MAX:
            found["ids"] = [one for one in ids if 0 < len(one) <= ID_CHARACTERS_MAX]

    def _read_relations(self, page: Page, document: HtmlDocument | None, base: Base, findings: Findings) -> None:
        """Note robots directives, the versions in other languages that the head of a page, or of its reply, names, and
        what its body names in vain: search engines read canonical addresses and languages in the head alone.
        """
        columns = findings.columns
        words = (word[:100] for word in _robots(page, document.markup.elements if document is not None else ()) if word)
        columns["robots_meta"] = ", ".join(dict.fromkeys(islice(words, LISTED_MAX)))
        values = (text for name, text in page.headers if name.lower() == "link")
        links = (parts for text in values for parts in link_values(utf8_again(text)))
        named = dict.fromkeys(_relation(found, href, base) for found, href in links)
        lost: dict[str, None] = {}
        if document is not None and (tree := document.tree) is not None:
            for place, into in (("head", named), ("body", lost)):
                nodes = tree.css(f"{place} link[rel][href]")
                into.update(dict.fromkeys(_relation(one.attributes, _value(one, "href"), base) for one in nodes))
        alternates = [one for one in named if one and not one.startswith("canonical ")][: 4 * LISTED_MAX]
        columns["alternates"] = alternates
        columns["outside_head"] = [one for one in lost if one and one not in named][:LISTED_MAX]
        if document is None:  # Of pages, others find the links.
            targets = (base.join(one.partition(" ")[2]) for one in alternates)
            findings.links.extend(Found(url, "alternate") for url in targets if url is not None)


def is_place(fragment: str) -> bool:
    """Return whether a fragment, without its text directive, names a place in a page: `#top` and `#` are its top."""
    name = fragment.partition(_TEXT_DIRECTIVE)[0]
    return 0 < len(name) <= ID_CHARACTERS_MAX and not NO_PLACE.fullmatch(name)


def _relation(parameters: Mapping[str, str | None], href: str, base: Base) -> str:
    """Return the role of a link for search engines: `canonical`, or the code of a language, and an address."""
    relations = (parameters.get("rel") or "").lower().split()
    code = "canonical" if "canonical" in relations else ""
    if "alternate" in relations and parameters.get("hreflang"):
        code = "_".join((parameters["hreflang"] or "").split())[:LANGUAGE_CHARACTERS_MAX] or "?"
    return f"{code} {base.join(href) or href[:ID_CHARACTERS_MAX]}" if code else ""


def _loaded(tree: LexborHTMLParser) -> Iterator[str]:
    """Yield the addresses from which browsers load a page's parts, as written."""
    yield from (_value(one, name) for selector, name in _LOADED for one in tree.css(selector))
    for node in tree.css("[srcset], [imagesrcset]"):
        yield from srcset(_value(node, "srcset") or _value(node, "imagesrcset"))
    for node in tree.css("style, [style]"):
        yield from addresses(node.text() if node.tag == "style" else _value(node, "style"))


def _read_json_ld(tree: LexborHTMLParser, columns: dict[str, object]) -> None:
    """Note the first error of the JSON-LD of a page, and what its objects lack."""
    errors: list[str] = []
    lacks: dict[str, None] = {}
    for script in tree.css('script[type="application/ld+json" i]'):
        try:
            found = msgspec.json.decode(without_marks(script.text()))
        except (msgspec.DecodeError, RecursionError) as error:
            errors.append(f"no JSON: {error}")
            continue
        for one in found if isinstance(found, list) else [found]:
            if not isinstance(one, dict):
                errors.append("a value is no object")
            elif "@context" not in one:
                errors.append("an object has no @context")
            elif "@type" not in one and "@graph" not in one:
                errors.append("an object has no @type")
        lacks |= dict.fromkeys(islice(_lacks(found), LISTED_MAX - len(lacks)))
    for item in tree.css("[itemscope][itemtype]:not([itemref])")[:LISTED_MAX]:  # Microdata
        kind = _value(item, "itemtype").rstrip("/# ").rpartition("/")[2]
        wanted = _REQUIRED.get(kind, "").split()
        if lacking := [name for name in wanted if item.css_first(f'[itemprop~="{name}"]') is None]:
            lacks[f"{kind} without {', '.join(lacking)}"] = None
    columns["json_ld_error"] = errors[0] if errors else ""
    columns["json_ld_lacks"] = list(lacks)


def _lacks(found: object) -> Iterator[str]:
    """Yield the type of each object that lacks what its type requires, and what that is. Linear."""
    waiting = [found]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()
            types = one.get("@type")
            for kind in types if isinstance(types, list) else [types]:
                required = _REQUIRED.get(str(kind).rpartition("/")[2], "").split()
                lacking = [name for name in required if one.get(name) in (None, "", [], {})]
                if lacking and not one.keys() <= {"@id", "@type"}:  # That is a reference.
                    yield f"{kind} without {', '.join(lacking)}"


def _heading(node: LexborNode) -> str:
    """Return the text of a heading, or that of its images, such as a logo."""
    images = node.css("[alt], [aria-label]")[:LISTED_MAX]
    return node.text().strip() or " ".join(_value(one, "alt") or _value(one, "aria-label") for one in images)


def _value(node: LexborNode, name: str) -> str:
    return node.attributes.get(name) or ""
