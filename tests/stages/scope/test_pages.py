"""Pages: kinds and languages that are not wanted, and addresses that show nothing new."""

from __future__ import annotations

import pytest

from gossamer.model.visits import Reply
from gossamer.options import convert
from gossamer.stages.scope.chain import Chain, scope_chain
from gossamer.stages.scope.filters import UselessPath
from gossamer.stages.scope.options import USELESS, ScopeOptions
from gossamer.stages.scope.pages import page_languages, type_by_name
from gossamer.stages.scope.roots import Roots

from .links import linked


def chain_of(**options: object) -> Chain:
    return scope_chain(convert(ScopeOptions, {"scope": "any", **options}), Roots("any"))


def reply(media_type: str = "text/html", *headers: tuple[str, str]) -> Reply:
    return Reply("http://h/", 200, headers, b"", "192.0.2.1", 0.0, 0.1, 9, media_type=media_type)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("http://h/a.html", "text/html"),
        ("http://h/a.PDF", "application/pdf"),
        ("http://h/a.pdf?x=1", "application/pdf"),
        ("http://h/a.tar.gz", "application/gzip"),
        ("http://h/a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("http://h/a.webp", "image/webp"),
        ("http://h/a.mp4", "video/mp4"),
        ("http://h/a", ""),
        ("http://h/", ""),
        ("http://h/a.php", ""),
        ("http://h/cgi/a.pl?x=b.pdf", ""),
        ("http://h/a.exe", ""),
        ("http://h/about.me", ""),
        ("http://h/wiki/File:Fish.jpg", ""),
        ("http://h/a.pdf/", ""),
        ("http://h/?f=a.pdf", ""),
        ("http://example.zip/", ""),
        ("ftp://h/a.jpg", "image/jpeg"),
    ],
)
def test_what_an_extension_promises(address: str, kind: str) -> None:
    assert type_by_name(address) == kind


def test_kinds_that_are_not_wanted_are_rejected_by_name_and_by_header() -> None:
    chain = chain_of(media_types=("text/*", "application/xhtml+xml"))
    assert chain.media_types == ("text/*", "application/xhtml+xml")
    assert chain.reason(linked("http://h/a.html")) == ""
    assert chain.reason(linked("http://h/a")) == ""
    assert chain.reason(linked("http://h/a.jpg")) == "media_type"
    assert chain.reason(linked("http://h/a.jpg", "seed")) == ""
    assert chain.detail(linked("http://h/a.jpg")) == "its name promises image/jpeg"
    assert [chain.reject_reply(reply(kind)) for kind in ("text/html", "application/xhtml+xml", "", "image/png")] == [
        "", "", "", "media_type",
    ]  # fmt: skip
    assert chain.counts["media_type"] == 2
    assert chain_of().reject_reply(reply("image/png")) == ""
    assert chain_of().media_types == ()


@pytest.mark.parametrize(
    ("content", "headers", "languages"),
    [
        (b'<!doctype html><html lang="de-AT">', (), ["de-AT"]),
        (b"<HTML class=x LANG=fr>", (), ["fr"]),
        (b"<html xml:lang='pt-BR' dir=ltr>", (), ["pt-BR"]),
        (b"<html><p lang=de>", (), []),
        (b"<htmlx lang=de>", (), []),
        (b'<html data-lang="de">', (), []),
        (b"<html lang=''>", (), []),
        (b"<html>", (("Content-Language", "de, en-GB"),), ["de", "en-GB"]),
        (b"<html lang=fr>", (("content-language", "de"),), ["fr"]),
        (b" " * 5_000 + b"<html lang=fr>", (), []),
        (b"<html " + b"a" * 4_000 + b" lang=fr>", (), []),
        (b"", (), []),
    ],
)
def test_what_a_page_says_of_its_language(
    content: bytes, headers: tuple[tuple[str, str], ...], languages: list[str]
) -> None:
    assert page_languages(reply("text/html", *headers), content) == languages


ID = "0123456789abcdef0123456789abcdef01234567"
HISTORIES = (
    f"cgit/s/tree/src?id={ID}", f"cgit/s/blame/a.py?h=v1&id={ID}", f"cgit/s/commit/a.py?id={ID}", f"s/log/?id={ID}",
    f"cgit/s/commit/?h=v1&id={ID}", f"s/diff/?id={ID}&id2={ID}", "s/snapshot/s-1.0.tar.gz", "s/log/a.py?showmsg=1",
    f"?p=s.git;a=blame;f=a.py;hb={ID}", f"?p=s.git;a=tree;f=src;h={ID};hb={ID}", f"?p=s.git;a=blob;f=a.py;h={ID}",
    f"?p=s.git;a=commitdiff;h={ID}", f"?p=s.git;a=shortlog;h={ID};pg=1", f"?p=s.git;a=snapshot;h={ID};sf=tgz",
    f"hg/file/{ID[:12]}/src/a.py", f"shortlog/{ID[:12]}", f"hg/rev/{ID[:12]}?revcount=30", "hg/annotate/tip/a.py",
    "timeline?c=2020-01-01", f"artifact/{ID}", f"file?ci={ID[:16]}&name=a.py", "finfo?name=a.py",
    f"tarball/{ID[:10]}/s.tar.gz",
    f"o/s/src/commit/{ID}/a.py", f"o/s/-/blob/{ID}/a.py", f"o/s/blame/{ID}/a.py", f"browser/a.py?rev={ID}",
    "browser/src?order=size&desc=1", "viewvc/a.c?view=log", "viewvc/a.c?r1=1.1&r2=1.2",
)  # fmt: skip
"""Addresses of the code browsers that Debian 12 has, and of Gitea and GitLab."""


def test_links_of_pages_in_other_languages_lead_nowhere() -> None:
    chain = chain_of(languages=("de", "pt-BR"))
    said = [
        chain.leads_nowhere(reply(), b"<html lang=%b>" % tag)
        for tag in (b"de", b"DE-at", b"fr", b"pt-BR", b"pt", b"den")
    ]
    assert said == ["", "", "fr", "", "pt", "den"]
    assert chain.leads_nowhere(reply(), b"<html>") == ""
    assert chain.leads_nowhere(reply("text/html", ("Content-Language", "fr, de")), b"") == ""
    assert chain.leads_nowhere(reply(), b"<html lang=de>", "en") == "en"
    assert chain.counts["language"] == 4
    assert "language" not in chain_of().counts
    assert chain_of().leads_nowhere(reply(), b"<html lang=fr>") == ""


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        *[("listing_order", f"http://h/pub/?C={column};O={order}") for column in "NMSD" for order in "AD"],
        *[("listing_order", f"http://h/pub/?{column}={order}") for column in "NMSD" for order in "AD"],
        ("listing_order", "http://h/?O=D;C=M"),
        ("listing_order", "http://h/pub/?C=N&O=D"),
        ("listing_order", "http://h/pub/?sort=namedirfirst&order=desc"),
        ("listing_order", "http://h/pub/?sort=size&order=asc"),
        ("wiki_actions", "http://h/w/index.php?title=Fish&action=edit"),
        ("wiki_actions", "http://h/w/index.php?title=Fish&oldid=12"),
        *[
            ("wiki_actions", f"http://h/{rest}")
            for rest in (
                "index.php?title=Special:UserLogin&returnto=Fish",
                "doku.php?id=start&do=edit",
                "a:b?do=export_raw",
                "doku.php?id=fish&rev=1588636800",
                "wiki/Fish?action=diff&version=2",
                "wiki/Fish?version=3",
            )
        ],
        *[("code_histories", f"http://h/{rest}") for rest in HISTORIES],
        ("reply_forms", "http://h/2026/11/fish/?replytocom=12"),
        ("share_links", "http://h/fish/?share=twitter&nb=1"),
    ],
)
def test_useless_addresses(kind: str, address: str) -> None:
    assert UselessPath([kind]).rejects(linked(address))
    assert UselessPath([kind]).detail(linked(address)) == f"of the kind {kind}"
    assert not UselessPath([other for other in USELESS if other != kind]).rejects(linked(address))
    assert chain_of().reason(linked(address)) == ("useless_path" if kind == "listing_order" else "")
    assert chain_of(useless_paths=()).reason(linked(address)) == ""


@pytest.mark.parametrize(
    "address",
    [
        "http://h/pub/", "http://h/pub?C=N;O=D", "http://h/?C=X;O=D", "http://h/?C=N;O=D&x", "http://h/?N=Abel", "http://h/?S=A1",
        "http://h/?x&N=A", "http://h/C=N;O=D", "http://h/?sort=N", "http://h/?q=action=edit", "http://h/?share=tweet",
        # What code browsers have once for each commit, file and page.
        f"http://h/s/commit/?id={ID}", f"http://h/?p=s.git;a=commit;h={ID}", f"http://h/hg/rev/{ID[:12]}",
        "http://h/hg/file/tip/a.py", "http://h/file?name=a.py&ci=tip",
        f"http://h/?p=s.git;a=blob;f=a.py;h={ID};hb=HEAD", f"http://h/info/{ID[:16]}",
        "http://h/s/tree/src/a.py", "http://h/wiki/Fish", "http://h/s/-/blob/main/a.py", "http://h/browser/a.py",
        "http://h/o/s/src/branch/main/a.py", "http://h/doku.php?id=do:edit", "http://h/timeline", f"http://h/files/{ID}",
    ],
)  # fmt: skip
def test_addresses_that_look_alike(address: str) -> None:
    assert chain_of(useless_paths=tuple(USELESS)).reason(linked(address)) == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"useless_paths": ("listing_ordr",)}, "did you mean listing_order"),
        ({"media_types": ("html",)}, "'html' is no media type"),
        ({"media_types": ("text/html; charset=x",)}, "is no media type"),
        ({"languages": ("german!",)}, "'german!' is no language"),
        ({"languages": ("d",)}, "'d' is no language"),
    ],
)
def test_mistakes_are_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        chain_of(**options)


def test_filters_say_more_of_what_they_reject() -> None:
    chain = chain_of(
        exclude=("x", r"\.gif$"), exclude_hosts=("g.example",), depth_max=3, url_bytes_max=40, path_repeats_max=3
    )
    told = {
        chain.explain(link): chain.detail(link)
        for link in (
            linked("http://h/a.gif"), linked("http://g.example/"), linked("http://h/a/a/a/a"),
            linked("http://h/", depth=4),
            linked("http://h/" + "y" * 40), linked("ftp://h/"), linked("http://h/fine"),
        )
    }  # fmt: skip
    assert told == {
        "exclude": r"the pattern '\\.gif$' is found in it",
        "excluded_host": "g.example is excluded by exclude_hosts or `exclude`",
        "repeated_path": "its path has the segment 'a' 4 times, more than 3",
        "depth": "it is 4 clicks from a seed, more than 3",
        "length": "it has 49 bytes, more than 40",
        "scheme": "",
        "": "",
    }
