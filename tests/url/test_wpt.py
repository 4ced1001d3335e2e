"""What the web-platform-tests say of addresses, we say too: parsing, joining, and hosts by IDNA. Their cases are in
`wpt/`, with their source.

Cases that do not apply are named by rule and counted: a case more or less is looked at.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.url.join import Joiner, absolute, join
from gossamer.url.name import SCHEMES, Namer

pytestmark = pytest.mark.promise(
    "What is fetched", "Addresses are parsed and joined as the web platform tests specify."
)


@cache
def cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file, comments left out."""
    read = json.loads((Path(__file__).parent / "wpt" / name).read_text(encoding="utf-8"))
    return [case for case in read if isinstance(case, dict)]


def expected(case: dict[str, Any]) -> str | None:
    """Return the address that a case wants. Ours have no fragment: it is never sent."""
    return None if case.get("failure") else str(case["href"]).partition("#")[0]


def test_every_address_is_parsed_and_joined_as_the_standard_says() -> None:
    urls = cases("urltestdata.json")
    assert len(urls) == 891
    wrong = []
    for case in urls:
        given_, base = case["input"], case["base"]
        got = {"join": absolute(given_) if base is None else join(base, given_)}
        if base is not None:
            got["joiner"] = Joiner(base).join(given_)
        wrong += [(how, base, given_, expected(case), url) for how, url in got.items() if url != expected(case)]
    assert wrong == []
    # All of them apply. What kinds there are:
    assert sum(case["base"] is None for case in urls) == 555
    assert sum(bool(case.get("failure")) for case in urls) == 267
    assert sum("#" in case.get("href", "") for case in urls) == 72, "whose fragment is left out on both sides"


def test_an_address_that_is_resolved_stays_as_it_is() -> None:
    for case in cases("urltestdata.json"):
        url = expected(case)
        if url is not None:
            assert absolute(url) == url


def test_hosts_of_the_cases_are_named_as_they_are_written() -> None:
    """`Url.host` is the standard's hostname, for every scheme that is visited and has a host to visit."""
    namer, named, unnamed = Namer(), 0, {"no scheme of ours": 0, "no host": 0, "no host that can exist": 0}
    for case in cases("urltestdata.json"):
        address = expected(case)
        if address is None:
            continue
        url, hostname = namer.name(address), case["hostname"]
        if address.partition(":")[0] not in SCHEMES:
            assert url is None
            unnamed["no scheme of ours"] += 1
        elif not hostname and not address.startswith("file:"):
            assert url is None
            unnamed["no host"] += 1
        elif url is None:
            # An empty label is for the root alone (RFC 1035, section 3.1).
            assert ".." in hostname or hostname.strip(".") == "" or hostname.startswith(".")
            unnamed["no host that can exist"] += 1
        else:
            assert url.host == (hostname.removesuffix(".") or "localhost")
            scheme, _, rest = address.partition("://")
            authority = re.split("[/?#]", rest)[0]
            assert url.text == f"{scheme}://{rest[authority.rfind('@') + 1 :]}", "credentials are left out"
            named += 1
    assert named == 377
    assert unnamed == {"no scheme of ours": 236, "no host": 8, "no host that can exist": 3}


@pytest.mark.parametrize(("name", "count", "empty"), [("toascii.json", 87, 0), ("IdnaTestV2.json", 2671, 1)])
def test_hosts_are_written_by_idna(name: str, count: int, empty: int) -> None:
    """The one case that does not apply is the empty input: an address of the web has a host."""
    hosts = cases(name)
    applicable = [case for case in hosts if case["input"]]
    assert (len(hosts), len(hosts) - len(applicable)) == (count, empty)
    wrong = []
    for case in applicable:
        host, name_ = case["input"], case["output"]
        want = None if name_ is None else f"https://{name_}/x"
        got = {
            "parsed": absolute(f"https://{host}/x"),
            "joined": join("http://example.org/a/b", f"https://{host}/x"),
            "joined by its page": Joiner("http://example.org/a/b").join(f"https://{host}/x"),
            "joined without scheme": join("https://example.org/a/b", f"//{host}/x"),
        }
        wrong += [(how, host, want, url) for how, url in got.items() if url != want]
    assert wrong == []


def test_the_fast_path_joins_every_href_of_the_cases_to_every_base_as_the_standard_does() -> None:
    """891 hrefs on 60 bases: what `Joiner` glues by itself is what the parser makes of it."""
    urls = cases("urltestdata.json")
    bases = sorted({case["base"] for case in urls if case["base"] is not None})
    bases += ["http://h", "https://u:p@h:81/a/b/../c;d?e/f", "http://[::1]/a/", "http://h/%2e%2e/a/b/c/d/"]
    hrefs = [case["input"] for case in urls]
    assert len(bases) > 50
    for base in bases:
        joiner = Joiner(base)
        assert [joiner.join(href) for href in hrefs] == [join(base, href) for href in hrefs], base


segments = st.sampled_from(
    ["a", "b.html", "..", ".", "%2e", "%2E.", "", "c:d", "x y", "ü", ";p=1", "~u", "@", "&", "$'()*,!"]
)
hrefs_like = st.builds(
    lambda start, parts, query, fragment: start + "/".join(parts) + query + fragment,
    st.sampled_from(["", "/", "../", "../../", "../../../../", "./", "//h2/", "http:", "https://h3:443/", "\\", " "]),
    st.lists(segments, max_size=5),
    st.sampled_from(["", "?", "?a=b&c", "?x/../y", "?a'b", "?a%20b|", "?ü", "?\n"]),
    st.sampled_from(["", "#", "#part", "#a?b/../c", "#\nx"]),
)
bases_like = st.builds(
    lambda origin, parts, query: origin + "/".join(parts) + query,
    st.sampled_from(["http://h/", "https://h:8443/", "http://u@h/", "http://[::1]:81/", "ftp://h/", "file:///"]),
    st.lists(st.sampled_from(["a", "b.html", "..", ".", "", "%41", "c;d"]), max_size=4),
    st.sampled_from(["", "?", "?q/r", "#f"]),
)


@given(bases_like, st.lists(hrefs_like, max_size=8))
def test_the_fast_path_joins_made_up_hrefs_as_the_standard_does(base: str, hrefs: list[str]) -> None:
    joiner = Joiner(base)
    assert [joiner.join(href) for href in hrefs] == [join(base, href) for href in hrefs]
