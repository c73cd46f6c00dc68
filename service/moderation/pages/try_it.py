"""Try it: a question asked in the page, answered by a worker with all its steps shown, and posted nowhere."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service.answer.messages import wordings
from service.errors import Rejected
from service.jobs import NewJob, TaskName, defer_jobs
from service.moderation.access import Form, Moderator, Session
from service.moderation.desk import Desk, Here
from service.moderation.layout import page
from service.moderation.traced import traced
from service.store.pool import Connection
from service.store.trials import PER_HOUR, Asked, Trial, TrialStore

SHOWN = 20
LOOK_AGAIN_SECONDS = 2
SEE_OTHER = 303
PASSED = "passed"
VERDICTS = (PASSED, "failed")
router = APIRouter(prefix="/try")


@router.get("")
async def ask_form(request: Request, here: Here, me: Moderator) -> HTMLResponse:
    return await _form(request, here, me)


@router.post("")
async def ask(request: Request, here: Here, me: Moderator, form: Form) -> Response:
    """Give a question to a worker; leads to the page that shows what comes of it."""
    question, lang = form.get("question", "").strip(), form.get("lang", "")
    most = here.settings.retrieval.question_chars
    try:
        if not 0 < len(question) <= most:
            raise Rejected(f"a question has 1 to {most} characters", status=422)
        if lang and lang not in wordings():
            raise Rejected(f"the language is none of {', '.join(wordings())}", status=422)
        trial_id = await TrialStore(here.pool).ask(
            Asked(question, lang), by=me.person.username, now=here.clock(), follow=_defer
        )
    except Rejected as exc:
        return await _form(request, here, me, question=question, lang=lang, fault=str(exc), status=exc.status)
    return RedirectResponse(f"{here.site.root}/try/{trial_id}", SEE_OTHER)


@router.get("/{trial_id}")
async def trial(request: Request, trial_id: int, here: Here, me: Moderator) -> HTMLResponse:
    """What came of a question of one's own; the page looks again by itself until something did."""
    now = here.clock()
    found = await _own(trial_id, here, me)
    result, waits = found.result, found.pending(now)
    shown = traced(result.trace, here.settings.forum.base_url, result.cited) if result else {}
    answer = page(request, "trial.html", title="try.one_title", one=found, result=result, waits=waits, **shown)
    if waits:
        answer.headers["Refresh"] = str(LOOK_AGAIN_SECONDS)  # as <meta http-equiv="refresh"> would
    return answer


@router.post("/{trial_id}")
async def sign_off(trial_id: int, here: Here, me: Moderator, form: Form) -> Response:
    """Record the `verdict` on the configuration that answered, because of `why`; leads to the switches."""
    found = (await _own(trial_id, here, me)).result
    if found is None or not found.whole:
        raise Rejected("only an answer with every part at work tests a configuration", status=409)
    verdict = form.get("verdict", "")
    if verdict not in VERDICTS:
        raise Rejected(f"the verdict is one of {', '.join(VERDICTS)}", status=422)
    why = form.get("why", "").strip()
    await here.switches.sign_off(found.signature, passed=verdict == PASSED, by=me.person.username, reason=why)
    return RedirectResponse(f"{here.site.root}/flags?done=1", SEE_OTHER)


async def _own(trial_id: int, here: Desk, me: Session) -> Trial:
    found = None
    if 0 < trial_id < 2**63:
        found = await TrialStore(here.pool).one(trial_id, me.person.username, now=here.clock())
    if found is None:
        raise Rejected("there is no such trial of yours; trials are kept for a day", status=404)
    return found


async def _defer(conn: Connection, trial_id: int) -> None:
    await defer_jobs(conn, [NewJob(TaskName.TRY_QUESTION, None, {"trial_id": trial_id})])


async def _form(
    request: Request,
    here: Desk,
    me: Session,
    *,
    question: str = "",
    lang: str = "",
    fault: str = "",
    status: int = 200,
) -> HTMLResponse:
    now = here.clock()
    trials = await TrialStore(here.pool).latest(me.person.username, now=now, limit=SHOWN)
    return page(
        request,
        "try.html",
        title="try.title",
        status=status,
        question=question,
        lang=lang,
        fault=fault,
        most=here.settings.retrieval.question_chars,
        per_hour=PER_HOUR,
        answer_languages=list(wordings()),
        trials=[(one, one.pending(now)) for one in trials],
    )
