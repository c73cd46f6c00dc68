"""One thread that owns a model, loaded at first use: calls run one at a time, urgent ones before all that wait."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import PriorityQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")
M = TypeVar("M")

_STOP = 2
_Job = tuple[int, int, "Future[Any]", Callable[[], Any]]


class ModelThread:
    """Runs calls in order of urgency, then of arrival; the thread starts with the first call.

    It is a daemon: a process may end while a call runs. A call whose future was cancelled in time never runs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: PriorityQueue[_Job] = PriorityQueue()
        self._arrival = itertools.count()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def submit(self, call: Callable[[], T], *, urgent: bool) -> "Future[T]":
        """Queue a call; the future gets its result or its exception."""
        future: Future[T] = Future()
        self._jobs.put((0 if urgent else 1, next(self._arrival), future, call))
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return future

    def close(self) -> None:
        """Finish the calls that wait, then end the thread; a later call starts a new one."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put((_STOP, next(self._arrival), Future(), lambda: None))
            thread.join()

    def _run(self) -> None:
        while True:
            urgency, _, future, call = self._jobs.get()
            if urgency == _STOP:
                return
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as exc:  # noqa: BLE001 - whoever waits for the future gets it
                future.set_exception(exc)
            del future, call  # don't keep the last texts alive while waiting


class Lazy(Generic[M]):
    """A model that is loaded when it is first asked for, from whichever thread; a failed load is tried again."""

    def __init__(self, load: Callable[[], M]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._model: M | None = None

    def get(self) -> M:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model
