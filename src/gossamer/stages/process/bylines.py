"""Bylines: who wrote a page, by its JSON-LD, its meta elements, its elements that name an author, and its text."""

import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser

from gossamer.stages.process.hidden import without_hidden
from gossamer.stages.process.html import HtmlDocument, is_regular
from gossamer.stages.process.jsonld import listed, value_of
from gossamer.stages.process.scan import ScannedMarkup, automaton, unescape

BYLINE_MAX = 500
AUTHORS_MAX = 100
_NAME_CHARACTERS_MAX = 100
"""Length of an author's name that an element holds."""
_NAME_CHARACTERS_MIN = 3
_NAME_WORDS_MAX = 8
_ALL_OF = r"(?>(?:(?:view|see|show|zeige|all|alle|more|other) )*)(?:posts|articles|stories|beiträge|artikel) (?:by|von)"
_BY = re.compile(rf"(?:(?:posted |written |text )?by|{_ALL_OF}|author|autor(?:in)?)\b:?(?:\s+|\Z)", re.IGNORECASE)
_NO_NAME = re.compile(
    r"(?:https?:)?//|www\.|\w+\.\w+/|[\d\W]+\Z|\{\{|(?:undefined|null|none|nan|admin(?:istrator)?|webmaster"
    r"|(?:no |post )?author|autor|name|posted|view more posts|\d+ (?:articles|posts)"
    r"|(?-i:(?:[a-z_]{2,20}\.){2,9}[a-z_]+))\Z|\[object",
    re.IGNORECASE,
)
"""Addresses, numbers, and what a template or a script writes for no name."""
_MARKUP = re.compile(r"<[^<>]*+>")
_AUTHORED = automaton(
    r"(?i)(?:itemprop|property)=[\"']?(?:(?:schema:)?author|dc(?:terms)?:creator)|vcard|rel=[\"']?(?:\w{1,20} )?author"
    r"|(?:p|entry)-author|(?:author|byline)(?:-|__)?name|/authors?/"
).search
"""Finds what may name an author."""
_SELECTORS = tomllib.loads((pkgutil.get_data("gossamer.stages.process", "bylines.toml") or b"").decode())
_STATED: list[str] = _SELECTORS["stated"]
_NEAR: str = _SELECTORS["near"]
_POSTS = "viewprofile|bigusername|PostUser-name|author_information|postleft|action=profile"
_THREAD = automaton(rf"schema\.org/(?:QAPage|DiscussionForumPosting)|{_POSTS}").search
"""Finds a page of posts, by its microdata, or as phpBB, vBulletin, Flarum, MyBB, FluxBB and SMF write it."""
_POSTED = automaton(rf"<[a-z][^<>]*(?:itemprop=[\"']?author|{_POSTS})").search
"""Finds the element that names the author of a post."""
_POST_BYTES_MAX = 2_000
_HEADING = automaton(r"<[hH]1[\s>]").search
_BY_IN_TEXT = automaton(r"(?i)\b(?:by|von|par|por|autor(?:in)?|author|auteur|thread starter)").search
_SAYS_BY = re.compile(
    r"(?:(?P<sure>(?:article|posted|written|words|text|story|started|submitted|publié|escrito|geschrieben|beitrag"
    r"|veröffentlicht) )?(?:(?:by|von|par|por)\b|by(?=(?-i:[A-Z])))|(?:author|autor(?:in)?|auteur|interview|text)s?:"
    r"|author\(s\)|thread starter\Z):?\s*",
    re.IGNORECASE,
)
"""Matches what introduces a name at the beginning of a line."""
_PARTS = re.compile(r"[|•·⋅]|\s[-\u2013\u2014]\s")
_LINE_CHARACTERS_MAX = 200
_ENDS = re.compile(
    r"[|•·⋅(\[/]|\s[\d\u2013\u2014-]|\s(?:on|in|at|am|for|from|with|updated|published|posted|last|reviewed|edited)\b"
    r"|(?<=[a-z]{3})\.\s"
)
_AND = re.compile(r",(?: ?(?:and|und|et|y|e|&) )?| (?:and|und|et|y|e|&) ")
_SMALL = re.compile(r"(?:v[ao]n|de[rnl]?|della|d[iauo]|dos|l[ae]|bin|[ae]l|ten|ter|zur?)\Z", re.IGNORECASE)
_WEEKDAY = re.compile(
    r",? (?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|(?:mo|di|mi|do|fr|sa|so)\b(?=[.,]))[.,]*\Z",
    re.IGNORECASE,
)
"""Matches a day of the week that is left where a date was cut off."""


class Heading:
    """What is around the first heading of a page, or around the author of the first post of a thread."""

    def __init__(self, document: HtmlDocument) -> None:
        self.document = document

    @cached_property
    def post(self) -> bytes:
        """The beginning of a thread's first post, from its author on; empty if the page is no thread."""
        body = self.document.utf8()
        post = _POSTED(body) if _THREAD(body) is not None else None
        return body[post.start() : post.start() + _POST_BYTES_MAX] if post is not None else b""

    @cached_property
    def piece(self) -> bytes:
        """The markup; empty if there is neither."""
        body = self.document.utf8()
        found = _POSTED(body) if self.post else _HEADING(body)
        at: int = found.start() if found is not None else len(body)
        start = max(at - 1_500, body.rfind(b"</script>", 0, at), 0)
        return body[body.find(b"<", start) : at + 8_000] if found is not None else b""

    @cached_property
    def lines(self) -> list[str]:
        """The lines of its text."""
        return ScannedMarkup(without_hidden(self.piece)[0]).text().split("\n")


def of_metas(values: Iterable[Sequence[str]]) -> str:
    """Return the authors that meta elements of one name give: of the name that gives most. `values` are by name."""
    lists = [list(dict.fromkeys(filter(None, map(clean_name, some)))) for some in values]
    return join_names(max(lists, key=len))


def join_names(names: Sequence[str]) -> str:
    """Return a byline."""
    return ("; " if any("," in name for name in names) else ", ").join(names)[:BYLINE_MAX]


def of_objects(held: Sequence[dict[str, object]]) -> str:
    """Return the authors that objects of JSON-LD give."""
    parts = (part for one in held for part in one.values() if isinstance(part, dict) and "name" in part)
    known = {one["@id"]: one for one in (*parts, *held) if isinstance(one.get("@id"), str)}
    for one in held:
        value = one.get("author") or one.get("creator")
        authors = listed(value.get("@list", value) if isinstance(value, dict) else value)
        names = [name for author in authors[:AUTHORS_MAX] for name in _names(author, known) if name]
        if names:
            return join_names(list(dict.fromkeys(names)))
    return ""


def _names(author: object, known: Mapping[object, dict[str, object]]) -> Iterator[str]:
    """Yield the names of an author, which are several in a list, and may be with another object of the same `@id`."""
    names = author
    if isinstance(author, dict):
        named = known.get(author["@id"], {}) if isinstance(author.get("@id"), str) else {}
        parts = (value_of(author.get("givenName")), value_of(author.get("familyName")))
        names = author.get("name") or " ".join(filter(None, parts)) or named.get("name")
    return (clean_name(value_of(name)) for name in listed(names)[:AUTHORS_MAX])


def clean_name(name: str) -> str:
    """Return a name without markup and `By`; empty for an address or a number."""
    if "&" in name or "<" in name:
        name = _MARKUP.sub("", unescape(name))
    if "://" in name or "@" in name:  # Feeds have a name in brackets behind an address.
        words = (word for word in name.split() if "://" not in word and "@" not in word)
        name = " ".join(words).strip("-\u2013|()<> ") or name
    name = " ".join(name.split()).lstrip(",;|· ")
    by = _BY.match(name)
    name = name[by.end() :] if by is not None else name
    return "" if _NO_NAME.match(name) else name[:BYLINE_MAX]


def _names_of(tree: LexborHTMLParser, selector: str, parts: Callable[[str], str]) -> dict[str, int]:
    """Return the names that elements hold, each with the identity of the element around it."""
    nodes = tree.css(selector)
    if len(nodes) > 1:
        others = {node.mem_id for node in tree.css(_SELECTORS["comments"])}
        nodes = [node for node in nodes if node.mem_id not in others]
    names: dict[str, int] = {}
    for node in nodes[:AUTHORS_MAX]:
        named = node.css_first('[itemprop~="name"],[property~="name"],.fn') or node
        if selector == _NEAR:
            lines = (clean_name(parts(line)) for line in named.text(separator="\n").split("\n"))
            name = names_in(next(filter(None, lines), ""))
        else:
            name = clean_name(named.attributes.get("content") or named.text(separator=" "))
        if name and len(name) <= _NAME_CHARACTERS_MAX:
            names.setdefault(name, node.parent.mem_id if node.parent is not None else 0)
    return names


def names_in(text: str, *, is_sure: bool = True) -> str:
    """Return the names with which a short text begins; empty if its words are no names."""
    said = _SAYS_BY.match(text)
    text = text[said.end() :] if said is not None else text
    end = _ENDS.search(text)
    text = _WEEKDAY.sub("", (text if end is None else text[: end.start()]).rstrip()).strip(" ,.;:")
    parts = [part.split() for part in _AND.split(text)]
    if "," in text and not all(len(part) > 1 and _is_name(part) for part in parts):
        text = text.partition(",")[0]
        parts = [text.split()]
    words = [word for part in parts for word in part]
    is_one = is_sure and len(words) == 1
    if not (is_one or (1 < len(words) <= _NAME_WORDS_MAX and _is_name(words))) or (text.isupper() and not is_sure):
        return ""
    return "" if _NO_NAME.match(text) or len(text) < _NAME_CHARACTERS_MIN else text


def _is_name(words: Sequence[str]) -> bool:
    return all(word[0].isupper() or _SMALL.match(word) is not None for word in words)


def _of_tree(tree: LexborHTMLParser, selectors: Sequence[str], parts: Callable[[str], str]) -> str:
    """Return the author that elements of a tree name; empty if several do that do not stand together."""
    for selector in selectors:
        names = _names_of(tree, selector, parts)
        if names and len(set(names.values())) == 1:
            return join_names(list(names))
    return ""


def of_page(heading: Heading, parts: Callable[[str], str], *, is_article: bool) -> str:
    """Return the author that elements of a page name: of the first post of a thread; of an article, those around its
    heading; or those of the whole page. An article's may be in a line around its heading, divided by `parts`.
    """
    if heading.post:
        post = LexborHTMLParser(heading.post) if is_regular(heading.post) else None
        return next(iter(_names_of(post, _SELECTORS["of_post"], parts)), "") if post is not None else ""
    near = LexborHTMLParser(heading.piece) if is_article and is_regular(heading.piece) else None
    if near is not None and (byline := _of_tree(near, (*_STATED, _NEAR), parts)):
        return byline
    tree = heading.document.tree if _AUTHORED(heading.document.utf8()) is not None else None
    byline = _of_tree(tree, _STATED, parts) if tree is not None else ""
    return byline or (_of_text(heading, parts) if is_article else "")


def _of_text(heading: Heading, parts: Callable[[str], str]) -> str:
    """Return the author whom the lines around a heading, divided by `parts`, name behind `By`, or on the next line."""
    is_next = is_sure = False
    for line in heading.lines if _BY_IN_TEXT(heading.piece) is not None else ():
        for part in map(str.strip, _PARTS.split(parts(line[:_LINE_CHARACTERS_MAX]))):
            said = _SAYS_BY.match(part)
            rest = part[said.end() :] if said is not None else part if is_next else ""
            is_sure = is_next or (said is not None and bool(said["sure"]))
            is_next = said is not None and not rest
            if rest and (name := names_in(rest[:_NAME_CHARACTERS_MAX], is_sure=is_sure)):
                return name
    return ""
