from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.stages.process.listings import LINE_BYTES_MAX, ListingEntry, entries


def one(line: bytes) -> ListingEntry | None:
    return next(entries(line + b"\r\n"), None)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (b"drwxr-xr-x   2 root     root         4096 Jan  1 12:00 my dir", ListingEntry(b"my dir", "directory")),
        (b"-rw-r--r--   1 0        0             123 Dec 31  2020 a  b -> c", ListingEntry(b"a  b -> c", "file")),
        (b"lrwxrwxrwx   1 ftp ftp 7 Feb 10 2021 cur -> ../my dir", ListingEntry(b"cur", "link", b"../my dir")),
        (b"lrwxrwxrwx   1 ftp ftp 7 Feb 10 2021 cur", ListingEntry(b"cur", "link", b"")),
        (b"-rw-r--r--   1 ftp               12 Mar  3 09:08  lead", ListingEntry(b" lead", "file")),
        (b"-rw-r--r--   1 ftp ftp 12 Mar  3 09:08 12 Mar  3 09:08 x", ListingEntry(b"12 Mar  3 09:08 x", "file")),
        (b"-rw-r--r--@ 1 u staff 1 2020-01-02 10:11 iso", ListingEntry(b"iso", "file")),
        (b"-rw-r--r--+ 1 u staff 1 2020-01-02 10:11:12.000000000 +0100 full", ListingEntry(b"full", "file")),
        (b"-rw-r--r--   1 o g 5 1 Mai 2020 fr", ListingEntry(b"fr", "file")),
        (b"-rw-r--r--   1 o g 5 2. Jan 10:00 de", ListingEntry(b"de", "file")),
        ("-rw-r--r--   1 o g 5 Mär  1 2020 ü".encode(), ListingEntry("ü".encode(), "file")),
        ("-rw-r--r--   1 o g 5 1月  1 2020 jp".encode(), ListingEntry(b"jp", "file")),
        (b"drwxrwxrwt999 o g 5 May  1 2020 \xff\xfe", ListingEntry(b"\xff\xfe", "directory")),
        (b"crw-rw-rw-   1 0 0 1, 3 Jan  1 12:00 null", None),
        (b"total 12", None),
        (b"01-31-20  12:00PM       <DIR>          Some Dir", ListingEntry(b"Some Dir", "directory")),
        (b"2020-01-31  12:00             1,234 f.txt", ListingEntry(b"f.txt", "file")),
        (b"01-31-2020  12:00PM   <JUNCTION>   j [C:\\x y]", ListingEntry(b"j", "link", b"C:/x y")),
        (b"type=dir;modify=20200101000000; x y", ListingEntry(b"x y", "directory")),
        # draft-ietf-ftpext-mlst has no last semicolon, as FileZilla reads it (directorylistingparser.cpp).
        (b"type=file;size=12 x y", ListingEntry(b"x y", "file")),
        (b"Type=Dir a=b", ListingEntry(b"a=b", "directory")),
        (b"Size=1;Type=file;Perm=r;  lead", ListingEntry(b" lead", "file")),
        (b"type=OS.unix=slink:/foo/bar;size=3; lnk", ListingEntry(b"lnk", "link", b"/foo/bar")),
        (b"type=OS.unix=symlink;size=3; lnk", ListingEntry(b"lnk", "link", b"")),
        (b"type=cdir; .", None),
        (b"type=pdir; up", None),
        (b"type=OS.unix=chr-1/3; null", None),
        (b"size=3; untyped", None),
        (b"+i8388621.29609,m824255902,/,\tdev", ListingEntry(b"dev", "directory")),
        (b"+i8388621.44468,m839956783,r,s10376,\tRFC EPLF", ListingEntry(b"RFC EPLF", "file")),
        (b"+up644,\tnothing", None),
        (b"drwxr-xr-x   2 root root 4096 Jan  1 12:00 .", None),
        (b"drwxr-xr-x   2 root root 4096 Jan  1 12:00 ..", None),
        (b"-rw-r--r--   1 root root 4096 Jan  1 12:00 a/b", None),
        (b"-rw-r--r--   1 root root 4096 Jan  1 12:00 a\0b", None),
        (b"-rw-r--r--   1 root root 4096 Jan  1 12:00 ", None),
        (b"-rw-r--r--   1 root root 4096 Jan  1 12:00 " + b"x" * LINE_BYTES_MAX, None),
        (b"<html>", None),
    ],
)
def test_a_line_is_read(line: bytes, entry: ListingEntry | None) -> None:
    assert one(line) == entry


def test_a_last_line_without_end_may_be_cut_and_is_left_out() -> None:
    line = b"-rw-r--r--   1 root root 4096 Jan  1 12:00 whole"
    assert list(entries(line + b"\n" + line[:-2])) == [ListingEntry(b"whole", "file")]
    assert list(entries(line)) == []


names = st.binary(min_size=1, max_size=60).filter(
    lambda name: not set(name) & set(b"/\0\r\n") and name not in (b".", b"..") and not name.isspace()
)


@given(names, st.sampled_from(["file", "directory"]), st.sampled_from(["unix", "mlsd", "dos", "eplf"]))
def test_a_name_comes_back_whatever_it_is(name: bytes, kind: str, form: str) -> None:
    is_directory = kind == "directory"
    if form == "dos":  # Where a name begins cannot be told from spaces before it.
        name = name.lstrip() or b"x"
    line = {
        "unix": (b"d" if is_directory else b"-") + b"rw-r--r--   1 a b 4096 Jan  1 12:00 %b",
        "mlsd": (b"type=dir" if is_directory else b"type=file") + b";size=1; %b",
        "dos": b"01-31-20  12:00PM  " + (b"<DIR>" if is_directory else b"12") + b" %b",
        "eplf": (b"+/,m1," if is_directory else b"+r,s1,") + b"\t%b",
    }[form]
    assert one(line % name) == ListingEntry(name, "directory" if is_directory else "file")


@given(st.binary(max_size=2000))
def test_nothing_raises_and_no_name_leads_elsewhere(listing: bytes) -> None:
    for entry in entries(listing):
        assert entry.name
        assert b"/" not in entry.name
        assert b"\0" not in entry.name
        assert entry.name not in (b".", b"..")


@pytest.mark.parametrize(
    "unit", [b" ", b"1 ", b"1,", b"1 Jan ", b"1 Jan 1 ", b"a=b;", b"1" * 50 + b" " * 50, b"x 1  ", b"\xff1 \xff "]
)
def test_a_hostile_line_costs_no_more_than_its_length(unit: bytes) -> None:
    start = b"-rw-r--r-- 1 "
    line = (start + unit * LINE_BYTES_MAX)[:LINE_BYTES_MAX] + b"\n"
    for prefix in (start, b"type=", b"+", b"1-11-11 11:11 "):
        list(entries((prefix + line[len(prefix) :]) * 20))
