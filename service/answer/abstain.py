"""What the server says when the forum has no answer, and how the member may ask the others."""

from service.answer.messages import Message, message
from service.answer.new_topic import new_topic_link
from service.domain import Answer, Question, Result, Source, Trace, Zone


def abstention(
    question: Question, trace: Trace, sources: tuple[Source, ...] = (), *, base_url: str, seed: int
) -> Answer:
    """The server's own "I found nothing": no model is called."""
    trace.zone = Zone.ABSTAIN
    text = message(Message.ABSTAIN, question.lang, seed, question=asked(question))
    markdown = with_new_topic(text, question, base_url, seed=seed)
    return Answer(Result.ABSTAINED, markdown, Zone.ABSTAIN, trace.mode, sources)


def asked(question: Question) -> str:
    """The words by which a message names the question."""
    return question.title or question.text


def with_new_topic(text: str, question: Question, base_url: str, *, seed: int) -> str:
    """The text, and under it the link to a new topic; where the question already is a topic, members see it there."""
    return text if question.title else f"{text}\n\n{new_topic_link(question, base_url, seed=seed)}"
