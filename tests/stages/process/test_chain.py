import pytest

from gossamer.model.pages import MARKED_TYPES, Findings, Page
from gossamer.stages.process import html
from gossamer.stages.process.chain import CHOICES_MAX, LARGE_BYTES, ModuleError, Modules, Unwatched
from gossamer.stages.process.links import LinkExtractor
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.text import TitleAndText
from tests.stages.process.pages import standard_modules

from .pages import SCAN, TREE, findings, page

OPTIONS = ProcessOptions()


class Broken:
    name = "broken"

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        findings.columns["begun"] = True
        raise ValueError("no luck")


def test_a_module_that_fails_stops_no_other() -> None:
    modules = Modules([Broken(), *standard_modules(OPTIONS), Broken()], OPTIONS)
    processed = modules.process(page("<title>T</title><a href=x>"))
    assert processed.errors == (ModuleError("broken", "ValueError: no luck"),) * 2
    assert processed.findings.title == "T"
    assert len(processed.findings.links) == 1
    assert processed.findings.columns == {"begun": True}


SITEMAP_OF_MANY = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{}</urlset>"
LONG = {
    "anchors": page("<a href=/{0}>a</a>" * 40_000),
    "different anchors": page("".join(f"<a href=/{n}>a</a>" for n in range(40_000))),
    "tags": page("<link rel=next href=x>" * 40_000),
    "broken tags": page("<p title='<'>" * 40_000),
    "iframes": page("<iframe srcdoc='<a href=x>'></iframe>" * 10_000),
    "sitemap": Page("http://x.example/", "application/xml", "", (), SITEMAP_OF_MANY.format(
        "".join(f"<url><loc>http://x.example/{n}</loc></url>" for n in range(40_000))
    ).encode()),
    "lines": Page("http://x.example/", "text/plain", "", (), b"".join(
        b"http://x.example/%d\n" % n for n in range(40_000)
    ), link_type="sitemap_file"),
}  # fmt: skip


@pytest.mark.promise(
    "Bounds", "A page of many links or tags, or a long sitemap, is read in slices, between which other work runs."
)
@pytest.mark.parametrize("kind", LONG)
def test_a_long_page_is_processed_in_slices_with_the_same_result(kind: str) -> None:
    modules = Modules(standard_modules(OPTIONS), OPTIONS)
    slices, number = modules.process_in_slices(LONG[kind]), 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            processed = end.value
            break
        number += 1
    assert number >= 10
    assert processed == modules.process(LONG[kind])
    assert processed.findings.links or kind == "broken tags"


def test_each_slice_of_a_module_has_its_own_time_and_no_module_runs_between_them() -> None:
    calls: list[str] = []

    class Noting(Unwatched):
        def begin(self, spent_s: float = 0.0) -> None:
            calls.append("begin")

        def resume(self) -> None:
            calls.append("begin")

        def end(self) -> None:
            calls.append("end")

        def pause(self) -> float:
            calls.append("end")
            return 0.0

    for _ in Modules(standard_modules(OPTIONS), OPTIONS, watch=Noting()).process_in_slices(LONG["tags"]):
        assert calls.count("begin") <= calls.count("end"), "nothing is watched"
    assert calls.count("begin") >= 40


def test_a_scan_that_took_too_long_is_not_begun_again_by_the_next_module(monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[bytes] = []

    def scan(body: bytes, *, scanned: bool) -> None:
        scans.append(body)
        raise TimeoutError("it took too long")

    monkeypatch.setattr(html, "bears_tree", lambda *_: False)
    monkeypatch.setattr(html, "ScannedMarkup", scan)
    document = html.HtmlDocument(page("<title>T</title>"), OPTIONS)
    for _ in range(3):
        with pytest.raises(TimeoutError, match="too long"):
            document.markup  # noqa: B018 - to read it is the point
    assert len(scans) == 1


def test_the_time_of_a_page_is_that_of_all_its_modules() -> None:
    used: list[str] = []

    class OneTime(Unwatched):
        def begin(self, spent_s: float = 0.0) -> None:
            used.append(f"begin {spent_s:g}")

        def resume(self) -> None:
            used.append("resume")

        def pause(self) -> float:
            return 7.0

    modules = Modules([LinkExtractor(), TitleAndText()], OPTIONS, watch=OneTime())
    modules.process(page("<title>T</title><a href=x>"))
    assert used == ["begin 0", "resume", "resume"]
    used.clear()
    modules.process(page("<title>T</title>" + " " * LARGE_BYTES))
    assert used[0] == "begin 0"
    assert set(used[1:]) == {"resume", "begin 7"}


class PanicException(BaseException):
    """What PyO3 raises where Rust panics."""


@pytest.mark.parametrize("error", [SystemExit(0), PanicException("unwrap on None")])
def test_a_module_that_would_exit_ends_no_process(error: BaseException) -> None:
    class Exits(Broken):
        def process(self, page: Page, findings: Findings) -> None:
            raise error

    processed = Modules([Exits(), *standard_modules(OPTIONS)], OPTIONS).process(page("<title>T</title>"))
    assert processed.errors == (ModuleError("broken", f"{type(error).__name__}: {error}"),)
    assert processed.findings.title == "T"


def test_modules_are_chosen_by_media_type() -> None:
    modules = Modules([LinkExtractor(), TitleAndText()], OPTIONS)
    assert modules.wants("text/html")
    assert modules.wants("application/xhtml+xml")
    assert not modules.wants("image/png")
    assert not modules.wants("text/plain")
    assert modules.process(page("<a href=x>", media_type="image/png")).findings == Findings()


def test_choices_are_remembered_within_a_bound() -> None:
    modules = Modules(standard_modules(OPTIONS), OPTIONS)
    for i in range(2 * CHOICES_MAX):
        modules.wants(f"x/{i}")
    assert len(modules._chosen) == CHOICES_MAX


def test_a_page_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(html.TreeMarkup):
        def __init__(self, body: bytes) -> None:
            made.append(body)
            super().__init__(body)

    monkeypatch.setattr(html, "TreeMarkup", Counted)
    findings("<title>T</title><a href=x>")
    assert len(made) == 1


def test_a_module_can_be_used_alone() -> None:
    found = Findings()
    LinkExtractor().process(page("<a href=x>y</a>"), found)
    assert found.links[0].anchor_text == "y"


@pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])
@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<title> A\n  B&amp;C </title>", "A B&C"),
        ("<title>First</title><title>Second</title>", "First"),
        ("<title></title><title>Second</title>", ""),
        ("<TITLE>x<b>y</TITLE >", "x<b>y"),
        ("<title><!-- x --></title>", "<!-- x -->"),
        ("<p>no title", ""),
        ("<script><title>no</title></script>", ""),
        ("<title>" + "ü" * 5000 + "</title>", "ü" * 1000),
    ],
)
def test_title(body: str, title: str, options: ProcessOptions) -> None:
    assert findings(body, options).title == title


def test_a_title_of_a_drawing_is_not_the_pages() -> None:
    assert findings("<svg><title>no</title></svg><title>yes</title>").title == "yes"


def test_a_title_has_a_bound() -> None:
    assert findings(f"<title>{'é' * 10}</title>", ProcessOptions(title_bytes_max=5)).title == "éé"


@pytest.mark.parametrize("media_type", MARKED_TYPES)
@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("# Kilns #\n\nText", "Kilns"),
        ("Intro.\n\nKilns\n=====\n", "Kilns"),
        ("=====\nKilns\n=====\nText", "Kilns"),
        ("---\ntitle: 'Kilns'\nlayout: post\n---\n# Other\n", "Kilns"),
        ("---\nlayout: post\n---\n# Kilns\n", "Kilns"),
        ("No heading\n\n-\n", ""),
        ("", ""),
    ],
)
def test_marked_text_has_a_title(media_type: str, body: str, title: str) -> None:
    found = findings(body, ProcessOptions(text=True), media_type=media_type)
    assert (found.title, found.text) == (title, body.removeprefix("\ufeff"))


def test_plain_text_is_found_where_wanted() -> None:
    body = "é" * 10
    assert findings(body, SCAN, media_type="text/plain").text == body
    assert findings(body, ProcessOptions(), media_type="text/plain").text == ""
    assert findings(f"<p>{body}", ProcessOptions(text=True, text_bytes_max=5)).text == "éé"
