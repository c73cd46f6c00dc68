"""The whole text of a reply: the answer or the help, its notes and its footer, checked against the forum."""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, replace

from service.answer.abstain import abstention
from service.answer.gate.admit import Gating, admitted
from service.answer.late import Wait, without_model
from service.answer.messages import Message, message
from service.answer.pipeline import Stages, answer
from service.answer.ports import FixedReply
from service.answer.reply import Standing
from service.answer.spending import Spending
from service.answer.trigger import Kind, Trigger
from service.domain import Answer, Before, Lang, Post, Question, Result, Topic, Trace

DISCARDED = "discarded"
"""The time, in a trace, of an answer that was given up because a source of it had gone."""

Recheck = Callable[[FixedReply], Awaitable[Standing]]
"""Reads the question and the cited posts again."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A reply, the forum as it was when every post it cites was still there, and how this reply came about."""

    reply: FixedReply
    standing: Standing
    trace: Trace


async def compose(
    post: Post,
    trigger: Trigger,
    topic: Topic,
    stages: Stages,
    recheck: Recheck,
    *,
    default_lang: Lang,
    gate: Gating | None = None,
    before: Before | None = None,
    wait: Wait | None = None,
) -> Composed:
    """The reply to a post, checked against the forum.

    Cited posts that are gone by then are left out and the answer made once more, with what is left to the question of
    its model calls and their time; if others go meanwhile, it abstains. A question that the gate declines goes no
    further than its reply. `before` is what was said before it in its topic. Where its `wait` made it late, no model is
    asked, and an answer is the list of its sources, which says that it comes late.
    """
    lang = language(trigger.text, topic.title, stages, default_lang)
    trace = Trace(asked=trigger.text, lang=lang, notes=["question_cut"] if trigger.cut else [])
    late = wait is not None and wait.late
    if wait:
        trace.waited_seconds = wait.seconds
    if late:
        stages = without_model(stages)
        trace.notes.append("late")

    async def checked(answered: Answer, trace: Trace) -> Composed:
        cited = tuple(source.post_id for source in answered.sources if source.n in answered.cited)
        text = answered.markdown
        if late and answered.result is Result.ANSWERED:
            text = f"{message(Message.LATE, lang, post.id)}\n\n{text}"
        raw = _signed(text, trigger, lang, post, stages.settings.question_chars)
        reply = FixedReply(raw, answered.result, cited)
        return Composed(reply, await recheck(reply), trace)

    if trigger.kind is Kind.HELP:
        return await checked(Answer(Result.HELPED, message(Message.HELP, lang, post.id)), trace)
    title = topic.title if post.post_number == 1 else ""
    asked_in = (post.topic_id, post.post_number)
    before = before or Before()
    question = Question(
        trigger.text,
        lang,
        title,
        exclude_from=asked_in,
        history=(("title", topic.title), *before.turns) if post.post_number > 1 else (),
        category_id=topic.category_id,
        history_from=before.first,
    )
    passed = await admitted(question, gate, stages.condenser, trace, seed=post.id)
    if isinstance(passed, Answer):
        return await checked(passed, trace)
    again, spending = deepcopy(trace), Spending(passed.spent)
    composed = await checked(await answer(passed, spending.counted(stages), trace, seed=post.id), trace)
    if gone := composed.standing.gone:
        again.notes.append("source_gone")
        again.timings_ms[DISCARDED] = sum(trace.timings_ms.values()) - sum(again.timings_ms.values())
        passed = replace(passed, spent=spending.spent)
        composed = await checked(await answer(passed, stages, again, seed=post.id, without=gone), again)
    if composed.standing.gone:
        composed = await checked(abstention(passed, again, base_url=stages.base_url, seed=post.id), again)
    return composed


def language(text: str, title: str, stages: Stages, default: Lang) -> Lang:
    """The question's language; where it is too short to tell the title's, else the forum's."""
    of_topic = stages.detect_language(title, fallback=default)
    return stages.detect_language(text, fallback=of_topic)


def _signed(text: str, trigger: Trigger, lang: Lang, post: Post, read_chars: int) -> str:
    """The text with its footer, whose reference (the asking post's id) makes every reply differ.

    Discourse refuses what the same account has said within five minutes (docs/discourse, section 5).
    """
    note = [message(Message.QUESTION_CUT, lang, post.id, chars=str(read_chars))] if trigger.cut else []
    return "\n\n".join([text, *note, message(Message.FOOTER, lang, post.id, reference=str(post.id))])
