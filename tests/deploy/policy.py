"""What every manifest must keep to, beyond its schema: one function a rule, each gives its breaches in words."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from service.settings import Settings
from tests.settings_table import settings_of

Manifest = Mapping[str, Any]
Rule = Callable[[Sequence[Manifest]], Iterator[str]]

WORKLOADS = ("Deployment", "StatefulSet", "Job", "DaemonSet", "CronJob")
SECRET = re.compile(r"secret|password|api_key|token|database_+url", re.IGNORECASE)
NO_SECRET = re.compile(r"_tokens$", re.IGNORECASE)
"""Numbers of tokens."""
PRIVATE = ("10.", "172.16.", "192.168.")


def known_variables() -> dict[str, str]:
    """Every variable that the settings read, and its setting."""
    return {f"ARIANE_{name.upper().replace('.', '__')}": name for name, _ in settings_of(Settings)}


def pods(manifests: Sequence[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Each workload's name and pod template."""
    for one in manifests:
        if one["kind"] in WORKLOADS:
            yield f"{one['kind']}/{one['metadata']['name']}", one["spec"]["template"]


def containers(template: Manifest) -> list[Manifest]:
    return [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    return [one for one in manifests if one["kind"] == kind]


def variables(container: Manifest, manifests: Sequence[Manifest]) -> dict[str, Any]:
    """The container's variables: literal values as text, references as mappings."""
    found: dict[str, Any] = {}
    maps = {one["metadata"]["name"]: one.get("data", {}) for one in of_kind(manifests, "ConfigMap")}
    for source in container.get("envFrom", []):
        found |= maps.get(source["configMapRef"]["name"], {})
    return found | {one["name"]: one.get("value", one.get("valueFrom")) for one in container.get("env", [])}


def hardened(manifests: Sequence[Manifest]) -> Iterator[str]:
    for name, template in pods(manifests):
        spec = template["spec"]
        context = spec.get("securityContext", {})
        if not (context.get("runAsNonRoot") and context.get("runAsUser", 0) > 0):
            yield f"{name}: runs as root"
        if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{name}: no seccomp profile"
        if spec.get("automountServiceAccountToken") is not False:
            yield f"{name}: is given a service account's token"
        if any(spec.get(shared) for shared in ("hostNetwork", "hostPID", "hostIPC")):
            yield f"{name}: shares the node's namespaces"
        if any("hostPath" in volume for volume in spec.get("volumes", [])):
            yield f"{name}: mounts a path of the node"
        for container in containers(template):
            own = container.get("securityContext", {})
            if own.get("allowPrivilegeEscalation") is not False:
                yield f"{name}: may gain privileges"
            if own.get("readOnlyRootFilesystem") is not True:
                yield f"{name}: writes to its root file system"
            if own.get("capabilities", {}).get("drop") != ["ALL"] or own["capabilities"].get("add"):
                yield f"{name}: keeps capabilities"


def pinned(manifests: Sequence[Manifest]) -> Iterator[str]:
    for name, template in pods(manifests):
        for container in containers(template):
            if fault := unpinned(container["image"]):
                yield f"{name}: {fault}"
            arguments = container.get("args", [])
            if any(one.startswith("--model-id") for one in arguments) and not any(
                re.fullmatch(r"--revision=[0-9a-f]{40}", one) for one in arguments
            ):
                yield f"{name}: its model isn't pinned to a commit"


def unpinned(image: str) -> str | None:
    """What is wrong with an image's name: a tag that moves, or none."""
    if "@sha256:" in image:
        return None
    tag = image.rpartition("/")[2].partition(":")[2]
    if not re.search(r"\d+\.\d+", tag):
        return f"the image {image} isn't pinned to a version"
    return None


def probed(manifests: Sequence[Manifest]) -> Iterator[str]:
    for name, template in pods(manifests):
        if name.startswith("Job/"):
            continue
        for container in template["spec"]["containers"]:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe not in container:
                    yield f"{name}: no {probe}"


def bounded(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Memory is limited; processors are only asked for, since a limit there slows a pod down beside idle cores."""
    for name, template in pods(manifests):
        for container in containers(template):
            resources = container.get("resources", {})
            for part, unit in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
                if unit not in resources.get(part, {}):
                    yield f"{name}: no {part} of {unit}"
        for volume in template["spec"].get("volumes", []):
            if "emptyDir" in volume and "sizeLimit" not in (volume["emptyDir"] or {}):
                yield f"{name}: the volume {volume['name']} has no limit"


def known(manifests: Sequence[Manifest]) -> Iterator[str]:
    settings = known_variables()
    for one in of_kind(manifests, "ConfigMap"):
        for name in one.get("data", {}):
            if name not in settings:
                yield f"ConfigMap/{one['metadata']['name']}: {name} is no setting"
    for name, template in pods(manifests):
        for container in containers(template):
            for variable in variables(container, manifests):
                if variable.startswith("ARIANE_") and variable not in settings:
                    yield f"{name}: {variable} is no setting"


def secret(manifests: Sequence[Manifest]) -> Iterator[str]:
    for one in of_kind(manifests, "Secret"):
        yield f"Secret/{one['metadata']['name']}: a secret stands in the manifests"
    for name, template in pods(manifests):
        for container in containers(template):
            for variable, value in variables(container, manifests).items():
                if is_secret(variable) and not (isinstance(value, Mapping) and "secretKeyRef" in value):
                    yield f"{name}: {variable} is given in clear"


def is_secret(variable: str) -> bool:
    return bool(SECRET.search(variable)) and not NO_SECRET.search(variable)


def patient(manifests: Sequence[Manifest]) -> Iterator[str]:
    """A worker is given more time than it asks for itself, and that is more than the longest answer takes."""
    for name, template in pods(manifests):
        for container in containers(template):
            if container.get("args") != ["worker"]:
                continue
            given = variables(container, manifests)
            grace = float(given.get("ARIANE_WORKER__SHUTDOWN_GRACE_SECONDS", 60))
            longest = float(given.get("ARIANE_MODELS__ANSWERER__DEADLINE_SECONDS", 120))
            killed = template["spec"].get("terminationGracePeriodSeconds", 30)
            if not killed > grace > longest:
                yield f"{name}: killed after {killed} s, stops after {grace:g} s, an answer takes up to {longest:g} s"


def spread(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Budgets leave one node workable, and pods would rather not share a node, but may."""
    for one in of_kind(manifests, "PodDisruptionBudget"):
        if one["spec"].get("maxUnavailable") != 1 or "minAvailable" in one["spec"]:
            yield f"PodDisruptionBudget/{one['metadata']['name']}: a single node could never be drained"
    for name, template in pods(manifests):
        affinity = template["spec"].get("affinity", {}).get("podAntiAffinity", {})
        if "requiredDuringSchedulingIgnoredDuringExecution" in affinity:
            yield f"{name}: two of its pods can't share a node"


def fenced(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Nothing is open that no policy names, and a NodePort needs a key and private callers."""
    policies = of_kind(manifests, "NetworkPolicy")
    if not any(
        one["spec"]["podSelector"] == {}
        and set(one["spec"]["policyTypes"]) == {"Ingress", "Egress"}
        and not one["spec"].get("ingress")
        and not one["spec"].get("egress")
        for one in policies
    ):
        yield "no policy denies what none allows"
    for one in policies:
        name = f"NetworkPolicy/{one['metadata']['name']}"
        for rule in [*one["spec"].get("ingress", []), *one["spec"].get("egress", [])]:
            if not rule.get("ports"):
                yield f"{name}: opens every port"
        if any(not rule.get("from") for rule in one["spec"].get("ingress", [])):
            yield f"{name}: lets everybody in"
        callers = [peer for rule in one["spec"].get("ingress", []) for peer in rule.get("from", [])]
        if any("ipBlock" in peer and not peer["ipBlock"]["cidr"].startswith(PRIVATE) for peer in callers):
            yield f"{name}: lets public addresses in"
    for service in of_kind(manifests, "Service"):
        if service["spec"].get("type") == "LoadBalancer":
            yield f"Service/{service['metadata']['name']}: is public"
        if service["spec"].get("type") == "NodePort":
            yield from _keyed(service, manifests)


def _keyed(service: Manifest, manifests: Sequence[Manifest]) -> Iterator[str]:
    wanted = service["spec"]["selector"].items()
    for name, template in pods(manifests):
        if not wanted <= template["metadata"]["labels"].items():
            continue
        for container in containers(template):
            key = variables(container, manifests).get("API_KEY")
            if not isinstance(key, Mapping) or key.get("secretKeyRef", {}).get("optional"):
                yield f"{name}: is open at a NodePort without a key"


def scalable(manifests: Sequence[Manifest]) -> Iterator[str]:
    """The reranker's number of pods is `kubectl scale`'s or an autoscaler's to say: an apply never sets it."""
    for one in of_kind(manifests, "Deployment"):
        if one["metadata"]["name"] == "reranker" and "replicas" in one["spec"]:
            yield "Deployment/reranker: an apply would undo its scaling"


RULES: tuple[Rule, ...] = (hardened, pinned, probed, bounded, known, secret, patient, spread, fenced, scalable)


def breaches(manifests: Sequence[Manifest]) -> list[str]:
    """Every breach of every rule."""
    return [breach for rule in RULES for breach in rule(manifests)]
