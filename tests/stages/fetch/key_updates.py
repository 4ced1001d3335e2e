"""A server that floods its client with messages of TLS.

Run as a script with a PEM file of its chain and key, and a file that it makes when messages wait for its client.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import socket
import sys
from pathlib import Path

CERTIFICATE = 1
"""SSL_FILETYPE_PEM"""
BEFORE = 20_000
"""Messages before the file is made, or as many as there is room for."""


def flood(file: bytes, waits: Path) -> None:
    """Print a port, and send its first client key updates that each ask for one, until the client has gone."""
    ssl = ctypes.CDLL(ctypes.util.find_library("ssl"))
    for name in ("TLS_server_method", "SSL_CTX_new", "SSL_new"):
        getattr(ssl, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(ssl.SSL_CTX_new(ctypes.c_void_p(ssl.TLS_server_method())))
    assert ssl.SSL_CTX_use_certificate_chain_file(context, file) == 1
    assert ssl.SSL_CTX_use_PrivateKey_file(context, file, CERTIFICATE) == 1
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        client = listener.accept()[0]
    connection = ctypes.c_void_p(ssl.SSL_new(context))
    ssl.SSL_set_fd(connection, client.fileno())
    assert ssl.SSL_accept(connection) == 1
    ssl.SSL_read(connection, ctypes.create_string_buffer(65_536), 65_536)
    print("requested", flush=True)
    client.setblocking(False)
    for _ in range(BEFORE):
        if ssl.SSL_do_handshake(connection) != 1 or ssl.SSL_key_update(connection, 1) != 1:
            break
    waits.touch()
    client.setblocking(True)
    while ssl.SSL_do_handshake(connection) == 1 and ssl.SSL_key_update(connection, 1) == 1:
        pass


if __name__ == "__main__":
    flood(sys.argv[1].encode(), Path(sys.argv[2]))
