"""What members make of our replies, kept as the delivery arrives: one statement, without a job."""

from service.discourse.events import PostEvent, Stored
from service.discourse.feedback import FeedbackEvent, FeedbackName, Flag, Like, Solution
from service.store.pool import Connection
from service.store.signals import Signal, drop_flag, drop_solution, note, note_flag, note_solution


async def keep_feedback(conn: Connection, event: Stored | FeedbackEvent) -> None:
    """Keep what the event says of a reply of ours, in the connection's transaction; of any other post nothing."""
    match event:
        case PostEvent(post=post) if post.deleted or post.user_deleted:
            await note(conn, Signal.DELETED, post.id)
        case PostEvent(post=post) if post.hidden:
            await note(conn, Signal.HIDDEN, post.id)
        case Like(post_id=post_id, by=by):
            await note(conn, Signal.LIKED, post_id, by=by)
        case Solution(FeedbackName.UNACCEPTED, post_id=post_id):
            await drop_solution(conn, post_id)
        case Solution(post_id=post_id, topic_id=topic_id):
            await note_solution(conn, topic_id, post_id)
        case Flag(FeedbackName.UNFLAGGED, topic_id=topic_id, post_number=number):
            await drop_flag(conn, topic_id, number)
        case Flag(topic_id=topic_id, post_number=number):
            await note_flag(conn, topic_id, number)
