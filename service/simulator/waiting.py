"""Whether somebody in a topic waits for the bot."""

from datetime import timedelta

from service.simulator.model import Topic
from service.simulator.room import Room

PATIENCE = timedelta(minutes=10)


def is_waiting(here: Room, topic: Topic) -> bool:
    """A post of the last ten minutes addresses the bot, and the bot has not posted since."""
    forum = here.forum
    bot = forum.member(here.bot_username)
    if bot is None:
        return False
    since = here.desk.clock() - PATIENCE
    asked = {n.post_id for n in forum.notifications.values() if n.user_id == bot.id and n.created_at > since}
    posts = [p for p in forum.stream(topic.id) if not p.deleted_at]
    last_asked = max((p.number for p in posts if p.id in asked), default=0)
    return last_asked > max((p.number for p in posts if p.user_id == bot.id), default=0)
