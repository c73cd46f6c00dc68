"""Checks of the way in: the webhook's secret, and whether deliveries still come while the forum moves."""

from datetime import timedelta

from service.doctor.check import Finding, fail, ok, warn
from service.doctor.forum import newest_post_at
from service.doctor.patient import Patient
from service.errors import ArianeError
from service.store.health import HealthStore

SILENT_FOR = timedelta(hours=24)
UNDERWAY = timedelta(minutes=5)
"""A post this young may still be on its way here."""
HOOK_MEND = (
    "Look at the webhook in Admin, API, Webhooks: active, this address, the same secret, no group filter (it drops "
    "posts silently), and our address in allowed_internal_hosts if it is private. Press Ping."
)


async def secret(patient: Patient) -> Finding:
    """There is a secret to verify deliveries with: here, or where a recorded delivery was verified."""
    count = len(patient.settings.webhook.secrets)
    if count > 1:
        return ok(f"{count} secrets are accepted, as in a rotation; drop the old one afterwards")
    if count:
        return ok("one secret is set")
    last = None if isinstance(patient.database, ArianeError) else await HealthStore(patient.database).newest_delivery()
    if last is not None:
        return ok(f"none here: another process has it, and verified a delivery at {last:%Y-%m-%d %H:%M} UTC")
    return fail(
        "webhook.secrets is empty: the web process doesn't start",
        "Give the webhook's secret in ARIANE_WEBHOOK__SECRETS='[\"...\"]', the same as on the forum. If another "
        "process has it already, run this again after the forum's next post (a ping leaves no trace).",
    )


async def deliveries(patient: Patient) -> Finding:
    """The last verified delivery is not a day older than the forum's newest post."""
    last = await HealthStore(patient.pool).newest_delivery()
    newest = await newest_post_at(patient.settings.forum)
    now = patient.now()
    moved = newest is not None and newest < now - UNDERWAY
    if last is None:
        detail = f"none in the last {patient.settings.retention.inbox_days} days"
        return warn(f"{detail}, and the forum has posts", HOOK_MEND) if moved else ok(f"{detail}, nor any post")
    detail = f"the last one came at {last:%Y-%m-%d %H:%M} UTC"
    if newest is not None and moved and now - last > SILENT_FOR and newest > last:
        return warn(f"{detail}; the forum's newest post is of {newest:%Y-%m-%d %H:%M} UTC", HOOK_MEND)
    return ok(detail)
