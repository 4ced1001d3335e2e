"""`gossamer fetch` and `gossamer shell`: one page by the rules of a crawl, and why links would be followed or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.cli.shell import configure_page, fetch_page, prompt
from tests import commands
from tests.answering import free_port
from tests.ring.hostile import Answer, HostileServer, whole

HOME = b"""<!doctype html><title>Home</title><nav><a href=/a>A</a> <a href=/private/x>secret</a>
<a href=http://other.example/>other</a> <a href=/n rel=nofollow>n</a> <a href=/print/1>print</a></nav>
<main><h1>Welcome</h1><p>The main text is a sentence that is long enough to be taken as such, and it goes on.\x1b[2J</p>
</main>"""
ROBOTS = b"User-agent: *\nDisallow: /private/\n"
OPTIONS = ("--allow-private", "--set", "politeness.delay_s_min=0.01")


@pytest.fixture
def server() -> Iterator[HostileServer]:
    answers = {
        "/": whole(HOME), "/robots.txt": whole(ROBOTS, "text/plain"), "/a": whole(b"<h1>A</h1>"),
        "/old": Answer(lambda: (b"",), status=301, headers=(("Location", "/"),)),
    }  # fmt: skip
    with HostileServer(answers) as server:
        yield server


@pytest.mark.promise("Politeness", "`gossamer fetch` and `gossamer shell` obey robots.txt and the guards of a crawl.")
def test_one_page_is_fetched_by_the_rules_of_a_crawl(server: HostileServer) -> None:
    assert commands.run("fetch", server.root, *OPTIONS)[:2] == (0, HOME.decode())
    assert server.counts == {"/robots.txt": 1, "/": 1}
    status, out, err = commands.run("fetch", f"{server.root}private/x", *OPTIONS)
    assert (status, out) == (3, "")
    assert "robots.txt disallows it" in err
    assert server.counts["/private/x"] == 0
    status, _, err = commands.run("fetch", server.root)
    assert status != 0
    assert "private" in err
    assert server.counts["/"] == 1, "loopback is refused without --allow-private"


def test_links_are_listed_with_the_reason_against_them(server: HostileServer) -> None:
    status, out, _ = commands.run(
        "fetch", f"{server.root}old", "--headers", "--links", "--exclude", "/print/", *OPTIONS
    )
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert status == 0
    assert lines[:2] == [f"{server.root}old redirects", f"{server.root} fetched 200"]
    assert "Content-Type: text/html" in lines
    assert lines[lines.index("5 links, 1 to follow") + 1 :] == [
        f"follow anchor {server.root}a A",
        f"skip anchor {server.root}private/x secret", "robots.txt disallows it",
        "skip anchor http://other.example/ other", "the filter scope rejects it",
        f"skip anchor {server.root}n n", "its rel says nofollow",
        f"skip anchor {server.root}print/1 print",
        "the filter exclude rejects it: the pattern '/print/' is found in it",
    ]  # fmt: skip


def test_text_and_markdown_hold_nothing_that_a_terminal_obeys(server: HostileServer) -> None:
    out = commands.run("fetch", server.root, "--text", "--markdown", *OPTIONS)[1]
    assert out.startswith("Welcome\nThe main text is")
    assert "\n# Welcome\n" in out
    assert "\x1b" not in out


def test_a_page_that_cannot_be_fetched_is_one_line_and_status_3(server: HostileServer) -> None:
    status, _, err = commands.run("fetch", f"{server.root}missing", *OPTIONS)
    assert (status, err) == (3, f"gossamer: {server.root}missing: http_error: HTTP 404\n")
    status, _, err = commands.run("fetch", "http://127.0.0.1:9/", *OPTIONS, "--set", "frontier.retry_s_first=0.1")
    assert status == 3
    assert "Could not connect" in err


def test_a_dead_proxy_is_named_and_not_waited_for() -> None:
    status, _, err = commands.run(
        "fetch", "http://127.0.0.1/", *OPTIONS, "--set", f"fetch.proxy=socks5://a:b@127.0.0.1:{free_port()}",
        "--set", "limits.max_time_s=20",
    )  # fmt: skip
    assert status == 2
    assert err.startswith("gossamer: http://127.0.0.1/ was not fetched: proxy: Failed to connect to ")
    assert "a:b" not in err


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        ("/self", "/self", "it redirects once more, to {root}self: at most 5 are followed"),
        ("/cookie", "/cookie", "at most 5 are followed; it sets a cookie, which cookies.enabled = true would keep\n"),
        ("/one", "/two", "{root}two: redirected: it redirects to {root}one, which was requested before"),
        (
            "/ftp",
            "ftp://h.example/",
            "{root}ftp: redirected: it redirects to ftp://h.example/, which the filter scheme",
        ),
    ],
)
def test_a_redirect_that_leads_nowhere_says_why_and_waits_for_nothing(
    server: HostileServer, first: str, then: str, why: str
) -> None:
    def redirect(to: str) -> Answer:
        cookies = (("Set-Cookie", "a=b"),) if to == "/cookie" else ()
        return Answer(lambda: (b"",), status=302, headers=(("Location", to), *cookies))

    server.answers |= {"/two": redirect("/one"), first: redirect(then)}
    status, out, err = commands.run("fetch", f"{server.root}{first[1:]}", *OPTIONS)
    assert (status, out) == (3, "")
    assert why.format(root=server.root) in err


def test_the_shell_prints_sections_where_there_is_no_terminal(server: HostileServer, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[extract.page.fields]\ntitle = "h1"\nsize = { css = "h1", type = "integer" }\n')
    status, out, _ = commands.run(
        "shell", server.root, "--css", "h1", "--xpath", "//a/@href", "-c", str(rules), *OPTIONS
    )
    assert status == 0
    sections = {part.partition("\n")[0]: part.partition("\n")[2].splitlines() for part in out.split("== ")[1:]}
    assert list(sections) == ["Headers", "Links", "Main text", "css h1", "xpath //a/@href", "Items"]
    assert sections["css h1"][:2] == ["1 found", "Welcome  <h1>Welcome</h1>"]
    assert sections["xpath //a/@href"][0] == "5 found"
    assert sections["Items"][:3] == [
        "items/page: 1 item",
        '{"title": "Welcome", "size": null}',
        "items/page.size: no number: 'Welcome'",
    ]


def test_the_prompt_obeys_lines_until_quit(server: HostileServer, capsys: pytest.CaptureFixture[str]) -> None:
    config = configure_page(None, {"allow_private": True}, ["politeness.delay_s_min=0.01"])
    lines = iter(
        ["css h1", "css h1[", "xpath //h1", "re <(h1)>", "jsonpath $[0]", "links private", "headers", "markdown",
         "what", "items", "", f"fetch {server.root}a", "text", "quit", "never"]
    )  # fmt: skip
    assert prompt(fetch_page(server.root, config), config, lambda: next(lines)) == 0
    out = capsys.readouterr().out
    for said in ("1 found\nWelcome", "is not a CSS selector", "h1", "0 found", "private/x", "fetched 200", "# Welcome",
                 "css SELECTOR", f"{server.root}a 200", "\nA\n"):  # fmt: skip
        assert said in out
    assert next(lines) == "never"

    def ends() -> str:
        raise EOFError

    assert prompt(fetch_page(server.root, config), config, ends) == 0


def test_a_robots_txt_that_cannot_be_fetched_is_named() -> None:
    with HostileServer({"/robots.txt": Answer(lambda: (b"",), status=503)}) as server:
        status, _, err = commands.run("fetch", server.root, *OPTIONS, "--set", "limits.max_time_s=3")
    assert status == 2
    assert f"could not fetch {server.root}robots.txt (" in err
    assert "HTTP 503" in err
    assert server.counts["/"] == 0
