"""A real Prometheus scrapes a crawl of two shards: every expression of the dashboard and of the alerts has a value."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_workers import begun, crawl_of
from tests.answering import free_port
from tests.test_deploy import DEPLOY, RULES, expressions

WEB = SimwebOptions(seed=4, hosts=8, hosts_per_site=1, pages=12_000, bytes_median=2_000, behaviours=("errors",))
VALUES = {"$__rate_interval": "10s", "$job": "gossamer", "$instance": ".+"}


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[str]:
    """Serve what a Prometheus with the deployment's rules scrapes from a crawl; give the address of its queries."""
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(DEPLOY / "prometheus/rules.yml")]
    config["scrape_configs"][0].pop("authorization")  # Reading on loopback needs none.
    config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{target}"]}]
    (folder / "prometheus.yml").write_text(json.dumps(config))
    port = free_port()
    words = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        served = subprocess.Popen([*words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/api/v1/query?"
    finally:
        served.kill()
        served.wait()


def wait_for(port: int) -> None:
    ends_at = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            assert time.monotonic() < ends_at, "Prometheus does not start"
            time.sleep(0.1)


def compared(expression: str) -> str:
    """Return an expression without the bounds that a crawl in good order does not meet."""
    return re.sub(r" (==|>|<) [\d.e]+", "", expression)


def values_of(queries: str, expression: str) -> list[object]:
    for name, value in VALUES.items():
        expression = expression.replace(name, value)
    for window in ("6h", "1h", "30m", "15m", "1m"):
        expression = expression.replace(f"[{window}]", "[10s]")
    try:
        with urlopen(queries + urlencode({"query": expression}), timeout=120) as answer:
            found = json.load(answer)
    except HTTPError as error:
        raise AssertionError(f"{expression}: {error.read().decode()}") from error
    values: list[object] = found["data"]["result"]
    return values


@pytest.mark.acceptance
@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_expression_has_a_value(tmp_path: Path) -> None:
    with SimwebProcess(WEB, tmp_path / "web") as web:
        port = free_port()
        delays = ("politeness.delay_s_min=0.2", "politeness.delay_s_max=0.2")
        words = [*crawl_of(web, tmp_path / "crawl", 2, *delays), "--serve", str(port), "--exclude", "p[0-9]*11"]
        crawling = begun(*words, complaints=tmp_path / "complaints")
        try:
            with prometheus(tmp_path, port) as queries:
                wanted = {one: compared(one) for one in expressions() if not one.startswith("changes(")}
                ends_at = time.monotonic() + 120
                while wanted and time.monotonic() < ends_at:
                    assert crawling.poll() is None, (tmp_path / "complaints").read_text()
                    time.sleep(2.0)
                    wanted = {one: less for one, less in wanted.items() if not values_of(queries, less)}
                assert not wanted, "\n".join(wanted)
                with urlopen(queries.replace("query?", "rules"), timeout=120) as answer:
                    [group] = json.load(answer)["data"]["groups"]
                assert [(one["name"], one["health"]) for one in group["rules"]] == [
                    (one["alert"], "ok") for one in RULES
                ]
        finally:
            crawling.terminate()
            crawling.wait(60)
