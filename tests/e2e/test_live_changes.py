"""The index of a forum that lives: what was told to be private is not found, and reconciled, both agree exactly."""

from pathlib import Path

import pytest

from service.store.pool import Pool
from tests.e2e.live_checks import check_agreement, check_nothing_told_is_found
from tests.e2e.live_kit import life

MANY = pytest.param(2_000, marks=[pytest.mark.heavy, pytest.mark.timeout(1200)])


@pytest.mark.parametrize("changes", [300, MANY])
async def test_index_and_forum_agree_after_any_changes_and_lost_deliveries(
    pool: Pool, tmp_path: Path, changes: int
) -> None:
    async with life(pool, tmp_path, seed=2026) as at:
        await at.reconcile(whole=True)
        await check_agreement(at)
        for step in range(1, changes + 1):
            await at.change(dropped=0.2, doubled=0.1)
            await at.deliver(leave=at.chance.randint(0, 40))
            await check_nothing_told_is_found(at, vectors=step % 5 == 0)
            if step % 60 == 30:
                await at.reconcile(whole=False)
                await check_nothing_told_is_found(at)
        await at.reconcile(whole=True)
        await check_agreement(at)
        await at.deliver()  # snapshots of before the reconciling
        await check_agreement(at)
