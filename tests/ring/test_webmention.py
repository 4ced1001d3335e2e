"""Webmention end to end: a site that is crawled, others that link to it, and a crawl that dies in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.answering import free_port
from tests.ring.crawls import OWN, CommandLine, command_line, until
from tests.ring.hostile import Answer, HostileServer, whole
from tests.ring.test_websub import ask, status

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def page(*links: str) -> Answer:
    return whole(("<!doctype html><title>x</title>" + "".join(f"<a href={link}>x</a>" for link in links)).encode())


@pytest.fixture
def site() -> Iterator[HostileServer]:
    with HostileServer({"/": page("/page"), "/page": page(), "/hidden": page("/deep"), "/deep": page()}) as running:
        yield running


@pytest.fixture
def blog() -> Iterator[HostileServer]:
    robots = whole(b"User-agent: *\nDisallow: /no", "text/plain")
    with HostileServer({"/other": page("/more"), "/robots.txt": robots}, "127.0.0.2") as running:
        yield running


@contextmanager
def crawling(site: HostileServer, directory: Path, *sets: str) -> Iterator[tuple[CommandLine, str]]:
    """A continuous crawl with its console, and where that is."""
    port = free_port()
    with command_line(directory) as running:
        running.crawl((site.root,), *OWN, "webmention.enabled=true", *sets, mode="continuous", serve=str(port))
        yield running, f"http://127.0.0.1:{port}"


def notify(root: str, source: str, target: str) -> int:
    return ask(f"{root}/webmention", urlencode({"source": source, "target": target}).encode(), FORM)


def counts(root: str) -> dict[str, int]:
    return dict(status(root).get("mentions", {}))  # type: ignore[call-overload]


@pytest.mark.promise(
    "Continuous crawls",
    "A notice that a page links to the crawl (Webmention) costs one request for that page; nothing is followed before "
    "the link is verified, and nothing outside the scope.",
)
@pytest.mark.heavy
def test_a_notice_is_verified_before_anything_is_followed_also_after_a_death(
    site: HostileServer, blog: HostileServer, tmp_path: Path
) -> None:
    target = f"{site.root}page"
    blog.answers["/post"] = page(target, "/more")
    site.answers["/hidden"] = page(target, "/deep")
    with crawling(site, tmp_path / "c") as (running, root):
        until(lambda: site.counts["/page"])
        for path in ("post", "other", "no/post"):
            assert notify(root, f"{blog.root}{path}", target) == 202
        until(lambda: counts(root) == {"waiting": 0, "verified": 1, "refused": 2})
        assert (blog.counts["/post"], blog.counts["/other"], blog.counts["/no/post"]) == (1, 1, 0)
        assert blog.counts["/more"] == 0, "links of a page outside the scope are not followed"

        assert notify(root, f"{site.root}hidden", target) == 202
        running.kill_child()
        until(lambda: site.counts["/deep"])  # A page of the site is a page of the crawl once its link is verified.
        assert counts(root) == {"waiting": 0, "verified": 2, "refused": 2}
    assert (tmp_path / "c/logs/critical.log").read_text() == ""


@pytest.mark.heavy
def test_wrong_notices_get_a_reason_and_cost_no_request(
    site: HostileServer, blog: HostileServer, tmp_path: Path
) -> None:
    target = f"{site.root}page"
    with crawling(site, tmp_path / "c", "webmention.host_waiting_max=1") as (_, root):
        until(lambda: site.counts["/page"])
        for source, goal in (
            ("", target),
            (target, target),
            (f"{blog.root}a", f"{blog.root}b"),
            ("file:///etc", target),
        ):
            assert notify(root, source, goal) == 400
        assert ask(f"{root}/webmention", b"x" * 9_000, FORM) == 400
        assert ask(f"{root}/webmention", b"&".join(b"a=b" for _ in range(50)), FORM) == 400
        assert ask(f"{root}/webmention", b"{}", {"Content-Type": "application/json"}) == 400
        assert ask(f"{root}/webmention") == 405
        assert counts(root) == {"waiting": 0, "verified": 0, "refused": 0}
        assert sum(blog.counts.values()) == 0


@pytest.mark.heavy
def test_all_that_links_to_a_target_counts_and_mere_mentions_do_not(
    site: HostileServer, blog: HostileServer, tmp_path: Path
) -> None:
    target = f"{site.root}page"
    links = (
        "<a href={}>x</a>", "<area href={}>", "<img src={}>", "<video src={}></video>", "<audio src={}></audio>",
        "<iframe src={}></iframe>", "<link rel=alternate href={}>", "<a rel=nofollow href={}>x</a>",
        "<a href={}>x</a>" + "x" * (2 << 20),
    )  # fmt: skip
    mere = (
        "<!-- <a href={}>x</a> -->", "<template><a href={}>x</a></template>", "<p data-url={}>x", "<p>{}",
        "<script>'{}'</script>",
    )  # fmt: skip
    for number, markup in enumerate((*links, *mere)):
        text = "<!doctype html><title>x</title>" + markup.format(target)
        blog.answers[f"/{number}"] = whole(text.encode())
    with crawling(site, tmp_path / "c") as (_, root):
        until(lambda: site.counts["/page"])
        for number in range(len(links) + len(mere)):
            assert notify(root, f"{blog.root}{number}", target) == 202
        until(lambda: counts(root) == {"waiting": 0, "verified": len(links), "refused": len(mere)})


def test_a_crawl_accepts_no_notices_unless_they_are_enabled(site: HostileServer, tmp_path: Path) -> None:
    with crawling(site, tmp_path / "c", "webmention.enabled=false") as (_, root):
        until(lambda: site.counts["/page"])
        assert notify(root, f"{site.root}hidden", f"{site.root}page") == 404
