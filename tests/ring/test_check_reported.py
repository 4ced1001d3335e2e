"""Check: what users of other link checkers reported as wrong answers, on a site that has all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gossamer.api.reading import faults_of
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
PROGRAMS = links(
    "&#x6A;avascript:go()", "java\nscript:go()", "whatsapp://send?text=http://127.0.0.1/gone", "slack://open",
    "sip:a@b.c",
    "vscode:extension/a", "intent://a#Intent;scheme=b;end", "webcal://127.0.0.1/a", "bitcoin:1A", "xmpp:a@b.c",
    "market://a",
    "mailto:a@b.c?body=http://127.0.0.1/gone", "chrome://settings", "obsidian://open?vault=a", "gopher+x://a",
    "urn:isbn:1",
)  # fmt: skip
STYLES = (
    "<style>@font-face { src: url(ok.eot?#iefix), url('ok.woff2') } a { background: url( \"gone1.png\" ); filter: "
    "url(#a);"
    "b: url(data:image/png;base64,AA==) } i { background: image-set('gone2.png' 1x, url(ok.png) 2x) } /* url(gone) */"
    '</style><link rel=stylesheet href=sheet.css><p style="background:url(&quot;gone3.png&quot;)">'
)
PARSED = (
    "<!--> <a href=gone1>a</a> <!-- --!> <a href=gone2>a</a> <a href=ok1 href=gone>a</a><a href=ok2 title='"
    "<a href=gone>'>"
    "a</a><select><option value=gone>a</select><a onclick=\"location='gone4'\">a</a><a href=ok3><a href=gone3>a</a></a>"
    "<![CDATA[ <a href=gone> ]]><iframe><a href=gone></iframe><noembed><a href=gone></noembed>"
)
OLD = (
    "<blockquote cite=gone3>a</blockquote><q cite=gone3>a</q><ins cite=gone3>a</ins><form action=gone>"
    "<button formaction=gone>a"
    "</button></form><img alt='' src=ok.png usemap='#m' longdesc=gone><table background=gone1><td background=gone2>"
    "</table><a href=ok data-href=gone ng-href=gone :href=gone v-bind:href=gone xml:base=gone>a</a>"
    "<div href=gone src=gone>"
)
EMPTY = (
    "<img alt='' src=''><img alt='' src=ok.png srcset=''><iframe src=''></iframe><iframe src=about:blank></iframe>"
    "<script src=''>"
    "</script><video src='' poster=''></video><a href=''>a</a><a href='?'>a</a><a href='#'>a</a><a href='  '>a</a>"
    "<a href=.>a</a>"
)
OTHERS = (
    "<link rel='alternate stylesheet' href=gone1.css title=a><link rel=alternate type=application/rss+xml href=gone2>"
    "<link rel=license href=gone3><link rel=apple-touch-icon href=gone4.png><link rel='shortcut icon' href=gone5.png>"
    "<meta property=og:url content=gone><meta itemprop=url content=gone><link rel=search href=gone6>"
    "<link rel=mask-icon href=gone7.png><meta name=msapplication-config content=gone><link rel=me href=ok>"
    "<link rel=author href=gone8><link rel=help href=gone9>"
)
SIGNS = links(*(f"ok{sign}a" for sign in "+,@!$*:'^`"), "./ok:a", "ok.", "ok?a=\\\\b", "ok%25C3%25A9", "ok\u00a0a")
CASES = {
    "signs": Case(SIGNS),
    "unseen_signs": Case(links("\u200bhttps://gone", "(https://gone)", "http:gone", "https;//gone"), broken=(
        "%E2%80%8Bhttps://gone (https://gone) gone https;//gone")),
    "tabled": Case("<table><a href=gone1>a</a><tr><td><a href=gone2>a</a></table><p><a href=ok>a<p>b</a>",
                   broken="gone1 gone2"),
    "lazy": Case("<img alt='' src=ok.png data-src=gone1.png><img alt='' src=data:image/gif;base64,AA== "
                 "data-srcset='gone2.png 2x'><iframe data-src=/lazy/gone3></iframe>",
                 broken="gone1.png gone2.png gone3"),
    "shared": Case(head="<meta property=og:image content=gone1.png><meta property=og:url content=gone><link "
                   "rel=image_src href=gone2.png><link rel=search type=application/opensearchdescription+xml "
                   "href=gone3.xml><link rel=prefetch href=gone><link rel=prerender href=gone>",
                   broken="gone1.png gone2.png gone3.xml"),
    "states_of_programs": Case(links("/play/#q=1", "/play/?a#/route", "/play/#page=2", "/play/#L1-L9")),
    "late": Case(links("/late/a", "/late/b"), more=(("missing_fragment", "a#no"), ("missing_fragment", "b#never"))),
    "described": Case("<a href=ok aria-describedby=gone title=gone download=gone type=gone hreflang=gone>a</a>"),
    "commented": Case("<!--[if IE]><a href=gone><![endif]--><!--[if !IE]><!--><a href=gone1>a</a><!--<![endif]-->",
                      broken="gone1"),
    "programs": Case(PROGRAMS),
    "styles": Case(STYLES, broken="gone1.png gone2.png gone3.png gone4.png"),
    "parsed": Case(PARSED, broken="gone1 gone2 gone3 gone4"),
    "old": Case(OLD, broken="gone1 gone2 gone3"),
    "empty": Case(EMPTY),
    "others": Case(head=OTHERS, broken="gone1.css gone2 gone3 gone4.png gone5.png gone6 gone7.png gone8 gone9"),
    "bases": Case(links("ok", "gone"), "<base target=_blank><base href=/bases/one/><base href=/bases/two/>",
                  broken="one/gone"),
    "slashes": Case(links("#Documentation/a.txt---verify", "#Documentation/gone", "#rad:z3/tree", "#a?b=c", "#a")
                    + "<p id=Documentation/a.txt---verify><p id=rad:z3/tree><p id=a>",
                    lost="#Documentation/gone #a?b=c"),
    "queries": Case(links("?tab=1#a", "?tab=1#gone", "/queries/?#a", "./#a", "#a&amp;b") + "<p id=a>",
                      lost="?tab=1#gone #a&b"),
    "unplaced": Case("word " * 60 + "<!-- <p id=a> --><script>'<p id=b>'</script><template><p id=c></template>"
    "<p title='<p id=d>'>"
                     + links("#a", "#b", "#c", "#d"), lost="#a #b #c #d"),
    "files": Case(links("ok.pdf#nameddest=a", "ok.png#xywh=1,2", "ok.mp4#t=10,20", "ok.svg#svgView(viewBox(0,0,1,1))",
                        "ok.txt#line=1", "/files/text#a")),
    "typed": Case(links("https//gone", "www.example.org", "a@example.org", "{{ url }}", "%7B%7Bx%7D%7D",
                      "<?= $a ?>", "ok%20"),
                  broken="https//gone www.example.org a@example.org %7B%7B%20url%20%7D%7D %7B%7Bx%7D%7D "
                         "%3C?=%20$a%20?%3E"),
    "long": Case(links("ok" + "a" * 3_000, "ok?" + "b=c&" * 500)),
    "statuses": Case(links(*(f"/statuses/{code}" for code in (203, 206, 226)))),
    "temporary": Case(links(*(f"/temporary/{code}" for code in (302, 303, 307)))),
    "locations": Case(links(*(f"/locations/{number}" for number in range(6))), more=tuple(
        ("redirect_permanent", str(number)) for number in range(6))),
    "header": Case(links("/header/p"), broken="gone", more=(("refresh", "p"),)),
    "wide": Case(links("/wide/p"), broken="gone"),
    "marked": Case(links("/marked/p"), broken="gone"),
    "untyped": Case(links("/untyped/p"), broken="gone"),
    "coded": Case(links("/coded/p"), broken="gone"),
    "mistyped": Case(links("/mistyped/p"), broken="gone"),
    "images": Case("<img alt='' srcset='ok1.png,ok2.png 2x'><img alt='' srcset='gone1.png 1x,gone2.png 2x'>"
                   "<img alt='' src=\" ok3.png \"><img alt='' src='ok 4.png'>",
                   "<link rel=preload as=image imagesrcset='gone3.png 1x'>",
                   broken="gone1.png gone2.png gone3.png"),
    "feed": Case(links("/feed/ok"), "<link rel=alternate type=application/rss+xml href=/feed/rss>", broken="gone"),
    "mapped": Case("<map name=a><area alt='' href=ok><area alt='' nohref></map><img alt='' usemap='#a' src=ok.png>"
                   "<a href=ok2><svg><a href=gone></a></svg></a><math href=gone2></math>", broken="gone"),
    "literal": Case(links("#tangent%3A-kustomize", "#a%20b") + "<p id='tangent%3A-kustomize'><p id='a%20b'>"),
    "many": Case("".join(f"<p id=p{n}>" for n in range(3_000)) + links("#p0", "#p2999", "#p3000"), lost="#p3000"),
    "unlocated": Case(links("/unlocated/p"), broken="p"),
    "capitals": Case("<IMG ALT='' SRC=ok.png srcSet='ok1.png 1x, GONE.png 2x'>", broken="GONE.png"),
    "namespaces": Case("<svg xmlns='gone' xmlns:xlink='http://127.0.0.1:PORT/gone'></svg><p itemtype=gone>"
                       "http://127.0.0.1:PORT/gone, <code>gone</code>"),
    "lasting": Case("<p id=a><p id=a>" + links("ok1#", "ok2#top", "#a ", " #a", "ok;a=1", "ok?a=[1]&b={2}|3",
                                               "ok%2Fa")),
    "both": Case(links("gone#a"), broken="gone"),
    "unfollowed": Case("<a rel='nofollow ugc' href=gone>a</a><a href=gone1 download>a</a><p hidden><a href=gone2>a</a>"
                       "<details><a href=gone3>a</a></details>", broken="gone1 gone2 gone3"),
    "closed": Case(links("gone"), "<meta name=robots content=nofollow>"),
    "fallback": Case("<object data=ok.pdf><a href=gone>a</a></object><video src=ok.mp4><a href=gone1>a</a></video>",
                     broken="gone gone1"),
    "modules": Case(head="<script type=module src=gone1></script><script nomodule src=gone2></script>"
                    "<script type=importmap>{\"imports\": {\"a\": \"gone\"}}</script>"
                    "<link rel=stylesheet media=print href=gone3>", broken="gone1 gone2 gone3"),
    "queried": Case(links("/queried/p"), broken="gone", more=(("redirect_permanent", "p"),)),
    "again": Case(links("/again/a"), more=(("redirect_loop", "a"),)),
    "crowded": Case("<a href=gone>a</a>" * 500, broken="gone"),
    "twice": Case("<a href=ok href=gone>a</a><img alt='' src=ok.png src=gone.png>"),
    "unclosed": Case("<a href=gone1>a<p><a href='gone2'>a<div><a href=\"gone3\"", broken="gone1 gone2"),
    "spaced": Case("<a href = gone1>a</a><a\nhref\n=\n'gone2'\n>a</a><a/href=gone3>a</a><a href=gone4/>a</a>",
                   broken="gone1 gone2 gone3 gone4/"),
    "dots": Case(links("ok/../gone1", "./%2e%2e/dots/gone2", ".%2E/dots/gone3"), broken="gone1 gone2 gone3"),
    "quiet": Case(links("/quiet/p")),
    "refused": Case(links("/refused/999", "/refused/500"), broken="500 999"),
    "schemes": Case(SCHEMES),
    "hints": Case(head=HINTS, broken="gone1 gone2 gone3 gone4 gone5"),
    "base": Case("<p id=here>" + links("ok1", "gone", "#here", "ok2#no"), "<base href=/base/sub/>",
                 broken="sub/ sub/gone", lost="sub/ok2#no"),
    "delay": Case(head='<meta http-equiv=refresh content="180">'),
    "refresh": Case(head='<meta http-equiv=Refresh content="9; URL=/refresh/gone">', broken="gone",
                    more=(("refresh", ""),)),
    "quoted": Case(head="<meta http-equiv=refresh content=\"2;URL='ok'\">", more=(("refresh", ""),)),
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
    "headers": Case(links("/headers/p"), more=(
        ("hreflang_contradiction", "p"), ("hreflang_contradiction", "de"))),
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
BODY = "<!doctype html><html lang=en><title>{}</title><h1>a</h1><a href=gone>a</a>"
MORE = {
    "/play/": page("Play", "<p>a"),
    "/late/a": page("Late", links("/late/b#yes", "/late/b#never") + "<p id=there>"),
    "/late/b": page("Later", links("/late/a#there", "/late/a#no") + "<p id=yes>"),
    "/styles/sheet.css": whole(b"@charset 'utf-8'; p { background: url(gone4.png) }", "text/css"),
    "/files/text": whole(b"text", "text/plain"),
    **{f"/statuses/{code}": page(f"Status {code}")._replace(status=code) for code in (203, 206, 226)},
    **{f"/temporary/{code}": moved("ok")._replace(status=code) for code in (302, 303, 307)},
    **{f"/locations/{number}": moved(target) for number, target in enumerate((
        " ok1 ", "//127.0.0.1:PORT/locations/ok2", "HTTP://127.0.0.1:PORT/locations/ok3", "./ok4?a", "ok 5",
        "ok\xc3\xa96"))},
    "/unlocated/p": Answer(lambda: (), status=302),
    "/queried/p": moved("?a=1"),
    "/queried/p?a=1": page("Queried", links("gone")),
    "/again/a": moved("/again/b"),
    "/again/b": moved("/again/a"),
    "/quiet/p": page("Quiet", links("gone"))._replace(headers=(("X-Robots-Tag", "noindex, nofollow"),)),
    **{f"/refused/{code}": page(f"Refused {code}")._replace(status=code) for code in (500, 999)},
    "/header/p": page("Header")._replace(headers=(("Refresh", "0; url=gone"),)),
    "/wide/p": whole(b"\xff\xfe" + BODY.format("Wide").encode("utf-16-le"), "text/html"),
    "/marked/p": whole(b"\xef\xbb\xbf" + BODY.format("Marked").encode(), "text/html; charset=latin-1"),
    "/untyped/p": whole(BODY.format("Untyped").encode(), ""),
    "/coded/p": whole(BODY.format("Coded").encode(), "text/html")._replace(headers=(("Content-Encoding", "utf-8"),)),
    "/mistyped/p": whole(BODY.format("Mistyped").encode(), "text/html;;charset=\"utf-8"),
    "/feed/rss": whole(b"<rss version='2.0'><channel><title>a</title><link>ok</link><item><link> gone </link></item>"
                       b"</channel></rss>", "application/rss+xml"),
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


TYPES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf", "mp4": "video/mp4", "txt": "text/plain"}


class Site(dict[str, Answer]):
    """Answers, and a sound page wherever a name begins with `ok`."""

    def get(self, path: str, default: object = None) -> Answer | None:  # type: ignore[override]
        name = path.rpartition("/")[2]
        if path in self or not name.lower().startswith("ok"):
            return super().get(path) or super().get(path.partition("?")[0])
        media_type = next((kind for end, kind in TYPES.items() if name.endswith(end)), "text/html")
        return page(f"Page {path[:40]}")._replace(media_type=media_type)


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    site = Site(MORE)
    with HostileServer(site) as server:
        port = server.root.rstrip("/").rpartition(":")[2]
        site["/"] = page("Home", links(*(f"/{name}/" for name in CASES)))
        for path in [path for path in site if path.startswith("/locations/")]:
            site[path] = moved(site[path].headers[0][1].replace("PORT", port))
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
