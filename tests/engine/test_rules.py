"""Rules and filters on the way through the ring: one page by many names, and pages that are not wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.scope.hosts import HostSet
from gossamer.testing.fakes import page, reply
from gossamer.url.rules import DEFAULT_RULES

from .ring import Ring

OLD, NEW = "http://www.uni-muenchen.de/", "http://lmu.de/"
HOSTS = {
    "starts_with": {"www.": ""},
    "ends_with": {".uni-muenchen.de": ".lmu.de"},
    "synonyms": {"uni-muenchen.de": "lmu.de"},
}


def moved(to: str, status: int = 301) -> Reply:
    return reply(b"moved", status, [("Location", to)])


def test_a_page_with_names_on_several_hosts_is_fetched_once_as_it_was_written_first(tmp_path: Path) -> None:
    names = [f"{OLD}a", "http://uni-muenchen.de/a", f"{NEW}a", "http://www.lmu.de/a"]
    pages = {"http://start.example/": page(*names), **{name: page(title=name) for name in names}}
    with Ring(tmp_path, pages, url={"hosts": HOSTS}) as ring:
        ring.crawl("http://start.example/")
        assert ring.outcomes == {"http://start.example/": "fetched", f"{OLD}a": "fetched"}
        row = ring.rows[1]
        assert (row.url, row.key, row.host, row.site) == (
            f"{OLD}a", f"{NEW}a", "www.uni-muenchen.de", "uni-muenchen.de",
        )  # fmt: skip
        told = ring.explainer.why("http://www.lmu.de/a")
        assert (told["state"], told["key"]) == ("fetched", f"{NEW}a")
        assert told["key_rules"] == [f"hosts: {NEW}a"]
        assert "key_rules" not in ring.explainer.why(f"{NEW}a")


def test_a_redirect_to_another_name_of_the_page_is_the_next_hop_of_the_same_entry(tmp_path: Path) -> None:
    pages = {OLD: moved(NEW), NEW: page("/a", "http://www.uni-muenchen.de/b"), NEW + "a": page(), OLD + "b": page()}
    with Ring(tmp_path, pages, url={"hosts": HOSTS}, scope={"scope": "host"}) as ring:
        ring.crawl(OLD)
        assert ring.outcomes == {OLD: "redirected", NEW: "fetched", NEW + "a": "fetched", OLD + "b": "fetched"}
        assert ring.frontier.counts.discovered == 3
        assert ring.adds_up()


def test_a_trailing_slash_that_a_server_adds_is_the_next_hop_too(tmp_path: Path) -> None:
    rules = [*DEFAULT_RULES, "drop_trailing_slash", "https_is_http"]
    pages = {"http://h.example/a": moved("/a/"), "http://h.example/a/": page("/a", "https://h.example/a/")}
    with Ring(tmp_path, pages, url={"rules": rules}) as ring:
        ring.crawl("http://h.example/a")
        assert ring.outcomes == {"http://h.example/a": "redirected", "http://h.example/a/": "fetched"}


def test_a_next_hop_is_not_asked_for_what_is_not_visited(tmp_path: Path) -> None:
    rules = [*DEFAULT_RULES, "https_is_http"]
    pages = {"http://h.example/": moved("https://h.example/"), "https://h.example/": page()}
    with Ring(tmp_path, pages, url={"rules": rules}, scope={"schemes": ["http"]}) as ring:
        ring.crawl("http://h.example/")
        assert ring.outcomes == {"http://h.example/": "redirected"}


def test_each_of_these_hosts_has_gates_and_robots_of_its_own(tmp_path: Path) -> None:
    robots = reply(b"User-agent: *\nDisallow: /", media_type="text/plain")
    pages = {
        "http://start.example/": page(OLD + "a", NEW + "b"),
        "http://start.example/robots.txt": reply(status=404),
        OLD + "robots.txt": robots, OLD + "a": page(), NEW + "b": page(),
    }  # fmt: skip
    with Ring(tmp_path, pages, obey=True, url={"hosts": HOSTS}) as ring:
        ring.crawl("http://start.example/")
        assert ring.outcomes[OLD + "a"] == "robots_denied"
        assert ring.outcomes[NEW + "b"] == "fetched"


def test_rules_of_one_site_are_its_own(tmp_path: Path) -> None:
    pages = {
        "http://start.example/": page(
            "http://a.example/X", "http://a.example/x", "http://b.example/X", "http://b.example/x"
        )
    }
    with Ring(tmp_path, pages, url={"sites": {"a.example": {"rules": [*DEFAULT_RULES, "lower_path"]}}}) as ring:
        ring.crawl("http://start.example/")
        assert sorted(ring.outcomes) == [
            "http://a.example/X", "http://b.example/X", "http://b.example/x", "http://start.example/",
        ]  # fmt: skip


def test_a_redirect_without_location_is_an_http_error_also_if_its_content_is_not_wanted(tmp_path: Path) -> None:
    root = "http://h.example/"
    pages = {root: page("/moved"), root + "moved": reply(b"x", 302, media_type="image/gif")}
    with Ring(tmp_path, pages, scope={"media_types": ["text/html"]}) as ring:
        ring.crawl(root)
        assert ring.outcomes == {root: "fetched", root + "moved": "http_error"}


def test_content_of_a_kind_that_is_not_wanted_ends_as_unsupported(tmp_path: Path) -> None:
    root = "http://h.example/"
    asked: list[Request] = []

    def picture(request: Request) -> Reply:
        asked.append(request)
        return reply(b"\x89PNG" * 100, media_type="image/png")

    pages = {
        root: page("/fish", "/fish.jpg", "/plain", "/gone"), root + "fish": picture,
        root + "plain": reply(b"text", media_type=""), root + "gone": reply(b"x", 404, media_type="image/gif"),
    }  # fmt: skip
    with Ring(tmp_path, pages, scope={"media_types": ["text/html"]}) as ring:
        ring.crawl(root)
        assert ring.outcomes == {
            root: "fetched", root + "fish": "unsupported", root + "plain": "fetched", root + "gone": "http_error",
        }  # fmt: skip
        row = next(row for row in ring.rows if row.outcome == "unsupported")
        assert (row.status, row.media_type, row.truncated, row.body_bytes) == (200, "image/png", "unspecified", 0)
        kept = next(visited.reply for visited in ring.archive.added if visited.row is row)
        assert kept is not None
        assert kept.body == b""
        assert asked[0].media_types == ("text/html",)
        assert ring.chain.counts["media_type"] == 2, "one by its name, one by its header"
        told = ring.explainer.why(root + "fish")
        assert (told["state"], told["reason"]) == ("unsupported", "the filter `media_type` rejects image/png")
        told = ring.explainer.why(root + "fish.jpg")
        assert told["reason"] == "the filter `media_type` rejects it: its name promises image/jpeg"
        assert ring.adds_up()


def test_robots_txt_is_read_whatever_its_type(tmp_path: Path) -> None:
    root = "http://h.example/"
    robots = reply(b"User-agent: *\nDisallow: /no", media_type="text/plain")
    with Ring(
        tmp_path, {root: page("/no", "/yes"), root + "robots.txt": robots, root + "yes": page()}, obey=True,
        scope={"media_types": ["text/html"]},
    ) as ring:  # fmt: skip
        ring.crawl(root)
        assert ring.outcomes == {root: "fetched", root + "no": "robots_denied", root + "yes": "fetched"}
        assert [request.media_types for request in ring.web.requests if request.url.endswith("robots.txt")] == [()]


def test_links_of_a_page_in_another_language_are_recorded_and_not_followed(tmp_path: Path) -> None:
    root = "http://h.example/"

    def in_language(tag: str, href: str) -> Reply:
        return reply(f'<!doctype html><html lang="{tag}"><a href="{href}">x</a>'.encode())

    pages = {
        root: page("/de", "/fr"), root + "de": in_language("de-AT", "/from-de"),
        root + "fr": in_language("fr", "/from-fr"), root + "from-de": page(),
    }  # fmt: skip
    with Ring(tmp_path, pages, scope={"languages": ["de"]}) as ring:
        ring.crawl(root)
        assert ring.outcomes == {root + path: "fetched" for path in ("", "de", "fr", "from-de")}
        french = next(visited for visited in ring.archive.added if visited.row.url == root + "fr")
        assert [found.url for found in french.links] == [root + "from-fr"]
        assert ring.chain.counts["language"] == 1
        assert "`language` rejects fr" in str(ring.explainer.why(root + "fr")["reason"])


def test_what_is_queued_for_a_host_that_a_list_excludes_ends_as_excluded(tmp_path: Path) -> None:
    root, other = "http://h.example/", "http://asked.example/"
    pages = {root: page(other + "1", other + "2", "/a"), root + "a": page(other + "3")}
    with Ring(tmp_path, pages) as ring:
        listed = HostSet(["asked.example"])
        ring.web.pages[other + "1"] = lambda _: (ring.exclusions.set_listed(listed), page())[1]
        ring.crawl(root)
        assert ring.outcomes[other + "2"] == "excluded"
        assert ring.web.counts[other + "2"] == 0
        assert ring.web.counts[other + "3"] == 0
        assert ring.adds_up()


@pytest.mark.promise(
    "Politeness", "A host on the exclusion list gets no request, not even for the robots.txt of another host."
)
def test_no_robots_txt_is_fetched_from_a_host_that_is_excluded(tmp_path: Path) -> None:
    root, other = "http://h.example/", "http://asked.example/"
    pages = {root: page(), root + "robots.txt": moved(other + "robots.txt"), other + "robots.txt": reply(b"")}
    with Ring(tmp_path, pages, obey=True, robots={"robots_wait_max_s": 1.0}) as ring:
        ring.exclusions.add("asked.example")
        ring.crawl(root)
        assert ring.web.counts[other + "robots.txt"] == 0
        assert ring.outcomes == {root: "robots_unreachable"}


def test_fields_of_a_failure_are_as_they_were(tmp_path: Path) -> None:
    """A server that fails is no page of an unwanted kind."""
    root = "http://h.example/"
    with Ring(tmp_path, {root: Failure("timeout", "timed out")}, scope={"media_types": ["text/html"]}) as ring:
        ring.crawl(root)
        assert ring.outcomes == {root: "timeout"}
