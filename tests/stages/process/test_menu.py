from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.stages.fetch.gopher import item_of
from gossamer.stages.process.listings import FOLLOWED, offers
from gossamer.url.join import absolute
from gossamer.url.name import Namer


def urls(menu: bytes) -> list[str]:
    return [url for url, _ in offers(menu)]


@pytest.mark.parametrize(
    ("line", "url"),
    [
        (b"0About\t/about us.txt\th.test\t70", "gopher://h.test/0/about%20us.txt"),
        (b"1Menu\tmenu\th.test\t7070", "gopher://h.test:7070/1menu"),
        (b"1Root\t\th.test\t70\t+", "gopher://h.test/"),
        (b"9Odd\t/\xff?#%\th.test\t70", "gopher://h.test/9/%FF%3F%23%25"),
        (b"gGif\t/x.gif\t::1\t70", "gopher://[::1]/g/x.gif"),
        (b"hWeb\tURL:https://w.test/a?b=c%20d#e\th.test\t70", "https://w.test/a?b=c%20d#e"),
        (b"hWeb\t/URL:http://w.test/\th.test\t70", "http://w.test/"),
        (b"hPage\t/page.html\th.test\t70", "gopher://h.test/h/page.html"),
        (b"5Zip\t/x.zip\th.test\t00070", "gopher://h.test/5/x.zip"),
        (b"7Search\t/find\th.test\t70", None),
        (b"iText\t\terror.host\t1", None),
        (b"3Error\t\terror.host\t1", None),
        (b"8Telnet\t\th.test\t23", None),
        (b"+Mirror\t/x\th.test\t70", None),
        (b"0Short\t/x\th.test", None),
        (b"0No port\t/x\th.test\tseventy", None),
        (b"0Far port\t/x\th.test\t123456", None),
        (b"0Host\t/x\th.test/evil?\t70", None),
        (b"0Host\t/x\tme@h.test\t70", None),
        (b"0Dots\t/a/../b\th.test\t70", None),
        (b"0Control\t/a\x0bb\th.test\t70", None),
        (b"", None),
    ],
)
def test_an_item_is_an_address(line: bytes, url: str | None) -> None:
    assert urls(line + b"\r\n") == ([] if url is None else [url])
    assert urls(line + b"\n") == ([] if url is None else [url])


def test_a_menu_ends_with_a_dot_and_a_cut_line_is_left_out() -> None:
    item = b"0A\t/a\th.test\t7070"
    assert urls(item + b"\r\n.\r\n" + item + b"\r\n") == ["gopher://h.test:7070/0/a"]
    assert urls(item + b"\r\n" + item[:-2]) == ["gopher://h.test:7070/0/a"]


selectors = st.binary(max_size=60).filter(lambda text: all(byte >= 0x20 and byte != 0x7F for byte in text))


@settings(deadline=None)  # The first name reads the list of public suffixes.
@given(st.sampled_from(sorted(FOLLOWED - {"h"})), selectors)
def test_what_is_offered_is_what_would_be_asked_for(kind: str, selector: bytes) -> None:
    for url in urls(b"%bname\t%b\thost.test\t70\r\n" % (kind.encode(), selector)):
        joined = absolute(url)
        assert joined is not None
        named = Namer().name(joined)
        assert named is not None
        item = item_of(named.text)
        assert item is not None
        assert (item.kind, unquote_to_bytes(item.selector)) == (kind, selector)


@given(st.binary(max_size=2000))
def test_nothing_raises(menu: bytes) -> None:
    list(offers(menu))
