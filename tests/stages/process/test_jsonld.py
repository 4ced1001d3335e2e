"""JSON-LD as sites write it. Where extruct has a test of the kind, the result is that of extruct."""

from __future__ import annotations

import pytest

from gossamer.stages.process.jsonld import roots
from gossamer.stages.process.metadata import BLOCKS_MAX, Metadata

from .test_content_modules import found


@pytest.mark.parametrize(
    ("script", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ("", []),
        ("  \n ", []),
        ("null", [None]),
        ('{"a": "first\nsecond\tthird\r\n"}', [{"a": "first\nsecond\tthird\r\n"}]),
        ('{"a": "bell \x07 here"}', [{"a": "bell \x07 here"}]),
        ('// the type\n{"a": 1}', [{"a": 1}]),
        ('{"a": 1, // one\n "b": "http://x.example//y" /* two */}', [{"a": 1, "b": "http://x.example//y"}]),
        ('<!-- made by a plugin -->\n{"a": "<!-- b -->"}', [{"a": "<!-- b -->"}]),
        ('<!--\n{"a": 1}\n-->', [{"a": 1}]),
        ('//<![CDATA[\n{"a": "]]>"}\n//]]>', [{"a": "]]>"}]),
        ('/*<![CDATA[*/{"a": 1}/*]]>*/', [{"a": 1}]),
        ('// <![CDATA[ {"a": 1} // ]]>', [{"a": 1}]),
        ('<![CDATA[{"a": 1}]]>', [{"a": 1}]),
        ('{"a": [1, 2,\n], "b": {"c": ",}",},}', [{"a": [1, 2], "b": {"c": ",}"}}]),
        ('{"a": 1, /* last */ }', [{"a": 1}]),
        ('{"a": 1}\n{"a": 2};\n[{"a": 3},]', [{"a": 1}, {"a": 2}, [{"a": 3}]]),
        ('{"a": 1};', [{"a": 1}]),
        ('\ufeff{"a": 1}', [{"a": 1}]),
        ('{"a": "It\\\'s", "b": "\\u00e9\\n"}', [{"a": "It's", "b": "é\n"}]),
        ('{"a": 1} {"b": }  {"c": 3}', [{"a": 1}, {"c": 3}]),
        ('{"a": {"b": 1}', []),
        ('{"a": "open', []),
        ("{'a': 1}", []),
        ("]}", []),
    ],
)
def test_what_can_be_read_is_read(script: str, values: list[object]) -> None:
    assert list(roots(script.encode())) == values


def test_roots_are_bounded() -> None:
    script = f"<script type=application/ld+json>{'[1] ' * 30}</script>"
    assert found(Metadata(), script * 5).columns["json_ld"] == [[1]] * BLOCKS_MAX


def test_deep_nesting_is_no_error() -> None:
    assert list(roots(b"[" * 50_000 + b"]" * 50_000 + b",")) == []


def test_facts_are_found_in_it() -> None:
    script = """<script type="application/ld+json">
    //<![CDATA[
    {"@graph": [{"@type": "Article", "datePublished": "2024-05-06", "description": "Two
    lines", "author": [{"name": "Ann"}, {"name": "Bob"},],}]}
    //]]></script>"""
    columns = found(Metadata(), script).columns
    assert (columns["byline"], columns["schema_types"]) == ("Ann, Bob", ["Article"])
    assert "published" in columns
