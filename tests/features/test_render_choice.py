"""What `--render auto` learns, without a browser: its dice have a seed, and what rendering brings is made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.features.render import choice as render_choice
from gossamer.features.render.choice import (
    FOR_GAIN,
    FOR_SAMPLE,
    FOR_SIGNAL,
    GROUPS_MAX,
    KNOWN_MAX,
    RenderBudget,
    RenderChoice,
    evidence_of,
    gains_text,
    place_of,
)
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.world.dice import Dice
from tests.engine.ring import url_of

SEEDS = range(20)


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store", 1 << 20, 1 << 20)
    yield Epochs(store)
    store.close()


def visit(
    choice: RenderChoice, address: str, signal: str = "", links: tuple[int, ...] = (), *, text: bool = False
) -> str:
    """Let a page pass; return why it was rendered."""
    place = place_of(url_of(address), signal)
    reason = choice.choose(place)
    if reason:
        choice.learn(place, links, gains_text=text)
    return reason


def test_much_more_text_is_a_gain() -> None:
    assert not gains_text(1_000, 1_300)
    assert not gains_text(0, 150)
    assert gains_text(0, 250)
    assert gains_text(1_000, 1_600)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", SEEDS)
def test_pages_that_gain_nothing_are_sampled_at_a_falling_rate(epochs: Epochs, seed: int) -> None:
    choice = RenderChoice(epochs, Dice(seed))
    rendered = [n for n in range(10_000) if visit(choice, f"https://a.test/page/{n}")]
    assert rendered[0] == 0
    assert len([n for n in rendered if n < 100]) >= 4
    assert len([n for n in rendered if n < 300]) <= 12
    assert 8 <= len(rendered) <= 20


@pytest.mark.parametrize("seed", SEEDS)
def test_each_page_of_its_own_template_is_sampled_no_more(epochs: Epochs, seed: int) -> None:
    choice = RenderChoice(epochs, Dice(seed))
    names = [f"{a}{b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst"]
    reasons = Counter(visit(choice, f"https://a.test/{name}") for name in names)
    assert reasons.keys() == {"", FOR_SAMPLE}
    assert 5 <= reasons[FOR_SAMPLE] <= 16


@pytest.mark.parametrize("seed", SEEDS)
def test_a_template_that_gains_is_found_and_rendered_among_others_that_do_not(epochs: Epochs, seed: int) -> None:
    choice = RenderChoice(epochs, Dice(seed))
    visit(choice, "https://a.test/")
    lists, pages = [], 0
    for n in range(200):
        pages += bool(visit(choice, f"https://a.test/page/{n}"))
        if n % 4 == 0:
            lists.append(visit(choice, f"https://a.test/list/{n}", links=(1_000 + n,)))
    assert set(lists[8:]) == {FOR_GAIN}
    assert pages <= 16


def test_a_signal_is_followed_at_once_and_dropped_where_it_lies(epochs: Epochs) -> None:
    choice = RenderChoice(epochs, Dice(1))
    reasons = [visit(choice, f"https://a.test/app/{n}", "root", text=True) for n in range(100)]
    assert reasons[0] == FOR_SIGNAL
    assert set(reasons[1:]) == {FOR_GAIN}
    # Other templates with the signal are rendered, as those were.
    assert visit(choice, "https://a.test/other", "root", text=True) == FOR_SIGNAL
    lying = [visit(choice, f"https://b.test/app/{n}", "root") for n in range(300)]
    assert lying[0] == FOR_SIGNAL
    assert len([one for one in lying if one]) <= 15


def test_it_stops_where_the_gain_ends_and_begins_where_it_comes_back(epochs: Epochs) -> None:
    choice = RenderChoice(epochs, Dice(1))
    for n in range(20):
        assert visit(choice, f"https://a.test/list/{n}", links=(n,))
    over = [visit(choice, f"https://a.test/list/{n}") for n in range(20, 120)]
    assert over[:4] == [FOR_GAIN] * 4
    assert len([one for one in over if one]) <= 20
    again = [visit(choice, f"https://a.test/list/{n}", links=(n,)) for n in range(120, 220)]
    assert set(again[-60:]) == {FOR_GAIN}


def test_a_menu_that_a_script_makes_is_a_gain_once(epochs: Epochs) -> None:
    choice, menu = RenderChoice(epochs, Dice(1)), tuple(range(30))
    reasons = [visit(choice, f"https://a.test/page/{n}", links=menu) for n in range(300)]
    assert reasons[0] == FOR_SAMPLE
    assert len([one for one in reasons if one]) <= 25
    # As long as other gains do not drive it out of what is remembered.
    for n in range(0, 2 * KNOWN_MAX, 50):
        visit(choice, f"https://a.test/new/{n}", "root", tuple(range(1_000 + n, 1_050 + n)))
    place = place_of(url_of("https://a.test/third/1"), "root")
    choice.learn(place, menu, gains_text=False)
    assert "1 of 1" in learned_after(choice, epochs, "https://a.test/third/1")[0]


def learned_after(choice: RenderChoice, epochs: Epochs, address: str) -> list[str]:
    choice.cut(0.0)
    lines = evidence_of(epochs, url_of(address))["rendering"]
    assert isinstance(lines, list)
    return lines


def test_while_a_sample_is_under_way_there_is_no_other(epochs: Epochs) -> None:
    choice = RenderChoice(epochs, Dice(1))
    places = [place_of(url_of(f"https://a.test/page/{n}"), "") for n in range(3)]
    assert [choice.choose(place) for place in places] == [FOR_SAMPLE, "", ""]
    assert {choice.sample_key(place) for place in places} == {("a.test", "", "/page/{n}")}
    choice.learn(places[0], (1,), gains_text=False)
    # A gain of one page is not sure to be that of the next: three are waited for.
    for n in (2, 3):
        assert None not in {choice.sample_key(place) for place in places}
        assert choice.choose(places[1]) == FOR_GAIN
        choice.learn(places[1], (n,), gains_text=False)
    assert {choice.sample_key(place) for place in places} == {None}
    choice.learn(places[1], (), gains_text=False)
    assert None not in {choice.sample_key(place) for place in places}
    # With a signal, the first sample decides about all templates of the host.
    apps = [place_of(url_of(f"https://a.test/{name}"), "root") for name in ("a", "b")]
    assert {choice.sample_key(place) for place in apps} == {("a.test", "root", "")}


def test_what_was_learned_is_part_of_the_commit(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", 1 << 20, 1 << 20)
    epochs = Epochs(store)
    choice = RenderChoice(epochs, Dice(1))
    for n in range(5):
        visit(choice, f"https://a.test/list/{n}", links=(n,))
    assert evidence_of(epochs, url_of("https://a.test/list/9")) == {}
    choice.cut(0.0)
    epochs.close_at_once()
    visit(choice, "https://lost.test/", links=(1,))  # Killed before the next commit.
    store.close()
    store = Store(tmp_path / "store", 1 << 20, 1 << 20)
    epochs = Epochs(store)
    assert evidence_of(epochs, url_of("https://a.test/list/9"))["rendering"] == [
        "/list/{n}, no signal: 5 of 5 rendered pages gained links or text; they are rendered",
        "new templates, no signal: 1 of 1 rendered pages gained links or text; they are rendered",
    ]
    assert evidence_of(epochs, url_of("https://lost.test/")) == {}
    choice = RenderChoice(epochs, Dice(2))
    assert visit(choice, "https://a.test/list/9", links=(4,)) == FOR_GAIN  # A link that was gained before.
    assert "5 of 6" in learned_after(choice, epochs, "https://a.test/list/9")[0]
    store.close()


def test_memory_is_bounded(epochs: Epochs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_choice, "HOSTS_MAX", 3)
    choice = RenderChoice(epochs, Dice(1))
    for n in range(10):
        visit(choice, f"https://h{n}.test/list/1", links=(n,))
    assert len(choice._hosts) == 3
    # A host that had to go is remembered, also before the next commit.
    assert visit(choice, "https://h0.test/list/2", links=(99,)) == FOR_GAIN
    for n in range(3 * GROUPS_MAX):
        visit(choice, f"https://h0.test/{'abcdefgh'[n % 8]}/{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}")
    assert len(choice._hosts["h0.test"].groups) <= GROUPS_MAX
    assert visit(choice, "https://h0.test/list/3", links=(100,)) == FOR_GAIN


def test_a_share_of_the_processors_goes_to_rendering() -> None:
    budget = RenderBudget(0.25, processors=2, now=0.0)
    ahead_s = 0.5 * RenderBudget.AHEAD_S
    spent = 0
    while budget.allows(0.0, 0, sample=True):
        budget.charge(1.0)
        spent += 1
    assert spent == ahead_s / 2  # Blind samples leave half of the advance.
    while budget.allows(0.0, 0, sample=False):
        budget.charge(1.0)
        spent += 1
    assert spent == ahead_s
    assert not budget.allows(1.9, 0, sample=False) or budget.charge(0.0) is None
    # From then on as much as the share is, over a long time.
    done = 0
    for second in range(2, 1_002):
        while budget.allows(float(second), 0, sample=False):
            budget.charge(1.0)
            done += 1
    assert 498 <= done <= 502
    # What is under way counts before it is known what it takes.
    fresh = RenderBudget(0.25, processors=2, now=0.0)
    assert fresh.allows(0.0, round(ahead_s) - 1, sample=False)
    assert not fresh.allows(0.0, round(ahead_s), sample=False)
