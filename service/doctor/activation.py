"""Check of the activation: what is in use is what was tested and switched on."""

from service.answer.activation import State, held, mend, told
from service.answer.ports import AnsweringMode
from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import Patient
from service.store.flags import FlagStore
from service.wiring.activation import present_activation


async def activation(patient: Patient) -> Finding:
    """The configuration in use passed a test, and posts_pipeline is off or was switched on under it."""
    activated = await present_activation(patient.pool, patient.settings)
    detail = told(activated)
    holds = held(activated, patient.settings.activation.on_change)
    if activated.state in (State.OFF, State.ACTIVE) and not holds:
        return ok(detail)
    if not holds:
        return warn(f"{detail}; answers go on (activation.on_change)", mend(activated))
    if (await FlagStore(patient.pool).read()).answering is not AnsweringMode.ON:
        return warn(f"{detail}; nothing would be posted", mend(activated))
    return fail(f"{detail}; answers are computed, not posted", mend(activated))
