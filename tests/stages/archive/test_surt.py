"""Keys equal those of the tools that read our index."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gossamer.stages.archive.surt import surt

_HEX = "0123456789ABCDEF0123456789ABCDEF"
_WORD = "4hqa0555fwsecu455xqckv45"

# Keys as given by the `surt` package 0.3.1, which cdxj-indexer and pywb use.
KEYS = {
    "http://example.org": "org,example)/",
    "http://example.org/": "org,example)/",
    "https://www.Example.org:443/Path/To/?b=2&a=1": "org,example)/path/to?a=1&b=2",
    "http://www2.example.org:8080/a//b/./c/../d/": "org,example:8080)/a/b/d",
    "http://user:pw@example.org/x": "org,example)/x",
    "http://127.0.0.1/x": "1,0,0,127)/x",
    "http://127.0.0.1:8080/x/": "1,0,0,127:8080)/x",
    "http://2130706433/x": "1,0,0,127)/x",
    "http://[::1]/x": "::1)/x",
    "http://[2001:db8::1]:8080/x": "2001:db8::1:8080)/x",
    "http://example.org/%7Efoo/%2541%20b": "org,example)/~foo/a%20b",
    "http://example.org/ü?q=ü": "org,example)/%c3%bc?q=%c3%bc",
    "http://xn--bcher-kva.example/x": "example,xn--bcher-kva)/x",
    "http://example.org/a?": "org,example)/a",
    "http://example.org/a?&": "org,example)/a?&",
    "http://example.org/a?b&a=&a": "org,example)/a?a&a=&b",
    f"http://example.org/a?jsessionid={_HEX}&x=1": "org,example)/a?x=1",
    f"http://example.org/a?x=1&PHPSESSID={_HEX}": "org,example)/a?&x=1",
    f"http://example.org/a?x=1&sid={_HEX}": "org,example)/a?&x=1",
    "http://example.org/a?ASPSESSIONIDAQBSDSRT=EOHBLBDDPFCLHKPGGKLILNAM&x=2": "org,example)/a?x=2",
    "http://example.org/a?cfid=1&cftoken=2&x=3": "org,example)/a?x=3",
    f"http://example.org/(S({_WORD}))/a.aspx": "org,example)/a.aspx",
    f"http://example.org/({_WORD})/a.aspx": "org,example)/a.aspx",
    f"http://example.org/(a({_WORD})S({_WORD}))/a.aspx?x": "org,example)/a.aspx?x",
    "http://example.org/a?b=%26&a=%3D": "org,example)/a?&a==&b=",
    "http://example.org/a?x=%23": "org,example)/a?x=%23",
    "http://example.org/%3F": "org,example)/?",
    "http://example.org/%ff%00": "org,example)/%ff%00",
    'http://example.org/a|b"c<d>{e}\\f^g`h': 'org,example)/a|b"c<d>{e}\\f^g`h',
    "ftp://ftp.example.org/pub/": "org,example,ftp)/pub",
    "http://example.org./x": "org,example)/x",
    "https://example.org:80/": "org,example:80)/",
    "http://www.www.example.org/": "org,example,www)/",
    "http://www12.com/": "com)/",
    "http://example.org/..": "org,example)/..",
    "http://example.org/a/../../b": "org,example)/../b",
    "http://example.org/a/.": "org,example)/a",
    "http://example.org//": "org,example)/",
    "http://localhost/x": "localhost)/x",
    "http://example.org/a?x=1&&y=2": "org,example)/a?&x=1&y=2",
    "http://example.org/a#frag": "org,example)/a",
    "http://a_b.example.org/": "org,example,a_b)/",
    "a: 2": "a:%202",
    # Hosts in archives of others.
    "http://bücher.example/": "example,xn--bcher-kva)/",
    f"http://{'ü' * 64}.example/": f"example,{'%c3%bc' * 64})/",
    "http://a b.example/": "example,a%20b)/",
    f"http://{'9' * 5_000}/": f"{'9' * 5_000})/",
}


@pytest.mark.parametrize(("url", "key"), KEYS.items())
def test_known_keys(url: str, key: str) -> None:
    assert surt(url) == key


with warnings.catch_warnings(action="ignore"):
    import surt as theirs

_PATH = st.text(st.sampled_from("aB1/._-%25~;=()&?+ü"), max_size=20)


@given(st.sampled_from(["http", "https"]), st.sampled_from(["example.org", "www.a.b", "www3.x"]), _PATH, _PATH)
@example("http", "example.org", "a/./b/../c/", "b=2&a=1&a")
@settings(max_examples=300, deadline=None)
def test_keys_equal_the_tools_own(scheme: str, host: str, path: str, query: str) -> None:
    assert surt(f"{scheme}://{host}/{path}?{query}") == theirs.surt(f"{scheme}://{host}/{path}?{query}")
