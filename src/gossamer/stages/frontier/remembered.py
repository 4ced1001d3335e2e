"""Remembered: state of hosts that is kept from crawl to crawl: delays, failures, and use of their budgets."""

import msgspec

from gossamer.model.decodable import of_version
from gossamer.stages.frontier.record import HostRecord, Origin, host_prefix
from gossamer.state.schema import HOSTS_ROUND
from gossamer.state.store import HostsStore

VERSION = 2
_KIND = b"h"
_ACCOUNT = b"a"


class HostMemory(msgspec.Struct, array_like=True, frozen=True):
    """The fields of a `HostRecord` that apply to every crawl. The slots of origins have no meaning here."""

    version: int
    at: float
    """Wall time of the last contact that the record includes."""
    delay_until: float
    fetches_s: list[float]
    crawl_delay_s: float | None
    backoffs: int
    closed: str
    reason: str
    answered: int
    origins: dict[str, Origin] | None


_decoder = msgspec.msgpack.Decoder(HostMemory)


class Spent(msgspec.Struct, array_like=True, frozen=True):
    """Budget use of a host or site: the fields of `Account` that apply to every crawl."""

    version: int
    round: int
    pages: int
    wire_bytes: int
    time_s: float


_spent_decoder = msgspec.msgpack.Decoder(Spent)


class Remembered:
    """Copies a host's state from earlier crawls to its record, and stores it for later ones. About 3 µs each way.

    Delays apply until they end. Failures, sleeps and closings count for `errors_s_max` after the last contact: a server
    that was down yesterday may be up again.
    """

    def __init__(self, store: HostsStore, errors_s_max: float, now: float, *, crawl_delays: bool) -> None:
        """`crawl_delays`: whether the Crawl-delay of robots.txt is obeyed."""
        self._store = store
        self._errors_s_max = errors_s_max
        self._crawl_delays = crawl_delays
        self.now = now
        """Wall time, set at each commit."""

    def recall(self, record: HostRecord, partition: int, *, is_new: bool) -> None:
        """Put the state from earlier crawls into a record; if the record is not new, only the end of the delay."""
        data = self._store.get(_key(partition, record.name))
        memory = _decode(data) if data is not None else None
        if memory is None:
            return
        # If the clock was set back since then, the remaining delay at that time starts now.
        delay_until = memory.delay_until - max(memory.at - self.now, 0.0)
        if delay_until > record.delay_until:
            record.delay_until = delay_until
            record.reason = memory.reason
        if not is_new:
            return
        record.fetches_s = list(memory.fetches_s)
        record.crawl_delay_s = memory.crawl_delay_s if self._crawl_delays else None
        if self.now < memory.at + self._errors_s_max:
            record.backoffs = memory.backoffs
            record.closed = memory.closed
            record.answered = memory.answered
            record.origins = memory.origins

    def keep(self, record: HostRecord, partition: int) -> None:
        """Store the state of a host."""
        memory = HostMemory(
            VERSION, self.now, record.delay_until, record.fetches_s, record.crawl_delay_s,
            record.backoffs, record.closed, record.reason, record.answered, record.origins,
        )  # fmt: skip
        self._store.put(_key(partition, record.name), msgspec.msgpack.encode(memory))

    def read_spent(self, key: bytes) -> Spent | None:
        """Return the stored use of an account's budget, by its key in a crawl's store; None if there is none."""
        data = self._store.get(_account_key(key))
        return None if data is None else of_version(VERSION, _spent_decoder.decode, data)

    def keep_spent(self, key: bytes, number: int, pages: int, wire_bytes: int, time_s: float) -> None:
        """Store an account."""
        self._store.put(_account_key(key), msgspec.msgpack.encode(Spent(VERSION, number, pages, wire_bytes, time_s)))

    def round(self) -> tuple[int, float] | None:
        """Return number and beginning of the budget round that the last crawl was in."""
        data = self._store.get(HOSTS_ROUND)
        return None if data is None else msgspec.msgpack.decode(data, type=tuple[int, float])

    def keep_round(self, number: int, began_at: float) -> None:
        """Store the round."""
        self._store.put(HOSTS_ROUND, msgspec.msgpack.encode((number, began_at)))


def _decode(data: bytes) -> HostMemory | None:
    """Decode a stored record; None for another version: then the host counts as new."""
    return of_version(VERSION, _decoder.decode, data)


def _account_key(key: bytes) -> bytes:
    return key[:2] + _ACCOUNT + key[2:]


def _key(partition: int, name: str) -> bytes:
    prefix = host_prefix(partition, name)
    return prefix[:2] + _KIND + prefix[2:]
