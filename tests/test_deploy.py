"""Dashboard and alerts name metrics that exist, with their labels, and Grafana can lay the dashboard out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from gossamer.api.life import STOP_UPLOADS_S
from gossamer.config import configure
from gossamer.console.access import FILE
from gossamer.model.outcomes import MEANINGS
from gossamer.quantities import read_quantity
from tests.docs.test_pages import parse

DEPLOY = Path(__file__).parents[1] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/gossamer.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
OF_PROMETHEUS = {"job", "instance"}
"""Labels that every series has once it is scraped."""


def documented() -> dict[str, set[str]]:
    """Return each documented metric with its labels; a test compares that page with what is exposed."""
    page = (DEPLOY.parent / "docs/reference/metrics.md").read_text(encoding="utf-8")
    table = page.partition("\n## Metrics\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|([^|]*)\|", table, re.MULTILINE)
    return {
        f"gossamer_{name}": set(re.findall(r"`(\w+)`", labels))
        for names, labels in rows
        for name in re.findall(r"`(\w+)`", names)
    }


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ()))
    yield from (one["expr"] for one in DASHBOARD["annotations"]["list"])
    for variable in DASHBOARD["templating"]["list"][1:]:
        yield variable["query"]["query"].removeprefix("label_values(").rpartition(",")[0]


@pytest.mark.parametrize("expression", list(expressions()))
def test_metrics_exist_with_their_labels_and_kinds(expression: str) -> None:
    known = documented()
    series = re.findall(r"\b(gossamer_\w+)(?:\{([^}]*)\})?(\[)?", expression)
    assert series or "up{" in expression
    labels = set()
    for name, matchers, is_range in series:
        assert name in known
        assert set(re.findall(r"(\w+)\s*(?:=~|!=|=)", matchers)) <= known[name] | OF_PROMETHEUS
        if is_range and not re.search(r"predict_linear|changes", expression):
            assert name.endswith("_total"), "only what grows has a rate"
        labels |= known[name]
    outcomes = {one for listed in re.findall(r'outcome=~?\s*"([^"]*)"', expression) for one in listed.split("|")}
    assert outcomes <= MEANINGS.keys()
    for grouped in re.findall(r"(?:by|on|ignoring) \(([^)]*)\)", expression):
        assert set(grouped.split(", ")) <= labels | OF_PROMETHEUS


def test_legends_and_annotations_name_labels_that_exist() -> None:
    known = documented()
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            labels = set().union(*(known[name] for name in re.findall(r"gossamer_\w+", target["expr"])))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels | OF_PROMETHEUS
    for rule in RULES:
        labels = set().union(*(known[name] for name in re.findall(r"gossamer_\w+", rule["expr"])))
        texts = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", texts)) <= labels | OF_PROMETHEUS
        assert rule["annotations"].keys() == {"summary", "description"}


def test_the_dashboard_shows_what_alerts_are_about() -> None:
    watched = {name for rule in RULES for name in re.findall(r"gossamer_\w+", rule["expr"])}
    assert watched <= set(re.findall(r"gossamer_\w+", json.dumps(DASHBOARD)))


def test_panels_have_a_place_each() -> None:
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        across = one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
        along = one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]
        assert not (across and along)


def test_alerts_are_documented() -> None:
    page = (DEPLOY.parent / "docs/how-to/monitoring.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(Gossamer\w+)`", page, re.MULTILINE)) == {rule["alert"] for rule in RULES}


@pytest.mark.acceptance
def test_prometheus_accepts_the_rules_and_every_expression(tmp_path: Path) -> None:
    folder = DEPLOY / "prometheus"
    # Its unit tests of alerts; and the expressions of the dashboard as rules, with values for Grafana's variables.
    subprocess.run(["promtool", "test", "rules", "rules_test.yml"], cwd=folder, check=True, timeout=60)
    values = {"$__rate_interval": "1m", "$job": "gossamer", "$instance": ".+"}
    rules = []
    for number, expression in enumerate(expressions()):
        for variable, value in values.items():
            expression = expression.replace(variable, value)
        rules.append({"record": f"panel:{number}", "expr": expression})
    made = tmp_path / "panels.yml"
    made.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    for file in (folder / "rules.yml", made):
        subprocess.run(["promtool", "check", "rules", file], check=True, timeout=60)
    subprocess.run(["promtool", "check", "config", "--syntax-only", folder / "prometheus.yml"], check=True, timeout=60)


def test_the_composition_mounts_files_that_exist_and_gives_no_rights_away() -> None:
    composed = yaml.safe_load((DEPLOY.parent / "compose.yaml").read_text(encoding="utf-8"))
    stages = re.findall(r"^FROM (\S+)", (DEPLOY.parent / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(base.startswith("docker.io/library/") for base in stages)
    for name, service in composed["services"].items():
        assert (service["init"], service["read_only"], service["cap_drop"]) == (True, True, ["ALL"]), name
        assert service["mem_limit"], name
        # With its registry, or Podman looks for none; in a fixed version.
        assert "build" in service or re.fullmatch(r"docker\.io/[a-z]+/[a-z]+:[\w.-]+\d[\w.-]*", service["image"]), name
        assert service["tmpfs"] == ["/tmp"], "elsewhere Podman and Docker differ in who may write"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert set(service.get("depends_on", ())) <= composed["services"].keys()
        for source, *_ in (volume.split(":") for volume in service.get("volumes", ())):
            assert source in composed["volumes"] or (DEPLOY.parent / source).is_file()


def test_the_composed_crawl_is_a_command_that_exists() -> None:
    composed = yaml.safe_load((DEPLOY.parent / "compose.yaml").read_text(encoding="utf-8"))
    words = [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in composed["services"]["crawl"]["command"]]
    options = parse([re.sub(r"\$\{SEED.*\}", "https://docs.example.org/", word) for word in words])
    assert (options["politeness"], options["max_pages"], options["serve"]) == ("gentle", "1000", "8817")
    config = configure(sets=options["sets"], options={"memory": options["memory"]})  # type: ignore[arg-type]
    limit = read_quantity(re.sub(r"\$\{\w+:-(\w+)\}", r"\1", composed["services"]["crawl"]["mem_limit"]), "bytes")
    assert limit is not None
    assert config.memory.budget_bytes < 0.9 * limit
    grace_s = read_quantity(composed["services"]["crawl"]["stop_grace_period"], "seconds")
    assert grace_s is not None
    assert config.crawl.stop_s + STOP_UPLOADS_S < grace_s, "it ends by itself, also without its store"
    assert composed["services"]["crawl"]["healthcheck"]["test"] == ["CMD", "gossamer", "metrics", options["output"]]
    assert config.archive.store_options == {
        "endpoint": "http://store:9000",
        "region": "us-east-1",
        "allow_http": "true",
    }
    scraped = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"][0]
    assert scraped["static_configs"] == [{"targets": ["crawl:8817"]}]
    assert scraped["authorization"]["credentials_file"] == f"{options['output']}/state/{FILE}"


@pytest.mark.acceptance
def test_the_services_have_a_user_and_directories(tmp_path: Path) -> None:
    for kind in ("sysusers.d", "tmpfiles.d"):
        (tmp_path / "etc" / kind).mkdir(parents=True)
        shutil.copy(DEPLOY / kind / "gossamer.conf", tmp_path / "etc" / kind)
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}"], check=True, timeout=60)
    subprocess.run(["systemd-tmpfiles", f"--root={tmp_path}", "--create"], check=True, timeout=60)
    user = re.search(
        r"^gossamer:x:(\d+):(\d+):[^:]*:/srv/gossamer:.*nologin$", (tmp_path / "etc/passwd").read_text(), re.MULTILINE
    )
    assert user is not None
    crawls, configurations = ((tmp_path / name).stat() for name in ("srv/gossamer", "etc/gossamer"))
    assert (crawls.st_uid, crawls.st_gid, crawls.st_mode & 0o777) == (int(user[1]), int(user[2]), 0o750)
    assert (configurations.st_uid, configurations.st_gid, configurations.st_mode & 0o777) == (0, int(user[2]), 0o750)


@pytest.mark.acceptance
@pytest.mark.parametrize("unit", ["gossamer", "gossamer-server", "gossamer-ray-head", "gossamer-ray-worker"])
def test_the_units_are_what_systemd_reads(unit: str, tmp_path: Path) -> None:
    text = (DEPLOY / f"{unit}.service").read_text(encoding="utf-8")
    assert re.search(r"^User=gossamer\nGroup=gossamer$", text, re.MULTILINE)
    template, name = ("gossamer@", "gossamer@docs") if unit == "gossamer" else (unit, unit)
    (tmp_path / f"{template}.service").write_text(re.sub(r"/opt/gossamer/bin/\w+", "/bin/true", text))
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / f"{name}.service"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    if "ray" not in unit:  # Of 0 to 10: those below 5 are "OK".
        exposed = ["systemd-analyze", "security", "--offline=true", "--threshold=50", DEPLOY / f"{unit}.service"]
        assert subprocess.run(exposed, stdout=subprocess.DEVNULL, timeout=60).returncode == 0


LOAD = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
register_default_plugins()
print(JSONEncoder().encode(Dashboard.from_json(json.load(sys.stdin))))
"""


@pytest.mark.acceptance
def test_the_dashboard_has_what_grafanas_schema_knows() -> None:
    """What the models that Grafana makes of its schema do not know is lost when they load the dashboard."""
    package = DEPLOY.parent / ".parts/grafana"
    assert package.is_dir(), f"{package} is missing: `make acceptance` installs Grafana's models there"
    done = subprocess.run(
        [sys.executable, "-c", LOAD], input=json.dumps(DASHBOARD), env={"PYTHONPATH": str(package)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # This one is of annotations from Prometheus, whose fields the schema leaves to each data source.
    assert list(lost(DASHBOARD, json.loads(done.stdout))) == ["/annotations/list/0/titleFormat"]


def lost(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Yield the places of values that `other` lacks, or has with another value."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key, value in one.items():
            yield from lost(value, other[key], f"{place}/{key}") if key in other else [f"{place}/{key}"]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (value, same) in enumerate(zip(one, other, strict=True)):
            yield from lost(value, same, f"{place}/{number}")
    elif one != other:
        yield place
