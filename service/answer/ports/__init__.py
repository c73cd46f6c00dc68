"""What answering needs from the outside, as Protocols; adapters match them structurally (proved in wiring)."""

from service.answer.ports.categories import Categories
from service.answer.ports.deeds import AnsweredPost, Deed, DeedKind, Deeds, OwnPosts
from service.answer.ports.flags import AnsweringMode, FlagReader, Flags
from service.answer.ports.forum import CreatedReply, Forum
from service.answer.ports.ledger import Claim, FixedReply, Ledger, RecentAnswers
from service.answer.ports.models import Answerer, ChatModel, DetectLanguage, QueryEmbedder, Reranker, SentenceEmbedder
from service.answer.ports.search import Excluded, Search, TopicMatch, TopicSearch
from service.answer.ports.unanswered import Unanswered, UnansweredQuestions

__all__ = [
    "AnsweredPost",
    "Answerer",
    "AnsweringMode",
    "Categories",
    "ChatModel",
    "Claim",
    "CreatedReply",
    "Deed",
    "DeedKind",
    "Deeds",
    "DetectLanguage",
    "Excluded",
    "FixedReply",
    "FlagReader",
    "Flags",
    "Forum",
    "Ledger",
    "OwnPosts",
    "QueryEmbedder",
    "RecentAnswers",
    "Reranker",
    "Search",
    "SentenceEmbedder",
    "TopicMatch",
    "TopicSearch",
    "Unanswered",
    "UnansweredQuestions",
]
