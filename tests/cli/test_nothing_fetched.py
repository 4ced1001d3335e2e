"""A crawl that could fetch none of its seeds ends with a separate exit status and names the seeds and reasons."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gossamer.api.status import seeds_state
from gossamer.cli.output import Exit
from gossamer.cli.status_text import seeds_not_fetched_lines, summary_of
from gossamer.engine.counters import SeedCounters
from gossamer.model.status import read_status
from tests.answering import Answering, free_port, serving
from tests.cli.conftest import Gossamer, Real

pytestmark = pytest.mark.promise(
    "Operation", "A crawl that fetches no seed has its exit status and names seeds and reasons."
)

CLOSED = "closed.test"
"""Its robots.txt disallows everything; another one's does not."""
QUICK = (
    "crawl.commit_s=0.2", "frontier.retry_s_first=0.1", "frontier.retry_s_max=0.2", "frontier.host_sleep_s_first=0.1",
    "frontier.host_sleep_s_max=0.2", "politeness.backoff_s_first=0.1", "robots.retry_first_s=0.1",
    "robots.unanswered_first_s=0.1", "robots.retry_s_max=0.2", "robots.robots_wait_max_s=1.0",
)  # fmt: skip
"""A crawl that gives up soon."""


class Site(Answering):
    def get(self) -> None:
        if self.path == "/robots.txt":
            closed = self.headers.get("Host", "").startswith(CLOSED)
            self.answer(200, b"User-agent: *\nDisallow: /\n" if closed else b"", media_type="text/plain")
        elif self.path == "/" or self.path.startswith("/page"):
            self.answer(200, b"<title>A page</title>")
        elif self.path.startswith("/to/"):
            self.answer(302, b"", ("Location", self.path.removeprefix("/to")))
        elif self.path == "/shell":
            self.answer(200, b"<title>App</title><div id=app></div><script src=/404></script>")
        elif self.path in {"/links", "/silent"}:
            head = b"<meta name=robots content='index, nofollow'>" if self.path == "/silent" else b""
            self.answer(200, head + b"<a href=/later>1</a>" + b"".join(b"<a href=/page%d>2</a>" % n for n in range(9)))
        elif self.path == "/later":
            self.answer(503, b"", ("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"))
        else:
            self.answer(int(self.path[1:4]), b"<title>An error</title>")


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    with serving(server):
        yield f":{server.server_address[1]}"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Gossamer]:
    (tmp_path / "hosts").write_text(f"127.0.0.1 open.test {CLOSED}\n")
    gossamer = Real(tmp_path)
    yield gossamer
    for process in gossamer.started:
        process.kill()
        process.communicate()


def crawl(run: Gossamer, *words: str) -> tuple[int, str, str]:
    sets = [word for key in QUICK for word in ("--set", key)]
    return run("crawl", *words, "--allow-private", "--hosts", "hosts", "--politeness", "own", "--quiet", *sets)


@pytest.fixture
def name_server() -> Iterator[str]:
    """Answer that there is no such name, whatever is asked."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))

        def answer() -> None:
            while len(question := udp.recvfrom(512)) and question[0]:
                udp.sendto(question[0][:2] + b"\x81\x83" + question[0][4:], question[1])

        answering = Thread(target=answer)
        answering.start()
        yield f"127.0.0.1:{udp.getsockname()[1]}"
        udp.sendto(b"", udp.getsockname())
        answering.join()


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("SSL certificate OpenSSL verify result: self-signed certificate (18)", "fetch.ca_bundle=FILE"),
        ("verify result: unable to get local issuer certificate (20)", "fetch.ca_bundle=FILE"),
        ("HTTP 401: it asks for a login with Basic", "docs/how-to/login.md"),
        ("HTTP 404", ""),
    ],
)
def test_what_the_owner_of_a_test_host_can_do_is_named(reason: str, hint: str) -> None:
    seeds = {"count": 1, "any_fetched": False, "not_fetched": [{"url": "u", "state": "failed", "reason": reason}]}
    lines = seeds_not_fetched_lines(read_status({"state": "finished", "seeds": seeds}))
    assert lines[:2] == ["the seed could not be fetched:", f"  u: failed: {reason}"]
    assert ["" if not hint else hint in line for line in lines[2:]] == ([True] if hint else [])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("path", "more", "reason"),
    [
        ("/404", [], "http_error: HTTP 404"),
        ("/500", [], "http_error: HTTP 500"),
        ("/to/404", [], "HTTP 404"),
        ("/", ["--exclude", "open"], "rejected: the filter `exclude` rejects it"),
        ("/to/page", ["--exclude", "test:[0-9]+/page"], "the filter `exclude` rejects it"),
    ],
    ids=["404", "500", "redirect to 404", "excluded", "redirect to an excluded URL"],
)
def test_a_crawl_whose_only_seed_fails_says_so_and_why(
    run: Gossamer, site: str, path: str, more: list[str], reason: str
) -> None:
    assert_failed(crawl(run, seed := f"http://open.test{site}{path}", *more), seed, reason)


@pytest.mark.parametrize("count", [1, 2])
def test_redirects_in_a_circle_are_named_once(count: int) -> None:
    def why(url: str) -> dict[str, object]:
        target = f"http://h.test/{(int(url[14:]) + 1) % count}"
        return {"state": "redirected", "reason": f"it redirects to {target}", "redirect_to": target}

    seeds = SeedCounters(count=1, any_fetched=False, first=["http://h.test/0"])
    (found,) = seeds_state(seeds, why).not_fetched
    assert found.reason.count("it redirects to") == count


def test_a_name_that_does_not_exist_is_a_reason(run: Gossamer, name_server: str) -> None:
    seed = "http://unknown.invalid/"
    words = (seed, "--contact", "me@example.org", "--dns", name_server)
    assert_failed(crawl(run, *words), seed, "dns_error: name resolution")


@pytest.mark.heavy
def test_robots_txt_is_a_reason_which_status_and_report_know(run: Gossamer, site: str) -> None:
    seed, reason = f"http://{CLOSED}{site}/", "robots.txt disallows it"
    assert_failed(crawl(run, seed), seed, f"robots_denied: {reason}")
    found = json.loads(run("status", "crawl", "--json")[1])["seeds"]
    named = [{"url": seed, "state": "robots_denied", "reason": reason}]
    assert found == {"count": 1, "any_fetched": False, "not_fetched": named}
    assert reason in run("status", "crawl")[1]
    assert reason in run("report", "crawl")[1].partition("0 pages fetched")[0]
    assert json.loads(run("report", "crawl", "--json")[1])["seeds_not_fetched"] == named
    assert run("report", "crawl", "--html", "page.html")[0] == 0
    assert "No seed could be fetched" in (run.directory / "page.html").read_text()


def assert_failed(ended: tuple[int, str, str], seed: str, reason: str) -> None:
    status, out, err = ended
    assert (status, out) == (Exit.NOTHING, "")
    first, second, *hints = err.splitlines()
    assert first == "gossamer: the seed could not be fetched:"
    assert len(hints) == ("robots.txt" in reason), "a way on, where there may be one"
    assert second.startswith(f"gossamer:   {seed}: ")
    assert reason in second


@pytest.mark.heavy
@pytest.mark.parametrize("more", [[], ["--no-robots"]], ids=["with robots.txt", "without"])
def test_a_refused_port_is_named_and_a_limit_makes_no_success_of_it(run: Gossamer, more: list[str]) -> None:
    seed = f"http://127.0.0.1:{free_port()}/"
    status, _, err = crawl(run, seed, "--max-time", "2", *more)
    assert status == Exit.NOTHING
    assert f"{seed}: " in err
    assert "Could not connect" in err


def test_one_seed_that_was_fetched_is_enough_and_the_others_are_named(run: Gossamer, site: str) -> None:
    seeds = [f"http://open.test{site}/{path}" for path in ("404", "", "to/page", "to/410")]
    assert crawl(run, *seeds) == (Exit.FINISHED, "", "")
    status = json.loads(run("status", "crawl", "--json")[1])
    assert (status["seeds"]["count"], status["seeds"]["any_fetched"]) == (4, True)
    assert [one["url"] for one in status["seeds"]["not_fetched"]] == [seeds[0], seeds[3]]
    lines = summary_of(read_status(status), "crawl", "finished").splitlines()
    first = lines.index("Seeds not fetched:") + 1
    assert lines[first] == f"  {seeds[0]}: http_error: HTTP 404"
    assert lines[first + 1].endswith("HTTP 410")
    assert not lines[first + 2].startswith("  http")


def test_seeds_that_are_still_to_be_fetched_are_no_loss() -> None:
    named = [{"url": "u", "state": state, "reason": ""} for state in ("queued", "waiting", "in_flight")]
    status = read_status({"seeds": {"count": 4, "any_fetched": True, "not_fetched": named}})
    assert "Seeds" not in summary_of(status, "crawl", "limit")


@pytest.mark.heavy
@pytest.mark.parametrize("scope", ["host", "any"])
def test_a_seed_counts_as_fetched_where_its_redirect_leads(run: Gossamer, site: str, scope: str) -> None:
    assert crawl(run, f"http://open.test{site}/to/page", "--scope", scope) == (Exit.FINISHED, "", "")


def test_of_many_seeds_the_first_are_named_and_the_others_counted(run: Gossamer, site: str) -> None:
    (run.directory / "list").write_text("".join(f"http://open.test{site}/404/{n}\n" for n in range(25)))
    status, _, err = crawl(run, "--seeds", "list")
    lines = err.splitlines()
    assert (status, len(lines)) == (Exit.NOTHING, 12)
    assert lines[0] == "gossamer: none of the 25 seeds could be fetched:"
    assert lines[-1] == "gossamer:   and 15 more"


@pytest.mark.heavy
def test_a_seed_that_is_given_twice_is_one(run: Gossamer, site: str) -> None:
    seed = f"http://open.test{site}/404"
    assert crawl(run, seed, seed) == crawl(run, seed, "-o", "once")


@pytest.mark.heavy
def test_resume_knows_it_too(run: Gossamer, site: str) -> None:
    first = crawl(run, f"http://open.test{site}/404")
    again = run("resume", "crawl", "--quiet")
    assert first == again
    assert again[0] == Exit.NOTHING


def test_the_last_words_are_no_progress(run: Gossamer, site: str) -> None:
    """`--json` leaves standard output to JSON."""
    status, out, err = run(
        "crawl", f"http://open.test{site}/404", "--allow-private", "--hosts", "hosts", "--json", "--politeness", "own"
    )
    assert status == Exit.NOTHING
    last = [json.loads(line) for line in out.splitlines()][-1]
    assert (last["event"], last["seeds"]["any_fetched"]) == ("end", False)
    assert "HTTP 404" in err


@pytest.mark.heavy
def test_an_offline_crawl_of_an_empty_segment_fetched_nothing(run: Gossamer, site: str) -> None:
    assert crawl(run, f"http://open.test{site}/404")[0] == Exit.NOTHING
    assert run("segment", "build", "crawl", "-o", "empty.segment", "--quiet")[0] == Exit.NOTHING
    status, _, err = crawl(run, "--mode", "offline", "empty.segment", "-o", "second")
    assert (status, err) == (Exit.NOTHING, "gossamer: no URL could be fetched: there was none to fetch\n")


@pytest.mark.heavy
def test_an_offline_crawl_names_what_its_segment_lists(run: Gossamer, site: str) -> None:
    (run.directory / "list").write_text(f"http://open.test{site}/404\n")
    (run.directory / "gossamer.toml").write_text('[resolve]\nallow_private = true\nhosts_file = "hosts"\n')
    words = ("segment", "build", "--seeds", "list", "-o", "one.segment", "-c", "gossamer.toml", "--quiet")
    assert run(*words) == (Exit.FINISHED, "", "")
    status, _, err = crawl(run, "--mode", "offline", "one.segment", "-o", "second")
    assert status == Exit.NOTHING
    assert "HTTP 404" in err
    (run.directory / "list").write_text(f"http://open.test{site}/page\n")
    assert run(*(word.replace("one.", "two.") for word in words))[0] == Exit.FINISHED
    assert crawl(run, "--mode", "offline", "two.segment", "-o", "third") == (Exit.FINISHED, "", "")


def test_urls_that_were_queued_when_their_host_was_closed_are_in_the_summary(run: Gossamer, site: str) -> None:
    sets = [word for key in QUICK for word in ("--set", key)]
    url = f"http://open.test{site}/links"
    options = ("--allow-private", "--hosts", "hosts", "--politeness", "own", "--concurrency", "1", *sets)
    status, out, _ = run("crawl", url, *options)
    assert status == 0
    done = json.loads(run("status", "crawl", "--json")[1])
    ended = done["terminal_outcomes"]
    # The URL that was answered is tried no more: it has ended with its host.
    assert ended["host_closed"] == done["terminal"] - ended["fetched"] > 1, ended
    assert f"host_closed {ended['host_closed']}" in out
    why = run("why", "crawl", f"http://open.test{site}/later")[1]
    assert "(Retry-After), more than politeness.retry_after_s_max (1 d 0 h)" in why


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--include", "nowhere"), "(include 10, for example {}/later)"),
        (("--exclude", "/later", "--exclude", "/page"), "(exclude 10, for example {}/later)"),
        (("--max-depth", "0"), ""),
        (("--max-pages", "1"), ""),
        (("--exclude", "/page[1-9]", "--exclude", "/later"), ""),
        (("--exclude", "later$/"), "later$/"),
    ],
)
def test_a_crawl_whose_links_were_all_rejected_says_so(
    run: Gossamer, site: str, more: tuple[str, ...], named: str
) -> None:
    host = f"http://open.test{site}"
    sets = [word for key in QUICK for word in ("--set", key)]
    options = ("--allow-private", "--hosts", "hosts", "--politeness", "own", *sets)
    status, out, _ = run("crawl", f"{host}/links", *options, *more)
    assert status == Exit.FINISHED
    says = f"no link was followed, because filters rejected 10 links {named.format(host)}"
    if named and "(" not in named:
        says = f"scope.exclude left nothing out: no link matched {named!r}"
    assert out.count("Warning: ") == (named != "")
    assert not named or f"Warning: {says}." in out
    assert json.loads(run("status", "crawl", "--json")[1])["warnings"] == ([says] if named else [])


@pytest.mark.heavy
def test_a_crawl_whose_pages_say_nofollow_says_so_and_how_to_follow_them(run: Gossamer, site: str) -> None:
    """The pages of `hg serve`, cgit and gitweb have this meta element."""
    options = ("crawl", f"http://open.test{site}/silent", "--exclude", "/later")
    status, out, _ = run(*options, "--allow-private", "--hosts", "hosts", "--politeness", "own")
    assert status == Exit.FINISHED
    host = f"http://open.test{site}"
    both = f"nofollow 9, for example {host}/page0; exclude 1, for example {host}/later"
    assert f"filters rejected 10 links ({both}); robots.obey = false" in out
    crawl(run, *options[1:], "-o", "own", "--no-robots")
    assert json.loads(run("status", "own", "--json")[1])["pages"] == 10


@pytest.mark.heavy
@pytest.mark.parametrize(("more", "pages"), [(("--set", "scope.embeds=true"), 1), (("--max-depth", "0"), 0)])
def test_a_crawl_of_a_page_that_scripts_make_advises_to_render(
    run: Gossamer, site: str, more: tuple[str, ...], pages: int
) -> None:
    """React, Vue and Svelte without a server's rendering send such a page; Doxygen's menu is made by a script."""
    seed = f"http://open.test{site}/shell"
    options = ("--allow-private", "--hosts", "hosts", "--politeness", "own")
    says = f"Warning: no links lead on from {seed}; if scripts make them, --render auto finds them."
    assert run("crawl", seed, *options, *more)[1].count(says) == pages


@pytest.mark.heavy
def test_a_check_of_what_could_not_be_fetched_finds_no_lack_of_faults(run: Gossamer, site: str) -> None:
    status, out, _ = run(
        "check", f"http://{CLOSED}{site}/", "--allow-private", "--hosts", "hosts", "--politeness", "own", "--quiet"
    )
    assert status == Exit.FAILED
    assert "Seeds that could not be checked: 1" in out
    assert "No faults" not in out
