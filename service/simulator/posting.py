"""Writing a post as a member: Discourse's checks, the approval queue, the memory of identical creates."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.simulator.forum import Author, Forum
from service.simulator.limits import Limits, Rates
from service.simulator.model import Member, Post
from service.simulator.refusals import forbidden, missing, too_many, unprocessable
from service.simulator.rights import may_reply, sees_category

CLOSED = "Something has gone wrong. Perhaps this topic was closed or deleted while you were looking at it?"
LINK = re.compile(r'<a href="https?://')


@dataclass(frozen=True, slots=True)
class Draft:
    """What a member sends: a reply (`topic_id`) or a new topic (`title` and `category_id`)."""

    raw: str
    topic_id: int | None = None
    reply_to: int | None = None
    title: str | None = None
    category_id: int | None = None
    tags: tuple[str, ...] = ()
    lang: str = "en"


@dataclass(frozen=True, slots=True)
class Pending:
    """A post that waits for a moderator's approval."""

    id: int
    member: Member
    draft: Draft
    at: datetime


@dataclass(slots=True)
class Desk:
    """Where members' drafts become posts."""

    forum: Forum
    limits: Limits
    clock: Callable[[], datetime]
    rates: Rates = field(default_factory=Rates)
    pending: list[Pending] = field(default_factory=list)
    _memo: dict[tuple[int, Draft], tuple[datetime, Post | Pending]] = field(default_factory=dict)

    def submit_once(self, member: Member, draft: Draft, *, approval: bool) -> Post | Pending:
        """As `submit`, for the API: an identical create within 120 s gets the first one's result."""
        now = self.clock()
        horizon = now - timedelta(seconds=self.limits.memo_seconds)
        for key in [k for k, (at, _) in self._memo.items() if at <= horizon]:
            del self._memo[key]
        if (member.id, draft) not in self._memo:
            self._memo[member.id, draft] = now, self.submit(member, draft, approval=approval)
        return self._memo[member.id, draft][1]

    def submit(self, member: Member, draft: Draft, *, approval: bool = False) -> Post | Pending:
        """Post the draft, or queue it for approval; raises Refusal."""
        now, key = self.clock(), f"post:{member.id}"
        wait = self.rates.wait_seconds(key, 1, self.limits.post_interval_seconds, now)
        if wait and not member.staff:
            raise too_many(wait)
        faults = self._faults(member, draft, now)
        if faults:
            raise unprocessable(*faults)
        self.rates.count(key, now)
        if approval:
            waiting = Pending(self.forum.new_id("pending"), member, draft, now)
            self.pending.append(waiting)
            return waiting
        return self._store(member, draft, now)

    def approve(self, pending_id: int) -> Post:
        """Publish what waited, as of now; raises KeyError."""
        for waiting in self.pending:
            if waiting.id == pending_id:
                self.pending.remove(waiting)
                return self._store(waiting.member, waiting.draft, self.clock())
        raise KeyError(pending_id)

    def _store(self, member: Member, draft: Draft, now: datetime) -> Post:
        by, raw = Author(member, now), draft.raw.replace("\x00", "").rstrip()
        if draft.topic_id is not None:
            return self.forum.create_post(by, topic_id=draft.topic_id, raw=raw, reply_to=draft.reply_to)
        if draft.title is None or draft.category_id is None:
            raise missing("title")
        return self.forum.create_topic(
            by,
            title=" ".join(draft.title.replace("\x00", "").split()),
            category_id=draft.category_id,
            raw=raw,
            tags=draft.tags,
            lang=draft.lang,
        )

    def _faults(self, member: Member, draft: Draft, now: datetime) -> list[str]:
        place = self._place_fault(member, draft)
        if place:
            return [place]
        limits, raw = self.limits, draft.raw.strip()
        faults = []
        if not raw:
            faults.append("Body can't be blank")
        elif len(raw) < limits.min_post_chars:
            faults.append(f"Body is too short (minimum is {limits.min_post_chars} characters)")
        elif len(raw) > limits.max_post_chars:
            faults.append(f"Body is limited to {limits.max_post_chars} characters; you entered {len(raw)}.")
            return faults
        html = self.forum.cook(raw).html
        if not member.staff:
            if html.count('class="mention"') > limits.mentions:
                faults.append(f"Sorry, you can only mention {limits.mentions} users in a post.")
            if member.trust_level == 0 and len(LINK.findall(html)) > limits.new_member_links:
                faults.append(f"Sorry, new users can only put {limits.new_member_links} links in a post.")
            if self._repeats(member, raw, now):
                faults.append("Body is too similar to what you recently posted")
            if self._alone(member, draft):
                faults.append(
                    f"No more than {limits.consecutive_replies} consecutive replies are allowed. "
                    "Please edit your previous reply, or wait for someone to reply to you."
                )
        return faults

    def _place_fault(self, member: Member, draft: Draft) -> str | None:
        if draft.topic_id is not None:
            topic = self.forum.topics.get(draft.topic_id)
            return None if topic and may_reply(self.forum, member, topic) else CLOSED
        title = (draft.title or "").strip()
        if not title:
            return "Title can't be blank"
        if len(title) < self.limits.min_title_chars:
            return f"Title is too short (minimum is {self.limits.min_title_chars} characters)"
        if len(title) > self.limits.max_title_chars:
            return f"Title is too long (maximum is {self.limits.max_title_chars} characters)"
        category = self.forum.categories.get(draft.category_id or 0)
        if category is None:
            return "Category can't be blank"
        if not sees_category(member, category):
            raise forbidden()
        return None

    def _repeats(self, member: Member, raw: str, now: datetime) -> bool:
        since = now - timedelta(minutes=self.limits.unique_post_minutes)
        return any(
            p.user_id == member.id and p.created_at > since and not p.deleted_at and p.raw.strip() == raw
            for p in self.forum.posts.values()
        )

    def _alone(self, member: Member, draft: Draft) -> bool:
        limit = self.limits.consecutive_replies
        if limit is None or draft.topic_id is None:
            return False
        last = [p for p in self.forum.stream(draft.topic_id) if not p.deleted_at and p.number > 1][-limit:]
        return len(last) == limit and all(p.user_id == member.id for p in last)
