"""Wrapping: base of components written before `Strategy`, kept for a release."""

from functools import wraps
from operator import attrgetter
from typing import Any

from gossamer.stages.frontier.frontier import Frontier


class WrappedFrontier(Frontier):
    """Passes everything that a derived class does not override to `gates`, the frontier with the state.

    While a derived class has URLs for `select`, its `wake_at` must return a time, else the crawl ends.
    """

    def __init__(self, gates: Frontier) -> None:
        self.gates = gates

    def __getattr__(self, name: str) -> Any:
        return getattr(self.gates, name)


def _pass_to_gates(name: str, member: Any) -> Any:
    if isinstance(member, property):
        return property(attrgetter(f"gates.{name}"))

    @wraps(member)
    def call(self: WrappedFrontier, *arguments: Any, **named: Any) -> Any:
        return getattr(self.gates, name)(*arguments, **named)

    return call


for _name, _member in vars(Frontier).items():
    if not _name.startswith("_"):
        setattr(WrappedFrontier, _name, _pass_to_gates(_name, _member))
