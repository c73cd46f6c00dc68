"""What a long backfill shows a person: a bar with rate and time left, then what the index holds."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from service.ingest.ports import Census


class ProgressBar:
    """Called with (step, done, total): one line a step on stderr; silent where stderr is no terminal."""

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, step: str, done: int, total: int) -> None:
        if step not in self._steps:
            self._steps[step] = self._bar.add_task(step, total=total, completed=done, rate="")
        task = self._bar.tasks[self._steps[step]]
        self._bar.update(task.id, completed=done, total=total, rate=f"{task.speed:.0f}/s" if task.speed else "")


def show_census(census: Census, console: Console) -> None:
    """Print what the index holds, refusals by reason."""
    console.print(f"{census.topics:,} topics, {census.posts:,} posts: {census.indexed:,} indexed", highlight=False)
    for reason, count in sorted(census.refused.items(), key=lambda item: -item[1]):
        console.print(f"  {count:,} refused: {reason}", highlight=False)
    console.print(f"  {census.left_to_embed:,} left to embed", highlight=False)
    if census.unembeddable:
        console.print(f"  {census.unembeddable:,} that the model fails on (see `ariane doctor`)", highlight=False)
