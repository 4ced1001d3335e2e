"""Check: what users of other link checkers reported as wrong answers, on a site that has all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gossamer.api.checking import faults_of
from tests.ring.hostile import Answer, HostileServer, whole
from tests.ring.test_check import canonical, links, page, version
from tests.ring.test_recipes import QUICK, moved, run

pytestmark = pytest.mark.heavy


class Case(NamedTuple):
    """A page, and the faults that a reader meets on it. Targets that begin with `ok` are sound pages."""

    body: str = ""
    head: str = ""
    broken: str = ""
    """Targets that answer 404, below the page."""
    lost: str = ""
    """Fragments that are missing."""
    more: tuple[tuple[str, str], ...] = ()
    """Other faults and their addresses."""


SCHEMES = links(
    "mailto:a@example.org", " MAILTO:a@example.org?subject=a b", "tel:(07)%204159%204349", "tel:07-5488 1800", "sms:1",
    "JavaScript:void(0)", "javascript:go('gone')", "data:text/html,<p>a", "about:blank", "ftp://127.0.0.1/a", "geo:1,2",
    "magnet:?xt=urn:btih:a", "irc://127.0.0.1/a", "file:///etc/a", "blob:http://127.0.0.1/a", "", "#",
)  # fmt: skip
HINTS = (
    "<link rel=preconnect href=gone><link rel='dns-prefetch' href=//127.0.0.9:9/><link rel='crossorigin preconnect' "
    "href=gone><link rel=pingback href=gone><link rel=EditURI href=gone><link rel=https://api.w.org/ href=gone>"
    "<link rel=profile href=gone><link rel=shortlink href=gone><link rel=modulepreload href=gone1>"
    "<link rel=icon href=gone2><link rel=manifest href=gone3><link rel=next href=gone4>"
    "<link rel=preload as=image href=gone5>"
)
SOURCES = (
    "<picture><source srcset='ok1.png 1x, gone1.png 2x'><source srcset='ok,a.png 100w,gone2.png 200w'>"
    "<img alt='' src=ok.png srcset='data:image/png;base64,AA,BB== 1x, ok3.png 2x,'></picture>"
    "<img alt='' src=ok4.png srcset='gone3.png'>"
)
ENCODED = links(
    "#%EF%B8%8F-mit-%E8%AE%B8", "#️-mit-许", "#c%2b%2b", "#C%2B%2B", "#a+b", "#a%20b", "#a b", "#x&amp;y", "#x&y",
    "#caf%c3%a9", "#cafe%CC%81", "#a%3A~", "#50%", "#50%25",
)  # fmt: skip
PLACES = "".join(f'<p id="{one}">' for one in ("️-mit-许", "c++", "a+b", "a b", "x&amp;y", "café", "a:~", "50%"))
NAMED = links(
    "#map", "#anchor", "#svg", "#form", "#upper", "#TOP", "#:~:text=a", "#anchor:~:text=a,b", "#gone:~:text=a"
)
NAMES = "<map name=map></map><a name=anchor></a><svg><g id=svg /></svg><form name=form></form><A NAME=upper></A>"
UNSEEN = (
    "<!-- <a href=gone>a</a> --><script>document.write('<a href=\"gone\">')</script><template><a href='gone/${a}'>a</a>"
    "</template><textarea><a href=gone></textarea><style>/* url(gone.png) */</style><script type=text/x-tmpl>"
    "<a href='gone/<%= a %>'></script><xmp><a href=gone></xmp><code>&lt;a href=gone></code><img alt='' src=ok.png "
    "longdesc='Protected by me.'><a href=ok ping=gone>a</a><noscript><a href=gone1>a</a></noscript>"
    "<iframe srcdoc='<a href=gone2>a</a>'></iframe>"
)
MEDIA = (
    "<video poster=gone1 src=gone2><track src=gone3><source src=gone4></video><audio src=gone5></audio><object "
    "data=gone6></object><embed src=gone7><input type=image alt='' src=gone8><iframe src=gone9></iframe><svg><image "
    "href=gone10 /><image xlink:href=gone11 /><use href='#a'/><use href='gone12.svg#a'/><a href=gone13>a</a>"
    "<a xlink:href=gone14>a</a></svg><map name=m><area alt='' href=gone15></map><p style=\"background: url('gone16')\">"
    "<p style='background:url(gone17)'><script src=gone18></script><style>@import 'gone19'; p { background: "
    "url(gone20) }</style>"
)
HOSTS = (
    "http://2130706433:PORT/hosts/ok1", "http://127.1:PORT/hosts/ok2", "http://0x7f.1:PORT/hosts/gone",
    "http://user:word@127.0.0.1:PORT/hosts/ok3", "HTTP://\uff11\uff12\uff17.0.0.1:PORT/hosts/ok4",
    "//127.0.0.1:PORT/hosts/ok5", "./ok6", "/../hosts/ok7", "http:ok8",
)  # fmt: skip
SORTED = links("/sorted/p", "/sorted/p?sort=a", "/sorted/p?sort=b", "/sorted/noindex", "/sorted/other")
CASES = {
    "schemes": Case(SCHEMES),
    "hints": Case(head=HINTS, broken="gone1 gone2 gone3 gone4 gone5"),
    "base": Case("<p id=here>" + links("ok1", "gone", "#here", "ok2#no"), "<base href=/base/sub/>",
                 broken="sub/ sub/gone", lost="sub/ok2#no"),
    "delay": Case(head='<meta http-equiv=refresh content="180">'),
    "refresh": Case(head='<meta http-equiv=Refresh content="9; URL=/refresh/gone">', broken="gone"),
    "quoted": Case(head="<meta http-equiv=refresh content=\"2;URL='ok'\">"),
    "srcset": Case(SOURCES, broken="gone1.png gone2.png gone3.png"),
    "slash": Case(links("/slash/moved"), more=(("redirect_permanent", "moved"),)),
    "encoded": Case(ENCODED + PLACES, lost="#C%2B%2B #cafe%CC%81"),
    "named": Case(NAMED + NAMES, lost="#map #form #gone"),
    "entities": Case(links("ok?a=1&amp;b=2", "ok?a=1&copy=2", "ok?a=1&b=2", "ok&amp;ok", "ok&#x61;")),
    "blank": Case('<a href=" /blank/ok1\n">a</a><a href="/blank/o\nk2 ">a</a><a href="/blank/ok 3">a</a>'
                  '<a href="\t/blank/gone 4">a</a><a href="\\blank\\ok">a</a>', broken="gone%204"),
    "letters": Case(links("ok~u", "ok%7eu", "ok-zażółć", "ok-za%C5%BC%C3%B3%C5%82%C4%87", "ok(1)", "ok[1]", "ok|1")),
    "unseen": Case(UNSEEN, broken="gone1 gone2"),
    "media": Case(MEDIA, broken=" ".join(f"gone{n}{'.svg' * (n == 12)}" for n in range(1, 21))),
    "hosts": Case(links(*HOSTS), broken="gone"),
    "once": Case(links("/once/later", "/once/cookie")),
    "states": Case(links("/states/204", "/states/410"), broken="410"),
    "latin": Case(links("/latin/page")),
    "written": Case("<A HREF='OK' TARGET=x>a</A><a>a</a><a href>a</a><a href='ok '>a</a>"),
    "login": Case(links("/login/private")),
    "versions": Case(links("/versions/p", "/versions/p?src=a", "/versions/fr")),
    "sorted": Case(SORTED, more=(("duplicate_title", "other"),)),
    "missing": Case(links("/missing/soft", "/missing/guide", "/missing/found"), more=(("soft_404", "soft"),)),
    "headers": Case(links("/headers/p")),
    "moved": Case(links("#a", "/moved/kept#a", "/moved/kept#no", "/moved/own#no", "/moved/lost#a", "/moved/chain#no",
                        "/moved/text#no", "/moved/route") + "<p id=a><p id='é'>",
                  lost="kept#no #gone", more=(
                      *(("redirect_permanent", one) for one in ("kept", "own", "lost", "text", "route", "chain")),
                      ("redirect_chain", "chain"))),
}  # fmt: skip


def version_of(name: str, code: str, shown: str = "") -> Answer:
    """A page in one language, with a link to the other; `shown` differs in what else it says."""
    both = version("en", "/versions/p") + version("fr", "/versions/fr") + version("x-default", "/versions/p")
    return page(f"Version {code}", shown, canonical(f"/versions/{name}") + both)


def sorted_list(shown: str, head: str = canonical("/sorted/p")) -> Answer:
    return page("Sorted", f"<p>{shown}", head)


HEADERS = '</headers/p>; rel="canonical", </headers/de>; rel=alternate; hreflang=de'
MORE = {
    "/slash/moved": moved("/slash/moved/"),
    "/slash/moved/": page("Moved", "<img alt='' src=ok.png>" + links("ok2")),
    "/states/204": Answer(lambda: (), status=204),
    "/states/410": Answer(lambda: (b"Gone",), status=410),
    "/login/private": Answer(lambda: (), status=302, headers=(("Location", "/login/ok?next=%2Flogin%2Fprivate"),)),
    "/versions/p": version_of("p", "en"),
    "/versions/p?src=a": version_of("p", "en", "<p>From a."),
    "/versions/fr": version_of("fr", "fr"),
    "/sorted/p": sorted_list("a b c"),
    "/sorted/p?sort=a": sorted_list("b c a"),
    "/sorted/p?sort=b": sorted_list("c b a"),
    "/sorted/noindex": sorted_list("d", "<meta name=robots content=noindex>"),
    "/sorted/other": sorted_list("e", ""),
    "/missing/soft": page("Oops! That page can\u2019t be found."),
    "/missing/guide": page("How to fix a 404 error"),
    "/missing/found": page("Lost and found: not founders"),
    "/moved/kept": moved("/moved/"), "/moved/own": moved("/moved/#\xc3\xa9"), "/moved/lost": moved("/moved/#gone"),
    "/moved/chain": moved("/moved/own"), "/moved/text": moved("/moved/#:~:text=a"), "/moved/route": moved("/moved/#/r"),
    "/headers/p": page("Headers")._replace(headers=(("Link", HEADERS),)),
    "/headers/de": page("Headers in German", head=version("en", "/headers/p")),
    "/latin/page": whole(
        '<html lang=en><title>Latin</title><h1 id=é>a</h1><a href="#é">a</a><a href="#%C3%A9">a</a>'
        '<a href="ok?q=é">a</a>'.encode("latin-1"), "text/html; charset=iso-8859-1"),
}  # fmt: skip


class Site(dict[str, Answer]):
    """Answers, and a sound page wherever a name begins with `ok`."""

    def get(self, path: str, default: object = None) -> Answer | None:  # type: ignore[override]
        name = path.rpartition("/")[2]
        if path in self or not name.lower().startswith("ok"):
            return super().get(path)
        media_type = "image/png" if name.endswith("png") else "text/html"
        return page(f"Page {path}")._replace(media_type=media_type)


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    site = Site(MORE)
    with HostileServer(site) as server:
        port = server.root.rstrip("/").rpartition(":")[2]
        site["/"] = page("Home", links(*(f"/{name}/" for name in CASES)))
        for name, case in CASES.items():
            site[f"/{name}/"] = page(f"Case {name}", case.body.replace("PORT", port), case.head)

        def mend(path: str) -> Iterator[bytes]:
            """Answer with a page from the second request on."""
            site[path] = page(f"Mended {path}")
            yield b"later"

        back = (("Location", "/once/cookie"), ("Set-Cookie", "a=b"))
        site["/once/later"] = Answer(lambda: mend("/once/later"), status=503)
        site["/once/cookie"] = Answer(lambda: mend("/once/cookie"), status=302, headers=back)
        yield server


@pytest.fixture(scope="module")
def found(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Kind and address of each fault that more than the plainness of these pages causes."""
    directory = tmp_path_factory.mktemp("reported")
    done = run(directory, "check", server.root, *QUICK)
    assert done.returncode == 1, done.stderr
    plain = ("missing_description", "duplicate_description", "near_duplicate_page", "duplicate_page")
    return [(one.kind, one.url) for one in faults_of(directory / "check") if one.kind not in plain]


@pytest.mark.parametrize("name", CASES)
def test_what_others_reported_is_answered_as_a_browser_has_it(
    name: str, server: HostileServer, found: list[tuple[str, str]]
) -> None:
    case = CASES[name]
    root = f"{server.root}{name}/"
    own = {(kind, url.removeprefix(root)) for kind, url in found if url.startswith(root)}
    expected = {("broken_link", one) for one in case.broken.split()} | set(case.more)
    assert own == expected | {("missing_fragment", one) for one in case.lost.split()}


def test_no_fault_is_outside_the_pages_of_the_cases(server: HostileServer, found: list[tuple[str, str]]) -> None:
    roots = tuple(f"{server.root}{name}/" for name in CASES)
    assert [one for one in found if not one[1].startswith(roots)] == []
