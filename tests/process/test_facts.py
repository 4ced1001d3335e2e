"""Facts: dates, authors, licenses and types, from JSON-LD and from meta elements."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gossamer.process.facts import moment
from gossamer.process.metadata import Metadata

from .test_content_modules import found

JSON_LD = """<script type="application/ld+json">{"@graph": [{"@type": ["BlogPosting", "https://schema.org/Article"],
"datePublished": "2024-02-03T04:05:06+01:00", "dateModified": "soon", "author":
[{"name": "First  Author"}, "Second Author", {}],
"license": {"url": "https://l.example/by"}}]}</script>"""


def test_json_ld_comes_first() -> None:
    columns = found(Metadata(), JSON_LD + "<meta name=author content=Other><meta name=date content=2000-01-01>").columns
    assert columns["published"] == datetime(2024, 2, 3, 3, 5, 6, tzinfo=UTC)
    assert columns["byline"] == "First Author, Second Author"
    assert columns["license"] == "https://l.example/by"
    assert columns["schema_types"] == ["BlogPosting", "Article"]
    assert "modified" not in columns


def test_meta_elements_and_links_come_second() -> None:
    body = """<meta property="article:published_time" content="2024-01-02">
    <meta itemprop=dateModified content="2024-01-03">
    <meta name=article:author content=https://p.example/first><meta name=dc.creator content="By First Author">
    <p>Under <a rel="license nofollow" href=/cc>CC</a>"""
    columns = found(Metadata(), body).columns
    assert columns["published"] == datetime(2024, 1, 2, tzinfo=UTC)
    assert columns["modified"] == datetime(2024, 1, 3, tzinfo=UTC)
    assert columns["byline"] == "First Author"
    assert columns["license"] == "https://example.org/cc"
    assert found(Metadata(), "<link rel=license href=x>" + body).columns["license"] == "https://example.org/dir/x"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-05-06", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024-05-06 07:08", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        ("2024-05-06T07:08:09.123Z", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024-05-06T07:08:09+0200", datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)),
        ("Mon, 06 May 2024 07:08:09 GMT", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024-13-45", None),
        ("0001-01-01", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times(written: str, expected: datetime | None) -> None:
    assert moment(written) == expected


def test_hostile_facts_are_bounded() -> None:
    body = '<script type="application/ld+json">[' + '{"@type": "T", "mainEntity": [' * 200 + "]}" * 200 + "]</script>"
    columns = found(Metadata(), body + "<meta name=author content='" + "x" * 90_000 + "'>").columns
    assert columns["schema_types"] == ["T"]
    assert len(str(columns["byline"])) == 500
