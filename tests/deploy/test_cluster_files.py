"""Compose file, manifest and configurations of the distributed engine, read as text: no container engine runs here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from needed import need_module

from netclust.stream.config import load_config, parse_config
from netclust.stream.sharding.worker import check_sharding

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "cluster" / "compose.yaml").read_text())
    return found


def manifests() -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "cluster.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_sensor_and_engine_agree() -> None:
    need_module("redis")
    config = load_config(DEPLOY / "cluster" / "cluster.toml")
    sharding, _ = check_sharding(config, "cluster.toml")
    sensor = load_config(DEPLOY / "cluster" / "sensor.toml")
    assert sensor.ship.url.partition("?")[0] == sharding.input.partition("?")[0]
    assert sensor.ship.partitions == sharding.partitions
    assert sensor.model.path == config.model.path


def test_compose_mounts_what_there_is_and_opens_nothing() -> None:
    whole = compose()
    used = set()
    for service in whole["services"].values():
        assert re.search(r":v?\d+\.\d+", service["image"])
        assert "ports" not in service
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / "cluster" / source).resolve().exists(), source
            else:
                used.add(source)
    assert used == set(whole["volumes"])
    services = whole["services"]
    assert "127.0.0.1" in services["redis"]["command"]
    assert services["cluster"]["cap_drop"] == ["ALL"]
    assert services["cluster"]["security_opt"] == ["no-new-privileges:true"]
    build = services["sensor"]["build"]
    assert (DEPLOY / "cluster" / build["context"] / build["dockerfile"]).resolve().exists()
    metrics = load_config(DEPLOY / "cluster" / "cluster.toml").sharding.metrics  # type: ignore[union-attr]
    assert metrics.startswith("127.0.0.1:")
    assert metrics in services["cluster"]["healthcheck"]["test"][-1]


def test_the_manifest_s_configuration_starts() -> None:
    need_module("nats")
    found = manifests()
    sharding, _ = check_sharding(parse_config(found["ConfigMap"]["data"]["netclust.toml"]), "manifest")
    pod = found["StatefulSet"]["spec"]["template"]
    (worker,) = pod["spec"]["containers"]
    port = int(sharding.metrics.rpartition(":")[2])
    assert {p["name"]: p["containerPort"] for p in worker["ports"]}["metrics"] == port
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == str(port)
    mounts = {mount["mountPath"] for mount in worker["volumeMounts"]}
    assert any(sharding.recovery.startswith(f"{path}/") for path in mounts)  # a folder in it, of its own
    assert sharding.partitions % found["StatefulSet"]["spec"]["replicas"] == 0


def test_every_worker_is_in_the_list_of_addresses() -> None:
    found = manifests()
    spec = found["StatefulSet"]["spec"]
    name, service = found["StatefulSet"]["metadata"]["name"], found["Service"]
    (worker,) = spec["template"]["spec"]["containers"]
    (text,) = re.findall(r'--addresses "([^"]+)"', worker["command"][-1])
    port = {p["name"]: p["containerPort"] for p in worker["ports"]}["workers"]
    wanted = [f"{name}-{i}.{service['metadata']['name']}.netclust.svc:{port}" for i in range(spec["replicas"])]
    assert text.split(";") == wanted
    assert spec["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert spec["podManagementPolicy"] == "Parallel"


def test_only_workers_reach_workers() -> None:
    found = manifests()
    labels = found["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert found["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    policy = found["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    into = [rule for rule in policy["ingress"] if any(p["port"] == 2101 for p in rule["ports"])]
    assert [rule["from"] for rule in into] == [[{"podSelector": {"matchLabels": labels}}]]


def test_pods_have_what_they_mount_and_few_rights() -> None:
    pod = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in [*pod["containers"], *pod["initContainers"]]:
        assert re.search(r":v?\d+\.\d+", container["image"])
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
    assert {d["metadata"].get("namespace", "netclust") for d in manifests().values()} == {"netclust"}
