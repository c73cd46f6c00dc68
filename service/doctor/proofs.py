"""Checks of the models' identity: the embedder is the index's, the reranker that of its thresholds."""

from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import Patient
from service.inference.references import Proof, Verdict, check_reranker
from service.proof import examine
from service.settings.models import RerankerKind
from service.store.references import ReferenceStore

RECORD = "Record them while you trust the server: `ariane profiles references`, into models.profiles_file."


async def embedder_proof(patient: Patient) -> Finding:
    """The embedder that answers reproduces the stored reference vectors; read only."""
    embedder = await patient.answering()
    stored = ReferenceStore(patient.pool)
    verdict = await examine(embedder, stored)
    if verdict.proof is not Proof.NO_REFERENCES:
        return _judged(verdict, "Serve the model that made the index, or embed it anew under a profile of this one.")
    if await stored.has_vectors(embedder.profile):
        return fail(
            "the index has vectors, but nothing proves that this embedder made them: answers use words only",
            "Read changed posts again (`ariane backfill`), or embed the forum anew under a new version of the profile.",
        )
    return warn("no vector is stored yet", "The first one comes with its references: `ariane backfill`.")


async def reranker_proof(patient: Patient) -> Finding:
    """The reranker gives its reference pairs the logits that the thresholds were measured with."""
    if patient.settings.models.reranker.kind is RerankerKind.BUNDLED:
        return ok("part of this program")
    models = patient.opened_models
    verdict = await check_reranker(models.reranker, models.pairs)
    if verdict.proof is Proof.NO_REFERENCES:
        return warn(f"nothing proves that this is {models.reranker.profile.name}: no reference pairs", RECORD)
    return _judged(
        verdict, f"Serve {models.reranker.profile.name}, or set the profile of the served one: it is not used now."
    )


def _judged(verdict: Verdict, mend: str) -> Finding:
    if verdict.proof is Proof.PROVED:
        return ok(verdict.detail)
    if verdict.proof is Proof.UNREACHABLE:
        return fail(verdict.detail, "Start the model server and check its address; the model may still be loading.")
    if verdict.proof is Proof.BUSY:
        return warn(f"full: {verdict.detail}", "Run this again later; if it stays so, add a server.")
    return fail(f"another model: {verdict.detail}", mend)
