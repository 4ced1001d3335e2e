from __future__ import annotations

import errno

import pycurl
import pytest

from gossamer.fetch import transfers
from gossamer.model.outcomes import OUTCOMES
from gossamer.model.visits import Failure


def meaning(code: int, text: str = "why", os_errno: int = 0) -> Failure:
    return transfers.failure(code, text, ip="127.0.0.1", started_at=1.0, fetch_s=2.0, os_errno=os_errno)


def test_every_code_has_an_outcome() -> None:
    for code in range(1, 130):
        assert meaning(code).outcome in OUTCOMES


@pytest.mark.parametrize("os_errno", [errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS])
def test_no_host_is_blamed_for_what_this_machine_lacks(os_errno: int) -> None:
    failure = meaning(pycurl.E_COULDNT_CONNECT, os_errno=os_errno)
    assert (failure.outcome, failure.retry, failure.host_level) == ("internal_error", True, False)
    assert errno.errorcode[os_errno] in failure.error


def test_a_refused_connection_is_the_hosts() -> None:
    failure = meaning(pycurl.E_COULDNT_CONNECT, os_errno=errno.ECONNREFUSED)
    assert failure == Failure("connect_error", "why", True, True, "127.0.0.1", 1.0, 2.0)


def test_chunks_that_are_none_are_no_lost_connection() -> None:
    failure = meaning(pycurl.E_RECV_ERROR, "chunk hex-length char not a hex digit: 0x7a")
    assert (failure.outcome, failure.retry, failure.host_level) == ("protocol_error", True, False)
    assert meaning(pycurl.E_RECV_ERROR, "Recv failure: Connection reset by peer").outcome == "connect_error"


def test_errors_are_one_short_line() -> None:
    assert meaning(7, "a\r\n b\t" + "c" * 1000).error == ("a b " + "c" * 1000)[:300]
    assert meaning(7, "").error == "libcurl error 7"
    assert meaning(100, "").error == "a header line exceeds 100 KB"
