"""The tasks as the queue's library runs them, and when a failed job is tried again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.tasks import ConfigureTaskOptions
from psycopg import AsyncConnection

from service.domain import CategoryId, InboxId, PostId, TopicId, UserId
from service.errors import Transient
from service.jobs import CATEGORIES, PLACES, TaskName, Work
from service.retry import RetryPolicy


class _Connector(PsycopgConnector):
    """Listens on a connection made with the pool's own arguments: procrastinate's would set `autocommit` twice."""

    @asynccontextmanager
    async def _get_standalone_connection(self) -> AsyncGenerator[AsyncConnection[Any], None]:
        arguments = self.pool.kwargs
        assert isinstance(self.pool.conninfo, str) and isinstance(arguments, dict)  # noqa: S101 - as open_pool does
        async with await AsyncConnection.connect(self.pool.conninfo, **arguments) as connection:
            yield connection


def build_queue(policy: RetryPolicy, *, finished_jobs_hours: int) -> App:
    """The queue and its tasks, to be opened on our pool; a worker gives them `additional_context={"work": Work}`."""
    # A period begun within the last hour is caught up: the hourly tasks also run when the first worker starts.
    app = App(connector=_Connector(), periodic_defaults={"max_delay": 3600})

    @app.task(name=TaskName.INDEX_POST, retry=policy, pass_context=True)
    async def index_post(context: JobContext, inbox_id: int) -> None:
        await _work(context).index_post(InboxId(inbox_id))

    @app.task(name=TaskName.ANSWER_POST, retry=policy, pass_context=True)
    async def answer_post(context: JobContext, inbox_id: int) -> None:
        try:
            await _work(context).answer_post(InboxId(inbox_id))
        except Exception as exc:
            if policy.wait_seconds(exc, context.job.attempts) is None:
                await _work(context).give_up(InboxId(inbox_id))
            raise

    @app.task(name=TaskName.REMOVE_POST, retry=policy, pass_context=True)
    async def remove_post(context: JobContext, inbox_id: int) -> None:
        await _work(context).remove_post(InboxId(inbox_id))

    @app.task(name=TaskName.HIDE_TOPIC, retry=policy, pass_context=True)
    async def hide_topic(context: JobContext, topic_id: int) -> None:
        await _work(context).hide_topic(TopicId(topic_id))

    @app.task(name=TaskName.CLOSE_CATEGORY, retry=policy, pass_context=True)
    async def close_category(context: JobContext, category_id: int) -> None:
        await _work(context).close_category(CategoryId(category_id))

    @app.task(name=TaskName.REFRESH_POST, retry=policy, pass_context=True)
    async def refresh_post(context: JobContext, post_id: int) -> None:
        await _work(context).refresh_post(PostId(post_id))

    @app.task(name=TaskName.REFRESH_TOPIC, retry=policy, pass_context=True)
    async def refresh_topic(context: JobContext, topic_id: int) -> None:
        await _work(context).refresh_topic(TopicId(topic_id))

    @app.task(name=TaskName.ERASE_MEMBER, retry=policy, pass_context=True)
    async def erase_member(context: JobContext, user_id: int) -> None:
        await _work(context).erase_member(UserId(user_id))

    @app.task(name=TaskName.CARRY_OUT, retry=policy, pass_context=True)
    async def carry_out(context: JobContext, deed_id: int) -> None:
        last_try = policy.wait_seconds(Transient(""), context.job.attempts) is None
        await _work(context).carry_out(deed_id, last_try=last_try)

    @app.task(name=TaskName.TRY_QUESTION, pass_context=True)  # whoever asked sees a failure, and asks again
    async def try_question(context: JobContext, trial_id: int) -> None:
        await _work(context).try_question(trial_id)

    _add_periodic(app, policy, finished_jobs_hours)
    return app


def _add_periodic(app: App, policy: RetryPolicy, finished_jobs_hours: int) -> None:
    """The periodic tasks: one job a period whatever the number of workers; procrastinate gives them its timestamp."""

    @app.periodic(cron="7 * * * *", **_options(TaskName.REFRESH_CATEGORIES, lock=CATEGORIES))
    @app.task(name=TaskName.REFRESH_CATEGORIES, retry=policy, pass_context=True)
    async def refresh_categories(context: JobContext, timestamp: int = 0) -> None:
        await _work(context).refresh_categories()

    # The next four are not tried again: their next period comes soon enough.
    embedding = _options(TaskName.EMBED_PENDING, lock="embedding")

    @app.periodic(cron="* * * * *", **embedding)
    @app.task(name=TaskName.EMBED_PENDING, pass_context=True)
    async def embed_pending(context: JobContext, timestamp: int = 0) -> None:
        # One batch a job, so that fresh posts come in between.
        if await _work(context).embed_pending():
            with suppress(AlreadyEnqueued):
                await context.app.configure_task(TaskName.EMBED_PENDING, **embedding).defer_async()

    @app.periodic(cron="* * * * *", **_options(TaskName.RECONCILE, lock="reconcile"))
    @app.task(name=TaskName.RECONCILE, pass_context=True)
    async def reconcile(context: JobContext, timestamp: int = 0) -> None:
        await _work(context).reconcile()

    @app.periodic(cron="*/10 * * * *", **_options(TaskName.GROUP_UNANSWERED, lock="unanswered"))
    @app.task(name=TaskName.GROUP_UNANSWERED, pass_context=True)
    async def group_unanswered(context: JobContext, timestamp: int = 0) -> None:
        await _work(context).group_unanswered()

    @app.periodic(cron="37 * * * *", **_options(TaskName.EXPIRE, lock="expiry"))
    @app.task(name=TaskName.EXPIRE, pass_context=True)
    async def expire(context: JobContext, timestamp: int = 0) -> None:
        await _work(context).expire()
        await context.app.job_manager.delete_old_jobs(
            nb_hours=finished_jobs_hours, include_failed=True, include_cancelled=True, include_aborted=True
        )


def _options(task: TaskName, *, lock: str) -> ConfigureTaskOptions:
    queue, priority = PLACES[task]
    # Only tasks that are not tried again can have a queueing lock: a retry would run into it.
    queueing_lock = lock if task in (TaskName.EMBED_PENDING, TaskName.RECONCILE) else None
    return {"queue": queue, "priority": priority, "lock": lock, "queueing_lock": queueing_lock}


def _work(context: JobContext) -> Work:
    work: Work = context.additional_context["work"]
    return work
