"""What a signed request costs: the median of the headers alone, and what of it is Ed25519.

Usage: PYTHONPATH=src python benchmarks/bench_identity.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gossamer.features.identity.keys import KeyFile, new_keys, read_keys
from gossamer.features.identity.signing import RequestSigner
from gossamer.stages.fetch.http import Headers, compose

REQUESTS = 20_000


def median_us(work: Callable[[int], object]) -> float:
    took = []
    for number in range(REQUESTS):
        began = time.perf_counter_ns()
        work(number)
        took.append(time.perf_counter_ns() - began)
    return statistics.median(took) / 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys"
        new_keys(path, time.time())
        [key] = read_keys(path)
        sign = RequestSigner(KeyFile(path, time.time()), "https://bot.example.org", 300, time.time)
        own, base = compose([("User-Agent", "gossamer"), ("Accept", "*/*")]), b"x" * 400
        print(f"{REQUESTS:,} requests, median of each in µs (the goal: 50)")

        def signed(number: int) -> Headers:
            headers = sign("GET", "https", "example.org", f"/page/{number}?a=b")
            return own.and_lines([f"{name}: {value}".encode("latin-1") for name, value in headers])

        whole = median_us(signed)
        print(f"  in a request       {whole:6.1f}")
        print(f"  three headers      {median_us(lambda n: sign('GET', 'https', 'example.org', f'/page/{n}?a=b')):6.1f}")
        print(f"  Ed25519 alone      {median_us(lambda _: key.sign(base)):6.1f}")


if __name__ == "__main__":
    main()
