"""What stands in deploy/ is what its readers take: a schema, a service manager's grammar, our own configuration."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import ray
import ray.autoscaler
import yaml

from gossamer.api.life import STOP_UPLOADS_S
from gossamer.config import configure
from gossamer.config.presets import preset_values
from gossamer.console.fleet import STOP_S_MAX
from gossamer.lab.simulate.arguments import options_of
from gossamer.stages.frontier.options import politeness
from tests.cluster.drill import SYSTEM
from tests.docs.test_pages import parse

DEPLOY = Path(__file__).parents[2] / "deploy"
PROGRAM = "/opt/gossamer/bin/gossamer"


def fields(required: str, optional: str = "", **known: object) -> dict[str, object]:
    """Return the schema of an object with exactly these fields."""
    names = {name: known.get(name, {}) for name in (required + " " + optional).split()}
    return {"type": "object", "required": required.split(), "additionalProperties": False, "properties": names}


def several(item: object) -> dict[str, object]:
    return {"type": "array", "minItems": 1, "items": item}


PROBE = fields("tcpSocket", "failureThreshold initialDelaySeconds", tcpSocket=fields("port"))
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
AMOUNT = {"type": "string", "pattern": "^[1-9][0-9]*(m|Mi|Gi)?$"}
PLACES = {"enum": ["/srv/gossamer", "/mnt/gossamer", "/etc/gossamer", "/tmp"]}
CONTAINER = fields(
    "name image resources",
    "command args env envFrom ports livenessProbe readinessProbe securityContext volumeMounts workingDir",
    resources=fields(
        "requests limits",
        requests=fields("cpu memory", cpu=AMOUNT, memory=AMOUNT),
        limits=fields("memory", "cpu", cpu=AMOUNT, memory=AMOUNT),
    ),
    env=several(fields("name value", value={"type": "string"})),
    envFrom=several(fields("secretRef", secretRef=fields("name"))),
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    ports=several(fields("name containerPort", containerPort=PORT)),
    volumeMounts=several(fields("name mountPath", "readOnly", mountPath=PLACES)),
    securityContext={
        "const": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    },
    args=several({"type": "string"}),
)
POD = fields(
    "containers securityContext",
    "initContainers restartPolicy serviceAccountName terminationGracePeriodSeconds volumes",
    containers=several(CONTAINER),
    initContainers=several(CONTAINER),
    # The image's user owns what is mounted, and is no other.
    securityContext={"const": {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001}},
    volumes=several(fields("name", "emptyDir configMap persistentVolumeClaim")),
    # A crawl ends with everything saved before that.
    terminationGracePeriodSeconds={"type": "integer", "minimum": 90},
)
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
GROUP = ("rayStartParams template", {"rayStartParams": TEXTS, "template": fields("spec", spec=POD)})
KUBERAY = fields(
    "rayVersion headGroupSpec workerGroupSpecs",
    headGroupSpec=fields(GROUP[0], **GROUP[1]),
    workerGroupSpecs=several(fields(f"groupName replicas minReplicas maxReplicas {GROUP[0]}", **GROUP[1])),
)
CLAIM = fields(
    "accessModes resources",
    accessModes={"const": ["ReadWriteOnce"]},
    resources=fields("requests", requests=fields("storage", storage={"type": "string", "pattern": "^[1-9][0-9]*Gi$"})),
)
STATEFUL = fields(
    "serviceName replicas selector template volumeClaimTemplates",
    replicas={"const": 1},
    volumeClaimTemplates=several(fields("metadata spec", spec=CLAIM)),
    template=fields("metadata spec", spec=POD),
)
SERVICE = fields(
    "clusterIP publishNotReadyAddresses selector ports",
    clusterIP={"const": "None"},
    publishNotReadyAddresses={"const": True},
    ports=several(fields("name port", port=PORT)),
)
"""Of ray.io/v1, and of the API of pods, the fields that the manifests have, and no others: a field with a typing error
is none. The names are those of KubeRay's and Kubernetes' API references."""


def manifests(name: str) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / name).read_text())}


def amount(text: str) -> float:
    """Return how much of a resource a text names, in MiB or processors."""
    number, unit = re.fullmatch(r"(\d+)(m|Mi|Gi)?", text).groups()  # type: ignore[union-attr]
    return int(number) * {None: 1.0, "m": 0.001, "Mi": 1.0, "Gi": 1024.0}[unit]


def require_mounts(pod: dict[str, Any], *claims: str) -> None:
    """Check that what is mounted is a volume of the pod, or one of a stateful set's claims, and the reverse."""
    containers = [*pod["containers"], *pod.get("initContainers", ())]
    mounted = {mount["name"] for one in containers for mount in one.get("volumeMounts", ())}
    assert mounted == {volume["name"] for volume in pod.get("volumes", ())} | set(claims)


def test_the_cloud_cluster_is_as_ray_wants_it() -> None:
    schema = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text())
    cluster = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    jsonschema.validate(cluster, schema)
    assert cluster["head_node_type"] in cluster["available_node_types"]
    workers = sum(kind.get("max_workers", 0) for kind in cluster["available_node_types"].values())
    assert workers == cluster["max_workers"] == configure(DEPLOY / "crawl.toml").cluster.workers


def test_the_workers_of_the_cloud_may_use_the_bucket_and_need_the_token() -> None:
    cluster = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    assert cluster["available_node_types"]["worker"]["node_config"]["IamInstanceProfile"]
    assert cluster["file_mounts"]["/home/ubuntu/.ray/auth_token"] == "~/.ray/auth_token"
    for kind in ("head", "worker"):
        assert "RAY_AUTH_MODE=token" in " ".join(cluster[f"{kind}_start_ray_commands"])
    config = configure(DEPLOY / "crawl.toml")
    made = next(command for command in cluster["setup_commands"] if "mkdir" in command)
    assert {config.cluster.work_directory, str(Path(config.output.directory).parent)} <= set(made.split())


def test_a_silent_machine_is_noticed_soon() -> None:
    """In about five times four seconds: each check waits for its answer, and the next begins a second later."""
    cluster = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    head = manifests("kuberay.yaml")["RayCluster"]["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    given = " ".join(f"{one['name']}={one['value']}" for one in head["env"])
    guide = (DEPLOY.parent / "docs/how-to/cluster.md").read_text()
    for text in (given, " ".join(cluster["head_start_ray_commands"]), guide):
        for setting in ("period_ms=1000", "timeout_ms=3000", "failure_threshold=5"):
            assert f"RAY_health_check_{setting}" in text


def test_a_machine_notices_soon_that_its_head_was_lost() -> None:
    """Ray's own check, whether the head knows the machine, comes once a minute: ray-project/ray#34763."""
    found = manifests("kuberay.yaml")
    pods = [
        found["RayCluster"]["spec"]["workerGroupSpecs"][0]["template"]["spec"],
        found["Job"]["spec"]["template"]["spec"],
    ]
    given = [" ".join(f"{one['name']}={one.get('value')}" for one in pod["containers"][0]["env"]) for pod in pods]
    cloud = " ".join(yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())["worker_start_ray_commands"])
    guide = (DEPLOY.parent / "docs/how-to/cluster.md").read_text()
    unit = (DEPLOY / "gossamer-ray-worker.service").read_text()
    raylet = (Path(ray.__file__).parent / "core/src/ray/raylet/raylet").read_bytes()
    for name, value in (("gcs_rpc_server_reconnect_timeout_s", 10), ("raylet_liveness_self_check_interval_ms", 2_000)):
        assert SYSTEM[name] == value
        assert f"RAY_{name}".encode() in raylet
        for text in (*given, cloud, guide, unit):
            assert f"RAY_{name}={value}" in text


def test_the_manifest_is_as_kuberay_wants_it() -> None:
    found = manifests("kuberay.yaml")
    cluster, job = found["RayCluster"], found["Job"]["spec"]["template"]["spec"]
    assert (cluster["apiVersion"], found["Job"]["apiVersion"]) == ("ray.io/v1", "batch/v1")
    jsonschema.validate(cluster["spec"], KUBERAY)
    jsonschema.validate(job, POD)
    jsonschema.validate(found["PersistentVolumeClaim"]["spec"], CLAIM)
    pods = [
        group["template"]["spec"] for group in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"])
    ]
    for pod in (*pods, job):
        require_mounts(pod)
        assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
        secrets = {one["secretRef"]["name"] for one in pod["containers"][0]["envFrom"]}
        assert secrets == {"gossamer-store", "gossamer-ray"}
        assert {"name": "RAY_AUTH_MODE", "value": "token"} in pod["containers"][0]["env"]
    assert job["volumes"][0]["persistentVolumeClaim"]["claimName"] == found["PersistentVolumeClaim"]["metadata"]["name"]
    replicas = cluster["spec"]["workerGroupSpecs"][0]["replicas"]
    assert replicas == configure(DEPLOY / "crawl.toml").cluster.workers


def test_the_job_joins_the_cluster_and_crawls() -> None:
    container = manifests("kuberay.yaml")["Job"]["spec"]["template"]["spec"]["containers"][0]
    [script] = container["args"]
    command = shlex.split(script.partition("exec gossamer ")[2])
    options = parse(command)
    assert (options["cluster"], options["or_resume"], str(options["config"])) == (
        "gossamer-head-svc:6379",
        True,
        "crawl.toml",
    )
    subprocess.run(["sh", "-n", "-c", script], check=True, timeout=60)


def test_a_crawl_of_one_shard_is_a_stateful_set() -> None:
    found = manifests("kubernetes.yaml")
    spec = found["StatefulSet"]["spec"]
    pod = spec["template"]["spec"]
    assert {kind: one["apiVersion"] for kind, one in found.items()} == {"StatefulSet": "apps/v1", "Service": "v1"}
    jsonschema.validate(spec, STATEFUL)
    jsonschema.validate(found["Service"]["spec"], SERVICE)
    guide = (DEPLOY.parent / "docs/how-to/container.md").read_text()
    for volume in pod["volumes"]:
        assert "configMap" not in volume or f"create configmap {volume['configMap']['name']} " in guide
    require_mounts(pod, *(claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]))
    assert (
        spec["selector"]["matchLabels"]
        == spec["template"]["metadata"]["labels"]
        == found["Service"]["spec"]["selector"]
    )
    assert spec["serviceName"] == found["Service"]["metadata"]["name"]
    [crawl], [serve] = pod["initContainers"], pod["containers"]
    for container in (crawl, serve):
        assert container["securityContext"]
        paths = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {str(Path(word).parent) for word in container["args"] if word[0] == "/"} | {"/tmp"} <= paths
        resources = container["resources"]
        for kind, limit in resources["limits"].items():
            assert amount(resources["requests"][kind]) <= amount(limit)
    for reference in crawl["envFrom"]:
        assert f"create secret generic {reference['secretRef']['name']} " in guide
    assert serve["readinessProbe"]["tcpSocket"]["port"] == serve["ports"][0]["containerPort"]
    options = parse(crawl["args"])
    assert (options["or_resume"], options["serve"]) == (True, "8817")
    assert options["sets"] == ("console.address=0.0.0.0", "progress.interval_s=60")
    assert str(parse(serve["args"])["directory"]) == "/srv/gossamer/crawl"


def test_kuberay_probes_a_port_at_which_ray_listens() -> None:
    """Without probes of ours KubeRay asks the dashboard and its agents, which the image does not have."""
    from ray.scripts.scripts import start  # Not for all who collect tests.

    cluster = manifests("kuberay.yaml")["RayCluster"]
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
    service = unit["Service"]
    assert service.get("KillSignal", "SIGTERM") == "SIGTERM", "it saves everything and ends"
    assert service.get("ReadWritePaths", "/srv/gossamer") == service.get("WorkingDirectory", "/srv/gossamer")
    return service


def test_the_unit_goes_on_with_what_there_is() -> None:
    service = service_of("gossamer.service")
    program, *words = shlex.split(service["ExecStart"].replace("%i", "docs"))
    assert (program, words.pop(), service["Environment"]) == (PROGRAM, "$RESUME_OPTIONS", "RESUME_OPTIONS=")
    options = parse(words)
    assert (options["or_resume"], options["sets"]) == (True, ("progress.interval_s=60",)), "the journal is not flooded"
    assert (str(options["config"]), str(options["output"])) == ("/etc/gossamer/docs.toml", "/srv/gossamer/docs")
    # A crawl that ended with 3 or 4 has nothing to do yet: started every ten seconds, it ends at once each time.
    assert (service["SuccessExitStatus"], service["RestartPreventExitStatus"]) == ("130", "2 3 4")
    assert int(service["TimeoutStopSec"]) > configure(None).crawl.stop_s + STOP_UPLOADS_S


def test_the_servers_unit_gives_crawls_time_to_end_and_leaves_them_when_it_dies() -> None:
    service = service_of("gossamer-server.service")
    assert f"{PROGRAM} serve --folder" in service["ExecStart"]
    assert (service["KillMode"], service["RestartPreventExitStatus"]) == ("process", "2")
    assert int(service["TimeoutStopSec"]) > STOP_S_MAX


@pytest.mark.parametrize("kind", ["head", "worker"])
def test_ray_is_started_again_when_it_ends(kind: str) -> None:
    from ray.scripts.scripts import start  # Not for all who collect tests.

    service = service_of(f"gossamer-ray-{kind}.service")
    assert (service["Restart"], service["Type"]) == ("always", "exec")
    # A shard has the time to end with everything saved, and what hangs does not keep the machine away.
    assert configure(None).crawl.stop_s < int(service["TimeoutStopSec"]) <= 20
    command = shlex.split(service["ExecStart"])
    assert "--block" in command
    context = start.make_context("start", command[2:])  # Raises for an option that Ray does not know.
    if kind == "head":  # The unit of a crawl has a /tmp of its own, in which Ray's sockets are not.
        crawl = service_of("gossamer.service")
        assert crawl["PrivateTmp"] == "yes"
        assert context.params["temp_dir"] == crawl["ReadWritePaths"] + "/ray"
