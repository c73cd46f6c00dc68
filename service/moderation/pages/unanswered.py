"""The questions that stayed without an answer, the same ones together, the most asked first."""

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.moderation.access import Moderator
from service.moderation.desk import Here
from service.moderation.layout import page
from service.moderation.pages.answers import page_number, thread_url
from service.store.unanswered import groups

PAGE_SIZE = 40
router = APIRouter(prefix="/unanswered")


@router.get("")
async def unanswered(request: Request, here: Here, me: Moderator) -> HTMLResponse:
    number, admin = page_number(request.query_params), me.person.admin
    found = await groups(here.pool, admin=admin, limit=PAGE_SIZE + 1, offset=(number - 1) * PAGE_SIZE)
    base_url = here.settings.forum.base_url
    return page(
        request,
        "unanswered.html",
        title="unanswered.title",
        found=[
            [(one, thread_url(one.slug, one.topic_id, one.post_number, base_url)) for one in group]
            for group in found[:PAGE_SIZE]
        ],
        days=here.settings.retention.unanswered_days,
        most=here.settings.retention.unanswered_questions,
        earlier=urlencode({"page": number - 1}) if number > 1 else None,
        more=urlencode({"page": number + 1}) if len(found) > PAGE_SIZE else None,
    )
