"""Questions: faults of tables that no server on loopback leaves: of HTTPS, of slow servers, of several attempts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.results.export import faults
from gossamer.results.export.faults import KINDS, SiteFault, faults_of_site
from gossamer.results.export.work import ExportPiece
from gossamer.stages.archive.schema import PAGES
from gossamer.stages.process.audit import Audit

ROOT = "https://example.org/"
ROOT_OF_QUESTIONS = Path(faults.__file__).parent
KIND_TYPES = {"text": pa.string(), "int": pa.int64(), "texts": pa.list_(pa.string())}
MORE = {**{name: KIND_TYPES[kind] for name, kind in Audit.columns.items()}, "description": pa.string(),
        "declared_language": pa.string(), "script_signal": pa.string()}  # fmt: skip
LINK = {name: pa.string() for name in ("from_url", "to_url", "to_key", "link_type")}
SOUND: dict[str, object] = {
    "outcome": "fetched", "status": 200, "media_type": "text/html", "duplicate_of": "", "near_duplicate_of": "",
    "error": "", "host": "example.org", "referrer": "", "link_type": "anchor", "fetch_s": 0.1, "wire_bytes": 100,
    "attempt": 1, "fetched_at": 1, "h1": ["Heading"], "declared_language": "en", "ids": [], "words": 500,
}  # fmt: skip


def page(url: str, **fields: object) -> dict[str, object]:
    return {"url": url, "key": url, "title": f"Title of {url[-20:]}", "description": f"About {url}", **SOUND, **fields}


def link(source: str, target: str, kind: str = "anchor") -> dict[str, object]:
    return {"from_url": source, "to_url": target, "to_key": target, "link_type": kind}


def piece(path: Path, table: pa.Table) -> list[ExportPiece]:
    pq.write_table(table, path, write_page_checksum=True)
    return [ExportPiece(str(path), path.stat().st_size, table.num_rows)]


def found(folder: Path, pages: list[dict[str, object]], links: list[dict[str, object]]) -> list[SiteFault]:
    kinds = {field.name: field.type for field in PAGES} | MORE
    plain = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in kinds.items()}
    seed = page(ROOT, link_type="seed")
    table = pa.Table.from_pylist([{name: one.get(name) for name in plain} for one in (seed, *pages)], pa.schema(plain))
    tables = {"pages": piece(folder / "pages.parquet", table)}
    tables["links"] = piece(folder / "links.parquet", pa.Table.from_pylist(links, pa.schema(LINK)))
    return faults_of_site(tables, folder / "work")


def kinds(some: list[SiteFault]) -> list[tuple[str, str, str]]:
    return [(one.kind, one.url, one.detail) for one in some]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path


def test_a_sound_site_has_no_fault(folder: Path) -> None:
    assert found(folder, [page(f"{ROOT}a")], [link(ROOT, f"{ROOT}a")]) == []


def test_a_redirect_to_the_same_by_https_is_told_from_others(folder: Path) -> None:
    old = "http://example.org/a"
    pages = [page(f"{ROOT}a")]
    pages += [page(url, outcome="redirected", status=status)
              for url, status in ((old, 301), (f"{ROOT}b", 308), (f"{ROOT}c", 302))]  # fmt: skip
    links = [link(ROOT, old), link(ROOT, f"{ROOT}b"), link(ROOT, f"{ROOT}c"), link(old, f"{ROOT}a", "redirect"),
             link(f"{ROOT}b", f"{ROOT}a", "redirect"), link(f"{ROOT}c", f"{ROOT}a", "redirect")]  # fmt: skip
    assert found(folder, pages, links) == [
        SiteFault("redirect_permanent", f"{ROOT}b", f"HTTP 308 to {ROOT}a", [ROOT]),
        SiteFault("redirect_to_https", old, f"to {ROOT}a", [ROOT]),
    ]


def test_slow_heavy_and_mixed_pages_are_found(folder: Path) -> None:
    image = f"{ROOT}large.png"
    pages = [
        page(f"{ROOT}slow", fetch_s=3.2), page(f"{ROOT}mixed", insecure=["http://example.org/a.js"]),
        page(f"{ROOT}heavy"), page(image, media_type="image/png", link_type="embed", wire_bytes=3_000_000),
    ]  # fmt: skip
    links = [link(ROOT, f"{ROOT}{name}") for name in ("slow", "mixed", "heavy")]
    assert kinds(found(folder, pages, [*links, link(f"{ROOT}heavy", image, "embed")])) == [
        ("mixed_content", f"{ROOT}mixed", "http://example.org/a.js"),
        ("slow_page", f"{ROOT}slow", "3.2 s"),
        ("heavy_page", f"{ROOT}heavy", "3.0 MB with 1 embeds"),
    ]


def test_pages_with_nearly_the_same_content_are_one_fault(folder: Path) -> None:
    pages = [page(f"{ROOT}{name}", near_duplicate_of=f"{ROOT}b") for name in "acd"]
    pages += [page(f"{ROOT}b"), page(f"{ROOT}short", near_duplicate_of=f"{ROOT}b", words=49)]
    links = [link(ROOT, f"{ROOT}{name}") for name in ("a", "b", "c", "d", "short")]
    links.append(link(f"{ROOT}d", f"{ROOT}b", "canonical"))
    detail = "3 pages have nearly the same content"
    assert found(folder, pages, links) == [
        SiteFault("near_duplicate_page", f"{ROOT}a", detail, [f"{ROOT}b", f"{ROOT}c"])
    ]


def test_descriptions_of_pages_that_are_not_listed_may_be_the_same(folder: Path) -> None:
    same = {"description": "Same"}
    pages = [page(f"{ROOT}a", **same), page(f"{ROOT}b", robots_meta="noindex, follow", **same),
             page(f"{ROOT}c", duplicate_of=f"{ROOT}a", **same)]  # fmt: skip
    links = [link(ROOT, f"{ROOT}{name}") for name in "abc"] + [link(f"{ROOT}c", f"{ROOT}a", "canonical")]
    assert found(folder, pages, links) == []


@pytest.mark.parametrize("is_version", [True, False])
def test_versions_of_a_page_in_other_regions_may_share_what_others_may_not(folder: Path, is_version: bool) -> None:
    names = ("en-GB", "en-US")
    alternates = [f"{name} {ROOT}{name}" for name in names] if is_version else []
    same = {"title": "Brand", "description": "Same", "alternates": alternates}
    pages = [page(f"{ROOT}en-GB", **same), page(f"{ROOT}en-US", near_duplicate_of=f"{ROOT}en-GB", **same)]
    links = [link(ROOT, f"{ROOT}{name}") for name in names]
    links += [link(f"{ROOT}{one}", f"{ROOT}{name}", "alternate") for one in names for name in names]
    expected = [] if is_version else ["duplicate_title", "near_duplicate_page", "duplicate_description"]
    assert [one.kind for one in found(folder, pages, links)] == expected


def test_pages_that_are_not_listed_need_no_description(folder: Path) -> None:
    """DokuWiki's indexes and exports have noindex, in the page or in X-Robots-Tag (`robots_meta` has both)."""
    pages = [page(f"{ROOT}{name}", description="", robots_meta=says) for name, says in (("a", "noindex"), ("b", ""))]
    links = [link(ROOT, f"{ROOT}{name}") for name in "ab"]
    assert [(one.kind, one.url) for one in found(folder, pages, links)] == [("missing_description", f"{ROOT}b")]


@pytest.mark.parametrize(("names", "kinds"), [("ab", ["missing_description"] * 2), ("", [])])
def test_a_staging_host_whose_pages_all_have_noindex_is_judged_as_if_none_had(
    folder: Path, names: str, kinds: list[str]
) -> None:
    pages = [page(f"{ROOT}{name}", description="", robots_meta="none") for name in names]
    pages.append(page(ROOT, link_type="seed", robots_meta="none", attempt=2, fetched_at=2))
    links = [link(ROOT, f"{ROOT}{name}") for name in names]
    assert [one.kind for one in found(folder, pages, links)] == kinds


def test_a_sitemap_of_a_host_whose_pages_all_have_noindex_contradicts_them(folder: Path) -> None:
    pages = [page(f"{ROOT}a", robots_meta="noindex"), page(f"{ROOT}s.xml", media_type="application/xml")]
    pages.append(page(ROOT, link_type="seed", robots_meta="noindex", attempt=2, fetched_at=2))
    links = [link(ROOT, f"{ROOT}a"), link(f"{ROOT}s.xml", f"{ROOT}a", "sitemap")]
    assert kinds(found(folder, pages, links)) == [("sitemap_contradiction", f"{ROOT}a", "robots directive: noindex")]


def test_the_last_attempt_counts(folder: Path) -> None:
    pages = [page(f"{ROOT}a", outcome="http_error", status=500, attempt=1), page(f"{ROOT}a", attempt=2, fetched_at=2)]
    assert found(folder, pages, [link(ROOT, f"{ROOT}a")]) == []


@pytest.mark.parametrize("outcome", ["dns_error", "connect_error", "tls_error", "timeout", "protocol_error"])
def test_what_keeps_a_reader_from_a_page_is_said(folder: Path, outcome: str) -> None:
    far = "https://other.example/"
    pages = [page(far, outcome=outcome, status=None, error="why", link_type="outlink", host="other.example")]
    assert found(folder, pages, [link(ROOT, far)]) == [SiteFault("broken_link", far, f"{outcome}: why", [ROOT])]


def far_page(name: str, outcome: str = "dns_error", error: str = "name resolution: Timeout") -> dict[str, object]:
    status = 200 if outcome == "fetched" else None
    return page(f"https://{name}/", outcome=outcome, status=status, error=error, link_type="outlink", host=name)


SILENT = [far_page("a.example.org"), far_page("b.example.net", "robots_unreachable", "robots.txt: no route"),
          far_page("c.example.com", "timeout", "no answer")]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "is_offline"),
    [
        ([], True),
        ([far_page("127.0.0.1:8080", "fetched", "")], True),
        ([far_page("d.example.org", "fetched", "")], False),
        ([far_page("d.example.org", "connect_error", "Connection refused")], False),
        ([far_page("d.example.org", "tls_error", "expired")], False),
        ([far_page("d.example.org", "robots_unreachable", "cannot fetch robots.txt: HTTP 503")], False),
    ],
)
def test_links_to_other_sites_are_not_broken_where_none_answers(
    folder: Path, more: list[dict[str, object]], is_offline: bool
) -> None:
    pages = [*SILENT, far_page("never.invalid"), *more]
    kinds = {one.url: one.kind for one in found(folder, pages, [link(ROOT, str(one["url"])) for one in pages])}
    assert {kinds[str(one["url"])] for one in SILENT} == {"not_reached" if is_offline else "broken_link"}
    assert kinds["https://never.invalid/"] == "broken_link"


def test_two_silent_sites_show_nothing_about_the_network(folder: Path) -> None:
    pages = [SILENT[0], SILENT[2], far_page("d.example.org", "host_closed", "gave up")]
    faults = found(folder, pages, [link(ROOT, str(one["url"])) for one in pages])
    assert [one.kind for one in faults] == ["broken_link", "broken_link", "not_checked"]


def test_every_kind_has_a_question_and_every_question_a_kind(folder: Path) -> None:
    assert set(KINDS) == {(one.severity and name) or name for name, one in KINDS.items()}
    assert list(dict.fromkeys(one.severity for one in KINDS.values())) == ["error", "warning", "notice", ""]
    pages = [page(f"{ROOT}a", title="", description="", h1=[], declared_language="")]
    assert [one.kind for one in found(folder, pages, [link(ROOT, f"{ROOT}a")])] == [
        "missing_title", "missing_description", "missing_h1", "missing_lang",
    ]  # fmt: skip


def test_a_language_tag_is_right_as_browsers_know_it(folder: Path) -> None:
    sound = ("en", "EN-gb", "zh-Hans-CN", "nds", "iw", "x-klingon", "sr-Latn", "en-US-x-twain")
    wrong = ("xx", "english", "en_US", "{{ lang }}", "e", "en-", "de DE")
    pages = [page(f"{ROOT}{number:02}", declared_language=lang) for number, lang in enumerate((*sound, *wrong, ""))]
    links = [link(ROOT, str(one["url"])) for one in pages]
    faults = found(folder, pages, links)
    assert [one.detail for one in faults if one.kind == "wrong_lang"] == [*wrong]
    assert [one.kind for one in faults if one.kind != "wrong_lang"] == ["missing_lang"]


def test_a_loop_is_named_once_and_a_way_into_it_has_no_better_address(folder: Path) -> None:
    """Two ways into one loop, a chain, and redirects in its middle."""
    targets = {"in": "x", "also": "y", "x": "y", "y": "x", "c1": "c2", "c2": "c3", "c3": "end"}
    pages = [page(f"{ROOT}{name}", outcome="redirected", status=301) for name in targets]
    links = [link(ROOT, f"{ROOT}{name}") for name in (*targets, "end")]
    links += [link(f"{ROOT}{name}", f"{ROOT}{target}", "redirect") for name, target in targets.items()]
    shown = [(one.kind, one.url.removeprefix(ROOT), one.detail.replace(ROOT, "")) for one in
             found(folder, [*pages, page(f"{ROOT}end")], links)]  # fmt: skip
    assert shown == [
        ("redirect_loop", "also", "also → y → x → y"),
        ("redirect_chain", "c1", "c1 → c2 → c3 → end"),
        ("redirect_permanent", "c1", "HTTP 301 to c2"),
        ("redirect_permanent", "c2", "HTTP 301 to c3"),
        ("redirect_permanent", "c3", "HTTP 301 to end"),
        ("redirect_permanent", "in", "HTTP 301 to x"),
    ]
