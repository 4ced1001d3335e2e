"""Which modules look at a page, and what they may add to the tables."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.pages import Findings, Page
from gossamer.options import OptionsError, convert
from gossamer.ports import ProcessingModule
from gossamer.stages.process.chain import NAMES_MAX, ROWS_MAX, Fitting, Modules, Unwatched
from gossamer.stages.process.choice import Chosen, make_modules
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.own import processing_module

from .pages import page


class Named:
    """A module that says that it ran."""

    columns: Mapping[str, str] = {}
    tables: Mapping[str, Mapping[str, str]] = {}

    def __init__(self, name: str, *, isolated: bool = False, **declared: Mapping[str, str]) -> None:
        self.name = name
        self.isolated = isolated
        self.columns = declared.get("columns", {})
        self.tables = declared.get("tables", {})  # type: ignore[assignment]

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        findings.text += self.name + " "


def choose(types: dict[str, tuple[str, ...]], *special: Named, embeds: bool = False, **options: object) -> Chosen:
    known = {module.name: module for module in special}
    given = convert(ProcessOptions, {"types": types, **options})
    return make_modules(given, lambda name, key: known.get(name) or Named(name), embeds=embeds)


def ran(modules: Modules, media_type: str) -> list[str]:
    return modules.process(page("", media_type=media_type)).findings.text.split()


def test_the_exact_type_comes_first_and_each_module_runs_once() -> None:
    modules = choose({"text/*": ("b", "c"), "*/*": ("c", "d"), "text/html": ("a", "b")}).inside
    assert ran(modules, "text/html") == ["a", "b", "c", "d"]
    assert ran(modules, "text/x") == ["b", "c", "d"]
    assert ran(modules, "image/png") == ["c", "d"]
    assert ran(modules, "") == ["c", "d"]


def test_what_is_not_named_stays_as_it_is() -> None:
    modules = choose({"image/*": ("image",)}).inside
    assert ran(modules, "text/html") == ["links", "title_and_text", "header_links", "directives"]
    assert ran(modules, "image/png") == ["image", "header_links", "directives"]
    assert ran(choose({"*/*": ()}).inside, "image/png") == []


def test_modules_that_choose_themselves_come_last() -> None:
    modules = choose({"text/html": ("a",), "*/*": ()}, modules=("own",)).inside
    assert ran(modules, "text/html") == ["a", "own"]
    assert ran(modules, "text/plain") == ["title_and_text"]


def test_embeds_are_looked_for_only_when_they_are_followed() -> None:
    assert "embeds" not in ran(choose({}).inside, "text/html")
    modules = choose({}, embeds=True).inside
    assert ran(modules, "text/html")[:3] == ["links", "title_and_text", "embeds"]
    assert ran(modules, "text/css")[0] == "embeds"


def test_isolated_modules_run_apart() -> None:
    made = choose({"text/html": ("a", "b", "c"), "*/*": ()}, Named("b", isolated=True), isolated=("c",))
    assert ran(made.inside, "text/html") == ["a"]
    assert ran(made.isolated, "text/html") == ["b", "c"]
    assert made.isolated.process(page("")).findings.text == "b c "
    assert made.isolated.process(page(""), left_out=[0]).findings.text == "c "
    assert not made.isolated.wants("text/plain")


def test_the_language_is_looked_for_where_its_text_is() -> None:
    types = {"text/html": ("title_and_text", "language", "main_text"), "*/*": ()}
    made = choose(types, isolated=("main_text",))
    assert ran(made.inside, "text/html") == ["title_and_text"]
    assert ran(made.isolated, "text/html") == ["language", "main_text"]
    apart = choose(types, isolated=("language",))
    assert ran(apart.inside, "text/html") == ["title_and_text", "main_text"]


def test_what_modules_declare_is_gathered() -> None:
    made = choose(
        {"*/*": ("a", "b")},
        Named("a", columns={"words": "int"}, tables={"images": {"width": "int"}}),  # type: ignore[dict-item]
        Named("b", columns={"words": "int", "seen": "time"}, tables={"images": {"alt": "text"}}),  # type: ignore[dict-item]
    )
    assert made.columns == {"words": "int", "seen": "time"}
    assert made.tables == {"images": {"width": "int", "alt": "text"}}


@pytest.mark.parametrize(
    ("declared", "mistake"),
    [
        ({"columns": {"url": "text"}}, "no column can be called 'url'"),
        ({"columns": {"Words": "int"}}, "no column can be called 'Words'"),
        ({"columns": {"words": "integer"}}, "kinds are text, int,"),
        ({"columns": {"words": "text"}}, "another module says 'int'"),
        ({"tables": {"pages": {"x": "int"}}}, "no table can be called 'pages'"),
        ({"tables": {"a/b": {"x": "int"}}}, "no table can be called 'a/b'"),
        ({"tables": {"images": {"url": "text"}}}, "no column of images can be called 'url'"),
    ],
)
def test_a_mistaken_declaration_is_the_operators(declared: dict[str, Mapping[str, str]], mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        choose({"*/*": ("first", "a")}, Named("first", columns={"words": "int"}), Named("a", **declared))


def test_an_isolated_module_must_be_one_of_the_crawl() -> None:
    with pytest.raises(ConfigError, match=r"process\.isolated: 'x' is not among"):
        choose({}, isolated=("x",))


@pytest.mark.parametrize("pattern", ["html", "text/", "*", "*/html", "text/h*", "Text/HTML", ""])
def test_a_pattern_that_is_none(pattern: str) -> None:
    with pytest.raises(OptionsError, match="is no media type"):
        convert(ProcessOptions, {"types": {pattern: ["links"]}})


def test_a_decorated_function_is_a_module() -> None:
    @processing_module("text/*", "image/png", columns={"size": "int"}, isolated=True)
    def size(page: Page, findings: Findings) -> None:
        """Say how long a page is."""
        findings.columns["size"] = len(page.body)

    module: ProcessingModule = size
    assert (module.name, size.columns, size.isolated) == ("size", {"size": "int"}, True)
    assert [module.wants(kind) for kind in ("text/html", "image/png", "image/gif")] == [True, True, False]
    found = Findings()
    module.process(page("abc"), found)
    assert found.columns == {"size": 3}
    size(page("abcd"), found)
    assert found.columns == {"size": 4}
    with pytest.raises(TypeError, match="brackets"):
        processing_module(lambda page, findings: None)  # type: ignore[arg-type]


def test_values_are_brought_into_the_form_that_was_declared() -> None:
    kinds = {"a": "int", "b": "text", "c": "float", "d": "texts", "e": "json", "f": "bool", "g": "time"}
    found = Findings(columns={"a": "7", "b": 8, "c": "9.5", "d": (1, "x"), "e": {"k": [1]}, "f": 1, "g": 10})
    assert Fitting(kinds, {}).fit(found) == []
    assert found.columns == {"a": 7, "b": "8", "c": 9.5, "d": ["1", "x"], "e": '{"k":[1]}', "f": True, "g": 10.0}


def test_what_does_not_fit_is_left_out_and_reported() -> None:
    found = Findings(columns={"a": "x", "b": 2**70, "title": "no", "A B": 1, "d": "text", "e": object(), "ok": 1})
    problems = Fitting({"a": "int", "b": "int", "d": "texts", "e": "json"}, {}).fit(found)
    assert found.columns == {"ok": 1}
    assert len(problems) == 6
    assert "no column can be called 'title'" in problems


def test_names_and_rows_that_nobody_declared_are_bounded() -> None:
    fitting = Fitting({}, {"known": {"n": "int"}})
    found = Findings(columns={f"c{n}": 1 for n in range(NAMES_MAX + 50)})
    assert fitting.fit(found)
    assert len(found.columns) == NAMES_MAX
    found = Findings(rows={"known": [{"n": str(n)} for n in range(ROWS_MAX + 1)], "state": [{}], "other": [{}]})
    problems = fitting.fit(found)
    assert list(found.rows) == ["known"]
    assert len(found.rows["known"]) == ROWS_MAX
    assert found.rows["known"][1] == {"n": 1}
    assert len(problems) == 3


class Ticks(Unwatched):
    """A watch that interrupts at once what runs a second time."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def resume(self) -> None:
        self.log.append("begin")
        if self.log.count("begin") == 2:
            raise TimeoutError("it took too long")

    def end(self) -> None:
        self.log.append("end")


def test_each_module_is_watched_by_itself() -> None:
    watch = Ticks()
    modules = Modules([Named("a"), Named("b"), Named("c")], ProcessOptions(), watch=watch)
    processed = modules.process(page(""))
    assert processed.findings.text == "a c "
    assert [str(error) for error in processed.errors] == ["b: TimeoutError: it took too long"]
    assert watch.log == ["end", "begin", "end", "begin", "begin", "end"]


def test_nothing_is_fitted_where_nothing_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fitting, "fit", lambda *_: pytest.fail("it was asked"))
    assert Modules([Named("a")], ProcessOptions()).process(page("")).errors == ()
