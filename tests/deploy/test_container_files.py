"""Image, compose file and manifests, read as text: no container engine runs here."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from netclust.stream.config import HttpConfig, parse_config

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PORT = HttpConfig().listen.rpartition(":")[2]
DOCKERFILE = DEPLOY / "container" / "Dockerfile"


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
    return found


def manifests() -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "netclust.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_every_yaml_file_parses() -> None:
    for path in [*DEPLOY.rglob("*.yml"), *DEPLOY.rglob("*.yaml")]:
        assert list(yaml.safe_load_all(path.read_text())), path


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    ignore = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ignore[0] == "*"
    allowed = [line[1:] for line in ignore if line.startswith("!")]
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatch.fnmatch(source, pattern) for pattern in allowed), f"{source} is in .dockerignore"
    assert all((ROOT / pattern).exists() for pattern in allowed)


def test_links_of_the_package_are_copied_with_what_they_lead_to() -> None:
    copied = {source for name, rest in instructions() if name == "COPY" for source in rest.split()[:-1]}
    for link in (ROOT / "netclust").iterdir():
        if link.is_symlink():
            assert link.resolve().name in copied


def test_the_image_does_not_run_as_root_and_brings_its_kernels() -> None:
    names = instructions()
    user = max(i for i, (name, _) in enumerate(names) if name == "USER")
    assert names[user][1] not in ("root", "0")
    after = names[user + 1 :]
    built = [rest for name, rest in names[:user] if name == "RUN" and "netclust.kernels.prebuilt --all" in rest]
    assert len(built) == 1
    assert built[0].index("requirements/") < built[0].index("--no-deps .") < built[0].index("prebuilt --all")
    assert not any(name in ("COPY", "ADD") for name, _ in after)
    assert len([name for name, _ in names if name == "FROM"]) == 2


def test_the_image_installs_pinned_lists_that_the_lock_makes_from_extras_that_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (name,) = re.findall(r"--require-hashes -r requirements/(\w+)\.txt", DOCKERFILE.read_text())
    assert (ROOT / "requirements" / f"{name}.txt").is_file()
    (pinned,) = re.findall(rf"^pin {name} (.*)$", (ROOT / "requirements" / "lock.sh").read_text(), re.M)
    asked = re.findall(r"--extra ([\w-]+)", pinned)
    assert asked
    assert set(asked) <= set(extras)


def test_the_image_is_checked_without_curl_where_the_daemon_listens() -> None:
    (check,) = [rest for name, rest in instructions() if name == "HEALTHCHECK"]
    assert f"127.0.0.1:{PORT}/healthz" in check
    assert "curl" not in check
    assert ("EXPOSE", PORT) in instructions()


@pytest.mark.parametrize("path", [p for p in DEPLOY.rglob("*") if p.is_file()], ids=lambda p: p.name)
def test_no_secret_is_written_down(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"(?i)(password|passwd|secret_key|api_key|bearer)\s*[:=]\s*['\"]?\w{6,}", text)
    assert "BEGIN PRIVATE KEY" not in text


def test_every_image_has_a_version() -> None:
    images = [service["image"] for service in compose()["services"].values()]
    pod = manifests()["DaemonSet"]["spec"]["template"]["spec"]
    images += [container["image"] for container in [*pod["containers"], *pod["initContainers"]]]
    images += [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    for image in images:
        assert re.search(r":v?\d+\.\d+", image), image


def test_compose_mounts_files_that_exist_and_volumes_that_are_declared() -> None:
    whole = compose()
    used = set()
    for service in whole["services"].values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / "container" / source).resolve().exists(), source
            else:
                used.add(source)
    assert used == set(whole["volumes"])
    build = whole["services"]["netclust"]["build"]
    assert (DEPLOY / "container" / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]) == DOCKERFILE


def test_compose_opens_nothing_beyond_loopback() -> None:
    services = compose()["services"]
    for name in ("prometheus", "alertmanager"):
        (listen,) = [arg for arg in services[name]["command"] if arg.startswith("--web.listen-address=")]
        assert listen.startswith("--web.listen-address=127.0.0.1:")
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert not any("ports" in service for service in services.values())
    assert services["netclust"]["cap_add"] == ["NET_RAW"]
    assert services["netclust"]["cap_drop"] == ["ALL"]


def test_grafana_finds_what_it_is_provisioned_with() -> None:
    folder = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://127.0.0.1:9090"
    (provider,) = yaml.safe_load((folder / "dashboards" / "netclust.yaml").read_text())["providers"]
    mounts = [volume.split(":")[1] for volume in compose()["services"]["grafana"]["volumes"]]
    assert provider["options"]["path"] in mounts


def test_the_manifest_s_configuration_loads_and_ports_agree() -> None:
    found = manifests()
    config = parse_config(found["ConfigMap"]["data"]["netclust.toml"])
    assert config.http.listen.endswith(f":{PORT}")
    assert config.http.token_file  # beyond loopback
    pod = found["DaemonSet"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert str(container["ports"][0]["containerPort"]) == PORT
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == PORT
    assert str(found["Service"]["spec"]["ports"][0]["port"]) == PORT
    assert found["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"] == int(PORT)
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert any(config.http.token_file.startswith(path) for path in mounted)


def test_every_mount_of_the_manifest_has_a_volume_and_every_selector_a_pod() -> None:
    found = manifests()
    pod = found["DaemonSet"]["spec"]["template"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    for container in [*pod["spec"]["containers"], *pod["spec"]["initContainers"]]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    labels = pod["metadata"]["labels"]
    assert found["DaemonSet"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert {document["metadata"].get("namespace", "netclust") for document in found.values()} == {"netclust"}


def test_user_and_port_are_the_same_in_image_and_manifest() -> None:
    (made,) = [rest for name, rest in instructions() if name == "RUN" and "useradd" in rest]
    pod = manifests()["DaemonSet"]["spec"]["template"]["spec"]
    assert f"--uid {pod['securityContext']['runAsUser']} " in made
