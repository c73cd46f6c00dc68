"""What the pages refuse in the reader's own language."""

from service.domain import ENGLISH
from service.errors import Rejected
from service.moderation.wording import Words


class Refusal(Rejected):
    """A refusal in the words of `file.key`; as an exception, and to programs, it speaks English."""

    def __init__(self, key: str, *, status: int, **values: object) -> None:
        super().__init__(Words(ENGLISH)(key, **values), status=status)
        self.key = key
        self.values = values

    def said(self, words: Words) -> str:
        """The refusal in that language."""
        return words(self.key, **self.values)
