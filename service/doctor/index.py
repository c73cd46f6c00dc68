"""Checks of the index: filled, searched under the embedder's profile, complete but for what the model fails on."""

from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import Patient
from service.store.corpus import CorpusStore
from service.store.profiles import ProfileStore
from service.store.quarantine import QuarantineStore

SHOWN = 3


async def index(patient: Patient) -> Finding:
    """There are posts, and nearly all have a vector."""
    census = await CorpusStore(patient.pool).census((await patient.answering()).profile)
    if not census.indexed:
        return warn("the index is empty", "Fill it: `ariane backfill`; new posts come in by the webhook.")
    covered = census.indexed - census.left_to_embed - census.unembeddable
    detail = f"{covered:,} of {census.indexed:,} posts have a vector"
    if census.left_to_embed:
        return warn(
            f"{detail}, {census.left_to_embed:,} wait for one",
            "Run `ariane worker`, which embeds them in the background, or `ariane backfill` again.",
        )
    return ok(detail)


async def profile(patient: Patient) -> Finding:
    """The profile that answers is a configured embedder's, and its index is built."""
    wanted = (await patient.answering()).profile.name
    stored = {one.profile.name: one for one in await ProfileStore(patient.pool).list_profiles()}
    active = next((one for one in stored.values() if one.active), None)
    activate = f"Run `ariane profiles activate {wanted}` once its vectors are complete."
    if active is None and wanted not in stored:
        return ok(f"{wanted} has no vector yet")
    if active is not None and active.profile.name != wanted:
        return fail(
            f"{active.profile.name} is active, but the embedder's is {wanted}",
            f"{activate} Or set models.embedder back to the model of the active one.",
        )
    kind = stored[wanted].profile.index_kind
    if not stored[wanted].index_built:
        return warn(f"the {kind} index of {wanted} is not built", activate)
    return ok(f"{wanted} is active, searched {kind}" if active else f"{wanted} answers, searched {kind}")


async def quarantine(patient: Patient) -> Finding:
    """The model fails on no post."""
    store, wanted = QuarantineStore(patient.pool), (await patient.answering()).profile
    count = await store.count(wanted)
    if not count:
        return ok("the model fails on no post")
    told = "; ".join(f"post {one.post_id}: {one.error}" for one in await store.latest(wanted, SHOWN))
    return warn(
        f"{count:,} posts have no vector since the model fails on them: {told}",
        "They are found by their words only, and tried again when they are edited; "
        f"`ariane profiles activate {wanted.name}` tries all of them again.",
    )
