"""Site: registrable domains, partitions and the list they depend on."""

from __future__ import annotations

import socket
import subprocess
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from gossamer.url import site
from gossamer.url.site import PARTITIONS, is_suffix, partition_of, site_of
from gossamer.url.url import fingerprint


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example.org", "example.org"),
        ("a.b.example.org", "example.org"),
        ("www.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("org", "org"),
        ("me.github.io", "me.github.io"),
        ("x.me.github.io", "me.github.io"),
        ("github.io", "github.io"),
        ("foo.ck", "foo.ck"),
        ("x.www.ck", "www.ck"),
        ("x.city.kobe.jp", "city.kobe.jp"),
        ("localhost", "localhost"),
        ("a.b.unlisted-suffix", "b.unlisted-suffix"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("a.xn--55qx5d.cn", "a.xn--55qx5d.cn"),
        ("b.a.xn--55qx5d.cn", "a.xn--55qx5d.cn"),
    ],
)
def test_site_of(host: str, expected: str) -> None:
    assert site_of(host) == expected
    assert site_of(expected) == expected


def test_the_fast_path_is_the_readable_one() -> None:
    rules = site._rules()
    for rule in sorted(rules)[::7]:
        bare = rule.removeprefix("*.").removeprefix("!")
        for host in (bare, f"x.{bare}", f"y.x.{bare}", f"-.{bare}", f"z.y.x.{bare}"):
            if f"*.{host}" in rules and f"*.{host.partition('.')[2]}" in rules:
                # Between two wild cards: the outer one holds, by the list's algorithm. The library forgets it.
                assert site_of(host) == host
                continue
            if "." in host:
                assert site_of(host) == site.site_by_list(host), host
            assert is_suffix(host) == site.is_suffix_by_list(host), host


LABELS = (
    "a", "x1", "com", "uk", "co", "ck", "www", "jp", "kobe", "city", "io", "github", "1", "zz", "", "A", "xn--55qx5d",
    "cn", "a_b", "über", "xn--p1ai", "xn--90ais", "xn--zz", "xn--", "xn---", "xn--a", "xn--fiqs8s", "xn--xn--",
    "axn--b", "xn--com-", "xn--com",
)  # fmt: skip


@given(st.lists(st.sampled_from(LABELS), min_size=1, max_size=5))
def test_any_host_is_read_as_the_library_reads_it(labels: list[str]) -> None:
    host = ".".join(labels)
    assert is_suffix(host) == site.is_suffix_by_list(host)
    if "." in host and not host.rpartition(".")[2].isdigit():
        assert site_of(host) == site.site_by_list(host)


def test_of_a_host_with_thousands_of_labels_the_last_ones_decide() -> None:
    assert max(rule.count(".") + 1 for rule in site._rules()) < site.LABELS_MAX - 1
    for end in ("example.co.uk", "a.b.kawasaki.jp", "city.kawasaki.jp", "example.invalid"):
        for labels in (1, site.LABELS_MAX - 3, site.LABELS_MAX, 5_000):
            assert site_of("a." * labels + end) == site_of(f"a.{end}")


def test_the_rules_are_the_library_s() -> None:
    assert sorted(site._rules()) == sorted(site._suffix_list().tlds)


def test_a_library_that_keeps_its_list_elsewhere_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = site._rules()
    site._rules.cache_clear()
    monkeypatch.setattr(site, "find_spec", lambda _: types.SimpleNamespace(loader=None, origin="elsewhere/__init__.py"))
    assert site._rules() == before


def test_names_in_other_scripts_are_read_as_the_library_reads_them() -> None:
    foreign = [rule for rule in site._rules() if not rule.isascii() and rule[0] not in "*!"]
    assert len(foreign) > 100
    for rule in foreign:
        bare = ".".join(
            label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in rule.split(".")
        )
        for host in (f"x.{bare}", f"y.x.{bare}"):
            assert site_of(host) == site.site_by_list(host), host
            assert is_suffix(host) == site.is_suffix_by_list(host), host


def test_the_site_of_a_name_needs_no_library() -> None:
    code = """
import sys
from gossamer.url.site import site_of
site_of('a.b.co.uk'), site_of('a.xn--55qx5d.cn')
sys.exit('tldextract' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


def test_is_suffix() -> None:
    assert [is_suffix(host) for host in ("org", "co.uk", "github.io", "example.org", "intra.test")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_partitions_are_the_same_everywhere() -> None:
    # From the reference implementation's output for these bytes: a change here would strand every stored crawl.
    assert partition_of("example.org") == xxh3_64_intdigest(b"example.org") % 4096
    assert PARTITIONS == 4096
    assert fingerprint("http://example.org/") == xxh3_64_intdigest(b"http://example.org/")
    assert 0 <= fingerprint("") < 2**64


def test_the_list_is_neither_downloaded_nor_written(tmp_path: Path) -> None:
    code = """
import socket
def refuse(*_): raise AssertionError("the network was touched")
socket.socket.connect = refuse
from gossamer.url.site import site_of
assert site_of("a.example.org") == "example.org"
"""
    env = {
        "PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TLDEXTRACT_CACHE": str(tmp_path / "tld"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], env=env).returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert socket.socket.connect is not None
