"""What stands in deploy/ is what its readers take: a schema, a service manager's grammar, our own configuration."""

from __future__ import annotations

import configparser
import json
from pathlib import Path

import jsonschema
import pytest
import ray.autoscaler
import yaml
from ray.scripts.scripts import start

from gossamer.config import configure
from gossamer.config.presets import preset_values
from gossamer.console.fleet import STOP_S_MAX
from gossamer.lab.simulate.arguments import options_of
from gossamer.stages.frontier.options import politeness

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERAY = {
    "type": "object",
    "required": ["rayVersion", "headGroupSpec", "workerGroupSpecs"],
    "additionalProperties": False,
    "properties": {
        "rayVersion": {"type": "string"},
        "headGroupSpec": {"$ref": "#/$defs/group"},
        "workerGroupSpecs": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/workers"}},
    },
    "$defs": {
        "group": {
            "type": "object",
            "required": ["rayStartParams", "template"],
            "properties": {
                "rayStartParams": {"type": "object", "additionalProperties": {"type": "string"}},
                "template": {
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["containers"],
                            "properties": {"containers": {"type": "array", "items": {"required": ["name", "image"]}}},
                        }
                    },
                },
            },
        },
        "workers": {
            "allOf": [{"$ref": "#/$defs/group"}],
            "required": ["groupName", "replicas", "minReplicas", "maxReplicas"],
        },
    },
}
"""Of ray.io/v1, the part that a manifest must have: field names and kinds as KubeRay's API reference gives them."""


def test_the_cloud_cluster_is_as_ray_wants_it() -> None:
    schema = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text())
    cluster = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    jsonschema.validate(cluster, schema)
    assert cluster["head_node_type"] in cluster["available_node_types"]
    workers = sum(kind.get("max_workers", 0) for kind in cluster["available_node_types"].values())
    assert workers == cluster["max_workers"] == configure(DEPLOY / "crawl.toml").cluster.workers


def test_the_manifest_is_as_kuberay_wants_it() -> None:
    cluster, claim = yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    jsonschema.validate(cluster["spec"], KUBERAY)
    for group in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        mounted = {mount["name"] for one in pod["containers"] for mount in one["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
    claimed = cluster["spec"]["headGroupSpec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claimed == claim["metadata"]["name"]
    replicas = cluster["spec"]["workerGroupSpecs"][0]["replicas"]
    assert replicas == configure(DEPLOY / "crawl.toml").cluster.workers


def test_kuberay_probes_a_port_at_which_ray_listens() -> None:
    """Without probes of ours KubeRay asks the dashboard and its agents, which the image does not have."""
    cluster, _ = yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())
    options = {word.removeprefix("--") for one in start.params for word in one.opts}
    head, workers = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    for group, key in ((head, "port"), *((one, "node-manager-port") for one in workers)):
        assert group["rayStartParams"].keys() <= options
        for container in group["template"]["spec"]["containers"]:
            for probe in ("readinessProbe", "livenessProbe"):
                assert container[probe]["tcpSocket"]["port"] == int(group["rayStartParams"][key])


@pytest.mark.parametrize("volume", ["/mnt/gossamer", "/srv/gossamer"])
def test_the_crawl_works_where_the_machines_have_room(volume: str) -> None:
    config = configure(DEPLOY / "crawl.toml")
    assert volume in (config.cluster.work_directory, str(Path(config.output.directory).parent))
    assert volume in (DEPLOY / "kuberay.yaml").read_text()


def test_the_crawl_has_the_settings_that_the_simulation_of_it_has() -> None:
    config, simulated = configure(DEPLOY / "crawl.toml"), options_of("nielsen2012")
    for key, value in preset_values("whitelist").items():
        assert config.value(key) == (tuple(value) if isinstance(value, list) else value), key
    assert (config.cluster.workers, config.limits.max_pages) == (simulated.shards, simulated.pages)
    assert config.scope.own_site is (simulated.web.same_host_share == 1.0)
    assert config.crawl.concurrency == simulated.machine.concurrency
    assert config.frontier.active_hosts_bytes_max == simulated.frontier.active_hosts_bytes_max
    crawled, modelled = politeness(config.politeness), politeness(simulated.politeness)
    assert (crawled.delay_s_min, crawled.delay_s_max, crawled.site_delay_s) == (70.0, 70.0, 70.0)
    assert (modelled.delay_s_min, modelled.delay_s_max, modelled.per_host) == (70.0, 70.0, crawled.per_host)
    assert (crawled.per_address, crawled.address_delay_s) == (modelled.per_address, modelled.address_delay_s)


def service_of(name: str) -> configparser.SectionProxy:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((DEPLOY / name).read_text())
    assert set(unit.sections()) == {"Unit", "Service", "Install"}
    return unit["Service"]


def test_the_unit_goes_on_with_what_there_is() -> None:
    service = service_of("gossamer.service")
    assert "gossamer resume" in service["ExecStart"]
    assert "gossamer crawl" in service["ExecStart"]
    assert (service["SuccessExitStatus"], service["RestartPreventExitStatus"]) == ("130", "2")
    assert int(service["TimeoutStopSec"]) > configure(None).crawl.stop_s


def test_the_servers_unit_gives_crawls_time_to_end_and_leaves_them_when_it_dies() -> None:
    service = service_of("gossamer-server.service")
    assert "gossamer serve --folder" in service["ExecStart"]
    assert (service["KillMode"], service["RestartPreventExitStatus"]) == ("process", "2")
    assert int(service["TimeoutStopSec"]) > STOP_S_MAX
