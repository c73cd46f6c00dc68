"""The gate as it is at this moment: the files' rules, compiled once, and those that moderators added meanwhile."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from service.answer.gate.added import Extended, extended
from service.answer.gate.compiled import Gate, load_gate
from service.answer.gate.rules import GateKind, RuleFile, rule_files
from service.settings import GateSettings
from service.telemetry import log


class AddedRules(Protocol):
    """The rules that moderators added; both raise what reading the database does."""

    async def version(self) -> int:
        """A number that grows with every change of them."""
        ...

    async def texts(self) -> Mapping[str, str]:
        """Each rule as JSON, by its id."""
        ...


class GateInUse:
    """One for each process; compiles in a thread, and only what changed."""

    def __init__(self, settings: GateSettings, added: AddedRules) -> None:
        self._settings = settings
        self._added = added
        self._base: tuple[Gate, Sequence[RuleFile]] | None = None
        self._kept: tuple[int, Extended] | None = None
        self._reading = asyncio.Lock()

    @property
    def off(self) -> tuple[GateKind, ...]:
        """The kinds that the settings let through."""
        return tuple(map(GateKind, self._settings.kinds_off))

    @property
    def base(self) -> Gate:
        """The files' rules alone, compiled now unless they are; raises Misconfigured for one that can't be."""
        return self._compiled()[0]

    @property
    def files(self) -> Sequence[RuleFile]:
        """The files as they were when they were compiled."""
        return self._compiled()[1]

    async def read(self) -> Gate:
        """The gate with every rule that is there now. Raises Misconfigured, and what reading the database does."""
        return (await self.extended()).gate

    async def extended(self) -> Extended:
        """The same, with what was left out of the additions and why."""
        async with self._reading:
            version = await self._added.version()
            if self._kept is None or self._kept[0] != version:
                made = await asyncio.to_thread(self._extended, await self._added.texts())
                for rule, fault in made.faults.items():
                    log.error("gate_rule_left_out", rule=rule, error=fault)
                self._kept = version, made
            return self._kept[1]

    async def tried(self, rule_id: str, text: str) -> Extended:
        """The gate as it would be with this rule (JSON) beside the others, or in place of an added one of that id."""
        return await asyncio.to_thread(self._extended, {**await self._added.texts(), rule_id: text})

    def _extended(self, texts: Mapping[str, str]) -> Extended:
        base, files = self._compiled()
        return extended(base, files, texts, self.off)

    def _compiled(self) -> tuple[Gate, Sequence[RuleFile]]:
        if self._base is None:
            self._base = load_gate(self._settings), rule_files(self._settings.rules_file)
        return self._base
