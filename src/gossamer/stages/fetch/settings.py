"""Settings: the options of libcurl that all requests have, also defaults that our promises depend on."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Final

import pycurl

from gossamer.stages.fetch.certificates import ca_file
from gossamer.stages.fetch.options import FetchOptions

Setting = tuple[int, int | str]
"""An option of libcurl and its value."""

_TLS_MIN: Final = {
    "1.0": pycurl.SSLVERSION_TLSv1_0,
    "1.1": pycurl.SSLVERSION_TLSv1_1,
    "1.2": pycurl.SSLVERSION_TLSv1_2,
    "1.3": pycurl.SSLVERSION_TLSv1_3,
}
_RECEIVE_BYTES: Final = 64 * 1024
"""libcurl's receive buffer, one for all handles: fewer callbacks for a page than with the default of 16 KiB."""
_OLD_TLS: Final = ("1.0", "1.1")
_OLD_CIPHERS: Final = "DEFAULT@SECLEVEL=0"
"""Ciphers for TLS 1.0 and 1.1: their signatures use SHA-1, which OpenSSL 3 permits at level 0 alone."""


def common_settings(options: FetchOptions) -> list[Setting]:
    """Return the settings of a handle for its lifetime."""
    old_ciphers = [(pycurl.SSL_CIPHER_LIST, _OLD_CIPHERS)] if options.tls_min in _OLD_TLS else []
    return [
        *old_ciphers,
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        # Empty, not unset: else libcurl would use a proxy of the environment, which defeats the pinned address.
        (pycurl.PROXY, options.proxy),
        (pycurl.NOPROXY, "" if options.proxy else "*"),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.NOSIGNAL, 1),
        (pycurl.NOPROGRESS, 1),
        (pycurl.TCP_NODELAY, 1),
        (pycurl.BUFFERSIZE, _RECEIVE_BYTES),
        (pycurl.CONNECTTIMEOUT_MS, round(options.connect_s_max * 1000)),
        (pycurl.TIMEOUT_MS, round(options.request_s_max * 1000)),
        (pycurl.MAXAGE_CONN, options.connection_idle_s),
        (pycurl.SSLVERSION, _TLS_MIN[options.tls_min]),
        (pycurl.SSL_VERIFYPEER, int(options.verify_tls)),
        (pycurl.SSL_VERIFYHOST, 2 if options.verify_tls else 0),
        (pycurl.CAINFO, ca_file(options)),
    ]


_DEFAULTS = Path(__file__).with_name("legacy.cnf")
"""Of OpenSSL, for all connections: libcurl has no option for this."""
_LIBRARIES = ("pycurl.libs/libcrypto-*", "pycurl/.dylibs/libcrypto*")
"""Where wheels of pycurl for Linux and macOS keep the OpenSSL of libcurl. Python's `ssl` uses another one."""


@cache
def permit_legacy_servers() -> None:
    """Let all connections of libcurl in this process accept servers without secure renegotiation (RFC 5746), which
    OpenSSL 3 refuses. Without effect unless pycurl was installed from its wheel: another OpenSSL is not ours to change.
    """
    packages = Path(pycurl.__file__).parents[1]
    library = next((found for pattern in _LIBRARIES for found in packages.glob(pattern)), None)
    if library is None:
        return
    crypto = ctypes.CDLL(str(library))
    crypto.OPENSSL_load_builtin_modules()
    load = crypto.CONF_modules_load_file
    load.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong]
    load(bytes(_DEFAULTS), None, 0)
