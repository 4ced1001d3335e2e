"""Received: what the kernel knows of a TCP connection: how many bytes it has received, and what waits to be read."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
import sys
import termios
from typing import Final

COUNTED: Final = sys.platform == "linux"
"""The kernel counts. Elsewhere libcurl reports each piece that it reads, which costs 10 µs a request."""
GREETING_BYTES_MAX: Final = 64
_INFO_BYTES: Final = 136
_BYTES_RECEIVED: Final = struct.Struct("<Q" if sys.byteorder == "little" else ">Q").unpack_from
_BYTES_RECEIVED_AT: Final = 128
"""`tcpi_bytes_received` in `struct tcp_info` (linux/tcp.h, since Linux 4.1)."""


def received_bytes(fd: int) -> int:
    """Return what a connection has received in all: framing, headers and TLS included, its end as one byte. 1.3 µs.

    0 where the kernel does not say, or for what is no TCP connection.
    """
    if sys.platform != "linux":
        return 0
    try:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fd)
    except OSError:
        return 0
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return 0
    finally:
        connection.detach()
    return int(_BYTES_RECEIVED(info, _BYTES_RECEIVED_AT)[0]) if len(info) >= _INFO_BYTES else 0


def unread_bytes(fd: int) -> int:
    """Return how much of what a connection has received still waits in the kernel."""
    waiting = array.array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, waiting)
    except OSError:
        return 0
    return waiting[0]


def unread_beginning(fd: int) -> bytes:
    """Return the beginning of what a connection has received that was not read yet; it stays unread."""
    try:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fd)
    except OSError:
        return b""
    try:
        return connection.recv(GREETING_BYTES_MAX, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return b""
    finally:
        connection.detach()
