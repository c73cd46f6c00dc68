"""The forum as an archive: one topic JSON a line with all its posts, and its categories."""

import json
from collections.abc import Iterator

from service.simulator.forum import Forum
from service.simulator.listings import listed_topics, topic_view
from service.simulator.shapes import Json
from service.simulator.sites import site


def archive_lines(forum: Forum) -> Iterator[str]:
    """What an anonymous reader could collect from `/t/ID.json`: every listed topic, oldest first, all posts in it."""
    for topic in reversed(listed_topics(forum, None, order="created")):
        yield json.dumps(topic_view(forum, topic, None, whole=True), ensure_ascii=False)


def site_json(forum: Forum) -> Json:
    """The forum's `/site.json` as an anonymous reader gets it."""
    return site(forum, None)
