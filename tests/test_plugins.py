"""Plugins: components by module and name, and by entry point."""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from gossamer import Crawler
from gossamer.assembly.frontiers import bias_of
from gossamer.assembly.modules import choose_modules
from gossamer.assembly.parts import check_answers, policy_of
from gossamer.config import configure
from gossamer.features.revisit.policies import BoundedPolicy
from gossamer.model.errors import ConfigError
from gossamer.model.links import ALLOWED
from gossamer.model.pages import Archived, PageRow, Visited
from gossamer.model.visits import Failure
from gossamer.plugins import build, component, fitting, naming
from gossamer.ports import (
    ContentSeen,
    Filter,
    HostPrioritizer,
    ProtocolModule,
    Resolver,
    RevisitPolicy,
    UrlSeen,
    VisitMiddleware,
)
from gossamer.stages.archive.archive import Archives
from gossamer.testing import check_archive, check_revisit_policy
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.world.dice import Dice


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that somebody installed, with one entry point."""
    (tmp_path / "brought_module.py").write_text("class Thing:\n    class Inner: pass\n")
    information = tmp_path / "brought-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[gossamer.components]\nthing = brought_module:Thing\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize(
    ("name", "found"), [("brought_module:Thing", "Thing"), ("brought_module:Thing.Inner", "Inner"), ("thing", "Thing")]
)
def test_a_component_is_found(name: str, found: str) -> None:
    assert getattr(component(name, "fetch.module"), "__name__", "") == found


@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("thin", "did you mean thing?"),
        ("nothing_like_it", "write module:Name"),
        ("no_such_module:Thing", "cannot import"),
        (":Thing", "cannot import"),
        ("brought_module:Think", "did you mean Thing?"),
        ("/no/such.py:Thing", "cannot import '/no/such.py:Thing': /no/such.py: No such file or directory"),
    ],
)
def test_a_component_that_is_not_there_is_one_line(name: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        component(name, "fetch.module")
    line = str(raised.value)
    assert line.startswith("fetch.module: ")
    assert says in line
    assert "\n" not in line


def test_a_component_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own_component_file.py"
    file.write_text("class Thing:\n    def __init__(self, *, options): self.options = options\n")
    assert getattr(build(f"{file}:Thing", "components.resolver", options=7), "options", None) == 7


@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("brought_module:Thing", {"clock": 1}, "must take clock by keyword"),
        ("brought_module:__name__", {}, "is no class or function"),
        ("/nowhere/own.py:Thing", {}, "cannot import"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(name: str, given: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        build(name, "components.resolver", **given)
    assert "components.resolver" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("class Thing(Nothing): pass", "cannot import .*NameError: name 'Nothing' is not defined"),
        ("raise RuntimeError('two\\nlines')", "cannot import .*RuntimeError: two lines"),
        ("raise SystemExit(3)", "cannot import .*SystemExit: 3"),
        (
            "class Thing:\n    def __init__(self): raise SystemExit('so')",
            "Thing failed when it was built: SystemExit: so",
        ),
        ("class Thing:\n    def __init__(self): 1 / 0", "Thing failed when it was built: ZeroDivisionError"),
    ],
)
def test_what_raises_when_it_is_built_is_refused_in_one_line(tmp_path: Path, code: str, says: str) -> None:
    (tmp_path / "raising.py").write_text(code)
    with pytest.raises(ConfigError, match=f"components.prioritizer: .*{says}") as refused:
        build(f"{tmp_path}/raising.py:Thing", "components.prioritizer")
    assert "\n" not in str(refused.value)


def test_a_file_is_one_module_for_all_its_names_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "two_things.py"
    file.write_text("class One: pass\nclass Two(One): pass\n")
    two = component(f"{file}:Two", "key")
    assert isinstance(two, type)
    assert two.__base__ is component(f"{file}:One", "key")
    file.write_text("class One: pass\nclass Two(One): new = True\n")
    os.utime(file, ns=(0, 0))
    assert hasattr(component(f"{file}:Two", "key"), "new")


def test_a_component_that_does_not_fit_its_port_is_refused_before_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "fitting_component_file.py"
    file.write_text(
        "class Half:\n    name = 'half'\n"
        "class Whole(Half):\n    def rejects(self, link): return False\n"
        "class Sister:\n    async def fetch(self, request): ...\n    async def close(self): ...\n"
    )
    assert getattr(fitting(f"{file}:Whole", "components.filters", Filter), "name", "") == "half"
    assert fitting(f"{file}:Sister", "components.protocols.x", ProtocolModule)
    with pytest.raises(ConfigError, match=r"components\.filters: .*Half has no rejects; docs/how-to/components\.md"):
        fitting(f"{file}:Half", "components.filters", Filter)
    with pytest.raises(ConfigError, match="has no close, fetch"):
        fitting(f"{file}:Half", "components.protocols.x", ProtocolModule)


OWN_RESOLVER = """
class Resolver:
    def __init__(self, *, options, clock): pass
    def cached(self, {cached}): pass
    async def resolve(self, host): pass
    async def close(self): pass
"""


def test_a_refusal_says_how_each_missing_method_is_written(tmp_path: Path) -> None:
    file = tmp_path / "half_resolver_file.py"
    file.write_text("class Half:\n    def __init__(self, *, options, clock): pass\n")
    says = r"what it must have: cached\(host\), async close\(\), async resolve\(host\)$"
    with pytest.raises(ConfigError, match=says):
        fitting(f"{file}:Half", "components.resolver", Resolver, options=1, clock=2)


@pytest.mark.parametrize("cached", ["host, *more", "host", "host, port=53", "*hosts"])
def test_a_method_that_can_be_called_as_its_port_is_accepted(tmp_path: Path, cached: str) -> None:
    file = tmp_path / "whole_resolver_file.py"
    file.write_text(OWN_RESOLVER.format(cached=cached))
    assert fitting(f"{file}:Resolver", "components.resolver", Resolver, options=1, clock=2)


def test_a_method_that_waits_where_the_port_does_not_is_refused(tmp_path: Path) -> None:
    """A filter whose answer is a coroutine would reject every link."""
    file = tmp_path / "waiting_filter_file.py"
    file.write_text("class Waiting:\n    name = 'waiting'\n    async def rejects(self, link): return False\n")
    with pytest.raises(ConfigError, match=r"rejects of .*Waiting must be written as rejects\(link\); docs/"):
        fitting(f"{file}:Waiting", "components.filters", Filter)


@pytest.mark.parametrize("cached", ["", "host, port", "*, host"])
def test_a_method_that_takes_other_arguments_is_refused_before_it_is_called(tmp_path: Path, cached: str) -> None:
    file = tmp_path / "other_resolver_file.py"
    file.write_text(OWN_RESOLVER.format(cached=cached).replace("self, )", "self)"))
    with pytest.raises(ConfigError, match=r"cached of .*Resolver must be written as cached\(host\); docs/") as refused:
        fitting(f"{file}:Resolver", "components.resolver", Resolver, options=1, clock=2)
    assert "\n" not in str(refused.value)


MIDDLEWARE = """
from gossamer.ports import VisitMiddleware

class Own(VisitMiddleware):
    name = "own"
    def __init__(self, *, epochs, name_url, unpark): pass
    def judge(self, url): pass
"""
FRONTIER = """
from gossamer.stages.frontier.strategy import Strategy

class Own(Strategy):
    def __init__(self, *, gates, epochs, name_url, dice): pass
    def hold(self, link): return False
"""


@pytest.mark.parametrize(
    ("key", "code", "says"),
    [
        ("components.middleware", MIDDLEWARE, r"judge of .*Own must be written as judge\(url, now\); docs/"),
        ("components.frontier", FRONTIER, r"hold of .*Own must be written as hold\(link, level, now\); docs/"),
    ],
)
def test_a_derived_component_whose_method_takes_other_arguments_is_refused(
    key: str, code: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / f"derived_{key[-8:]}_file.py"
    file.write_text(code)
    settings = {key: [f"{file}:Own"] if key == "components.middleware" else f"{file}:Own"}
    crawler = Crawler("http://127.0.0.1:1/", output=tmp_path / "crawl", allow_private=True, settings=settings)
    with pytest.raises(ConfigError, match=f"{key}: {says}"):
        asyncio.run(crawler.run())


ONE_LEVEL = """
class One:
    def __init__(self, *, bias, dice): pass
    def choose(self, levels): return {level}
"""


def test_a_bias_is_held_to_the_levels_that_there_are(tmp_path: Path) -> None:
    file = tmp_path / "bias_file.py"
    file.write_text(ONE_LEVEL.format(level="max(levels)"))
    config = configure(options={"contact": "me@example.org"}, sets=(f"components.bias={file}:One",))
    bias = bias_of(config, Dice(1))
    assert bias is not None
    assert bias.choose([1, 5, 2]) == 5
    file.write_text(ONE_LEVEL.format(level="8"))
    os.utime(file, ns=(0, 0))
    bias = bias_of(config, Dice(1))
    assert bias is not None
    with pytest.raises(RuntimeError, match=r"components.bias: .*One failed in choose: ValueError: it returned 8, not"):
        bias.choose([1, 5, 2])
    assert bias_of(configure(options={"contact": "me@example.org"}), Dice(1)) is None


class Nothing:
    """An archive that says of no response where it is."""

    def add(self, visited: object) -> None: ...

    def cut(self) -> None: ...

    def close(self) -> None: ...


def test_an_archive_need_not_say_where_a_response_is() -> None:
    check_archive(Nothing)
    url = Namer(Canonicalizer()).name("http://a.example/")
    assert url is not None
    row = PageRow(url.text, url.key, url.host, url.site, 1.0, "fetched")
    place = Archived("own.warc", 0, 1, "<urn:1>")

    class Own(Nothing):
        def add(self, visited: object) -> Archived:  # type: ignore[override]
            return place

    archives = Archives([Nothing()], [("nothing", Nothing()), ("own", Own()), ("last", Nothing())])
    assert archives.add(Visited(url, row)) is place
    assert Archives([Nothing()], [("nothing", Nothing())]).add(Visited(url, row)) == Archived()


def test_a_policy_without_price_needs_not_say_so(tmp_path: Path) -> None:
    file = tmp_path / "unpriced_file.py"
    file.write_text("class Daily:\n    def rate(self, habits, price): return 1 / 86_400\n")
    policy = policy_of(f"{file}:Daily")
    check_revisit_policy(policy)
    assert BoundedPolicy(policy, 1.0, 1e9).priced is False


def test_a_module_without_a_name_is_refused_before_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "half_module_file.py"
    file.write_text("class Half:\n    def process(self, page, findings): ...\n")
    config = configure(options={"contact": "me@example.org"}, sets=(f'process.modules=["{file}:Half"]',))
    with pytest.raises(ConfigError, match=r"process\.modules: .*Half has no name, wants\(media_type\); see docs"):
        choose_modules(config)
    file.write_text("class Odd:\n    name, columns, wants, process = 'odd', (), any, any\n")
    config = configure(options={"contact": "me@example.org"}, sets=(f'process.modules=["{file}:Odd"]',))
    with pytest.raises(ConfigError, match=r"process\.modules: columns of .*Odd is no dict of types; see"):
        choose_modules(config)


@pytest.mark.parametrize(("base", "method"), [("strategy.Strategy", "offer"), ("wrapping.WrappedFrontier", "select")])
def test_a_frontier_that_fails_is_named(base: str, method: str, tmp_path: Path) -> None:
    file = tmp_path / "failing_frontier_file.py"
    module, _, name = base.partition(".")
    file.write_text(
        f"from gossamer.stages.frontier.{module} import {name}\n\n"
        f"class Failing({name}):\n"
        "    def __init__(self, *, gates, epochs, name_url, dice):\n        self.gates = gates\n\n"
        f"    def {method}(self, now):\n        raise ValueError('on purpose')\n"
    )
    settings = {"components.frontier": f"{file}:Failing"}
    crawler = Crawler("http://127.0.0.1:1/", output=tmp_path / "crawl", allow_private=True, settings=settings)
    with pytest.raises(
        RuntimeError, match=rf"components.frontier: .*:Failing failed in {method}: ValueError: on purpose"
    ):
        asyncio.run(crawler.run())


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("Other", {}, r"components.frontier: .*:Other does not derive from gossamer.stages.frontier.strategy.Strategy"),
        ("Sweeping", {"frontier.strategy": "walk"}, "components.frontier: not with frontier.strategy = 'walk'; leave"),
        ("Sweeping", {"crawl.mode": "continuous"}, "crawl.mode: a continuous crawl needs frontier.strategy = sweep "),
    ],
)
def test_a_frontier_that_does_not_fit_is_refused(
    name: str, settings: dict[str, object], says: str, tmp_path: Path
) -> None:
    file = tmp_path / "unfit_frontier_file.py"
    file.write_text(
        "from gossamer.stages.frontier.strategy import Strategy\n\n"
        "class Sweeping(Strategy):\n    def __init__(self, *, gates, epochs, name_url, dice): ...\n\n"
        "class Other:\n    def __init__(self, *, gates, epochs, name_url, dice): ...\n"
    )
    chosen = {"components.frontier": f"{file}:{name}", **settings}
    crawler = Crawler("http://127.0.0.1:1/", output=tmp_path / "crawl", allow_private=True, settings=chosen)
    with pytest.raises(ConfigError, match=says):
        asyncio.run(crawler.run())


class Failing:
    """Methods of several ports, all of which fail."""

    def __init__(self) -> None:
        self.error: BaseException = ValueError("on purpose")

    def offer(self, urls: list[str], depths: list[int]) -> list[int]:
        raise self.error

    async def resolve(self, host: str) -> str:
        raise self.error


class Slotted:
    """The same without a `__dict__`."""

    __slots__ = ("error",)

    __init__ = Failing.__init__
    offer, resolve = Failing.offer, Failing.resolve


@pytest.mark.parametrize("kind", [Failing, Slotted])
def test_a_component_that_fails_is_named(kind: type[Failing], monkeypatch: pytest.MonkeyPatch) -> None:
    # Who runs tests in the background has it ignored.
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    made = naming(kind(), "mine:Failing", "components.thing", "offer", "resolve", "missing")
    assert naming(made, "mine:Failing", "components.thing", "offer") is made
    assert isinstance(made, kind)
    with pytest.raises(RuntimeError, match=r"^components.thing: mine:Failing failed in offer \(a\): ValueError: on pu"):
        made.offer(["a", "b"], [1, 2])
    with pytest.raises(RuntimeError, match=r"^components.thing: mine:Failing failed in resolve \(a\): ValueError: on "):
        asyncio.run(made.resolve("a"))
    made.error = OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="full"):
        made.offer([], [])
    made.error = SystemExit(3)
    with pytest.raises(RuntimeError, match=r"^components.thing: mine:Failing failed in offer: SystemExit: 3"):
        made.offer([], [])
    with pytest.raises(RuntimeError, match=r"^components.thing: mine:Failing failed in resolve \(a\): SystemExit: 3"):
        asyncio.run(made.resolve("a"))
    for made.error in (KeyboardInterrupt(), asyncio.CancelledError()):
        with pytest.raises(type(made.error)):
            asyncio.run(made.resolve("a"))


ANSWERS = [
    ([1], "it returned 1 answers for 2 URLs"),
    ([1, 0, 0], "it returned 3 answers for 2 URLs"),
    (None, "it returned a NoneType, not a list with an answer for each URL"),
    (iter([1, 1]), "it returned a list_iterator, not a list with an answer for each URL"),
    ([1, None], r"it returned None, not KNOWN \(0\), NEW \(1\) or SHORTER \(2\)"),
    ([3, 1], r"it returned 3, not KNOWN \(0\), NEW \(1\) or SHORTER \(2\)"),
]


@pytest.mark.parametrize(("answers", "says"), ANSWERS)
def test_an_eliminator_that_does_not_answer_for_each_url_is_named(answers: Any, says: str) -> None:
    """Links without an answer would be lost, and a crawl would end without them."""

    class Mine:
        def offer(self, urls: Any, depths: Any, hops: Any) -> Any:
            return answers

    made = cast("Any", naming(Mine(), "mine:Mine", "components.url_seen", "offer", port=UrlSeen, offer=check_answers))
    with pytest.raises(RuntimeError, match=rf"components.url_seen: mine:Mine failed in offer \(a\): \w+: {says}$"):
        made.offer(["a", "b"], [1, 1], [0, 0])


class Returning:
    """Methods of all ports, which return one value."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        async def wait(*_: object) -> object:
            return self.value

        return wait if name in ("resolve", "fetch") else lambda *_: self.value


@pytest.mark.parametrize("answer", [Failure("dns_error", "none"), None])
def test_a_method_that_returns_what_is_to_be_awaited_is_one_that_waits(answer: Failure | None) -> None:
    """As one that passes its call on to another resolver."""

    class Mine:
        def resolve(self, host: str) -> Any:
            return asyncio.sleep(0, answer)

    made = cast("Any", naming(Mine(), "mine:Mine", "components.resolver", "resolve", port=Resolver))
    if answer is not None:
        assert asyncio.run(made.resolve("a.test")) == answer
        return
    with pytest.raises(RuntimeError, match=r"failed in resolve \(a.test\): TypeError: it returned a NoneType, not"):
        asyncio.run(made.resolve("a.test"))


RESULTS: list[tuple[type, str, list[object], object, str]] = [
    (UrlSeen, "way", [None, (1, 0)], 3, "int, not tuple or None"),
    (ContentSeen, "find", [None], "a", "str, not Original or None"),
    (HostPrioritizer, "host_level", [0, 7], None, "NoneType, not int"),
    (RevisitPolicy, "rate", [0, 0.5], "1", "str, not float"),
    (Resolver, "cached", [None], ["127.0.0.1"], "list, not Located or None"),
    (Resolver, "resolve", [Failure("dns_error", "none")], "127.0.0.1", "str, not Located or Failure"),
    (ProtocolModule, "fetch", [Failure("dns_error", "none")], None, "NoneType, not Reply or Failure"),
    (VisitMiddleware, "judge", [ALLOWED], True, "bool, not Verdict"),
    (VisitMiddleware, "settle", [None], "failed", "str, not Conclusion or None"),
    (VisitMiddleware, "release", [(), []], None, "NoneType, not Sequence"),
    (VisitMiddleware, "may_repeat", [True, None, "yes"], ..., ""),
]


@pytest.mark.parametrize(
    ("port", "method", "fit", "wrong", "says"), RESULTS, ids=[f"{one[0].__name__}.{one[1]}" for one in RESULTS]
)
def test_a_result_of_another_type_is_named(
    port: type, method: str, fit: list[object], wrong: object, says: str
) -> None:
    def call(value: object) -> object:
        result = getattr(naming(Returning(value), "mine:Mine", "components.thing", method, port=port), method)("a")
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    assert [call(value) for value in fit] == fit
    if says:
        with pytest.raises(
            RuntimeError, match=rf"mine:Mine failed in {method} \(a\): TypeError: it returned a {says}$"
        ):
            call(wrong)
