"""Lists: the operator's files of patterns, hosts and domains."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.config import configure
from gossamer.config.lists import check_lists, hosts_of, patterns_of, scope_lists, whitelist_of
from gossamer.model.errors import ConfigError
from gossamer.stages.scope.chain import scope_chain
from gossamer.stages.scope.lists import ExcludedHost, HostSet
from gossamer.stages.scope.roots import Roots

from .links import linked, named


def test_files_stand_beside_what_the_configuration_holds(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("# wanted\n/docs/  # all of it\n\n/wiki/#about\n")
    (tmp_path / "out.txt").write_text("\n".join(rf"/private{n}/" for n in range(5_000)))
    (tmp_path / "asked.txt").write_text("\ufeffh.example\n.g.example # all under it\n", encoding="utf-8")
    (tmp_path / "sites.txt").write_text("www.example.org\nexample.com\n")
    (tmp_path / "crawl.toml").write_text(
        '[scope]\nscope = "any"\ninclude = ["/more/"]\nexclude_hosts = ["i.example"]\ninclude_file = "in.txt"\n'
        'exclude_file = "out.txt"\nexclude_hosts_file = "asked.txt"\nwhitelist_file = "sites.txt"\n'
    )
    config = configure(tmp_path / "crawl.toml")
    assert config.scope.include_file == str(tmp_path / "in.txt"), "paths begin at the file"
    check_lists(config)
    chain = scope_chain(config.scope, Roots("any"), ExcludedHost(), lists=scope_lists(config))
    reasons = {
        "http://example.org/docs/": "",
        "http://example.org/more/": "",
        "http://example.org/wiki/": "include",
        "http://example.org/docs/private4999/": "exclude",
        "http://h.example/docs/": "excluded_host",
        "http://x.g.example/docs/": "excluded_host",
        "http://i.example/docs/": "excluded_host",
        "http://example.net/docs/": "whitelist",
    }
    assert {text: chain.reason(linked(text)) for text in reasons} == reasons


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (patterns_of, "fine\n(a", "line 2: the pattern '(a' is not a regular expression"),
        (hosts_of, "fine.example\n\nhttp://x/", "line 3: 'http://x/' is not a host"),
        (whitelist_of, "fine.example\nnot a domain\n", "line 2: 'not a domain' is not a domain"),
        (whitelist_of, "# nothing\n", "lists no domain"),
        (hosts_of, "x" * 70_000, "line 1: longer than"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, read: object, text: str, said: str) -> None:
    file = tmp_path / "list"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(file)  # type: ignore[operator]
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["include_file", "exclude_file", "exclude_hosts_file", "whitelist_file"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, key: str) -> None:
    config = configure(sets=[f"scope.{key}={tmp_path / 'none'}"])
    with pytest.raises(ConfigError, match=r"cannot read .*none: No such file or directory; name a file"):
        check_lists(config)
    (tmp_path / "none").write_bytes(b"\xffa")
    with pytest.raises(ConfigError, match=r"none is not UTF-8 \(byte 0\); save it as UTF-8"):
        check_lists(config)


def test_a_list_of_hosts_stands_in_place_of_the_one_before() -> None:
    excluded = ExcludedHost(["a.example"])
    revision = excluded.revision
    assert excluded.set_listed(HostSet([".b.example"]))
    assert excluded.revision == revision, "a list is not kept with the crawl: its file is"
    assert [excluded.covers(host) for host in ("a.example", "x.b.example", "c.example")] == [True, True, False]
    assert "the list of excluded hosts" in excluded.detail(linked("http://x.b.example/"))
    assert not excluded.set_listed(HostSet([".B.example"]))
    assert excluded.set_listed(HostSet(["c.example"]))
    assert [excluded.covers(host) for host in ("a.example", "x.b.example", "c.example")] == [True, False, True]
    again = ExcludedHost()
    again.load(excluded.dump())
    assert again.covers("a.example")
    assert not again.covers("c.example")
    assert excluded.rejects(linked("http://c.example/"))
    assert not excluded.covers(named("http://d.example/").host)


def test_only_hosts_leaves_out_all_others_whatever_names_them() -> None:
    excluded = ExcludedHost(["c.example.org"], only=["a.example", ".example.org"])
    hosts = ("a.example", "www.a.example", "example.org", "b.example.org", "c.example.org", "example.com")
    assert [host for host in hosts if not excluded.covers(host)] == ["a.example", "example.org", "b.example.org"]
    for link_type in ("seed", "anchor", "redirect", "sitemap_file", "embed"):
        link = linked("http://example.com/", link_type)
        assert excluded.rejects(link)
        assert excluded.detail(link) == "example.com is not among the hosts of only_hosts"
    assert not ExcludedHost().covers("example.com")
