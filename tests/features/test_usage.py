"""What a crawl does about statements on the use of pages, with and without purposes."""

from pathlib import Path

import pytest

from gossamer.model.visits import Failure, Reply
from gossamer.testing import reply
from gossamer.testing.fakes import Answers
from tests.engine.ring import Ring, url_of

ROOT = "http://a.example/"
ROBOTS, TDMREP, LICENSE = ROOT + "robots.txt", ROOT + ".well-known/tdmrep.json", ROOT + "license.xml"
TDM_RULES = '[{"location": "/reserved/", "tdm-reservation": 1}]'
RSL = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/paid/"><license>{}</license></content></rsl>'


def page(*links: str, head: str = "") -> Reply:
    body = f"<title>{head and 'Stated'}</title>{head}" + "".join(f"<a href={link}>x</a>" for link in links)
    return reply(body.encode())


def text(content: str, status: int = 200) -> Reply:
    return reply(content.encode(), status, media_type="text/plain")


def crawled(path: Path, pages: dict[str, Answers], *purpose: str, obey: bool = True, **more: object) -> Ring:
    ring = Ring(path, pages, obey=obey, purpose=purpose, **more)  # type: ignore[arg-type]
    ring.crawl(ROOT)
    return ring


STATED = {
    ROBOTS: text("User-agent: *\nContent-Usage: /no/ train-ai=n\nContent-Usage: /only/ train-ai=n, search=n"),
    ROOT: page("/no/x", "/only/x", "/free"),
    ROOT + "no/x": page(),
    ROOT + "only/x": page(),
    ROOT + "free": page(),
}


@pytest.mark.promise("What is fetched", "What a site refuses for all declared purposes of a crawl is not requested.")
@pytest.mark.parametrize(
    ("purpose", "denied"),
    [
        ((), []),
        (("archive",), []),
        (("search",), ["only/x"]),
        (("search", "ai-train"), ["only/x"]),
        (("ai-train",), ["no/x", "only/x"]),
    ],
)
def test_what_robots_txt_refuses_for_all_purposes_is_not_requested(
    tmp_path: Path, purpose: tuple[str, ...], denied: list[str]
) -> None:
    with crawled(tmp_path, STATED, *purpose) as ring:  # type: ignore[arg-type]
        found = [url.removeprefix(ROOT) for url, outcome in ring.outcomes.items() if outcome == "usage_denied"]
        assert sorted(found) == denied
        assert all(ROOT + path not in ring.web.counts for path in denied)
        assert ring.adds_up()


def test_why_names_the_statement(tmp_path: Path) -> None:
    with crawled(tmp_path, STATED, "ai-train") as ring:
        told = ring.explainer.why(ROOT + "no/x")
        assert (told["state"], told["reason"]) == (
            "usage_denied",
            "ai-train refused by robots.txt Content-Usage: /no/ train-ai=n",
        )


def test_statements_and_answers_are_in_the_rows_without_a_purpose_too(tmp_path: Path) -> None:
    pages = {**STATED, ROOT + "free": page(head="<meta name=robots content=noarchive>")}
    with crawled(tmp_path, pages) as ring:  # type: ignore[arg-type]
        rows = {row.url.removeprefix(ROOT): row for row in ring.rows}
        only, free, root = rows["only/x"], rows["free"], rows[""]
        assert (only.usage_search, only.usage_ai_train, only.usage_ai_input) == ("refused", "refused", "unknown")
        assert only.usage_statements == "robots.txt Content-Usage: /only/ train-ai=n, search=n"
        assert (free.usage_archive, free.outcome) == ("refused", "fetched")
        assert free.usage_reason == "archive refused by meta robots: noarchive"
        assert (root.usage_search, root.usage_reason, root.usage_statements) == ("unknown", "", "")


@pytest.mark.promise("What is fetched", "A page that refuses all declared purposes itself is not kept.")
def test_a_page_that_refuses_is_not_kept_and_its_links_are_followed(tmp_path: Path) -> None:
    pages: dict[str, Answers] = {
        ROBOTS: text(""),
        ROOT: page("/next", head="<meta name=robots content=noai>"),
        ROOT + "next": page(),
    }
    with crawled(tmp_path, pages, "ai-train") as ring:
        assert ring.outcomes == {ROOT: "usage_withheld", ROOT + "next": "fetched"}
        kept = ring.archive.added[0]
        assert kept.reply is not None
        assert (kept.reply.body, kept.reply.file, kept.content, kept.findings, kept.links) == (
            b"",
            None,
            None,
            None,
            [],
        )
        assert (kept.row.title, kept.row.error) == ("", "ai-train refused by meta robots: noai")
        assert ring.explainer.why(ROOT)["state"] == "usage_withheld"
    with crawled(tmp_path / "other", pages, "ai-train", "search") as ring:
        assert ring.outcomes == {ROOT: "fetched", ROOT + "next": "fetched"}


def test_a_copy_of_a_page_that_was_not_kept_is_no_copy(tmp_path: Path) -> None:
    refused = reply(b"<title>Same</title>", headers=(("X-Robots-Tag", "noarchive"),))
    pages: dict[str, Answers] = {
        ROBOTS: text(""), ROOT: page("/a", "/b"), ROOT + "a": refused, ROOT + "b": reply(b"<title>Same</title>"),
    }  # fmt: skip
    with crawled(tmp_path, pages, "archive") as ring:
        rows = {row.url: row for row in ring.rows}
        assert rows[ROOT + "a"].outcome == "usage_withheld"
        assert (rows[ROOT + "b"].outcome, rows[ROOT + "b"].duplicate_of) == ("fetched", "")


# ---- documents of the site


RESERVED = {
    ROBOTS: text("User-agent: *\nDisallow: /closed"),
    TDMREP: text(TDM_RULES),
    ROOT: page("/reserved/x", "/closed/x", "/y"),
    ROOT + "reserved/x": page(),
    ROOT + "y": page(),
}


@pytest.mark.promise("Politeness", "tdmrep.json is requested once for each origin, and only where a purpose needs it.")
@pytest.mark.parametrize(
    ("purpose", "requests", "outcome"),
    [((), 0, "fetched"), (("search",), 0, "fetched"), (("archive",), 0, "fetched"), (("ai-train",), 1, "usage_denied")],
)
def test_the_tdm_file_is_read_once_where_a_purpose_needs_it(
    tmp_path: Path, purpose: tuple[str, ...], requests: int, outcome: str
) -> None:
    with crawled(tmp_path, RESERVED, *purpose) as ring:  # type: ignore[arg-type]
        assert ring.web.counts[TDMREP] == requests
        assert ring.outcomes[ROOT + "reserved/x"] == outcome
        assert ring.outcomes[ROOT + "y"] == "fetched"
        assert [kind for _, _, kind in ring.archive.prerequisites] == ["robots", "usage"][: 1 + requests]
        order = [request.url for request in ring.web.requests]
        assert order[: 2 + requests] == [ROBOTS, *([TDMREP] if requests else []), ROOT]


@pytest.mark.parametrize(
    "answer",
    [text("", 404), text("", 500), text("no JSON"), Failure("timeout", "timed out"), text('{"a": 1}')],
    ids=["404", "500", "other", "timeout", "no list"],
)
def test_a_tdm_file_that_cannot_be_read_reserves_nothing(tmp_path: Path, answer: Reply | Failure) -> None:
    with crawled(tmp_path, {**RESERVED, TDMREP: answer}, "ai-train") as ring:  # type: ignore[arg-type]
        assert ring.outcomes[ROOT + "reserved/x"] == "fetched"
        assert ring.web.counts[TDMREP] == 1


def test_a_tdm_file_that_robots_txt_forbids_is_not_requested(tmp_path: Path) -> None:
    pages = {**RESERVED, ROBOTS: text("User-agent: *\nDisallow: /.well-known/")}
    with crawled(tmp_path, pages, "ai-train") as ring:  # type: ignore[arg-type]
        assert TDMREP not in ring.web.counts
        assert ring.outcomes[ROOT + "reserved/x"] == "fetched"


def test_a_tdm_file_is_followed_to_other_hosts_through_their_gates(tmp_path: Path) -> None:
    other = "http://b.example/tdm"
    moved = reply(b"", 302, headers=(("Location", other),))
    with crawled(tmp_path, {**RESERVED, TDMREP: moved, other: text(TDM_RULES)}, "ai-train") as ring:  # type: ignore[arg-type]
        assert ring.outcomes[ROOT + "reserved/x"] == "usage_denied"
        assert ring.web.counts[other] == 1
        assert ring.frontier.facts(url_of(other)).requests == 1


def test_a_tdm_file_that_redirects_in_a_circle_ends(tmp_path: Path) -> None:
    moved = reply(b"", 302, headers=(("Location", TDMREP),))
    with crawled(tmp_path, {**RESERVED, TDMREP: moved}, "ai-train") as ring:  # type: ignore[arg-type]
        assert ring.outcomes[ROOT + "reserved/x"] == "fetched"
        assert ring.web.counts[TDMREP] == 6


def test_where_robots_txt_is_not_obeyed_no_document_is_read(tmp_path: Path) -> None:
    with crawled(tmp_path, RESERVED, "ai-train", obey=False) as ring:  # type: ignore[arg-type]
        assert set(ring.outcomes.values()) == {"fetched", "http_error"}
        assert TDMREP not in ring.web.counts


LICENSED = {
    ROBOTS: text(f"License: {LICENSE}\nUser-agent: *\nDisallow:"),
    LICENSE: text(RSL.format('<prohibits type="usage">search</prohibits>')),
    ROOT: page("/paid/x", "/y"),
    ROOT + "paid/x": page(),
    ROOT + "y": page(),
}


def test_a_license_document_of_the_origin_is_read_and_obeyed(tmp_path: Path) -> None:
    with crawled(tmp_path, LICENSED, "search") as ring:  # type: ignore[arg-type]
        assert ring.outcomes == {ROOT: "fetched", ROOT + "paid/x": "usage_denied", ROOT + "y": "fetched"}
        assert (ring.web.counts[LICENSE], ring.web.counts[TDMREP]) == (1, 0)
        row = next(row for row in ring.rows if row.url == ROOT + "paid/x")
        assert row.error == "search refused by license RSL: search=no for /paid/"


OTHER = "https://licenses.test/"
SHARED = OTHER + "shared.xml"
NO_SEARCH = RSL.format('<prohibits type="usage">search</prohibits>')
NAMING = {
    ROBOTS: text(f"License: {SHARED}\nUser-agent: *\nDisallow:"),
    ROOT: page("/paid/x", "http://b.example/"),
    ROOT + "paid/x": page(),
    "http://b.example/robots.txt": text(f"License: {SHARED}"),
    "http://b.example/": page("/paid/y"),
    "http://b.example/paid/y": page(),
    OTHER + "robots.txt": text(""),
    SHARED: text(NO_SEARCH),
}


@pytest.mark.promise(
    "Politeness", "A license on another origin is requested once, after that origin's robots.txt allows it."
)
def test_a_license_on_another_origin_is_read_once_for_all_that_name_it(tmp_path: Path) -> None:
    """RSL, "Adding RSL to robots.txt": the URL may be on a different host."""
    with crawled(tmp_path, NAMING, "search") as ring:  # type: ignore[arg-type]
        assert ring.outcomes == {
            ROOT: "fetched",
            ROOT + "paid/x": "usage_denied",
            "http://b.example/": "fetched",
            "http://b.example/paid/y": "usage_denied",
        }
        order = [request.url for request in ring.web.requests if request.url.startswith(OTHER)]
        assert order == [OTHER + "robots.txt", SHARED]
        assert ring.frontier.facts(url_of(SHARED)).requests == 2
        row = next(row for row in ring.rows if row.url == ROOT + "paid/x")
        assert row.error == f"search refused by license RSL: search=no for /paid/ in {SHARED}"
        assert ring.adds_up()


@pytest.mark.parametrize(
    ("pages", "purpose", "path"), [(RESERVED, "ai-train", "reserved/new"), (NAMING, "search", "paid/new")]
)
def test_what_was_read_outlives_a_restart(tmp_path: Path, pages: object, purpose: str, path: str) -> None:
    with Ring(tmp_path, pages, obey=True, purpose=(purpose,)) as ring:  # type: ignore[arg-type]
        ring.crawl(ROOT)
        ring.run(ring.committer.commit())
    with Ring(tmp_path, pages, obey=True, purpose=(purpose,)) as again:  # type: ignore[arg-type]
        again.crawl(ROOT + path)
        assert again.outcomes == {ROOT + path: "usage_denied"}
        assert not again.web.counts


@pytest.mark.parametrize("robots", [text("User-agent: *\nDisallow: /"), text("", 503), Failure("timeout", "timed out")])
def test_a_license_that_the_other_origin_forbids_is_not_requested(tmp_path: Path, robots: Reply | Failure) -> None:
    with crawled(tmp_path, {**NAMING, OTHER + "robots.txt": robots}, "search") as ring:  # type: ignore[arg-type]
        assert SHARED not in ring.web.counts
        assert ring.web.counts[OTHER + "robots.txt"] == 1
        assert ring.outcomes[ROOT + "paid/x"] == "fetched"


@pytest.mark.parametrize("answer", [text("", 404), text("", 500), Failure("timeout", "timed out"), text("<html>")])
def test_a_license_on_another_origin_that_cannot_be_read_states_nothing(
    tmp_path: Path, answer: Reply | Failure
) -> None:
    with crawled(tmp_path, {**NAMING, SHARED: answer}, "search") as ring:  # type: ignore[arg-type]
        assert ring.outcomes[ROOT + "paid/x"] == "fetched"
        assert ring.web.counts[SHARED] == 1


def test_a_license_on_an_excluded_host_is_not_requested(tmp_path: Path) -> None:
    with Ring(tmp_path, NAMING, obey=True, purpose=("search",)) as ring:  # type: ignore[arg-type]
        ring.exclusions.add("licenses.test")
        ring.crawl(ROOT)
        assert ring.outcomes[ROOT + "paid/x"] == "fetched"
        assert not [url for url in ring.web.counts if url.startswith(OTHER)]


def test_the_robots_txt_of_a_licensing_origin_that_is_crawled_is_not_requested_again(tmp_path: Path) -> None:
    pages = {**NAMING, ROOT: page("/paid/x"), OTHER: page()}
    with Ring(tmp_path, pages, obey=True, purpose=("search",)) as ring:  # type: ignore[arg-type]
        ring.crawl(OTHER)
        ring.crawl(ROOT)
        assert ring.outcomes[ROOT + "paid/x"] == "usage_denied"
        assert ring.web.counts[OTHER + "robots.txt"] == 1


def test_a_license_under_the_other_scheme_of_its_host_is_read(tmp_path: Path) -> None:
    secure = "https://a.example/"
    pages = {
        **LICENSED,
        ROBOTS: text(f"License: {secure}license.xml"),
        secure + "robots.txt": text(""),
        secure + "license.xml": LICENSED[LICENSE],
    }
    with crawled(tmp_path, pages, "search") as ring:  # type: ignore[arg-type]
        assert ring.outcomes[ROOT + "paid/x"] == "usage_denied"
        assert ring.web.counts[secure + "license.xml"] == 1
