"""What a person does on the pages: choose who to be, reply, start a topic, edit, delete."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service.simulator.control import local_only, same_site
from service.simulator.forum import Author
from service.simulator.model import Member, Post
from service.simulator.pages import me_or_refuse, render, topic_page
from service.simulator.posting import Draft
from service.simulator.refusals import Refusal, forbidden, not_found
from service.simulator.rights import sees_post
from service.simulator.room import Here, Room, current_member, remember, sent_id, sent_texts
from service.simulator.sites import seen_categories
from service.simulator.switches import Fault

router = APIRouter(dependencies=[Depends(local_only), Depends(same_site)], include_in_schema=False)


def _chosen(here: Room, fields: dict[str, str], request: Request) -> Member:
    """The member who posts: the form's own choice, else the one chosen earlier."""
    if name := fields.get("as"):
        found = here.forum.member(name)
        if found is None or found.username == here.bot_username:
            raise forbidden()
        request.state.member = found
        return found
    return me_or_refuse(request, here)


@router.post("/who")
async def choose_member(request: Request, here: Here) -> Response:
    """Become a member (there are no passwords here), or nobody; then back to the page."""
    fields = await sent_texts(request)
    name, back = fields.get("as", ""), fields.get("back", "")
    safe = back if back.startswith("/") and not back.startswith(("//", "/\\")) else f"{here.forum.base_path}/"
    return remember(RedirectResponse(safe, 303), here, here.forum.member(name) if name else None)


@router.post("/t/{topic_id}/reply")
async def reply(topic_id: int, request: Request, here: Here) -> Response:
    fields = await sent_texts(request)
    topic = here.forum.topics.get(topic_id)
    if topic is None:
        raise not_found()
    reply_to, raw = sent_id(fields.get("reply_to", "")), fields.get("raw", "")
    member = _chosen(here, fields, request)
    approval = here.switches.take(Fault.ENQUEUE, method="POST", path="/posts.json") is not None
    try:
        made = here.desk.submit(member, Draft(raw=raw, topic_id=topic_id, reply_to=reply_to), approval=approval)
    except Refusal as refusal:
        page = topic_page(
            request, here, topic, reply_to=reply_to, raw=raw, fault=refusal.message, status=refusal.status
        )
        return remember(page, here, member)
    url = here.forum.topic_url(topic, made.number if isinstance(made, Post) else None)
    return remember(RedirectResponse(url, 303), here, member)


def _new_topic_page(
    request: Request, here: Room, fields: dict[str, str], *, fault: str = "", status: int = 200
) -> HTMLResponse:
    names = ("title", "category", "lang", "raw")
    return render(
        "new_topic.html",
        request,
        here,
        status=status,
        categories=seen_categories(here.forum, current_member(request, here)),
        fields={name: fields.get(name, "") for name in names},
        fault=fault,
    )


@router.get("/new-topic")
async def new_topic(request: Request, here: Here) -> HTMLResponse:
    # the same parameters as Discourse's prefilled new-topic link
    values = request.query_params
    return _new_topic_page(request, here, {"title": values.get("title", ""), "raw": values.get("body", "")})


@router.post("/new-topic")
async def create_topic(request: Request, here: Here) -> Response:
    fields = await sent_texts(request)
    member = _chosen(here, fields, request)
    draft = Draft(
        raw=fields.get("raw", ""),
        title=fields.get("title", ""),
        category_id=sent_id(fields.get("category", "")) or 0,
        lang="fr" if fields.get("lang") == "fr" else "en",
    )
    try:
        made = here.desk.submit(member, draft)
    except Refusal as refusal:
        page = _new_topic_page(request, here, fields, fault=refusal.message, status=refusal.status)
        return remember(page, here, member)
    url = f"{here.forum.base_path}/"
    if isinstance(made, Post):
        url = here.forum.topic_url(here.forum.topics[made.topic_id])
    return remember(RedirectResponse(url, 303), here, member)


def _mine(request: Request, here: Room, post_id: int) -> tuple[Member, Post]:
    member, post = me_or_refuse(request, here), here.forum.posts.get(post_id)
    if post is None or not sees_post(here.forum, member, post):
        raise not_found()
    if post.user_id != member.id and not member.staff:
        raise forbidden()
    return member, post


@router.get("/p/{post_id}/edit")
async def edit_form(post_id: int, request: Request, here: Here) -> HTMLResponse:
    _, post = _mine(request, here, post_id)
    topic = here.forum.topics[post.topic_id]
    return render("edit.html", request, here, post=post, topic=topic, url=here.forum.topic_url(topic, post.number))


@router.post("/p/{post_id}/edit")
async def edit(post_id: int, request: Request, here: Here) -> Response:
    """Save the text, or delete the post (`action` = delete)."""
    member, post = _mine(request, here, post_id)
    fields = await sent_texts(request)
    topic = here.forum.topics[post.topic_id]
    if fields.get("action") == "delete":
        here.forum.delete_post(Author(member, here.desk.clock()), post_id)
        gone = post.number == 1
        return RedirectResponse(f"{here.forum.base_path}/" if gone else here.forum.topic_url(topic), 303)
    raw = fields.get("raw", "").rstrip()
    if here.desk.limits.min_post_chars <= len(raw) <= here.desk.limits.max_post_chars:
        here.forum.edit_post(post_id, raw=raw, now=here.desk.clock())
    return RedirectResponse(here.forum.topic_url(topic, post.number), 303)
