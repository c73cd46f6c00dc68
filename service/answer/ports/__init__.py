"""What answering needs from the outside, as Protocols; adapters match them structurally (proved in wiring)."""

from service.answer.ports.flags import AnsweringMode, FlagReader, Flags
from service.answer.ports.forum import CreatedReply, Forum
from service.answer.ports.ledger import Claim, FixedReply, Ledger, RecentAnswers
from service.answer.ports.models import Answerer, ChatModel, DetectLanguage, QueryEmbedder, Reranker, SentenceEmbedder
from service.answer.ports.search import Excluded, Search, TopicMatch, TopicSearch

__all__ = [
    "Answerer",
    "AnsweringMode",
    "ChatModel",
    "Claim",
    "CreatedReply",
    "DetectLanguage",
    "Excluded",
    "FixedReply",
    "FlagReader",
    "Flags",
    "Forum",
    "Ledger",
    "QueryEmbedder",
    "RecentAnswers",
    "Reranker",
    "Search",
    "SentenceEmbedder",
    "TopicMatch",
    "TopicSearch",
]
