"""The embedders of one process: which of them answers, the switch embedding_profile says, question by question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.answer.pipeline import Stages
from service.answer.ports import FlagReader
from service.inference.proved import Embedder
from service.telemetry import log


@dataclass(frozen=True, slots=True)
class Embedders:
    """Those that are configured, that of models.embedder first; every post is embedded by each of them."""

    configured: Sequence[Embedder]
    flags: FlagReader

    async def answering(self) -> Embedder:
        """The one whose vectors answer now: the first until the switch is turned, and where it names none of them.

        Raises what reading the switches does.
        """
        wanted = (await self.flags.read()).embedding_profile
        for one in self.configured:
            if one.profile.name == wanted:
                return one
        if wanted:
            log.warning("embedding_profile_not_configured", wanted=wanted, answering=self.configured[0].profile.name)
        return self.configured[0]

    async def applied(self, stages: Stages) -> Stages:
        """The stages with the embedder that answers now, for one question: its vectors and its index are one."""
        return replace(stages, embedder=await self.answering())
