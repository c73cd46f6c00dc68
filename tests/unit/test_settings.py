"""Settings: the example loads, the environment wins, every fault is one line that says where, each is documented."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Misconfigured
from service.settings import Settings, load_settings
from service.settings.faults import source_of
from tests.settings_table import PAGE, settings_of, with_table

pytestmark = pytest.mark.usefixtures("no_environment")

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_loads() -> None:
    assert load_settings(ROOT / "config.example.yaml").forum.base_url == "https://forum.example"


def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("web: {port: 1234}\nforum: {base_url: https://a.example/sub/}\n")
    monkeypatch.setenv("ARIANE_WEB__PORT", "4321")
    monkeypatch.setenv("ARIANE_WEBHOOK__SECRETS", '["old-secret-of-16", "new-secret-of-16"]')
    settings = load_settings(file)
    assert settings.web.port == 4321
    assert settings.forum.base_url == "https://a.example/sub"
    assert [s.get_secret_value() for s in settings.webhook.secrets] == ["old-secret-of-16", "new-secret-of-16"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("web: {port: lots}", "web.port"),
        ("nonsense: 1", "nonsense"),
        ("forum: {base_url: forum.example}", "forum.base_url"),
        ("webhook: {secrets: [short]}", "webhook.secrets.0"),
        ("- 1", "expected settings by section"),
        ("a: [", "c.yaml"),
        ("a: " + "[" * 100_000, "c.yaml"),
    ],
)
def test_a_fault_is_one_line_that_says_where(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(Misconfigured) as caught:
        load_settings(file)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "text", "says"),
    [
        ({"ARIANE_WEBHOOK__SECRETS": '["short"]'}, "web: {port: 80}", ["ARIANE_WEBHOOK__SECRETS: webhook.secrets.0: "]),
        ({"ARIANE_WEBHOOK": '{"secrets": ["short"]}'}, "webhook: {}", ["ARIANE_WEBHOOK: webhook.secrets.0: "]),
        ({"ariane_web__port": "x"}, "web: {port: 80}", ["ARIANE_WEB__PORT: web.port: "]),
        ({"ARIANE_WEB__PORT": "80"}, "web: {host: [1]}", ["c.yaml: web.host: "]),
        ({"ARIANE_WEB": '{"port": 80}'}, "web: {host: [1]}", ["c.yaml: web.host: "]),
        ({"ARIANE_FORUM__BASE_URL": "https://a.example"}, "web: true", ["c.yaml: web: "]),
        ({"ARIANE_WEB__PROT": "80"}, "", ["ARIANE_WEB__PROT: web.prot: "]),
        (
            {"ARIANE_WEB__PORT": "x"},
            "web: {host: [1]}\nwebhook: {secrets: [short]}",
            ["ARIANE_WEB__PORT: web.port: ", "c.yaml: webhook.secrets.0: ", "; web.host: "],
        ),
    ],
)
def test_a_fault_is_laid_to_the_file_or_the_variable_that_it_is_in(
    environment: dict[str, str], text: str, says: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Misconfigured) as caught:
        load_settings(file)
    for words in says:
        assert words in str(caught.value)
    assert str(caught.value).count("c.yaml") == any("c.yaml" in words for words in says)


@given(st.lists(st.text() | st.integers(0, 3), max_size=4), st.dictionaries(st.just("ARIANE_A") | st.text(), st.text()))
def test_any_fault_is_laid_to_something(place: list[str | int], environment: dict[str, str]) -> None:
    source = source_of(place, path=None, values={}, environment=environment)
    assert source == "environment" or source in ", ".join(sorted(name.upper() for name in environment))


def test_secrets_never_show() -> None:
    settings = Settings(webhook={"secrets": ["a-very-secret-word"]}, forum={"api_key": "another-secret"})
    assert "secret-word" not in repr(settings)
    assert "another" not in repr(settings)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"absent\.yaml"):
        load_settings(tmp_path / "absent.yaml")


def test_the_page_has_the_table_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run: python -m tests.settings_table"
    assert all(field.description for _, field in settings_of(Settings))


def test_every_number_carries_its_unit() -> None:
    """A number is a count of the thing it names, or ends in its unit."""
    units = re.compile(
        r"_(seconds|hours|days|minutes|bytes|chars|attempts|size|port|k|sources|concurrency|hour|minute|tokens|texts|words|calls|percent|questions)$|^(attempts|candidates|port|concurrency)$"
    )
    for name, field in settings_of(Settings):
        if field.annotation in (int, float):
            assert units.search(name.rpartition(".")[2]), name
