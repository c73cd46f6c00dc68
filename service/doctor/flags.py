"""Check of the switches: whether they let anything be answered."""

from service.answer.ports import AnsweringMode
from service.doctor.check import Finding, ok, warn
from service.doctor.patient import Patient
from service.store.flags import FlagStore


async def flags(patient: Patient) -> Finding:
    """Answering and the pipeline are on together, or off together."""
    read = await FlagStore(patient.pool).read()
    detail = f"answering {read.answering}, posts_pipeline {'on' if read.posts_pipeline else 'off'}"
    if read.answering is AnsweringMode.OFF:
        return warn(
            f"{detail}: nobody is answered",
            'When you are ready: `ariane flags set answering shadow --why "first look"`, later `on`.',
        )
    if not read.posts_pipeline:
        return warn(
            f"{detail}: the legacy path answers, by the words of whole topics",
            'The index complete, run `ariane flags set posts_pipeline on --why "index is complete"`.',
        )
    return ok(detail + (": answers are computed, not posted" if read.answering is AnsweringMode.SHADOW else ""))
