"""The fallback table: what happens when a part fails, by part and fault; tests hold the service to it, docs show it."""

from dataclasses import replace

from service.domain import Mode, Zone
from service.fallbacks.row import Bound, Counted, Fallback, Fault, Part
from service.settings import Settings
from service.settings.models import WhenDown
from service.store.pool import RECONNECT_SECONDS
from service.webhook.route import STORE_SECONDS
from service.wiring.models import PROOF_CALLS
from service.worker import RESTART_SECONDS
from service.worker.loop import POLL_SECONDS


def _counted(name: str, **labels: str) -> Counted:
    return Counted(f"ariane_{name}", tuple(labels.items()))


def _without(part: str, error: str) -> Counted:
    return _counted("fallbacks_total", part=part, error=error)


_ANSWER_RETRIED = _counted("jobs_total", task="answer_post", result="retried")
_REFUSED = _counted("webhook_deliveries_total", event="post_created", result="unavailable")
_NOT_BEFORE = (
    "the job `answer_post`, after doubling waits of at most `worker.retry_max_seconds`, `worker.max_attempts` \
times in all (about half an hour by default; then `skipped: given_up` is recorded)"
)
_LATER = "nothing yet, then the answer, or what a late question gets"
_SENT_AGAIN = f"the delivery by the forum, since it gets a 503 within {STORE_SECONDS:g} s; {_NOT_BEFORE}"


def _retry_seconds(settings: Settings) -> float:
    return settings.worker.retry_max_seconds + POLL_SECONDS


_EMBEDDER = Fallback(
    Part.EMBEDDER,
    Fault.REFUSES,
    member="an answer from what keywords find, as the reranker judges it",
    posted="the answer, in the zone of the reranker's logits; without the reranker too, that the forum has nothing",
    retried="not the question; a new post's vector by its job `index_post`, then every minute by `embed_pending`",
    recorded="`embedder_down` in the trace's notes, its mode `keyword`",
    counted=(
        _without(Part.EMBEDDER, "transient"),
        _counted("answers_total", result="answered", zone="normal", mode="keyword"),
    ),
    within=Bound(
        lambda settings: (PROOF_CALLS + 1) * settings.models.embedder.timeout_seconds,
        f"{PROOF_CALLS + 1} × `models.embedder.timeout_seconds`: a proof under way, at most {PROOF_CALLS}, and its own \
call; 0 while the breaker is open",
    ),
    notes=("embedder_down",),
    mode=Mode.KEYWORD,
)
_RERANKER = Fallback(
    Part.RERANKER,
    Fault.REFUSES,
    member="a cautious answer under the caution, or that the forum has nothing",
    posted="the answer in the weak zone, its sources as fused; under the profile's `cosine_floor` an abstention",
    retried="nothing",
    recorded="`reranker_down` in the trace's notes, its mode `reranker-down`",
    counted=(
        _without(Part.RERANKER, "transient"),
        _counted("answers_total", result="answered", zone="weak", mode="reranker-down"),
    ),
    within=Bound(
        lambda settings: (PROOF_CALLS + 1) * settings.models.reranker.timeout_seconds,
        f"{PROOF_CALLS + 1} × `models.reranker.timeout_seconds`: a proof under way, at most {PROOF_CALLS}, and its own \
call; 0 while the breaker is open",
    ),
    notes=("reranker_down",),
    mode=Mode.RERANKER_DOWN,
    best_zone=Zone.WEAK,
)
_MODEL = Fallback(
    Part.MODEL,
    Fault.REFUSES,
    member="quotes of the sources",
    posted="the quotes, in the zone of the reranker's logits",
    retried="nothing; an empty or cut draft once, with less evidence",
    recorded="`model_down` in the trace's notes, its draft by `extractive, the model was down`",
    counted=(
        _without(Part.MODEL, "transient"),
        _counted("answers_total", result="answered", zone="normal", mode="reranked"),
    ),
    within=Bound(
        lambda settings: settings.models.answerer.deadline_seconds,
        "`models.answerer.deadline_seconds`; 0 while the breaker is open",
    ),
    notes=("model_down",),
    when_down=WhenDown.EXTRACTIVE,
)
_SOURCES_ALONE = replace(
    _MODEL,
    member="the list of the sources",
    posted="the list, in the zone of the reranker's logits",
    recorded="`answerer_down` and `sources_alone` in the trace's notes, which has no draft",
    counted=(_without("answerer", "transient"), *_MODEL.counted[1:]),
    notes=("answerer_down", "sources_alone"),
    when_down=WhenDown.SOURCES,
)
_FORUM = Fallback(
    Part.FORUM,
    Fault.REFUSES,
    member=_LATER,
    posted="the answer, once, when the forum answers again",
    retried=f"each read at once, `forum.attempts` times; then {_NOT_BEFORE}",
    recorded="`job_failed` in the log; the trace once it is answered",
    counted=(_ANSWER_RETRIED, _counted("remote_seconds_count", server="forum", result="transient")),
    within=Bound(_retry_seconds, f"`worker.retry_max_seconds` and {POLL_SECONDS:g} s after the end"),
)
_DATABASE = Fallback(
    Part.DATABASE,
    Fault.REFUSES,
    member=_LATER,
    posted="the answer, once, when the database is back",
    retried=_SENT_AGAIN,
    recorded="`delivery_not_stored` and `job_failed` in the log; the trace once it is answered",
    counted=(_REFUSED, _ANSWER_RETRIED),
    within=Bound(
        lambda settings: (
            RESTART_SECONDS[1]
            + RECONNECT_SECONDS
            + settings.worker.stalled_after_seconds
            + settings.worker.sweep_seconds
            + _retry_seconds(settings)
        ),
        f"{RESTART_SECONDS[1]:g} s until the job loops start again, {RECONNECT_SECONDS:g} s for the pool, \
`worker.stalled_after_seconds` and `sweep_seconds` for a job whose end was lost, `retry_max_seconds` and \
{POLL_SECONDS:g} s, after the end",
    ),
)


def _model_rows(base: Fallback) -> tuple[Fallback, ...]:
    without = dict(base.counted[0].labels)["part"]
    full = replace(
        base, fault=Fault.TOO_MANY, counted=(_without(without, "busy"), *base.counted[1:]), up=True
    )  # a full server lives: no breaker opens, no proof is doubted
    # Who waits for his turn behind a call that hangs finds the server busy.
    slow = replace(base, counted=(_without(without, "transient|busy"), *base.counted[1:]))
    quick = (Fault.REFUSES, Fault.ERROR, Fault.GARBAGE, Fault.DIES)
    return (
        *(replace(base, fault=fault) for fault in quick),
        *(replace(slow, fault=fault) for fault in (Fault.HANGS, Fault.DRIPS)),
        full,
    )


_FORUM_DIES = replace(
    _FORUM,
    fault=Fault.DIES,
    member="the answer",
    posted="nothing more: the reply that the forum stored before it died is found, and adopted",
    retried=f"looking for that reply, by {_NOT_BEFORE}",
    recorded="the trace, once the reply is found",
    counted=(
        _ANSWER_RETRIED,
        _counted("remote_seconds_count", server="forum_as_bot", result="unsure"),
        _counted("outcomes_total", outcome="adopted", reason="answered"),
    ),
)

_SERVER_FAULTS = (Fault.HANGS, Fault.TOO_MANY, Fault.ERROR, Fault.GARBAGE, Fault.DRIPS)

FALLBACKS: tuple[Fallback, ...] = (
    *_model_rows(_EMBEDDER),
    *_model_rows(_RERANKER),
    *_model_rows(_MODEL),
    *_model_rows(_SOURCES_ALONE),
    _FORUM,
    *(replace(_FORUM, fault=fault) for fault in _SERVER_FAULTS),
    _FORUM_DIES,
    _DATABASE,
    *(replace(_DATABASE, fault=fault, up=True) for fault in (Fault.LOCKED, Fault.READ_ONLY, Fault.TERMINATED)),
    replace(_DATABASE, fault=Fault.FULL),
    replace(
        _DATABASE,
        fault=Fault.COMMIT_LOST,
        member="the answer",
        posted="the answer, once: what was stored is found, whatever was said of it",
        recorded="`delivery_not_stored` and `job_failed` in the log; the trace",
        counted=(
            _REFUSED,
            _counted("webhook_deliveries_total", event="post_created", result="duplicate"),
            _counted("outcomes_total", outcome="duplicate", reason="none"),
        ),
        up=True,
    ),
    replace(
        _DATABASE,
        fault=Fault.OLD_SCHEMA,
        retried=f"{_NOT_BEFORE}; a process that starts ends at once, naming `ariane migrate`",
        recorded="`job_failed` in the log, naming `ariane migrate`; the trace once it is answered",
        counted=(_ANSWER_RETRIED,),
        up=True,
    ),
    Fallback(
        Part.DATABASE,
        Fault.SEARCH,
        member="an answer from what the legacy path finds, as the reranker judges it",
        posted="the answer, in the zone of the reranker's logits; without the reranker too, that the forum has nothing",
        retried=f"not the search; where the legacy path's hangs too, {_NOT_BEFORE}",
        recorded="`search_down` in the trace's notes, its mode `legacy`",
        counted=(
            _without("search", "transient"),
            _counted("answers_total", result="answered", zone="normal", mode="legacy"),
        ),
        within=Bound(lambda settings: settings.database.search_timeout_seconds, "`database.search_timeout_seconds`"),
        notes=("search_down",),
        mode=Mode.LEGACY,
        up=True,
    ),
)
