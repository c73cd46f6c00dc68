"""`python -m eval.demo`: make the demo's dataset again from the demo forum, with its vectors and its manifest."""

import asyncio
from pathlib import Path

from eval.datasets import load_dataset
from eval.demo import FOLDER
from eval.demo.build import build_demo
from eval.index import open_index
from eval.new.export import export_vectors, snapshot
from eval.new.manifest import write_manifest
from service.progress import ProgressBar
from service.settings import load_settings

VECTORS = "vectors.npz"


async def embed(folder: Path) -> None:
    """Embed the posts with the bundled model, so that whoever uses the dataset need not (half a minute)."""
    with ProgressBar() as progress:
        index = open_index(load_settings(None), load_dataset(folder), progress=progress)
        async with index as at, snapshot(at.pool) as conn:
            await export_vectors(conn, folder / VECTORS, at.embedder.profile, progress)
    write_manifest(folder)


if __name__ == "__main__":
    (FOLDER / VECTORS).unlink(missing_ok=True)
    build_demo(FOLDER)
    asyncio.run(embed(FOLDER))
