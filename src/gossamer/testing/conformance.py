"""Conformance: the promises of the ports as contracts to run on your own components.

Each raises AssertionError that names the broken promise, and returns None when all were kept. None of them waits, and
none measures time.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from itertools import pairwise
from math import inf
from urllib.parse import urlsplit

from gossamer.model.links import LINK_TYPES, Found, Link, Verdict, Visit
from gossamer.model.outcomes import OUTCOMES
from gossamer.model.pages import Archived, Findings, Original, Page, PageRow, Visited
from gossamer.model.standing import DownloadHistory, Habits, LastVisit, Standing
from gossamer.model.visits import Failure, Located, Reply, Request
from gossamer.ports import (
    KNOWN,
    NEW,
    SHORTER,
    Archive,
    Bias,
    ContentSeen,
    Filter,
    HistoryPrioritizer,
    HostPrioritizer,
    Prioritizer,
    ProcessingModule,
    ProtocolModule,
    Resolver,
    RevisitPolicy,
    UrlSeen,
    VisitMiddleware,
    WaylessUrlSeen,
)
from gossamer.stages.frontier.strategy import Strategy
from gossamer.testing.fakes import FakeGates
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.url.url import DEFAULT_PORTS, Url

MANY = 2_000
FETCH_S_MAX = 30.0
LEVEL_MAX = 7
CLOSED_PORT = 1
"""tcpmux: no machine of this century listens there."""

_namer = Namer(Canonicalizer())


def check_url_seen(make: Callable[[], UrlSeen], *, ways: bool = True, false_positive_rate: float = 0.0) -> None:
    """Run the contract of a duplicate URL eliminator; `make` gives an empty one each time.

    An eliminator is held to its declared limits: with `ways` False it stores no paths, and says so; it may take a share
    of `false_positive_rate` of new URLs for seen, with a tolerance of five standard deviations.
    """
    _check_new_once(make())
    if ways:
        _check_ways(make())
    else:
        _check_no_ways(make())
    _check_many(make(), false_positive_rate)


def _check_new_once(seen: UrlSeen) -> None:
    a = _url("http://a.example/")
    b = _url("http://a.example/b")
    _promise(list(seen.offer([], [], [])) == [], "an offer of nothing is answered with nothing")
    _promise(seen.way(a) is None, "`way` of a URL that was never offered is None")
    _promise(list(seen.offer([a, b], [1, 1], [0, 0])) == [NEW, NEW], "a URL that was never offered is new (1)")
    _promise(list(seen.offer([b, a], [1, 1], [0, 0])) == [KNOWN, KNOWN], "a URL that was offered is known (0)")
    c = _url("http://c.example/")
    _promise(
        list(seen.offer([c, a, c], [2, 1, 2], [0, 0, 0])) == [NEW, KNOWN, KNOWN],
        "of equal keys in one call the first is new and the others are not, each in its place",
    )
    written = _url("http://d.example/%7Eme")
    other = _url("http://d.example/~me")
    assert written.key == other.key
    _promise(list(seen.offer([written, other], [0, 0], [0, 0])) == [NEW, KNOWN], "the key compares, not the text")


def _check_ways(seen: UrlSeen) -> None:
    url = _url("http://a.example/deep")
    other = _url("http://a.example/other")
    seen.offer([url, other], [5, 5], [2, 2])
    _promise(seen.way(url) == (5, 2), "`way` is the depth and hops that were offered")
    _promise(list(seen.offer([url], [6], [3])) == [KNOWN], "a path of more depth and more hops is nothing new (0)")
    _promise(seen.way(url) == (5, 2), "a longer way leaves the least one as it is")
    _promise(list(seen.offer([url], [3], [4])) == [SHORTER], "a way of less depth is shorter (2)")
    _promise(seen.way(url) == (3, 2), "depth and hops are remembered at their least, each for itself")
    _promise(list(seen.offer([url], [6], [1])) == [SHORTER], "a way of fewer hops is shorter (2)")
    _promise(seen.way(url) == (3, 1), "depth and hops are remembered at their least, each for itself")
    _promise(list(seen.offer([url], [3], [1])) == [KNOWN], "the same path again is nothing new (0)")
    _promise(list(seen.offer([url, url], [2, 1], [0, 0])) == [SHORTER, SHORTER], "paths get shorter in one call too")
    _promise(seen.way(url) == (1, 0), "the shortest of several paths is stored")
    _promise(seen.way(other) == (5, 2), "the paths of other URLs do not change")


def _check_no_ways(seen: UrlSeen) -> None:
    url = _url("http://a.example/deep")
    seen.offer([url], [5], [2])
    for depth, hops in [(6, 3), (3, 4), (6, 1), (5, 2)]:
        answers = list(seen.offer([url], [depth], [hops]))
        _promise(answers == [KNOWN], "an eliminator without paths reports no other path as new (0)")
        _promise(seen.way(url) is None, "an eliminator without paths returns None from `way`")
    other = _url("http://a.example/other")
    _promise(isinstance(seen, WaylessUrlSeen), "an eliminator without paths has `knows`")
    assert isinstance(seen, WaylessUrlSeen)
    _promise(seen.knows(url), "`knows` is True for what was offered")
    _promise(not seen.knows(other), "`knows` is False for what was never offered")
    _promise(list(seen.offer([other], [0], [0])) == [NEW], "asking `knows` makes nothing known")


def _check_many(seen: UrlSeen, false_positive_rate: float) -> None:
    urls = [_url(f"http://host{number % 97}.example/page/{number}") for number in range(MANY)]
    ways = [0] * MANY
    answers = list(seen.offer(urls, ways, ways))
    lost = MANY * false_positive_rate
    lost_max = int(lost + 5 * lost**0.5)
    _promise(
        answers.count(NEW) >= MANY - lost_max and SHORTER not in answers,
        f"of {MANY} different URLs all are new{f' but {lost_max}' if lost_max else ''}, {answers.count(NEW)} were",
    )
    answers = list(seen.offer(urls[::-1], ways, ways))
    _promise(answers == [KNOWN] * MANY, f"of {MANY} URLs offered again none is new, {MANY - answers.count(KNOWN)} were")


def check_content_seen(make: Callable[[], ContentSeen]) -> None:
    """Run the contract of a content-seen test, as far as it holds within one host; `make` gives an empty one."""
    seen = make()
    url = _url("http://a.example/")
    other = _url("http://a.example/copy")
    first = Original(url.text, 1_000_000.5, "<urn:uuid:1>")
    digest = b"\x00" * 20
    another = b"\x00" * 19 + b"\x01"
    _promise(seen.find(digest, url) is None, "a content that was not seen is not found")
    seen.remember(digest, url, first)
    _promise(seen.find(digest, url) == first, "who had a content first is found, with address, time and record")
    _promise(seen.find(digest, other) == first, "another page of the host finds the same holder")
    _promise(seen.find(another, url) is None, "a content that differs in one bit is another one")
    second = Original(other.text, 1_000_001.0, "")
    seen.remember(another, other, second)
    _promise(seen.find(another, url) == second, "each content has its own holder")
    _promise(seen.find(digest, other) == first, "what is remembered of one content leaves the others as they are")
    _promise(make().find(digest, url) is None, "an empty one knows nothing (`make` must give empty ones)")


def check_filter(one: Filter, accepts: Sequence[Link | str] = (), rejects: Sequence[Link | str] = ()) -> None:
    """Run the contract of a filter; `accepts` and `rejects` are links (or addresses of anchors) it must judge so."""
    _promise(isinstance(one.name, str) and one.name != "", "a filter has a name: `why` shows it")
    _promise(one.name.isidentifier(), f"a filter's name is one word of letters, digits and _, not {one.name!r}")
    accepted = [_link(link) for link in accepts]
    rejected = [_link(link) for link in rejects]
    links = [*accepted, *rejected, *_odd_links()]
    judged = {}
    for link in links:
        try:
            judged[link] = one.rejects(link)
        except Exception as error:
            raise AssertionError(f"a filter judges every link: {link.url.text} raised {error!r}") from error
        _promise(isinstance(judged[link], bool), f"`rejects` answers True or False, not {judged[link]!r}")
    for link in accepted:
        _promise(not judged[link], f"{one.name} lets {link.url.text} pass")
    for link in rejected:
        _promise(judged[link], f"{one.name} rejects {link.url.text}")
    for link in reversed(links):
        again = one.rejects(link)
        _promise(again == judged[link], f"a filter is pure: {link.url.text} was judged {judged[link]}, then {again}")


def check_middleware(one: VisitMiddleware) -> None:
    """Run the contract of a visit middleware: judges are pure, and requests keep their address."""
    _promise(one.name.isidentifier(), f"a middleware's name is one word of letters, digits and _, not {one.name!r}")
    urls = [link.url for link in _odd_links()]
    for url in urls:
        verdict = one.judge(url, 1.0)
        _promise(one.judge(url, 1.0) == verdict, f"`judge` is pure: {url.text} has two verdicts at the same time")
        _check_verdict(one, verdict)
        visit = Visit(url, 0, 0, "anchor", "")
        request = Request(url.text, "192.0.2.1", 80)
        changed = one.request(url, visit, request, 1.0)
        same = (changed.ip, changed.port) == (request.ip, request.port)
        _promise(same, "`request` keeps the address, which was checked")
        reply = Reply(url.text, 404, (), b"", "192.0.2.1", 1.0, 0.1, 0)
        _promise(isinstance(one.received(url, reply, 1.0), Reply), "`received` returns a Reply")
        conclusion = one.settle(visit, reply, 1.0)
        if conclusion is not None:
            _promise(conclusion.outcome in OUTCOMES, f"{conclusion.outcome} is no outcome of a visit")
    kept = [one.judge(url, 1.0) for url in urls]
    _promise(kept == [one.judge(url, 1.0) for url in urls], "`judge` is pure: calls for other URLs change nothing")


def _check_verdict(one: VisitMiddleware, verdict: Verdict) -> None:
    if verdict.allowed:
        return
    says = verdict.reason or (verdict.park and verdict.prerequisite is None)
    _promise(bool(says), "a verdict that is not allowed has a reason, which `why` shows")
    _promise(verdict.outcome in ("", *OUTCOMES), f"{verdict.outcome} is no outcome of a visit")
    waits = verdict.prerequisite is not None or verdict.park or verdict.wait_until > 0.0
    _promise(bool(verdict.outcome) != waits, "a URL that may not be requested ends or waits")
    prerequisite = verdict.prerequisite
    if prerequisite is not None:
        _promise(prerequisite.owner == one.name, "a middleware is the owner of its prerequisite fetches")


def check_prioritizer(one: Prioritizer, urgent: Sequence[tuple[Link | str, Link | str]] = ()) -> None:
    """Run the contract of a prioritizer; of each pair in `urgent` the first must not be less urgent than the second."""
    links = [link for pair in urgent for link in map(_link, pair)] + _odd_links()
    links.append(Link(_url("http://example.org/"), "seed", 0, seed=1))
    levels = {}
    for link in links:
        try:
            levels[link] = one.level(link)
        except Exception as error:
            raise AssertionError(f"a prioritizer takes every link: {link.url.text} raised {error!r}") from error
        _check_level(levels[link], link.url.text)
    for link in reversed(links):
        _promise(one.level(link) == levels[link], f"`level` is pure: {link.url.text} got another one the second time")
    for first, second in urgent:
        before = levels[_link(first)]
        after = levels[_link(second)]
        _promise(before <= after, f"{_link(first).url.text} (level {before}) comes no later than level {after}")
    if isinstance(one, HostPrioritizer):
        _check_host_levels(one)
    if isinstance(one, HistoryPrioritizer):
        last = LastVisit("http_error", 1.0, 503, 2, "busy")
        for visit, failures in ((None, 0), (last, 5)):
            history = DownloadHistory(visit, visit, Standing("example.org", 3, 10, failures))
            for link in links:
                level = one.level_by_history(link, history)
                _check_level(level, link.url.text)
                _promise(one.level_by_history(link, history) == level, "`level_by_history` is pure")


def _check_host_levels(one: HostPrioritizer) -> None:
    known = {"linking_sites", "cash"}
    _promise(set(one.needs) <= known, f"`needs` names of {sorted(known)}, not {list(one.needs)}")
    for queued in (0, 1, 100, 1 << 40):
        for failures in (0, 5):
            for linking, cash in ((0.0, 0.0), (1.0, 1e-9), (1e9, 1e9)):
                standing = Standing("example.org", queued, 10, failures, linking, cash)
                level = one.host_level(standing)
                _check_level(level, str(standing))
                _promise(one.host_level(standing) == level, f"`host_level` is pure: {standing} got another one")


def _check_level(level: object, of: str) -> None:
    good = isinstance(level, int) and not isinstance(level, bool) and 0 <= level <= LEVEL_MAX
    _promise(good, f"a level is a whole number from 0 to {LEVEL_MAX}, not {level!r} for {of}")


def check_bias(make: Callable[[], Bias], *, starves: bool = False) -> None:
    """Run the contract of a bias; with `starves` a level may never be drawn beside more urgent ones."""
    bias = make()
    for levels in ([3], [0, 7], [7, 2, 5], list(range(LEVEL_MAX + 1))):
        drawn = {bias.choose(list(levels)) for _ in range(MANY)}
        _promise(drawn <= set(levels), f"`choose` returns one of {levels}, not {sorted(drawn)}")
        _promise(starves or drawn == set(levels), f"no level starves: of {levels} only {sorted(drawn)} were drawn")


def check_frontier(make: Callable[[FakeGates], Strategy]) -> None:
    """Run the contract of a frontier component; `make` gives one with the state of the last `cut`, if there was one.

    URLs that it held and did not offer may remain at the end: it may queue them later or never.
    """
    one = make(FakeGates())
    _promise(not one.can_offer(), "a component that holds nothing has nothing to offer")
    links = [Link(_url(f"http://host{number % 7}.example/{number}"), "anchor", 1) for number in range(MANY)]
    kept = [one.hold(link, number % 8, 1.0) for number, link in enumerate(links)]
    _promise(all(isinstance(held, bool) for held in kept), "`hold` answers True or False")
    one.cut(1.0)
    gates = FakeGates()
    one = make(gates)
    queued: list[Link] = []
    while one.can_offer():
        one.offer(2.0)
        _promise(bool(gates.queued), "while `can_offer` is True, `offer` queues URLs: otherwise the crawl never ends")
        queued += gates.finish(one)
        _promise(len(queued) <= MANY, "each URL is queued once")
    held = {link for link, is_held in zip(links, kept, strict=True) if is_held}
    _promise(set(queued) <= held and len(set(queued)) == len(queued), "of the URLs that it holds, each is queued once")
    one.cut(3.0)
    _promise(not make(FakeGates()).can_offer(), "a URL that was queued is not held any more after the next `cut`")


async def check_resolver(make: Callable[[], Resolver], known: Sequence[str], unknown: Sequence[str] = ()) -> None:
    """Run the contract of a resolver; `known` are hosts that it finds, `unknown` hosts that do not exist."""
    resolver = make()
    try:
        for host in (*known, *unknown):
            _promise(resolver.cached(host) is None, "`cached` looks nothing up: before `resolve` it returns None")
            found = await resolver.resolve(host)
            if host in unknown:
                _promise(isinstance(found, Failure), f"`resolve` returns why {host} has no address, as a Failure")
                continue
            assert isinstance(found, Located), f"broken promise: {host} is found, not {found!r}"
            _promise(bool(found.addresses), "what is located has an address; without one it is a Failure")
            for address in found.addresses:
                ip_address(address)  # Raises ValueError, which names the text.
            _promise(resolver.cached(host) in (None, found), "`cached` returns what `resolve` found")
    finally:
        await resolver.close()


def check_revisit_policy(policy: RevisitPolicy) -> None:
    """Run the contract of a revisit policy."""
    priced = getattr(policy, "priced", False)
    for rate in (1e-9, 1e-5, 10.0):
        for importance in (0.0, 1.0, 1e6):
            for interval_s, changed, since_s in ((0.0, False, None), (3_600.0, False, None), (3_600.0, True, 60.0)):
                habits = Habits(rate, importance, interval_s, changed, since_s)
                given = [policy.rate(habits, 10.0**power) for power in range(-18, 19)]
                _promise(all(0.0 <= one < inf for one in given), f"a rate is a number from 0 on, not one of {given}")
                _promise(given == [policy.rate(habits, 10.0**power) for power in range(-18, 19)], "`rate` is pure")
                falls = not priced or all(after <= before for before, after in pairwise(given))
                _promise(falls, f"a priced policy gives no more at a higher price: {habits}")
        bare = Habits(rate, 1.0)
        told = Habits(rate, 1.0, 3_600.0, changed=True, since_change_s=60.0)
        same = policy.rate(bare, 1.0) == policy.rate(told, 1.0)
        _promise(same or not priced, "a priced policy goes by change rate and importance alone")


def check_archive(make: Callable[[], Archive]) -> None:
    """Run the contract of an archive; `make` gives an empty one, whose files the caller looks at himself."""
    archive = make()
    archive.cut()
    taken: list[tuple[Visited, Archived]] = []
    for number, visited in enumerate(_visits()):
        before = (visited.row.url, visited.row.outcome, visited.row.status)
        archived = archive.add(visited) or Archived()
        _promise(isinstance(archived, Archived), f"`add` returns Archived or None, not {archived!r}")
        after = (visited.row.url, visited.row.outcome, visited.row.status)
        _promise(after == before, f"an archive leaves what happened as it is: {before} became {after}")
        _check_place(visited, archived)
        taken.append((visited, archived))
        if number % 5 == 0:
            archive.cut()
    archive.cut()
    archive.cut()
    ids = [archived.record_id for _, archived in taken if archived.record_id]
    _promise(len(set(ids)) == len(ids), "no two records share an id")
    ends: dict[str, int] = {}
    for place in [archived for _, archived in taken]:
        if place.warc_file and place.warc_offset is not None and place.warc_length is not None:
            _promise(place.warc_length > 0, "a record has bytes")
            _promise(place.warc_offset >= ends.get(place.warc_file, 0), "no record overlaps another")
            ends[place.warc_file] = place.warc_offset + place.warc_length
    archive.close()


def _check_place(visited: Visited, archived: Archived) -> None:
    row = visited.row
    whole = (archived.warc_offset is not None) == bool(archived.warc_file) == (archived.warc_length is not None)
    _promise(whole, "a place is file, offset and length, or none of them")
    if not archived.warc_file:
        return
    _promise(visited.reply is not None, "only a response has a place")
    told = (row.warc_file, row.warc_offset, row.warc_length)
    given = (archived.warc_file, archived.warc_offset, archived.warc_length)
    _promise(told == given, f"the row's place is the one that is returned: {told}, {given}")


async def check_protocol_module(
    make: Callable[[], ProtocolModule],
    served: Mapping[str, bytes],
    redirects: Sequence[str] = (),
    ip: str = "127.0.0.1",
) -> None:
    """Run the contract of a protocol module.

    `served` are addresses that a server at `ip` answers, with the body it sends (no content coding); `redirects` are
    addresses that it answers with a redirect.
    """
    module = make()
    try:
        for address, body in served.items():
            await _check_whole(module, address, body, ip)
            await _check_bound(module, address, body, ip)
        for address in redirects:
            result = _reply(await _fetch(module, address, ip), address)
            _promise(300 <= result.status < 400, f"nothing is followed: {address} redirects, {result.status} came")
        some = next(iter(served))
        await _check_closed_port(module, some, ip)
        await _check_cancelled(module, some, ip)
    finally:
        await module.close()


async def _check_whole(module: ProtocolModule, address: str, body: bytes, ip: str) -> None:
    result = _reply(await _fetch(module, address, ip), address)
    _promise(result.url == address, f"a reply carries the address that was asked for, not {result.url}")
    _promise(result.ip == ip, f"the connection goes to the address of the request, {ip}, not to {result.ip!r}")
    _promise(result.body == body, f"the body is what was sent: {len(result.body)} bytes of {len(body)} for {address}")
    _promise(result.truncated == "", "what came whole is not marked as cut")
    _promise(result.wire_bytes >= len(result.body), "`wire_bytes` counts at least the body")
    _promise(result.fetch_s >= 0 and result.started_at > 0, "a reply says when it was asked for and how long it took")
    plain = result.media_type == result.media_type.lower() and ";" not in result.media_type
    _promise(plain, f"a media type is in lower case and without parameters, not {result.media_type!r}")


async def _check_bound(module: ProtocolModule, address: str, body: bytes, ip: str) -> None:
    if len(body) < 2:
        return
    most = len(body) // 2
    cut = _reply(await _fetch(module, address, ip, most), address)
    _promise(len(cut.body) <= most, f"a body is cut at its bound: {len(cut.body)} bytes came, {most} were allowed")
    _promise(cut.truncated == "length", "a body that was cut is marked (`truncated` is `length`)")
    _promise(body.startswith(cut.body), "a body that was cut is the beginning of the whole")


async def _check_closed_port(module: ProtocolModule, address: str, ip: str) -> None:
    failure = await _fetch(module, address, ip, port=CLOSED_PORT)
    _promise(isinstance(failure, Failure), "where no server listens the result is a Failure")
    assert isinstance(failure, Failure)
    _promise(failure.outcome in OUTCOMES, f"a failure's outcome is one of OUTCOMES, not {failure.outcome!r}")
    _promise(failure.host_level, "that no server listens says something of the host (`host_level`)")
    _promise(failure.error != "" and "\n" not in failure.error, "a failure says in one line what was wrong")


async def _check_cancelled(module: ProtocolModule, address: str, ip: str) -> None:
    task = asyncio.ensure_future(module.fetch(_request(address, ip)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    after = await _fetch(module, address, ip)
    _promise(isinstance(after, Reply), "a request that was cancelled harms none that come after it")


async def _fetch(module: ProtocolModule, address: str, ip: str, bytes_max: int = 0, port: int = 0) -> Reply | Failure:
    try:
        async with asyncio.timeout(FETCH_S_MAX):
            return await module.fetch(_request(address, ip, bytes_max, port))
    except TimeoutError:
        raise AssertionError(f"a request ends: {address} was not answered within {FETCH_S_MAX:.0f} s") from None
    except Exception as error:
        raise AssertionError(f"a module raises nothing of the web's doing: {address} raised {error!r}") from error


def check_processing_module(module: ProcessingModule, pages: Sequence[Page] = ()) -> None:
    """Run the contract of a processing module on `pages` and on some that are malformed."""
    _promise(isinstance(module.name, str) and module.name != "", "a processing module has a name: errors show it")
    for media_type in ("text/html", "application/pdf", "image/png", ""):
        wanted = module.wants(media_type)
        _promise(isinstance(wanted, bool), f"`wants` answers True or False, not {wanted!r}")
        _promise(module.wants(media_type) == wanted, f"`wants` is pure: it changed its mind about {media_type!r}")
    for one in [*pages, *_odd_pages()]:
        if not module.wants(one.media_type):
            continue
        first = _process(module, one)
        _promise(first == _process(module, one), f"a module is pure: {one.url} gave other findings the second time")
        earlier = Found("http://earlier.example/", "anchor")
        added = _process(module, one, earlier)
        _promise(earlier in added.links, f"a module adds to the findings: on {one.url} it removed another's link")
        _promise(all(link.link_type in LINK_TYPES for link in added.links), "a link's type is one of LINK_TYPES")


def _process(module: ProcessingModule, one: Page, *earlier: Found) -> Findings:
    findings = Findings(links=list(earlier))
    try:
        module.process(one, findings)
    except Exception as error:
        raise AssertionError(f"a module takes every page that it wants: {one.url} raised {error!r}") from error
    return findings


# ---- what the contracts are run on


def _promise(kept: bool, promise: str) -> None:
    if not kept:
        raise AssertionError(f"broken promise: {promise}")


def _url(address: str) -> Url:
    url = _namer.name(address)
    assert url is not None, address
    return url


def _link(link: Link | str) -> Link:
    return Link(_url(link), "anchor", 1) if isinstance(link, str) else link


def _odd_links() -> list[Link]:
    """Return links that a web may well have: every type, deep, long, with hosts and paths of all kinds."""
    root = "http://example.org"
    addresses = [
        root + "/", root + ":8080/a?b=c&d", "https://xn--bcher-kva.example/", "http://127.0.0.1/", "http://[::1]:81/",
        root + "/" + "a/" * 200, root + "/?" + "q" * 5_000, root + "//..;/%00%ff", "ftp://example.org/file",
        "http://user:password@example.org/", "http://example.org./",
    ]  # fmt: skip
    links = [Link(_url(address), "anchor", 1, 0, root + "/") for address in addresses]
    links += [Link(_url(root + "/typed"), link_type, 2) for link_type in LINK_TYPES]
    return [*links, Link(_url(root + "/far"), "redirect", 60_000, 200, seed=1)]


def _odd_pages() -> list[Page]:
    bodies = [
        b"", b"\x00\xff\xfe", b"<", b"<html><title>", b'<a href="http://[">x</a><a href>', b"<div>" * 2_000,
        "<title>Ünï \U0001f577</title><a href='/ä?ö#ü'>ß</a>".encode(),
    ]  # fmt: skip
    return [
        Page(f"http://odd.example/{number}", media_type, "", (("Content-Type", media_type),), body)
        for number, body in enumerate(bodies)
        for media_type in ("text/html", "application/octet-stream")
    ]


def _visits() -> list[Visited]:
    """Return one finished attempt of every outcome, some responses of odd shape among them."""
    visits = [_make_visited(number, outcome, reply=None) for number, outcome in enumerate(OUTCOMES)]
    bodies = [b"", b"x", b"some words " * 1_000, bytes(range(256))]
    visits += [_make_visited(100 + number, "fetched", reply=body) for number, body in enumerate(bodies)]
    visits.append(_make_visited(200, "redirected", reply=b"gone", status=301))
    visits.append(_make_visited(201, "http_error", reply=b"", status=500))
    copy = _make_visited(202, "fetched", reply=b"x")
    copy.revisit_of = Original("http://a.example/101", 1_000_000.0, "<urn:uuid:00000000-0000-4000-8000-000000000001>")
    copy.row.duplicate_of = copy.revisit_of.url
    return [*visits, copy]


def _make_visited(number: int, outcome: str, reply: bytes | None, status: int = 200) -> Visited:
    url = _url(f"http://a.example/{number}")
    row = PageRow(url.text, url.key, url.host, url.site, 1_000_000.0 + number, outcome)
    visited = Visited(url, row)
    if reply is not None:
        row.status, row.body_bytes, row.media_type = status, len(reply), "text/html"
        visited.reply = Reply(
            url=url.text, status=status, headers=(("Content-Type", "text/html"), ("X-Odd", "\xe9 : \t")), body=reply,
            ip="127.0.0.1", started_at=row.fetched_at, fetch_s=0.1, wire_bytes=len(reply) + 60, reason="",
            request_head=f"GET /{number} HTTP/1.1\r\nHost: a.example\r\n\r\n".encode(), media_type="text/html",
        )  # fmt: skip
        visited.links = [Found("http://a.example/", "anchor", "home \U0001f577", nofollow=True)]
        visited.link_keys = ["http://a.example/"]
        visited.digest = number.to_bytes(20)
    return visited


def _request(address: str, ip: str, body_bytes_max: int = 0, port: int = 0) -> Request:
    parts = urlsplit(address)
    if port:
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        address = parts._replace(netloc=f"{host}:{port}").geturl()
    return Request(address, ip, port or parts.port or DEFAULT_PORTS.get(parts.scheme, 0), body_bytes_max=body_bytes_max)


def _reply(result: Reply | Failure, address: str) -> Reply:
    if isinstance(result, Failure):
        raise AssertionError(f"broken promise: {address} is served, yet the result is {result.outcome}: {result.error}")
    return result
