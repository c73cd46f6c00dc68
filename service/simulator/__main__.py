"""Runs the simulator on loopback: `python -m service.simulator --port 4200 --state forum.json --webhook URL`."""

import os
from pathlib import Path

import click
import uvicorn

from service.simulator.app import create_simulator
from service.simulator.limits import NO_RATES, Limits
from service.simulator.model import Member
from service.simulator.state import BOT_ID, DEMO, open_forum
from service.simulator.webhooks import ContentType, Hook


@click.command()
@click.option("--port", default=4200, show_default=True, help="Port on 127.0.0.1.")
@click.option("--base-path", default="", help="Subfolder that the forum lives in, such as /forum.")
@click.option("--state", type=click.Path(path_type=Path, dir_okay=False), help="JSON file that keeps what is posted.")
@click.option(
    "--demo", type=click.Path(path_type=Path, exists=True), default=DEMO, help="Forum to start from, in YAML."
)
@click.option("--webhook", default="", help="Address that gets the webhooks.")
@click.option("--form", is_flag=True, help="Send webhooks as application/x-www-form-urlencoded.")
@click.option("--secret-env", default="SIMULATOR_WEBHOOK_SECRET", help="Variable that holds the webhook's secret.")
@click.option("--key-env", default="SIMULATOR_API_KEY", help="Variable that holds the bot's API key.")
@click.option("--member-key-env", default="SIMULATOR_MEMBER_KEY", help="Variable of a key that may act as any member.")
@click.option("--connect-secret-env", default="SIMULATOR_CONNECT_SECRET", help="Variable of the sign-in's secret.")
@click.option("--connect-host", default="127.0.0.1", show_default=True, help="Site that members sign in to with it.")
@click.option("--bot", default="ariane", show_default=True, help="Username of the bot's account.")
@click.option("--bot-trust-level", type=click.IntRange(0, 4), default=1, show_default=True)
@click.option("--bot-staff", is_flag=True, help="Make the bot a moderator.")
@click.option("--no-rates", is_flag=True, help="No limits on how fast anyone reads or posts.")
def main(
    port: int,
    base_path: str,
    state: Path | None,
    demo: Path,
    webhook: str,
    form: bool,
    secret_env: str,
    key_env: str,
    member_key_env: str,
    connect_secret_env: str,
    connect_host: str,
    bot: str,
    bot_trust_level: int,
    bot_staff: bool,
    no_rates: bool,
) -> None:
    """A small forum that speaks Discourse's REST and webhooks, with demo content."""
    secret = os.environ.get(secret_env, "")
    keys = {os.environ.get(key_env, ""): bot, os.environ.get(member_key_env, ""): None}
    if webhook and not secret:
        raise click.UsageError(f"--webhook needs its secret in the environment variable {secret_env}")
    base_url = f"http://127.0.0.1:{port}{base_path.rstrip('/')}"
    account = Member(BOT_ID, bot, bot.capitalize(), bot_trust_level, moderator=bot_staff)
    try:
        forum = open_forum(state, base_url=base_url, bot=account, demo=demo)
    except (KeyError, TypeError, ValueError) as exc:
        raise click.ClickException(f"{state if state and state.exists() else demo}: {exc}") from exc
    kind = ContentType.FORM if form else ContentType.JSON
    app = create_simulator(
        forum,
        hook=Hook(webhook, secret, kind) if webhook else None,
        api_keys={key: member for key, member in keys.items() if key},
        bot_username=bot,
        limits=NO_RATES if no_rates else Limits(),
        connect_secrets={connect_host: os.environ.get(connect_secret_env, "")},
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False, timeout_graceful_shutdown=3)


if __name__ == "__main__":
    main()
