"""Checks the built wheel on its own: installed in a new environment, away from the checkout, it has all it needs."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

from service.embedded import stop

ROOT = Path(__file__).resolve().parents[1]
INSIDE = """
import asyncio
from pathlib import Path
import httpx
import service
from service.answer.messages import wordings
from service.settings import load_settings
from service.simulator.app import create_simulator
from service.simulator.model import Member
from service.simulator.state import BOT_ID, open_forum
from service.store.migrate import migrations_folder

package = Path(service.__file__).parent
assert package.is_relative_to(Path.cwd()), f"the checkout was imported, not the wheel: {package}"
assert {"en", "fr"} <= set(wordings())
assert migrations_folder().is_relative_to(package)
assert load_settings(package / "config.example.yaml").forum.base_url

async def visit():
    bot = Member(BOT_ID, "ariane", "Ariane", trust_level=1)
    forum = open_forum(None, base_url="http://127.0.0.1:4200", bot=bot)
    app = create_simulator(forum)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=forum.base_url) as client:
        for path in ("/", f"/t/x/{min(forum.topics)}", "/simulator-static/forum.css", "/simulator-static/forum.js"):
            (await client.get(path, follow_redirects=True)).raise_for_status()

asyncio.run(visit())
"""


def run(*words: str | Path, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)  # noqa: S603 - our own commands
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expected_files() -> set[str]:
    """What git tracks of the packages, as the wheel names it."""
    listed = run(
        "git", "ls-files", "service", "eval", "migrations", "config.example.yaml", cwd=ROOT, env=dict(os.environ)
    )
    names = {name for name in listed.splitlines() if (ROOT / name).exists()}
    return {name if name.startswith(("service/", "eval/")) else f"service/{name}" for name in names}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="ariane-wheel-"))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ARIANE_", "PYTHONPATH"))}
    env |= {"ARIANE_HOME": str(folder / "home"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        pip = (sys.executable, "-m", "pip", "--quiet")
        run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder, env=env)
        (wheel,) = folder.glob("*.whl")
        packed = set(zipfile.ZipFile(wheel).namelist())
        if missing := expected_files() - packed:
            sys.exit(f"the wheel lacks {', '.join(sorted(missing))}")
        if strange := {name for name in packed if not name.startswith(("service/", "eval/", "ariane_forum-"))}:
            sys.exit(f"the wheel should not hold {', '.join(sorted(strange))}")

        new = folder / "venv"
        venv.create(new, with_pip=False)
        scripts = new / "bin"
        site = Path(sysconfig.get_path("purelib", "venv", {"base": str(new), "platbase": str(new)}))
        # The dependencies of this environment, but not its editable checkout: that is a .pth file, read only in place.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        install = ("install", "--no-deps", "--ignore-installed", "--no-index")
        run(*pip, "--python", scripts / "python", *install, wheel, cwd=folder, env=env)
        print(run(scripts / "ariane", "--help", cwd=folder, env=env).splitlines()[0])
        print(run(scripts / "ariane", "--version", cwd=folder, env=env).strip())
        print(run(scripts / "ariane", "migrate", cwd=folder, env=env).splitlines()[-1])
        run(scripts / "python", "-c", INSIDE, cwd=folder, env=env)
        print(f"{wheel.name}: {len(packed)} files, complete")
    finally:
        stop(folder / "home")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
