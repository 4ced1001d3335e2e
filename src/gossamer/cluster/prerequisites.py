"""Prerequisites: fetches that another shard makes for this one. A robots.txt may redirect to a host of another shard,
and only that shard has the host's gates.

Nothing here is durable. The waiting host is parked in memory. If either shard dies, or frames are lost, the request is
repeated, or the wait ends with a failure that the robots rules handle.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

import msgspec

from gossamer.cluster.frames import FRAME_BYTES_MAX, AskPrerequisite, PrerequisiteAnswer
from gossamer.model.links import Prerequisite
from gossamer.model.visits import Failure, Reply
from gossamer.url.url import Url

OUT_MAX: Final = 1_000
"""Concurrent prerequisite fetches of other shards for us."""
ANSWERS_MAX: Final = 64
"""Answers kept in case a frame is lost and the shard repeats its request: at most half a megabyte each."""
WAIT_S: Final = 300.0
"""Longest wait for the other shard's answer."""


class _Out(msgspec.Struct):
    prerequisite: Prerequisite
    to: int
    until: float
    send_at: float = 0.0


class RemotePrerequisites:
    """Both sides: fetches by other shards for us, and by us for other shards."""

    def __init__(self, resend_s: float) -> None:
        self._resend_s = resend_s
        self._out: dict[int, _Out] = {}
        self._number = 0
        self._running: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        """By origin and address: the requesters, as shard, its opening and its number of the request."""
        self._answers: OrderedDict[tuple[int, int, int], PrerequisiteAnswer] = OrderedDict()
        self._ready: dict[int, list[PrerequisiteAnswer]] = {}

    @property
    def waits(self) -> bool:
        """Whether another shard makes a prerequisite fetch for us."""
        return bool(self._out)

    # ---- ours, run by others

    def ask(self, prerequisite: Prerequisite, to: int, now: float) -> bool:
        """Ask a shard for a prerequisite fetch; False if too many are in flight."""
        if len(self._out) >= OUT_MAX:
            return False
        self._number += 1
        self._out[self._number] = _Out(prerequisite, to, now + WAIT_S)
        return True

    def to_ask(self, to: int, now: float) -> list[AskPrerequisite]:
        """Return the requests to send to a shard now, for the first time or again."""
        due = []
        for number, out in self._out.items():
            if out.to == to and out.send_at <= now:
                out.send_at = now + self._resend_s
                one = out.prerequisite
                resource = "" if one.is_about_origin else one.subject
                due.append(AskPrerequisite(number, one.origin.text, one.url.text, one.hops, resource))
        return due

    def readdress(self, shard: int, owner: Callable[[Url], int]) -> list[Prerequisite]:
        """Direct requests to the current owners; return the fetches that `shard`, this one, must make itself."""
        for out in self._out.values():
            to = owner(out.prerequisite.url)
            if to != out.to:
                out.to = to
                out.send_at = 0.0
        ours = [number for number, out in self._out.items() if out.to == shard]
        return [self._out.pop(number).prerequisite for number in ours]

    def drop(self, prerequisite: Prerequisite) -> None:
        """Drop the requesters of a fetch by us; they ask its new owner."""
        self._running.pop((prerequisite.origin.text, prerequisite.url.text), None)

    def take_answer(self, answer: PrerequisiteAnswer) -> Prerequisite | None:
        """Return the fetch that an answer belongs to, once."""
        out = self._out.pop(answer.number, None)
        return out.prerequisite if out is not None and out.prerequisite.url.text == answer.url else None

    def pop_expired(self, now: float) -> Iterator[Prerequisite]:
        """Yield the fetches whose wait has ended without an answer."""
        for number in [number for number, out in self._out.items() if out.until <= now]:
            yield self._out.pop(number).prerequisite

    # ---- others', run by us

    def note_request(self, sender: int, opening: int, ask: AskPrerequisite) -> bool:
        """Note a shard's request; return whether to make the fetch now."""
        who = (sender, opening, ask.number)
        known = self._answers.get(who)
        if known is not None:
            self._ready.setdefault(sender, []).append(known)
            return False
        askers = self._running.setdefault((ask.origin, ask.url), [])
        is_first = not askers
        if who not in askers:
            askers.append(who)
        return is_first

    def note_result(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes) -> None:
        """Note the result of a fetch."""
        for sender, opening, number in self._running.pop((prerequisite.origin.text, prerequisite.url.text), []):
            answer = answer_of(number, prerequisite.url.text, result, body)
            if prerequisite.is_about_origin:  # A resource is requested again: it may be large, and has a cache.
                self._answers[sender, opening, number] = answer
            while len(self._answers) > ANSWERS_MAX:
                self._answers.popitem(last=False)
            self._ready.setdefault(sender, []).append(answer)

    def answers(self, to: int) -> list[PrerequisiteAnswer]:
        """Return the answers to send to a shard now: as many as one frame holds, one at the least."""
        ready = self._ready.pop(to, [])
        sizes = accumulate([len(one.body) for one in ready])
        count = max(1, sum([size <= FRAME_BYTES_MAX for size in sizes]))
        if len(ready) > count:
            self._ready[to] = ready[count:]
        return ready[:count]


def answer_of(number: int, url: str, result: Reply | Failure, body: bytes) -> PrerequisiteAnswer:
    """Return a result in the form that is sent to another shard."""
    if isinstance(result, Failure):
        failure = (result.outcome, result.error, result.retry, result.host_level)
        return PrerequisiteAnswer(number, url, failure, ip=result.ip, at=result.started_at)
    return PrerequisiteAnswer(
        number, url, None, result.status, result.headers, body, result.ip, result.started_at, result.truncated
    )


def result_of(answer: PrerequisiteAnswer) -> Reply | Failure:
    """Return the result for the robots rules; `answer.body` has the body's content."""
    if answer.failure is not None:
        outcome, error, retry, host_level = answer.failure
        return Failure(outcome, error, retry, host_level, answer.ip, answer.at)
    return Reply(
        answer.url, answer.status, answer.headers, b"", answer.ip, answer.at, 0.0, len(answer.body),
        truncated=answer.truncated,
    )  # fmt: skip
