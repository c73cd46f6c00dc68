"""Answering switched on for a test, by the one way that needs no evaluation: an override."""

from service.settings import Settings
from service.store.flags import FlagStore
from service.store.pool import Pool
from service.wiring import activation


async def switch_on(pool: Pool, settings: Settings, *, answering: str = "on") -> None:
    """Turn posts_pipeline on under these settings, and `answering` to what is given."""
    await activation.switch_on(pool, settings, by="test", reason="test", override=True)
    await FlagStore(pool).set("answering", answering, by="test", reason="test")
