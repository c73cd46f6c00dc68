"""`python -m tests.pictures`: takes every picture of the guides into docs/pictures, or into the given folder."""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from service.embedded import ensure_running, stop
from service.store.migrate import migrate
from tests.pictures.camera import take_all
from tests.pictures.scene import staged

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


async def main(folder: Path) -> None:
    """Stage the scene in a place of its own, take the pictures, and leave nothing else behind."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="ariane-pictures-"))
    try:
        url = await asyncio.to_thread(ensure_running, home, idle_stop_seconds=600)
        await migrate(url)
        async with staged(url, home) as scene:
            for path in await take_all(scene, folder):
                print(f"{path} {path.stat().st_size:,} bytes", file=sys.stderr)
    finally:
        stop(home)
        shutil.rmtree(home)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
