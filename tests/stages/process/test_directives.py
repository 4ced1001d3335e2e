import pytest

from gossamer.stages.process.options import ProcessOptions

from .pages import SCAN, TREE, findings

READERS = pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])


@READERS
@pytest.mark.parametrize(
    ("body", "nofollow", "noindex"),
    [
        ("<meta name=robots content='nofollow'>", True, False),
        ("<META NAME=ROBOTS CONTENT='NOINDEX , NOFOLLOW'>", True, True),
        ("<meta name=robots content=none>", True, True),
        ("<meta name=robots content='index,follow'>", False, False),
        ("<meta name=robots content=noindex><meta name=robots content=nofollow>", True, True),
        ("<meta name=gossamer content=nofollow>", True, False),
        ("<meta name=Gossamer content=noindex>", False, True),
        ("<meta name=otherbot content=none>", False, False),
        ("<meta name=description content=nofollow>", False, False),
        ("<meta property=robots content=nofollow>", False, False),
        ("<meta name=robots>", False, False),
        ("<meta name=robots content='nofollowing'>", False, False),
        ("<meta name=robots content='unavailable_after: 2010-01-01'>", False, False),
        ("<body><p>x<meta name=robots content=nofollow>", True, False),
        ("<!-- <meta name=robots content=nofollow> -->", False, False),
    ],
)
def test_meta(body: str, nofollow: bool, noindex: bool, options: ProcessOptions) -> None:
    found = findings(body, options)
    assert (found.nofollow, found.noindex) == (nofollow, noindex)


@pytest.mark.parametrize(
    ("values", "nofollow", "noindex"),
    [
        (["nofollow"], True, False),
        (["NoIndex, NoFollow"], True, True),
        (["none"], True, True),
        (["gossamer: nofollow"], True, False),
        (["Gossamer : noindex"], False, True),
        (["otherbot: nofollow"], False, False),
        (["otherbot: noindex, nofollow"], False, False),
        (["otherbot: noindex, gossamer: nofollow"], True, False),
        (["gossamer: noindex, otherbot: nofollow"], False, True),
        (["noindex, otherbot: nofollow"], False, True),
        (["*: noindex"], False, True),
        (["robots: noindex"], False, True),
        (["noindex", "otherbot: nofollow", "gossamer: nofollow"], True, True),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST"], False, False),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow"], True, False),
        (["max-snippet:20, noindex"], False, True),
        ([""], False, False),
        ([":,:,"], False, False),
    ],
)
def test_header(values: list[str], nofollow: bool, noindex: bool) -> None:
    headers = (("Server", "x"), *(("x-Robots-Tag", value) for value in values))
    found = findings(b"%PDF", headers=headers, media_type="application/pdf")
    assert (found.nofollow, found.noindex) == (nofollow, noindex)
