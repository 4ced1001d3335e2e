"""Metrics: what Prometheus reads, of what is counted."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gossamer.api.metrics import ALARMS, DNS_WITHIN, fleet_metrics, metrics_of
from gossamer.console.service import OWN_SHARE, Service
from gossamer.engine import watchdogs
from gossamer.model.counters import Counters
from tests.api.conftest import Make, Run
from tests.api.site import Site, star


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_what_is_counted_can_be_read_by_prometheus(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(20)) as site:
            crawler = make(site.root)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(15)
                site.open.clear()
                while not crawler.status()["shards"][0]["commits"]:  # type: ignore[index]  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                status = crawler.status(detail=True)
                found = samples(metrics_of(status))
                site.open.set()
        assert found["gossamer_pages_total", ()] == status["pages"]
        assert found["gossamer_requests_in_flight", ()] == status["in_flight"]
        assert found["gossamer_state", (("state", "running"),)] == 1.0
        assert found["gossamer_alarm", (("alarm", "disk"),)] == 0.0
        assert found["gossamer_fetched_pages_total", (("media_type", "text/html"),)] == status["pages"]
        assert found["gossamer_commits_total", (("shard", "0"),)] >= 1
        assert found["gossamer_open_files", ()] > 5
        assert found["gossamer_memory_bytes", ()] > 1 << 20
        names = {name for name, _ in found}
        assert {"gossamer_disk_free_bytes", "gossamer_active_hosts_by_limit", "gossamer_loop_lag_seconds"} <= names
        queued = sum(value for (name, _), value in found.items() if name == "gossamer_level_urls")
        assert queued == status["queued"] + status["in_flight"]  # type: ignore[operator]

    run(scenario())


def test_every_metric_is_documented_and_every_documented_one_is_exposed(run: Run, make: Make) -> None:
    told: list[str] = []

    async def scenario() -> None:
        async with Site(star(5)) as site:
            crawler = make(site.root)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(2)
                told.append(
                    str(cast("dict[str, object]", (await crawler.ask({"verb": "metrics"}))["result"])["metrics"])
                )
            told.append(Service(8, OWN_SHARE).metrics().decode())

    run(scenario())
    exposed = "".join((*told, fleet_metrics(["running"], 1, 2).decode()))
    # What `promtool check metrics` complains about.
    assert not re.findall(r"# TYPE \w+_(?:ms|s)(?:_\w+)? ", exposed)
    assert set(re.findall(r"# TYPE (\w+)", exposed)) == set(re.findall(r"# HELP (\w+) \S", exposed))
    names = set(re.findall(r"^# TYPE gossamer_(\w+) ", exposed, re.MULTILINE))
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()
    table = page.partition("\n## Metrics\n")[2].partition("\n## ")[0]
    documented = {
        name for row in re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE) for name in row[1:-1].split("`, `")
    }
    assert names - documented == set(), "exposed, but not documented"
    assert documented - names == set(), "documented, but not exposed"
    alarms = page.partition("\n## Alarms\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", alarms, re.MULTILINE) == list(ALARMS)
    raised = re.findall(r'_raise\(\s*"(\w+)"', Path(watchdogs.__file__).read_text())
    assert set(raised) | {"files"} == set(ALARMS)  # That one is of stopped crawls.
    for name in set(Counters.__struct_fields__) - DNS_WITHIN.keys():
        assert f"{name.removesuffix('_s') + '_seconds' if name in ('dns_s', 'requests_s') else name}_total" in names


@pytest.mark.promise("Operation", "Metrics cost nothing until they are requested, and their labels are bounded.")
def test_hostile_labels_are_text_and_nothing_more() -> None:
    evil = 'text/"html\n\\evil{x="1"} 5'
    found = samples(metrics_of({"media_types": {evil: 3}, "rejected": {"": 2}}))
    assert found["gossamer_fetched_pages_total", (("media_type", evil),)] == 3
    assert {labels[0][1] for name, labels in found if name == "gossamer_dns_within_total"} == {"0.01", "0.1", "1"}
    assert found["gossamer_rejected_links_total", (("filter", "unknown"),)] == 2


@pytest.mark.promise("Operation", "Metrics cost nothing until they are requested, and their labels are bounded.")
def test_who_does_not_ask_does_not_import_the_library() -> None:
    code = "import sys, gossamer.api; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
