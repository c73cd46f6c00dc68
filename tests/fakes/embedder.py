"""An embedder in memory: its vectors depend on every character, on the prefix and on which model it plays."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from service.domain import Embedded, EmbeddingProfile, TextFailure, Vector
from service.errors import ArianeError
from tests.fakes.model_server import NAN_WORD, hashed_vector


@dataclass
class HashEmbedder:
    """Both ports of embedding; another `model` gives other vectors, a text with NAN_WORD fails, always."""

    profile: EmbeddingProfile
    model: str = "this"
    down: ArianeError | None = None
    embedded: list[str] = field(default_factory=list)

    def truncate(self, text: str) -> str:
        return text[:200]

    def tokens(self, text: str) -> float:
        return 2 + len(text) / 4

    async def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        return [self._vector("passage", text) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        made = self._vector("query", text)
        assert not isinstance(made, TextFailure)
        return made

    def _vector(self, prefix: str, text: str) -> Vector | TextFailure:
        if self.down:
            raise self.down
        self.embedded.append(text)
        if NAN_WORD in text:
            return TextFailure("failed to encode response: NaN")
        return hashed_vector(f"{self.model} {prefix}: {text}", self.profile.dimensions)
