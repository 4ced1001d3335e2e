"""Legacy: connections to servers without secure renegotiation (RFC 5746), which OpenSSL 3 refuses by default.

libcurl has no option for them. OpenSSL reads defaults of all connections from a file, which it gets here.
"""

import ctypes
from functools import cache
from pathlib import Path

import pycurl

_DEFAULTS = Path(__file__).with_suffix(".cnf")
_LIBRARIES = ("pycurl.libs/libcrypto-*", "pycurl/.dylibs/libcrypto*")
"""Where wheels of pycurl for Linux and macOS keep the OpenSSL of libcurl. Python's `ssl` uses another one."""


@cache
def permit_legacy_servers() -> None:
    """Let all connections of libcurl in this process accept such servers. Without effect unless pycurl was installed
    from its wheel: another OpenSSL is not ours to change.
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
