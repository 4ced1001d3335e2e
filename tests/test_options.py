"""Options: what a table becomes, and that all of its mistakes are found at once."""

from typing import Annotated, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.options import Key, Mistake, NamedSection, OptionsError, Section, convert, keys_of, to_table


def _upper(text: str) -> str:
    if not text:
        raise ValueError("'' is no name")
    return text.upper()


def _doubled(given: object) -> object:
    return given * 2 if isinstance(given, str) else given


def _require_lower(name: str) -> None:
    if not name.islower():
        raise ValueError(f"{name!r} is not in lower case")


class Point(Section, frozen=True, kw_only=True):
    TEXT: ClassVar[str] = "label"

    x: Annotated[int, Key("Required", ge=0)]
    label: Annotated[str, Key(check=_upper)] = "P"


class Label(Section, frozen=True):
    TEXT: ClassVar[str] = "text"

    text: str = ""


class Points(NamedSection, frozen=True):
    """Points by name."""

    rules: Annotated[dict[str, Point], Key(names=_require_lower)] = {}


class Whole(Section, frozen=True):
    share: Annotated[float, Key("Share", gt=0, le=1)] = 0.5
    count: Annotated[int | None, Key(ge=1, lt=10)] = None
    mode: Literal["slow", "fast"] = "slow"
    is_on: bool = False
    names: Annotated[tuple[Annotated[str, Key(pattern="[a-z]+")], ...], Key("Names")] = ("a",)
    weights: Annotated[dict[str, float], Key(names=_require_lower)] = {}
    text: Annotated[str, Key(min_length=1, read=_doubled)] = "x"
    label: Label = Label()
    point: Point | None = None
    points: Points = Points()

    def __post_init__(self) -> None:
        if self.is_on and self.mode == "slow":
            raise ValueError("is_on goes with mode fast")


def found(table: object) -> list[Mistake]:
    with pytest.raises(OptionsError) as caught:
        convert(Whole, table)
    return caught.value.mistakes


def said(table: object) -> list[str]:
    return [str(mistake) for mistake in found(table)]


def test_a_table_becomes_a_section() -> None:
    table = {
        "share": 1, "count": 3, "mode": "fast", "is_on": True, "names": ["b", "c"], "weights": {"a": 2}, "text": "ab",
        "label": "short", "point": {"x": 1, "label": "p"}, "points": {"a": {"x": 2}, "b": None},
    }  # fmt: skip
    made = convert(Whole, table)
    assert made == Whole(
        1.0, 3, "fast", True, ("b", "c"), {"a": 2.0}, "abab", Label("short"), Point(x=1, label="P"),
        Points({"a": Point(x=2)}),
    )  # fmt: skip
    assert [type(made.share), type(made.weights["a"])] == [float, float]
    assert convert(Whole, {}) == Whole()
    assert convert(Whole, {"count": None, "point": made.point}) == Whole(point=made.point)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"share": 0}, "share: expected more than 0"),
        ({"share": 1.5}, "share: expected 1 or less"),
        ({"share": True}, "share: expected a number"),
        ({"share": float("inf")}, "share: expected a finite number"),
        ({"share": float("nan")}, "share: expected a finite number"),
        ({"share": 10**400}, "share: expected a finite number"),
        ({"count": 0}, "count: expected 1 or more"),
        ({"count": 10}, "count: expected less than 10"),
        ({"count": 2.0}, "count: expected a whole number"),
        ({"count": "2"}, "count: expected a whole number"),
        ({"mode": "fats"}, "mode: expected 'slow' or 'fast'; did you mean 'fast'?"),
        ({"mode": ["fast"]}, "mode: expected 'slow' or 'fast'"),
        ({"is_on": 1}, "is_on: expected true or false"),
        ({"names": "b"}, 'names: expected a list, such as ["a", "b"]'),
        ({"names": ["b", "C"]}, "names.1: expected a text that matches [a-z]+"),
        ({"names": ["b\n"]}, "names.0: expected a text that matches [a-z]+"),
        ({"names": [1]}, 'names.0: expected a text, in quotes, such as "a"'),
        ({"weights": []}, "weights: expected a section of keys"),
        ({"weights": {"a": "1"}}, "weights.a: expected a number"),
        ({"weights": {"A": 1}}, "weights.A: 'A' is not in lower case"),
        ({"text": ""}, "text: expected a text that is not empty"),
        ({"text": None}, 'text: expected a text, in quotes, such as "a"'),
        ({"label": 3}, "label: expected a section of keys"),
        ({"label": {"txet": ""}}, "label.txet: there is no such key; did you mean text?"),
        ({"label": {"colour": ""}}, "label.colour: there is no such key; there are text"),
        ({"point": {"label": "p"}}, "point.x: it is missing; add it"),
        ({"point": {"x": 1, "label": ""}}, "point.label: '' is no name"),
        ({"points": {"a": {"x": -1}}}, "points.a.x: expected 0 or more"),
        ({"is_on": True}, "is_on goes with mode fast"),
        ([], "expected a section of keys, which [NAME] begins: [[NAME]] begins a list"),
    ],
)
def test_what_is_wrong_is_said(table: object, message: str) -> None:
    assert said(table) == [message]


def test_all_mistakes_are_found_at_once_in_the_order_of_the_table() -> None:
    table = {
        "mode": "fats", "coutn": 1, "point": {"label": "", "y": 1}, "points": {"B": {"x": -1}}, "names": ["A", "B"],
    }  # fmt: skip
    assert [mistake.path for mistake in found(table)] == [
        ("mode",), ("coutn",), ("point", "label"), ("point", "y"), ("point", "x"), ("points", "B"),
        ("points", "B", "x"), ("names", "0"), ("names", "1"),
    ]  # fmt: skip
    assert [mistake.given for mistake in found(table)][:4] == ["fats", 1, "", 1]


def test_keys_are_checked_together_only_where_each_is_right() -> None:
    assert said({"is_on": True, "count": 0}) == ["count: expected 1 or more"]


def test_keys_are_declared_once() -> None:
    share, count = keys_of(Whole)["share"], keys_of(Whole)["count"]
    assert (share.key.what, share.key.le, share.default) == ("Share", 1, 0.5)
    assert (count.type, count.default) == (int | None, None)
    assert keys_of(Whole)["mode"].choices == ("slow", "fast")
    assert keys_of(Points) == {}


NUMBERS = st.integers(0, 2**63 - 1)
WHOLES = st.builds(
    Whole,
    share=st.floats(0, 1, exclude_min=True),
    count=st.none() | st.integers(1, 9),
    mode=st.just("fast"),
    is_on=st.booleans(),
    names=st.lists(st.text("abc", min_size=1)).map(tuple),
    weights=st.dictionaries(st.text("abc", min_size=1), st.floats(allow_nan=False, allow_infinity=False)),
    label=st.builds(Label, text=st.text()),
    point=st.none() | st.builds(Point, x=NUMBERS, label=st.text("ABC", min_size=1)),
    points=st.builds(Points, st.dictionaries(st.text("abc", min_size=1), st.builds(Point, x=NUMBERS))),
)


@given(WHOLES)
def test_a_section_as_a_table_is_the_same_again(whole: Whole) -> None:
    assert convert(Whole, to_table(whole)) == whole
    assert convert(Whole, {**to_table(whole, defaults=True), "text": "x"}) == convert(
        Whole, {**to_table(whole), "text": "x"}
    )
    assert to_table(Whole()) == {}
