"""The cost of every reader grows no faster than its input: each shape of the catalogue at n, 2n and 4n."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice

import pytest

from tests.growth.measuring import BYTES_MAX, ENOUGH_S, EXPONENT_MAX, TRIES, Read, growth, is_linear
from tests.growth.readers import READERS
from tests.growth.shapes import Shape, shapes
from tests.sampled import EVERY, FIRST

CHEAP_BYTES_MAX = 32_768
CHEAP = ["/", " ", "<", "1", ";", "<?xml ", "a=", '"', "(", "sid", "User-agent: a\n"]
"""Pieces that the tests of every change try, in the constructs of their kind."""
SECONDS_MAX = 2.0
"""A reader that takes longer for the largest input stops a crawl, whatever its growth."""
CASES = [(kind, name) for kind, readers in READERS.items() for name in readers]


def faults(read: Read, tried: Iterable[Shape], **more: int) -> dict[str, str]:
    """Return the shapes whose cost grows faster than they do, with what was measured."""
    found = {one.name: growth(read, one.of, **more) for one in tried}
    return {
        name: f"exponent {one.exponent:.2f} at {one.size:,} bytes, {one.seconds:.3f} s"
        for name, one in found.items()
        if one.exponent > EXPONENT_MAX or one.seconds > SECONDS_MAX
    }


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_cheap_shapes(kind: str, name: str) -> None:
    tried = [one for one in shapes(kind) if one.piece.decode() in CHEAP]
    assert faults(READERS[kind][name], tried[FIRST::EVERY], bytes_max=CHEAP_BYTES_MAX) == {}


@pytest.mark.heavy
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_all_shapes(kind: str, name: str) -> None:
    """In CI those of the day, in `make nightly` all."""
    assert faults(READERS[kind][name], islice(shapes(kind), FIRST, None, EVERY)) == {}


def test_the_catalogue_is_large() -> None:
    """A kind of input without readers, or readers without shapes, would prove nothing."""
    assert sum(len(list(shapes(kind))) for kind in READERS) >= 1_000
    assert all(READERS.values())


@pytest.mark.parametrize("pattern", [rb"[/ ]*([^/ >])=", rb"<!--.*?-->", rb"x[0-9]+[0-9.]*;"])
def test_a_quadratic_reader_is_found(pattern: bytes) -> None:
    tried = [Shape("slashes", b"x", b"/", b""), Shape("marks", b"", b"<!--", b""), Shape("digits", b"x", b"1", b"")]
    read = re.compile(pattern, re.DOTALL).findall
    # Other processes can hide the growth of one measurement, hardly of all.
    assert any(len(faults(read, tried, bytes_max=16_384, tries=2)) == 1 for _ in range(TRIES))


def test_a_linear_reader_is_not() -> None:
    assert faults(bytes.split, [Shape("words", b"", b"a ", b"")]) == {}
    assert faults(re.compile(rb"[a-z]").findall, [Shape("letters", b"", b"a", b"")]) == {}


def test_costs_of_two_sizes_are_compared() -> None:
    read = re.compile(rb"x[0-9]+[0-9.]*;").findall
    assert any(not is_linear(lambda size: partial(read, b"x" + b"0" * size), 1_000) for _ in range(TRIES))
    runs = []
    # The first runs of the large size are slow, as where another program disturbs them.
    slow = iter([0.02, 0.02])

    def prepare(size: int) -> Callable[[], object]:
        def run() -> None:
            runs.append(size)
            end = time.thread_time() + (next(slow, 0.0) if size == 8 else 0.0)
            while time.thread_time() < end:
                pass

        return run

    assert is_linear(prepare, 1, factor=10.0)
    assert runs == [1, 1, 1, 8, 8, 8]
    assert is_linear(prepare, 1, factor=10.0)
    assert runs[6:] == [1, 1, 1, 8]


def test_one_slow_run_is_no_growth() -> None:
    """The system can stop a run for as long as makes a time worth measuring; the size has to grow all the same."""
    disturbed = iter([True])

    def read(_: bytes) -> None:
        if next(disturbed, False):
            end = time.thread_time() + 2 * ENOUGH_S
            while time.thread_time() < end:
                pass

    assert growth(read, Shape("letters", b"", b"a", b"").of).size == BYTES_MAX
