"""What a worker's metrics page shows of the queue and of the parts it works with, and the page itself."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import start_http_server

from service.errors import Misconfigured
from service.jobs import Queue, TaskName
from service.settings import WorkerSettings
from service.store import queue as guard
from service.store.pool import Pool, connection
from service.telemetry import PART_UP, QUEUE_AGE, QUEUE_DEPTH

IsUp = Callable[[], bool | None]
"""Whether a part works; None while that isn't known."""


async def measure(pool: Pool, up: Mapping[str, IsUp]) -> None:
    """Set the gauges of the queue, of the database and of the parts `up`; raises Transient without a database."""
    for part, is_up in up.items():
        if (works := is_up()) is not None:
            PART_UP.labels(part).set(works)
    PART_UP.labels("database").set(0)
    async with connection(pool) as conn:
        depths = await guard.queue_depths(conn)
        due = await guard.longest_due(conn)
    PART_UP.labels("database").set(1)
    for task in TaskName:
        for status in ("todo", "doing", "failed"):
            QUEUE_DEPTH.labels(task, status).set(depths.get((task, status), 0))
    for queue in Queue:
        QUEUE_AGE.labels(queue).set(due.get(queue, 0.0))


@contextmanager
def metrics_page(settings: WorkerSettings) -> Iterator[None]:
    """The page for the length of the block, unless its port is 0; raises Misconfigured when the port is taken."""
    if settings.metrics_port == 0:
        yield
        return
    try:
        server, thread = start_http_server(settings.metrics_port, settings.metrics_host)
    except OSError as exc:
        where = f"{settings.metrics_host}:{settings.metrics_port}"
        raise Misconfigured(f"worker.metrics_port: cannot listen on {where} ({exc.strerror}); 0 turns it off") from exc
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
