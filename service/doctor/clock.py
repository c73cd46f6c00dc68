"""Check of the clocks: ours, the database's and the forum's agree, since ages and quotas are counted across them."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

import httpx

from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import WAIT_SECONDS, Patient
from service.errors import ArianeError
from service.store.health import HealthStore

WARN_SECONDS = 30.0
FAIL_SECONDS = 300.0
HTTP_SECONDS = 1.0
"""What an HTTP date leaves open: it has whole seconds."""
MEND = "Let every machine set its clock by NTP (for example `timedatectl set-ntp true`)."


async def clock(patient: Patient) -> Finding:
    """How far the clocks that could be read are from ours, as of half-way through each request."""
    ahead: dict[str, float] = {}
    if not isinstance(patient.database, ArianeError):
        before = patient.now()
        read = await HealthStore(patient.database).clock()
        ahead["database"] = _ahead(read, before, patient.now())
    before = patient.now()
    date = await _forum_date(patient.settings.forum.base_url)
    if date is not None:
        seconds = _ahead(date, before, patient.now())
        ahead["forum"] = 0.0 if abs(seconds) <= HTTP_SECONDS else seconds
    return _judged(ahead)


def _judged(ahead: Mapping[str, float]) -> Finding:
    if not ahead:
        return warn("neither the database nor the forum told its time", "Mend those first, then run this again.")
    detail = ", ".join(f"{name} {seconds:+.1f} s from ours" for name, seconds in ahead.items())
    worst = max(map(abs, ahead.values()))
    if worst >= FAIL_SECONDS:
        return fail(detail, MEND)
    return warn(detail, MEND) if worst >= WARN_SECONDS else ok(detail)


def _ahead(read: datetime, before: datetime, after: datetime) -> float:
    return (read - (before + (after - before) / 2)).total_seconds()


async def _forum_date(base_url: str) -> datetime | None:
    """The Date header of whatever the forum answers; None without one."""
    try:
        async with (
            httpx.AsyncClient(timeout=WAIT_SECONDS) as client,
            client.stream("GET", f"{base_url}/srv/status") as response,
        ):
            date = parsedate_to_datetime(response.headers["date"])
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, ValueError):
        return None
    return date if date.tzinfo else None
