"""Checks of the database: reachable, recent enough, its schema ours; and the disk of the embedded one."""

import asyncio
import shutil

from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import Patient
from service.errors import ArianeError
from service.store.health import HealthStore
from service.store.migrate import PGVECTOR_AT_LEAST, check_schema, is_too_old

LOW_BYTES = 2_000_000_000
TOO_LOW_BYTES = 200_000_000


async def database(patient: Patient) -> Finding:
    """Postgres answers, and has a pgvector without the known index bugs."""
    if isinstance(patient.database, ArianeError):
        raise patient.database
    versions = await HealthStore(patient.database).versions()
    detail = f"PostgreSQL {versions.postgres}, pgvector {versions.pgvector}"
    if versions.pgvector is not None and not is_too_old(versions.pgvector):
        return ok(detail)
    return fail(
        detail, f"Install pgvector {PGVECTOR_AT_LEAST} or later on the server, then `ALTER EXTENSION vector UPDATE`."
    )


async def schema(patient: Patient) -> Finding:
    """The migrations applied are exactly this version's."""
    await check_schema(patient.pool)
    return ok("all migrations of this version are applied")


async def disk(patient: Patient) -> Finding:
    """The embedded database has room to grow."""
    if patient.settings.database.url.get_secret_value():
        return ok("the database is on its own server")
    home = patient.settings.home
    free = (await asyncio.to_thread(shutil.disk_usage, home)).free
    detail = f"{free / 1e9:.1f} GB are free in {home}"
    mend = f"Make room on the disk of {home}, or set ARIANE_HOME to another one: without room Postgres stops."
    return fail(detail, mend) if free < TOO_LOW_BYTES else warn(detail, mend) if free < LOW_BYTES else ok(detail)
