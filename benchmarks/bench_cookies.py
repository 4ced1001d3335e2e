"""What taking a cookie and sending it back costs: ours, and the standard library's http.cookiejar.

python benchmarks/bench_cookies.py
"""

from __future__ import annotations

import time
from email.message import Message
from http.cookiejar import CookieJar
from typing import Any
from urllib.request import Request

from gossamer.stages.fetch.cookies import Jar
from gossamer.url.name import Namer

URL = "https://www.example.com/a/b"
HEADER = "session=0123456789abcdef; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=3600"
ROUNDS = 5_000


class Answer:
    """A reply as http.cookiejar takes it."""

    def __init__(self) -> None:
        self._headers = Message()
        self._headers["Set-Cookie"] = HEADER

    def info(self) -> Message:
        """Return the headers."""
        return self._headers


def theirs() -> float:
    """Return microseconds of http.cookiejar for one cookie taken and sent."""
    jar, answer = CookieJar(), Answer()
    reply: Any = answer
    began = time.perf_counter()
    for _ in range(ROUNDS):
        jar.extract_cookies(reply, Request(URL))
        jar.add_cookie_header(Request(URL))
    return (time.perf_counter() - began) / ROUNDS * 1e6


def ours() -> float:
    """Return microseconds of ours for the same."""
    url, jar = Namer().name(URL), Jar()
    assert url is not None
    began = time.perf_counter()
    for at in range(ROUNDS):
        jar.take(HEADER, url, 1e9 + at)
        jar.header(url, 1e9 + at)
    return (time.perf_counter() - began) / ROUNDS * 1e6


if __name__ == "__main__":
    print(f"http.cookiejar: {theirs():.0f} us, gossamer: {ours():.0f} us")
