"""Seeds and redirects: what a seed's redirect brings in, and how every kind of redirect ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO, cast

import pytest

import gossamer.api.base as base
import gossamer.api.seeding as seeding
import gossamer.config.lists as lists
import gossamer.stages.resolve.guard as guarded
from gossamer.config.lists import open_unpacked
from gossamer.model.errors import ConfigError
from tests.answering import Answering, serving
from tests.ring.crawls import OWN, Crawled, crawl


class Site:
    """A server on loopback for any names: paths to `(status, location)` or a body of HTML, by name."""

    def __init__(self) -> None:
        self.pages: dict[str, str | tuple[int, str]] = {}
        self.headers: dict[str, tuple[str, str]] = {}
        self.asked: list[str] = []
        site = self

        class Handler(Answering):
            def get(self) -> None:
                url = f"http://{self.headers['Host']}{self.path}"
                site.asked.append(url)
                page = site.pages.get(url.replace(f":{site.port}", ""))
                body = page.encode() if isinstance(page, str) else b""
                status = 404 if page is None else 200 if isinstance(page, str) else page[0]
                moved = [("Location", page[1].replace("PORT", str(site.port)))] if isinstance(page, tuple) else []
                header = site.headers.get(url.replace(f":{site.port}", ""))
                moved += [header] if header is not None else []
                self.answer(status, body, *moved)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port

    def url(self, text: str) -> str:
        """Return an address with our port."""
        scheme, _, rest = text.partition("://")
        host, _, path = rest.partition("/")
        return f"{scheme}://{host}:{self.port}/{path}"


@contextmanager
def website() -> Iterator[Site]:
    site = Site()
    with serving(site.server):
        yield site


@pytest.fixture
def site() -> Iterator[Site]:
    with ExitStack() as stack:
        yield stack.enter_context(website())


NAMES = "a.test www.a.test b.test c.test d.test"


def crawled(
    site: Site, tmp_path: Path, *seeds: str, hosts: str = "", sets: tuple[str, ...] = (), **options: object
) -> Crawled:
    """Crawl the site; names not given another address are on loopback."""
    (tmp_path / "hosts").write_text(hosts or f"127.0.0.1 {NAMES}\n")
    addresses = tuple(site.url(seed) for seed in seeds)
    return crawl(addresses, tmp_path / "crawl", *OWN, *sets, hosts=str(tmp_path / "hosts"), **options)


def found(site: Site, crawled: Crawled) -> dict[str, str]:
    """Return the outcome of each URL as fetched, without our port."""
    return {str(row["url"]).replace(f":{site.port}", ""): str(row["outcome"]) for row in crawled.rows}


def test_a_seed_that_redirects_to_another_host_brings_it_in_and_says_so(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "http://a.test/": (301, "http://www.a.test:PORT/"),
        "http://www.a.test/": (302, "http://b.test:PORT/start"),
        "http://b.test/start": '<a href="/deep/more">more</a><a href="http://c.test/">elsewhere</a>',
        "http://b.test/deep/more": "here",
    }
    result = crawled(site, tmp_path, "http://a.test/", sets=("scope.seed_redirects='site'",))
    assert found(site, result) == {
        "http://a.test/": "redirected",
        "http://www.a.test/": "redirected",
        "http://b.test/start": "fetched",
        "http://b.test/deep/more": "fetched",
    }
    assert len(result.notes) == 2
    assert "www.a.test" in result.notes[0]
    assert f"b.test:{site.port}/ is now in scope: the seed" in result.notes[1]


def test_a_seed_from_a_file_brings_in_the_other_sites_directory_only(site: Site, tmp_path: Path) -> None:
    links = '<a href="/shop/item">item</a><a href="/all">all</a><a href="/shop/">shop</a>'
    site.pages = {
        "http://a.test/": (301, "http://b.test:PORT/shop/"),
        "http://b.test/shop/": links,
        "http://b.test/shop/item": links + "no copy: a copy's links are left out where they lead nowhere new",
        "http://b.test/all": links,
        "http://d.test/x/": (301, "http://c.d.test:PORT/y/"),
        "http://c.d.test/y/": links,
        "http://c.d.test/all": "same site: the whole host",
    }
    (tmp_path / "seeds").write_text(f"# seeds\n{site.url('http://a.test/')}\n{site.url('http://d.test/x/')}\n")
    sets = (f"seeds.file='{tmp_path}/seeds'", "scope.seed_redirects='site'")
    result = crawled(site, tmp_path, hosts=f"127.0.0.1 {NAMES} c.d.test\n", sets=sets)
    assert found(site, result) == {
        "http://a.test/": "redirected",
        "http://b.test/shop/": "fetched",
        "http://b.test/shop/item": "fetched",
        "http://d.test/x/": "redirected",
        "http://c.d.test/y/": "fetched",
        "http://c.d.test/all": "fetched",
        "http://c.d.test/shop/": "http_error",
        "http://c.d.test/shop/item": "http_error",
    }
    assert result.status["rejected"] == {"scope": 2}
    assert len(result.notes) == 2


@pytest.mark.parametrize("to", ["http://www.a.test/", "http://b.test/"])
@pytest.mark.parametrize("in_header", [False, True])
def test_a_refresh_of_a_seed_is_its_redirect_where_outlinks_are_fetched(
    site: Site, tmp_path: Path, to: str, in_header: bool
) -> None:
    content = f"0; url={site.url(to)}"
    site.pages = {
        "http://a.test/": "wait" if in_header else f'<meta http-equiv="refresh" content="{content}">wait',
        to: '<a href="/more">more</a>',
        to + "more": "more",
    }
    site.headers = {"http://a.test/": ("Refresh", content)} if in_header else {}
    is_own = to == "http://www.a.test/"
    result = crawled(site, tmp_path, "http://a.test/", sets=("scope.outlinks=true",))
    ends = {"http://a.test/": "fetched", to: "fetched", to + "more": "fetched" if is_own else "unsupported"}
    assert found(site, result) == ends
    assert len(cast("list[str]", result.status["warnings"])) == (not is_own)


def test_refreshes_on_another_site_end_and_are_counted_once(site: Site, tmp_path: Path) -> None:
    site.pages = {"http://a.test/": (301, "http://b.test:PORT/0")}
    site.pages |= {f"http://b.test/{n}": f'<meta http-equiv="refresh" content="0; url=/{n + 1}">{n}' for n in range(9)}
    result = crawled(site, tmp_path, "http://a.test/")
    assert [n for n in range(9) if site.url(f"http://b.test/{n}") in site.asked] == [0, 1, 2, 3, 4]
    [warning] = cast("list[str]", result.status["warnings"])
    assert "more; " not in warning


def test_filters_and_exclusions_rule_over_a_seeds_redirect(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "http://a.test/": (301, "http://b.test:PORT/"),
        "http://c.test/": (301, "http://d.test:PORT/secret"),
        "http://b.test/": "never",
        "http://d.test/secret": "never",
    }
    sets = ("scope.exclude_hosts=['b.test']", "scope.exclude=['/secret']")
    result = crawled(site, tmp_path, "http://a.test/", "http://c.test/", sets=sets)
    assert found(site, result) == {"http://a.test/": "redirected", "http://c.test/": "redirected"}
    assert result.status["rejected"] == {"excluded_host": 1, "exclude": 1}
    assert not [url for url in site.asked if "b.test" in url or "d.test" in url]


def test_a_redirect_to_another_spelling_of_its_own_key_is_fetched(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "http://a.test/": '<a href="/%7Eu">him</a>',
        "http://a.test/%7Eu": (301, "/~u"),
        "http://a.test/~u": '<a href="/~u/page">page</a>',
        "http://a.test/~u/page": "page",
    }
    result = crawled(site, tmp_path, "http://a.test/")
    assert found(site, result) == {
        "http://a.test/": "fetched",
        "http://a.test/%7Eu": "redirected",
        "http://a.test/~u": "fetched",
        "http://a.test/~u/page": "fetched",
    }
    assert result.status["discovered"] == result.status["terminal"] == 3


def test_chains_and_loops_end_within_the_limit_of_hops(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "http://a.test/": "".join(f'<a href="/{name}">x</a>' for name in ("r0", "loop1", "self", "%7E", "s0")),
        **{f"http://a.test/r{k}": (302, f"/r{k + 1}") for k in range(9)},
        **{f"http://a.test/s{k}": (302, f"/s{k + 1}") for k in range(5)},
        "http://a.test/s5": "the end of five",
        "http://a.test/loop1": (302, "/loop2"),
        "http://a.test/loop2": (302, "/loop1"),
        "http://a.test/self": (302, "/self"),
        "http://a.test/%7E": (302, "/~"),
        "http://a.test/~": (302, "/%7E"),
    }
    result = crawled(site, tmp_path, "http://a.test/")
    ends = found(site, result)
    assert ends["http://a.test/s5"] == "fetched"
    assert [f"r{k}" for k in range(10) if f"http://a.test/r{k}" in ends] == [f"r{k}" for k in range(6)]
    assert {ends[f"http://a.test/{name}"] for name in ("loop1", "loop2", "self", "%7E", "~")} == {"redirected"}
    counts = {path: site.asked.count(site.url(f"http://a.test/{path}")) for path in ("self", "loop1", "%7E", "~")}
    assert counts == {"self": 6, "loop1": 1, "%7E": 3, "~": 3}
    assert result.status["queued"] == 0


@pytest.mark.parametrize(("kept_max", "reads"), [(1_000, 2), (10, 3)], ids=["few seeds", "many"])
def test_a_file_of_few_seeds_is_checked_and_then_read_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_max: int, reads: int
) -> None:
    site.pages = {"http://a.test/": "a", "http://b.test/": "b"}
    opened: list[Path] = []

    @contextmanager
    def counting(path: Path) -> Iterator[BinaryIO]:
        opened.append(path)
        with open_unpacked(path) as file:
            yield file

    monkeypatch.setattr(lists, "open_unpacked", counting)
    monkeypatch.setattr(seeding, "KEPT_CHARACTERS_MAX", kept_max)
    path = tmp_path / "seeds"
    path.write_text("\n".join(map(site.url, site.pages)))
    result = crawled(site, tmp_path, sets=(f"seeds.file={path}",), scope="host")
    assert found(site, result) == {"http://a.test/": "fetched", "http://b.test/": "fetched"}
    assert opened == [path] * reads


def test_a_name_at_a_private_address_is_excluded_unasked(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeds known to be private are refused at once; names may turn out to be so only when they are looked up."""
    hosts = "127.0.0.1 inner.test\n169.254.169.254 metadata.test\n"
    seeds = ("http://inner.test/", "http://metadata.test/latest/")
    with pytest.raises(ConfigError, match=r"inner\.test.*add allow_private"):
        crawled(site, tmp_path, *seeds, hosts=hosts, allow_private=False, contact="me@example.org")
    monkeypatch.setattr(base, "check_seeds", lambda config: None)
    result = crawled(site, tmp_path, *seeds, hosts=hosts, allow_private=False, contact="me@example.org")
    assert found(site, result) == dict.fromkeys(seeds, "excluded")
    assert site.asked == []
    errors = {str(row["host"]): str(row["error"]) for row in result.rows}
    assert "loopback" in errors["inner.test"]
    assert "--allow-private" in errors["inner.test"]
    assert "169.254.169.254" in errors["metadata.test"]


@pytest.mark.parametrize("scope", ["any", "host"])
def test_a_redirect_to_a_private_address_is_excluded(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    """127.0.0.1 passes here, so that there is a server to redirect; what it redirects to does not."""
    guard = guarded.why_refused

    def but_ours(address: str, *, allow_private: bool) -> str | None:
        return None if address == "127.0.0.1" else guard(address, allow_private=allow_private)

    monkeypatch.setattr(guarded, "why_refused", but_ours)
    monkeypatch.setattr(base, "check_seeds", lambda config: None)
    targets = (
        "http://metadata.test/latest/",
        "http://127.0.0.2/",
        "http://[::ffff:a00:1]/",
        "http://169.254.169.254/latest/",
        "http://2130706434/",
    )
    seeds = tuple(f"http://a.test/{number}" for number in range(len(targets)))
    site.pages = {seed: (301, site.url(target)) for seed, target in zip(seeds, targets, strict=True)}
    hosts = f"127.0.0.1 {NAMES}\n169.254.169.254 metadata.test\n"
    result = crawled(site, tmp_path, *seeds, hosts=hosts, scope=scope, allow_private=False, contact="me@example.org")
    ends = found(site, result)
    assert {ends.pop(seed) for seed in seeds} == {"redirected"}
    assert ends == {
        "http://metadata.test/latest/": "excluded",
        "http://127.0.0.2/": "excluded",
        "http://[::ffff:a00:1]/": "excluded",
        "http://169.254.169.254/latest/": "excluded",
    }


@pytest.mark.promise("What is fetched", "A seed that redirects to another site adds only the page reached.")
def test_of_another_site_only_the_page_reached_is_fetched_and_the_summary_says_so(site: Site, tmp_path: Path) -> None:
    links = '<a href="/user">x</a>'
    site.pages = {
        "http://a.test/": (301, "http://b.test:PORT/hop"),
        "http://b.test/hop": (302, "http://b.test:PORT/pages/a"),
        "http://b.test/robots.txt": "Sitemap: /sitemap.xml",
        "http://b.test/pages/a": links,
        "http://c.test/": '<meta http-equiv=refresh content="0;url=http://www.c.test:PORT/">',
        "http://www.c.test/": links,
        "http://www.c.test/user": "the same site",
    }
    site.pages["http://c.test/"] = str(site.pages["http://c.test/"]).replace("PORT", str(site.port))
    hosts = f"127.0.0.1 {NAMES} www.c.test\n"
    result = crawled(site, tmp_path, "http://a.test/", "http://c.test/", hosts=hosts, max_depth=1)
    assert found(site, result) == {
        "http://a.test/": "redirected",
        "http://b.test/hop": "redirected",
        "http://b.test/pages/a": "fetched",
        "http://c.test/": "fetched",
        "http://www.c.test/": "fetched",
        "http://www.c.test/user": "fetched",
    }
    assert site.url("http://b.test/sitemap.xml") not in site.asked
    warnings = result.status["warnings"]
    assert isinstance(warnings, list)
    assert len(warnings) == 1
    assert "redirects to another site" in warnings[0]
    assert "scope.seed_redirects=site" in warnings[0]
