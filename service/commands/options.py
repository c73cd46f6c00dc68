"""What every sub-command shares: its settings, from `--config` and the environment."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from service.settings import Settings, load_settings
from service.telemetry import log

P = ParamSpec("P")
R = TypeVar("R")


config_option = click.option(
    "--config",
    envvar="ARIANE_CONFIG",
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="YAML file of settings; ARIANE_* environment variables override it.",
)
"""`--config`, which a group takes for its sub-commands too."""


def configured(command: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
    """Add `--config` and hand the loaded settings to the command as its first argument."""

    @config_option
    @functools.wraps(command)
    def with_settings(*args: P.args, **kwargs: P.kwargs) -> R:
        context = click.get_current_context()
        path = kwargs.pop("config")
        if context.parent and context.get_parameter_source("config") is not ParameterSource.COMMANDLINE:
            path = context.parent.params.get("config") or path  # what is typed beats the environment
        settings = load_settings(path if isinstance(path, Path) else None)
        log.configure(level=settings.log.level, json=settings.log.format == "json")
        return command(settings, *args, **kwargs)

    return with_settings
