"""The demo's story: database, index, forum, service and worker, a first question, then until Ctrl-C."""

import asyncio
import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from service.answer.activation import listed
from service.answer.signature import differences
from service.demo.plan import HOST, Plan, make_plan, only_demo
from service.demo.processes import Children, until_answering
from service.demo.question import Asked, ask_on_forum
from service.demo.tested import shipped_run
from service.domain import PostId, Result, RunKind
from service.embedded import ensure_running, stop
from service.ingest.archive import read_categories
from service.ingest.backfill import Backfill, backfill_archive
from service.progress import ProgressBar, show_census
from service.settings import Settings
from service.show import show_answer
from service.simulator.archive import archive_lines, site_json
from service.simulator.model import Member
from service.simulator.state import BOT_ID, open_forum
from service.stop import stop_on_signals
from service.store.evaluations import EvaluationStore
from service.store.flags import FlagStore
from service.store.migrate import migrate
from service.store.profiles import ProfileStore
from service.store.traces import StoredTrace, TraceStore
from service.wiring.activation import switch_on
from service.wiring.configuration import configuration
from service.wiring.services import Services, open_services

START_SECONDS = 60.0
GRACE_SECONDS = 30.0
IDLE_STOP_SECONDS = 60.0
"""A killed demo leaves its database to end by itself this soon."""

INTERRUPTED = 130
NOT_ANSWERED = 1
RECORDED_SECONDS = 5.0


async def run_demo(settings: Settings, *, once: bool, forum_port: int) -> int:
    """Run the whole loop; `once` ends it after the first posted answer. Returns the exit status."""
    out = Console(stderr=True, highlight=False)
    plan = make_plan(settings, forum_port=forum_port)
    with only_demo(plan.home), stop_on_signals(GRACE_SECONDS) as stopping:
        story = asyncio.create_task(_story(plan, settings, out, once=once))
        interrupted = asyncio.create_task(stopping.wait())
        await asyncio.wait({story, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        interrupted.cancel()
        if not story.done():
            out.print("\nstopping ...")
            story.cancel()
        try:
            return await story
        except asyncio.CancelledError:
            return INTERRUPTED if once else 0
        finally:
            await asyncio.to_thread(stop, plan.home)


async def _story(plan: Plan, settings: Settings, out: Console, *, once: bool) -> int:
    out.print(f"[bold]Ariane demo[/]: everything it keeps is in {plan.home}", soft_wrap=True)
    with out.status("starting the database"):
        url = await asyncio.to_thread(ensure_running, plan.home, idle_stop_seconds=IDLE_STOP_SECONDS)
        await migrate(url)
    here = plan.settings(settings, url)
    async with open_services(here, "demo") as services:
        await _index(plan, services, out)
        await _switch_on(services, out)
        async with Children(plan.home / "logs") as children:
            with out.status("starting the forum, the service and a worker"):
                await _start(plan, children, here)
            with out.status("a member asks a first question"):
                asked = await children.while_all_live(ask_on_forum(plan, turn=_turn(plan.home)))
            answered = await _show(asked, services, out)
            if once:
                return 0 if answered else NOT_ANSWERED
            out.print(f"\nOpen [bold]{plan.forum_url}[/], choose a member, and mention @ariane in a post.")
            out.print(
                f"Service {plan.web_url}, worker metrics http://{HOST}:{plan.metrics_port}/metrics", soft_wrap=True
            )
            out.print(
                f"Moderators' pages: [bold]{plan.pages_url}[/] (sign in as a member of the staff)", soft_wrap=True
            )
            out.print(f'From another terminal: ARIANE_HOME={plan.home} {_ariane()} ask "..."', soft_wrap=True)
            out.print("Ctrl-C stops everything.")
            raise (await children.first_to_end()).fault()


async def _index(plan: Plan, services: Services, out: Console) -> None:
    """Fill the index from the simulated forum as it is now: a second start embeds only what is new."""
    bot = Member(BOT_ID, services.settings.forum.bot_username, "Ariane", trust_level=1)
    forum = open_forum(plan.state, base_url=plan.forum_url, bot=bot)
    archive, site = plan.home / "archive.jsonl", plan.home / "site.json"
    archive.write_text("".join(f"{line}\n" for line in archive_lines(forum)), encoding="utf-8")
    site.write_text(json.dumps(site_json(forum)), encoding="utf-8")
    with ProgressBar() as progress:
        at = Backfill(services.corpus, services.corpus, services.embedder, services.rules, progress)
        census = await backfill_archive(archive, categories=read_categories(site), vectors=None, at=at)
    show_census(census, out)
    await ProfileStore(services.pool).activate(services.embedder.profile.name)


async def _switch_on(services: Services, out: Console) -> None:
    """Switch on by the run that comes with the program; under settings that it is not about, by an override."""
    shipped, signature = shipped_run(), configuration(services.settings)
    runs = EvaluationStore(services.pool)
    own = await runs.latest_run(signature.sha256)
    known = shipped.signature.sha256 == signature.sha256
    if known and own is None:
        await runs.record_run(shipped)
    if not known and (own is None or own.run.kind is RunKind.OVERRIDE):
        changed = listed(differences(shipped.signature, signature))
        out.print(f"switched on untested, since the demo was tested with other settings: {changed}", style="yellow")
    override = own is None and not known
    await switch_on(services.pool, services.settings, by="demo", reason="the demo answers", override=override)
    await FlagStore(services.pool).set("answering", "on", by="demo", reason="the demo answers")


async def _start(plan: Plan, children: Children, settings: Settings) -> None:
    env = plan.environment(settings)
    port, state = str(plan.forum_port), str(plan.state)
    simulator = ("service.simulator", "--port", port, "--state", state, "--webhook", plan.webhook_url)
    forum = await children.start("forum", *simulator, env=env)
    web = await children.start("web", "service", "serve", env=env)
    await children.start("worker", "service", "worker", env=env)
    await until_answering(forum, f"{plan.forum_url}/srv/status", seconds=START_SECONDS)
    await until_answering(web, f"{plan.web_url}/readyz", seconds=START_SECONDS)


def _ariane() -> str:
    """The command as a shell finds it: `make demo` leaves its environment off the PATH."""
    return "ariane" if shutil.which("ariane") else str(Path(sys.executable).with_name("ariane"))


def _turn(home: Path) -> int:
    """How often this demo was started before."""
    file = home / "starts"
    turn = int(file.read_text()) if file.exists() else 0
    file.write_text(str(turn + 1))
    return turn


async def _show(asked: Asked, services: Services, out: Console) -> bool:
    """Draw the reply with how it came about; whether it answers."""
    stored = await _recorded(asked, services)
    if stored is None:
        out.print(f"{asked.reply_url} was posted, but the worker has not recorded it")
        return False
    trace = stored.trace
    show_answer(
        out,
        question=asked.text,
        markdown=asked.reply,
        zone=trace.zone,
        mode=trace.mode,
        sources=trace.sources,
        cited=stored.cited,
        profile=services.stages.reranker.profile,
        timings_ms=trace.timings_ms,
    )
    waited = (datetime.now(UTC) - stored.recorded_at).total_seconds()
    out.print(f"posted {waited:.0f} s ago: {asked.reply_url}", soft_wrap=True)
    return stored.reason == Result.ANSWERED


async def _recorded(asked: Asked, services: Services) -> StoredTrace | None:
    """What the worker recorded of it, which it does right after posting."""
    deadline = asyncio.get_running_loop().time() + RECORDED_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        stored = await TraceStore(services.pool).latest(PostId(asked.post_id))
        if stored is not None and stored.outcome == "posted":
            return stored
        await asyncio.sleep(0.1)
    return None
