from __future__ import annotations

import pytest

from gossamer.model.pages import Findings, Page
from gossamer.options import convert
from gossamer.stages.process.listings import ListingLinks
from gossamer.stages.process.options import ProcessOptions
from gossamer.testing.conformance import check_processing_module

FTP = "text/x-ftp-listing"


def links(
    url: str, body: bytes, media_type: str = FTP, *, is_cut: bool = False, **options: int
) -> list[tuple[str, str]]:
    module = ListingLinks(convert(ProcessOptions, options))
    assert module.wants(media_type)
    findings = Findings()
    module.process(Page(url, media_type, "", (), body, is_cut=is_cut), findings)
    assert all(link.link_type == "anchor" for link in findings.links)
    return [(link.url, link.anchor_text) for link in findings.links]


def ls(*lines: str) -> bytes:
    kinds = {"d": "drwxr-xr-x", "-": "-rw-r--r--", "l": "lrwxrwxrwx"}
    return "".join(f"{kinds[line[0]]} 1 a b 1 Jan  1 12:00 {line[1:]}\n" for line in lines).encode()


def test_names_become_addresses_below_the_directory() -> None:
    found = links("ftp://h.test:21/pub/a%20b/", ls("d d;e", "-ü #?%:.txt", "-../x", "-C:", "d%2e%2e"))
    assert found == [
        ("ftp://h.test/pub/a%20b/%20d%3Be/", "d;e"),
        ("ftp://h.test/pub/a%20b/%C3%BC%20%23%3F%25:.txt", "ü #?%:.txt"),
        ("ftp://h.test/pub/a%20b/C:", "C:"),
        ("ftp://h.test/pub/a%20b/%252e%252e/", "%2e%2e"),
    ]
    assert links("ftps://h.test", ls("-a")) == [("ftps://h.test/a", "a")]
    assert links("ftp://h.test/x/y", ls("-a")) == [("ftp://h.test/x/y/a", "a")]
    assert links("ftp://h.test/x/", b"type=file; \xff\n") == [("ftp://h.test/x/%FF", "ÿ")]


@pytest.mark.parametrize(
    ("line", "address"),
    [
        # ls, with dates as servers of other countries and old ones write them
        (b"-rw-r--r--   1 a b     531 3 29 03:26 in numbers", "in%20numbers"),
        (b"-rw-r--r--   1 a b     531 09-26 2000 day.txt", "day.txt"),
        (b"-rw-r--r--   1 a b   33.5k Oct 5 21:22 size.txt", "size.txt"),
        (b"drwxrwxr-x               folder        2 May 10  1996 mac", "mac/"),
        (b"-rwxr-xr-x    1 a b        9 Oct 08, 2002 09:47 comma.txt", "comma.txt"),
        (b"-r-xr-xr-x   2 a b      2235 1999/10/12 17:12 2003 slashes", "2003%20slashes"),
        (b"-r-xr-xr-x   2 a b      2235 24-04-2003 17:12 day-first", "day-first"),
        (b"-r-xr-xr-x   2 a b        96 2004.07.15   dots", "dots"),
        (b"-r-xr-xr-x 2 owner group 4512 01-jun-99 month", "month"),
        (b"-rw-r--r--   1 a b     8473  4\x8c\x8e 18\x93\xfa 2003\x94\x4e japan", "japan"),
        (b"drwxr-xr-x   5 a b      512 2005\xeb\x85\x84  1\xec\x9b\x94  6\xec\x9d\xbc korea", "korea/"),
        (b"-r-xr-xr-x longowner longgroup123456 Feb 12 17:20 glued", "glued"),
        (b"drwxrwxrwx   1 0        0               0 29 Jul 02:27 2014 Invoices", "2014%20Invoices/"),
        # NetWare
        (b"d [R----F--] supervisor            512       Jan 16 18:53    sys", "sys/"),
        (b"- [RWCEAFMS] rhesus             214059       Oct 20  2004    a b.txt", "a%20b.txt"),
        # DOS
        (b"10.01.2024  09:30    <DIR>          dotted", "dotted/"),
        (b"10/01/2024  09:30 p. m.        12.345 points.txt", "points.txt"),
        (b"1/9/2024  9:30 PM             345 short.txt", "short.txt"),
        (b"10-Jan-24  09:30AM        345 month.txt", "month.txt"),
        (b"01-10-24  09:30:12AM        345 seconds.txt", "seconds.txt"),
        # VMS
        (b"PUB.DIR;1  1 19-NOV-2001 21:41 [root,root] (RWE,RWE,RE,RE)", "PUB/"),
        (b"README.TXT;3       155   2-JUL-2003 10:30:13.64", "README.TXT"),
        (b"LONG.TXT;12\r\n   170774/170775     24-APR-2003 08:16:15  [FTP,A]      (RWED,RWED,RE,)", "LONG.TXT"),
        (b"Directory PUB:[000000]\r\n\r\nA.TXT;1 2KB 23-SEP-2005 14:57:07.27\r\n\r\nTotal of 1 file", "A.TXT"),
        (b"SECRET.TXT;1 %RMS-E-PRV, insufficient privilege or file protection violation", None),
        # AS/400
        (b"QSYS            77824 02/23/00 15:09:55 *DIR IBM dir/", "IBM%20dir/"),
        (b"QPGMR           36864 18.09.06 14:21:26 *FILE      A.FILE", "A.FILE"),
        # OS/2, also after 1999
        (b"                 0           DIR   12-11-95   13:55  z", "z/"),
        (b"36611      A    04-23-103   10:57  OS2 a.file", "OS2%20a.file"),
        (b" 1123 DIR  A    10-05-100   23:38  archived", "archived/"),
        (b"587823    RSA    DIR   01-08-97   13:58  system", "system/"),
        (b"73098  RHSA  04-06-97   15:15  1996.txt", "1996.txt"),
        # VShell
        (b"206876  Apr 04, 2000 21:06 VShell (old)", "VShell%20(old)"),
        (b"0  Dec 12, 2002 02:13 VShell Dir/", "VShell%20Dir/"),
        # Modes in numbers
        (b"0100644   500  101   12345    123456789       file name", "file%20name"),
        (b"040755   500  101   4096    123456789   dir", "dir/"),
        # None of these.
        (b"73098  X  04-06-97   15:15  1996.txt", None),
        (b"0120777   500  101   12    123456789   socket", None),
        (b"total 12", None),
        (b"2 files copied; 1 skipped", None),
    ],
)  # fmt: skip
def test_formats_of_servers(line: bytes, address: str | None) -> None:
    """The lines are those on which other clients were found to fail."""
    found = links("ftp://h.test/d/", line + b"\r\n")
    assert [url for url, _ in found] == ([] if address is None else [f"ftp://h.test/d/{address}"])


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("known", None), ("./known", None), ("dir", None), ("dir/", None), ("other", "a/b/other/"),
        ("other.txt", "a/b/other.txt"), ("../c/", "a/c/"), ("../../../../up/x.gz", "up/x.gz"), ("/srv/ftp", "srv/ftp/"),
        ("/a b;c.iso", "a%20b%3Bc.iso"), ("..", "a/"), (".", "a/b/"), ("..x", "a/b/..x"), ("v1.2", "a/b/v1.2/"),
    ],
)  # fmt: skip
def test_a_symbolic_link_stands_for_its_target(target: str, address: str | None) -> None:
    found = links("ftp://h.test/a/b/", ls(f"llink -> {target}", "-known", "ddir"))
    assert found[:2] == [("ftp://h.test/a/b/known", "known"), ("ftp://h.test/a/b/dir/", "dir")]
    assert found[2:] == ([] if address is None else [("ftp://h.test/" + address, "link")])


def test_menus_and_lists_of_addresses() -> None:
    menu = b"0About us\t/a\th.test\t70\r\nhWeb\tURL:http://w.test\tx\t70\r\nhBad\tURL:javascript:x\tx\t70\r\n.\r\n"
    found = links("gopher://h.test/", menu, "application/gopher-menu")
    assert found == [("gopher://h.test/0/a", "About us"), ("http://w.test/", "Web")]
    listed = b"# remark\r\nfile:///a%20b/\r\n\r\nfile:///a%20b/\nmailto:x@y\nfile:///cut"
    assert links("file:///", listed, "text/uri-list", is_cut=True) == [("file:///a%20b/", "")] * 2
    assert links("file:///", listed, "text/uri-list")[2:] == [("file:///cut", "")]
    for whole in (menu + b"\r\n.", menu.removesuffix(b"\r\n.\r\n"), menu):
        assert links("gopher://h.test/", whole, "application/gopher-menu") == found
    item = b"0A\t/a\th.test\t7070"
    assert links("gopher://h.test/", item, "application/gopher-menu") == [("gopher://h.test:7070/0/a", "A")]
    assert links("gopher://h.test/", item[:-2], "application/gopher-menu", is_cut=True) == []


def test_bounds_hold() -> None:
    body = ls(*(f"-{number:04}" for number in range(100)))
    assert len(links("ftp://h.test/", body, links_max=10)) == 10
    assert links("ftp://h.test/", body, url_bytes_max=10) == []


def test_it_keeps_the_contract_of_a_processing_module() -> None:
    bodies = [b"", b"\n\n", ls("-a", "lb -> c"), b"0a\tb\tc\t70\n", b"//[\nhttp://[\n\xff\n", b"x" * 100_000]
    pages = [
        Page(url, media_type, "", (), body)
        for url in ("ftp://h.test", "gopher://h.test/1/x", "file:///a/", "http://h.test/?x")
        for media_type in (FTP, "application/gopher-menu", "text/uri-list")
        for body in bodies
    ]
    check_processing_module(ListingLinks(), pages)
