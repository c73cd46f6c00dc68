"""Each overlay builds, is valid Kubernetes, keeps to the policy and fits the settings; the policy can say no."""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from service.settings import Settings
from tests.deploy.policy import breaches, of_kind, pods, variables
from tests.deploy.tools import DEPLOY, ROOT, run, tool

OVERLAYS = ("small", "gpu", "many", "nodeport")
KUBERNETES = "1.30"
"""The oldest version the manifests are for (`preStop.sleep`), and so the schemas they are held to."""

_built: dict[str, list[Any]] = {}


def built(overlay: str) -> list[Any]:
    """The overlay's manifests, to be changed at will."""
    if overlay not in _built:
        text = run(tool("kubectl"), "kustomize", DEPLOY / "k3s" / "overlays" / overlay)
        _built[overlay] = [one for one in yaml.safe_load_all(text) if one]
    return deepcopy(_built[overlay])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_builds_and_keeps_to_the_policy(overlay: str) -> None:
    manifests = built(overlay)
    assert {name for name, _ in pods(manifests)} >= {
        "Deployment/web",
        "Deployment/worker",
        "Deployment/reranker",
        "Job/migrate",
    }
    assert {one["metadata"].get("namespace") for one in manifests if one["kind"] != "Namespace"} == {"ariane"}
    assert breaches(manifests) == []


@pytest.mark.parametrize("version", [KUBERNETES, ""])
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_valid_kubernetes(overlay: str, version: str) -> None:
    validation = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed ('.[deploy]')")
    for manifest in built(overlay):
        if manifest["apiVersion"].startswith("monitoring.coreos.com/"):
            continue  # the operator's own kind: no part of Kubernetes
        validation.validate(manifest, version or validation.latest_version(), strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_settings_of_an_overlay_load(overlay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (settings,) = of_kind(built(overlay), "ConfigMap")
    for name, value in settings["data"].items():
        monkeypatch.setenv(name, value)
    loaded = Settings()
    assert loaded.models.reranker.url == "http://reranker:8080"
    assert loaded.worker.shutdown_grace_seconds > loaded.models.answerer.deadline_seconds


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_selector_and_policy_finds_its_pods(overlay: str) -> None:
    manifests = built(overlay)
    labels = [template["metadata"]["labels"] for _, template in pods(manifests)]

    def found(selector: dict[str, Any]) -> bool:
        wanted = selector.get("matchLabels", {}).items()
        allowed = {one["key"]: one["values"] for one in selector.get("matchExpressions", [])}
        return any(wanted <= one.items() and all(one[key] in allowed[key] for key in allowed) for one in labels)

    for one in manifests:
        name = f"{one['kind']}/{one['metadata']['name']}"
        if one["kind"] == "Service":
            assert found({"matchLabels": one["spec"]["selector"]}), name
        elif one["kind"] == "PodDisruptionBudget":
            assert found(one["spec"]["selector"]), name
        elif one["kind"] == "NetworkPolicy":
            rules = [*one["spec"].get("ingress", []), *one["spec"].get("egress", [])]
            peers = [peer for rule in rules for peer in (*rule.get("from", []), *rule.get("to", []))]
            ours = [peer["podSelector"] for peer in peers if "podSelector" in peer and "namespaceSelector" not in peer]
            for selector in (one["spec"]["podSelector"], *ours):
                assert selector == {} or found(selector), name


def test_the_nodeport_is_in_its_own_overlay_alone() -> None:
    ports = {
        overlay: [
            port.get("nodePort")
            for one in of_kind(built(overlay), "Service")
            for port in one["spec"]["ports"]
            if one["spec"].get("type") == "NodePort"
        ]
        for overlay in OVERLAYS
    }
    assert ports == {"small": [], "gpu": [], "many": [], "nodeport": [32136]}
    scaled = {overlay for overlay in OVERLAYS if of_kind(built(overlay), "HorizontalPodAutoscaler")}
    assert scaled == {"many"}


def workload(manifests: list[Any], name: str) -> Any:
    return next(one for one in manifests if one["metadata"]["name"] == name and "template" in one["spec"])


def pod(manifest: Any) -> Any:
    return manifest["spec"]["template"]["spec"]


def container(manifest: Any) -> Any:
    return pod(manifest)["containers"][0]


Change = Callable[[Any], object]
CHANGES: dict[str, tuple[str, Change]] = {
    "runs as root": ("Deployment", lambda one: pod(one)["securityContext"].update(runAsUser=0)),
    "keeps capabilities": ("Deployment", lambda one: container(one)["securityContext"].pop("capabilities")),
    "isn't pinned": ("Deployment", lambda one: container(one).update(image="ariane:latest")),
    "no livenessProbe": ("Deployment", lambda one: container(one).pop("livenessProbe")),
    "no limits of memory": ("Deployment", lambda one: container(one)["resources"].pop("limits")),
    "is no setting": ("ConfigMap", lambda one: one["data"].update(ARIANE_FORUM__BASE_URI="x")),
    "is given in clear": (
        "Deployment",
        lambda one: container(one)["env"].append({"name": "ARIANE_FORUM__API_KEY", "value": "x"}),
    ),
    "killed after": ("Deployment", lambda one: pod(one).update(terminationGracePeriodSeconds=30)),
    "could never be drained": ("PodDisruptionBudget", lambda one: one["spec"].update(minAvailable=1)),
    "lets everybody in": ("NetworkPolicy", lambda one: one["spec"].update(ingress=[{}])),
    "no policy denies": ("NetworkPolicy", lambda one: one["spec"].update(podSelector={"matchLabels": {"a": "b"}})),
    "undo its scaling": ("Deployment", lambda one: one["spec"].update(replicas=1)),
}


@pytest.mark.parametrize("said", CHANGES)
def test_each_rule_of_the_policy_can_be_broken(said: str) -> None:
    """A policy that never says no would pass everything."""
    kind, change = CHANGES[said]
    manifests = built("small")
    for one in of_kind(manifests, kind):
        if kind != "Deployment" or "env" in container(one):
            change(one)
    assert [breach for breach in breaches(manifests) if said in breach]


def test_a_nodeport_without_a_key_is_refused() -> None:
    manifests = built("nodeport")
    env = workload(manifests, "reranker")["spec"]["template"]["spec"]["containers"][0]["env"]
    next(one for one in env if one["name"] == "API_KEY")["valueFrom"]["secretKeyRef"]["optional"] = True
    assert breaches(manifests) == ["Deployment/reranker: is open at a NodePort without a key"]


def test_web_and_worker_see_the_same_configuration() -> None:
    manifests = built("small")
    seen = {
        name: {
            key: value
            for key, value in variables(template["spec"]["containers"][0], manifests).items()
            if isinstance(value, str)
        }
        for name, template in pods(manifests)
        if name in ("Deployment/web", "Deployment/worker")
    }
    assert seen["Deployment/web"] == seen["Deployment/worker"]


def test_the_overlay_that_the_readme_tells_to_make_builds(tmp_path: Path) -> None:
    text = (DEPLOY / "k3s" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n   # my-ariane/kustomization.yaml\n(.*?)   ```", text, re.DOTALL)
    (tmp_path / "ariane").symlink_to(ROOT)
    (tmp_path / "my-ariane").mkdir()
    (tmp_path / "my-ariane" / "kustomization.yaml").write_text(dedent(block), encoding="utf-8")
    made = [one for one in yaml.safe_load_all(run(tool("kubectl"), "kustomize", tmp_path / "my-ariane")) if one]
    assert breaches(made) == []
    (settings,) = of_kind(made, "ConfigMap")
    assert settings["data"]["ARIANE_FORUM__BASE_URL"] == "https://forum.my.example"
    assert settings["data"]["ARIANE_MODELS__ANSWERER__EVIDENCE_TOKENS"] == "900"
    (ingress,) = of_kind(made, "Ingress")
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == ["ariane.my.example"]
    assert container(workload(made, "web"))["image"] == "registry.my.example/ariane:0.1.0"


def test_the_readme_names_every_key_of_the_secret() -> None:
    text = (DEPLOY / "k3s" / "README.md").read_text(encoding="utf-8")
    told = set(re.findall(r"--from-literal=([a-z-]+)=", text))
    asked = {
        value["secretKeyRef"]["key"]
        for overlay in OVERLAYS
        for _, template in pods(built(overlay))
        for value in variables(template["spec"]["containers"][0], []).values()
        if isinstance(value, dict) and "secretKeyRef" in value
    }
    assert told == asked
