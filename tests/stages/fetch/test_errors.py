from __future__ import annotations

import errno

import pycurl
import pytest

from gossamer.model.outcomes import OUTCOMES
from gossamer.model.visits import Failure
from gossamer.stages.fetch import transfers


def meaning(code: int, text: str = "why", os_errno: int = 0) -> Failure:
    return Failure(*transfers.translate(code, text, os_errno))


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
    assert failure == Failure("connect_error", "why", True, True)


def test_chunks_that_are_none_are_no_lost_connection() -> None:
    failure = meaning(pycurl.E_RECV_ERROR, "chunk hex-length char not a hex digit: 0x7a")
    assert (failure.outcome, failure.retry, failure.host_level) == ("protocol_error", True, False)
    assert meaning(pycurl.E_RECV_ERROR, "Recv failure: Connection reset by peer").outcome == "connect_error"


@pytest.mark.parametrize(
    ("code", "text", "says"),
    [
        (56, "OpenSSL SSL_read: OpenSSL/3.6.5: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0",
         "the server demands a client certificate (request: certificate)"),
        (56, "OpenSSL SSL_read: OpenSSL/3.6.5: error:0A000415:SSL routines::ssl/tls alert certificate expired, errno 0",
         "the server does not accept the client certificate (certificate expired)"),
        (35, "TLS connect error: error:0A000412:SSL routines::ssl/tls alert bad certificate",
         "the server does not accept the client certificate (bad certificate)"),
        (35, "TLS connect error: error:0A000418:SSL routines::tlsv1 alert unknown ca",
         "the server does not accept the client certificate (unknown ca)"),
        (60, "SSL certificate verification failed",
         "the server does not accept the client certificate (certificate expired)"),
    ],
)  # fmt: skip
def test_a_client_certificate_that_a_server_refuses_is_named(code: int, text: str, says: str) -> None:
    failure = meaning(code, text)
    assert (failure.outcome, failure.retry, failure.host_level, failure.error) == ("tls_error", False, True, says)


def test_errors_are_one_short_line() -> None:
    assert meaning(7, "a\r\n b\t" + "c" * 1000).error == ("a b " + "c" * 1000)[:300]
    assert meaning(7, "").error == "libcurl error 7"
    assert meaning(100, "").error == "a header line exceeds 100 KB"
