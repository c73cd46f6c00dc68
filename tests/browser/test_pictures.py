"""The guides' pictures can be made again: every one that they show, and no other, of pages that stand as staged."""

import asyncio
from pathlib import Path

import pytest
from PIL import Image

from tests.pictures.camera import WIDTH, take_all
from tests.pictures.scene import staged
from tests.pictures.squeeze import MAX_BYTES

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


@pytest.mark.heavy
@pytest.mark.timeout(1200)
async def test_every_picture_is_made_again(database_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    await asyncio.to_thread(folder.mkdir)
    async with staged(database_url, tmp_path) as scene:
        made = await take_all(scene, folder)
    assert {one.name for one in made} == {one.name for one in PICTURES.iterdir()}
    for one in made:
        assert one.stat().st_size <= MAX_BYTES
        with Image.open(one) as image:
            assert image.width == WIDTH
