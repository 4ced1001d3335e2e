"""Causes: what faults have in common."""

from __future__ import annotations

import pytest

from gossamer.results.check.causes import causes_of, faults_by_page
from gossamer.results.export.faults import SiteFault

ROOT = "https://example.org/"
REQUIREMENTS = f"{ROOT}requirements.html"


def broken(url: str, *pages: str, detail: str = "HTTP 404") -> SiteFault:
    return SiteFault("broken_link", url, detail, list(pages))


def said(*faults: SiteFault) -> list[str]:
    return [str(one) for one in causes_of(faults)]


def test_links_of_one_page_have_one_cause() -> None:
    faults = [broken(f"https://packages.example/{number}", REQUIREMENTS) for number in range(425)]
    assert said(*faults) == [f"425 links from {REQUIREMENTS}"]


def test_links_to_one_host_from_many_pages_have_one_cause() -> None:
    faults = [broken(f"https://dead.example/{n}", f"{ROOT}{n}", detail="dns_error: no such host") for n in range(5)]
    assert said(*faults) == ["5 links to dead.example: dns_error"]


def test_a_link_that_many_pages_share_is_of_their_template() -> None:
    pages = [f"{ROOT}{number}" for number in range(10)]
    faults = [broken(f"{ROOT}a/x", *pages), broken(f"{ROOT}b/y", *pages)]
    assert said(*faults) == [f"2 links that many pages share, such as {ROOT}0"]


def test_a_link_of_all_pages_comes_first_and_is_the_cause_of_no_single_page() -> None:
    pages = [f"{ROOT}{number}" for number in range(10)]
    own = [broken(f"{ROOT}{number}/old", f"{ROOT}{number}") for number in range(3)]
    few = [SiteFault("missing_fragment", f"{ROOT}a#{number}", "", [f"{ROOT}a"]) for number in range(2)]
    assert said(*own, *few, broken(f"{ROOT}about", *pages)) == [
        f"{ROOT}about, on {ROOT}0 and 9 other pages",
        f"2 links from {ROOT}a",
        *(f"{ROOT}{number}/old, on {ROOT}{number}" for number in range(3)),
    ]


def test_where_the_start_was_not_checked_that_comes_first() -> None:
    faults = [broken(f"{ROOT}{number}", ROOT) for number in range(3)]
    assert said(*faults, SiteFault("seed_not_checked", ROOT)) == [ROOT, f"3 links from {ROOT}"]


def test_a_folder_that_is_gone_is_a_cause() -> None:
    faults = [broken(f"{ROOT}old/{number}", f"{ROOT}{number}") for number in range(3)]
    assert said(*faults) == [f"3 links in {ROOT}old/"]


def test_a_lone_fault_names_its_pages() -> None:
    assert said(broken(f"{ROOT}x", f"{ROOT}a", f"{ROOT}b")) == [f"{ROOT}x, on {ROOT}a and 1 other page"]
    assert said(broken(f"{ROOT}x")) == [f"{ROOT}x"]
    assert said(SiteFault("duplicate_title", f"{ROOT}x", "Same", [f"{ROOT}y"])) == [f"{ROOT}x"]


def test_pages_of_one_folder_have_one_cause_and_kinds_stay_apart() -> None:
    faults = [SiteFault("missing_h1", f"{ROOT}tag/{number}?page=1/2") for number in range(3)]
    assert said(*faults, SiteFault("missing_lang", f"{ROOT}tag/1")) == [f"3 pages in {ROOT}tag/", f"{ROOT}tag/1"]
    assert said(SiteFault("missing_alt", f"{ROOT}a.png", "", [ROOT]), SiteFault("missing_alt", "/b", "", [ROOT])) == [
        f"2 images on {ROOT}"
    ]


@pytest.mark.parametrize("url", ["", "x", "https://[bad/", "//", "http://", "data:,"])
def test_what_is_no_address_has_a_cause_too(url: str) -> None:
    assert len(causes_of([broken(url), broken(url, ROOT)])) in (1, 2)


def test_pages_to_mend_are_those_that_link() -> None:
    faults = [broken(f"{ROOT}x", ROOT, f"{ROOT}a"), SiteFault("duplicate_title", f"{ROOT}a", "Same", [f"{ROOT}b"])]
    assert {page: len(found) for page, found in faults_by_page(faults).items()} == {f"{ROOT}a": 2, ROOT: 1}
