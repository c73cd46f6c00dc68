"""The programs these checks run, from the extra `deploy` or the distribution; without one a test skips and says so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SECONDS = 60


def tool(name: str, *, from_where: str = "pip install -e '.[deploy]'") -> str:
    """The program's path; skips the test when there is none."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed ({from_where})")
    return found


def run(*command: str | Path, stdin: str | None = None) -> str:
    """What the command prints to stdout; fails the test with all it said when its status isn't 0."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout
