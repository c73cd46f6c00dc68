"""A check: what was found, how bad it is, and what mends it; bounded in time, and it never raises."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.doctor.patient import NotExamined, Patient
from service.errors import ArianeError

CHECK_SECONDS = 5.0
"""Longest time of one check; they run beside each other."""


class Status(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `mend` is a sentence that says what to do, empty when all is well."""

    status: Status
    detail: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A finding under its name; the fields of `ariane doctor --json`."""

    name: str
    status: Status
    detail: str
    mend: str


@dataclass(frozen=True, slots=True)
class Examination:
    """How a check is made; `mend` is what to do when it can't be made at all."""

    name: str
    find: Callable[[Patient], Awaitable[Finding]]
    mend: str


def ok(detail: str) -> Finding:
    return Finding(Status.OK, detail)


def warn(detail: str, mend: str) -> Finding:
    return Finding(Status.WARN, detail, mend)


def fail(detail: str, mend: str) -> Finding:
    return Finding(Status.FAIL, detail, mend)


async def examine(
    patient: Patient, examinations: Sequence[Examination], *, seconds: float = CHECK_SECONDS
) -> list[Check]:
    """Every check, in the order given."""
    return list(await asyncio.gather(*(_made(one, patient, seconds) for one in examinations)))


async def _made(examination: Examination, patient: Patient, seconds: float) -> Check:
    found = await _found(examination, patient, seconds)
    detail, mend = (" ".join(text.split()) for text in (found.detail, found.mend))
    return Check(examination.name, found.status, detail, mend)


async def _found(examination: Examination, patient: Patient, seconds: float) -> Finding:
    try:
        async with asyncio.timeout(seconds):
            return await examination.find(patient)
    except TimeoutError:
        return fail(f"no result within {seconds:g} s", examination.mend)
    except NotExamined as exc:
        return warn(f"not examined: {exc}", "Mend that first, then run this again.")
    except ArianeError as exc:
        return fail(str(exc), examination.mend)
    except Exception as exc:  # noqa: BLE001 - a check that crashes is itself a finding, and the others still count
        return fail(f"the check crashed: {type(exc).__name__}: {exc}", "This is a fault of Ariane: please report it.")
