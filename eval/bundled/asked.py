"""What a forum is asked: its labelled questions, and questions that it can't answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.datasets import Dataset, read_cases
from eval.datasets.clusters import clustered
from eval.domain import Case, Labels

FOREIGN = 80
"""Questions about the other forums, asked of each."""

FOREIGN_SLICE = "foreign"
SMALL_TALK_SLICE = "small talk"

SMALL_TALK = (
    ("en", "Who are you, and who made you?"),
    ("en", "Tell me a joke about cats"),
    ("en", "What is the capital of Australia?"),
    ("en", "How are you doing today?"),
    ("en", "Which film should I watch tonight?"),
    ("en", "Can you write a poem about autumn?"),
    ("en", "How old is the universe?"),
    ("en", "What will the weather be tomorrow in Lyon?"),
    ("en", "My train is late again, what a day"),
    ("en", "Who won the football world cup in 1998?"),
    ("en", "Translate good evening into Spanish"),
    ("en", "How do I cook rice without burning it?"),
    ("en", "What is the meaning of life?"),
    ("en", "Is it better to run in the morning or in the evening?"),
    ("en", "Recommend a good dentist near the station"),
    ("fr", "Qui es-tu et qui t'a créé ?"),
    ("fr", "Raconte-moi une blague sur les chats"),
    ("fr", "Quelle est la capitale de l'Australie ?"),
    ("fr", "Comment vas-tu aujourd'hui ?"),
    ("fr", "Quel film regarder ce soir en famille ?"),
    ("fr", "Écris-moi un poème sur l'automne"),
    ("fr", "Quel âge a l'univers ?"),
    ("fr", "Quel temps fera-t-il demain à Lyon ?"),
    ("fr", "Mon train est encore en retard, quelle journée"),
    ("fr", "Qui a gagné la coupe du monde de football en 1998 ?"),
    ("fr", "Traduis bonsoir en espagnol"),
    ("fr", "Comment cuire du riz sans le brûler ?"),
    ("fr", "Quel est le sens de la vie ?"),
    ("fr", "Vaut-il mieux courir le matin ou le soir ?"),
    ("fr", "Un bon dentiste près de la gare, vous connaissez ?"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions that one forum is asked: its own, then those that it can't answer."""

    dataset: Dataset
    own: tuple[Case, ...]
    foreign: tuple[Case, ...]


def asked(datasets: Sequence[Dataset], *, seed: int) -> list[Asked]:
    """Each forum's own questions; FOREIGN questions about the others, drawn by the seed; small talk."""
    own = [_own(one) for one in datasets]
    rng = np.random.default_rng(seed)
    found = []
    for place, (dataset, cases) in enumerate(zip(datasets, own, strict=True)):
        others = [
            (datasets[at].name, case)
            for at, some in enumerate(own)
            if at != place
            for case in some
            if case.labels is Labels.QUESTIONS and case.answerable
        ]
        drawn = rng.permutation(len(others))[:FOREIGN]
        foreign = [_foreign(*others[at]) for at in drawn]
        talk = [_small_talk(n, *one) for n, one in enumerate(SMALL_TALK)]
        found.append(Asked(dataset, cases, tuple(foreign + talk)))
    return found


def _own(dataset: Dataset) -> tuple[Case, ...]:
    """All its cases; those of different files stand or fall together too, since one fit sees them all."""
    return clustered([case for labels in dataset.labels for case in read_cases(dataset, labels)])


def _foreign(forum: str, case: Case) -> Case:
    """A question about that forum, asked of another one: their ids and topics are their own."""
    place, text = f"{FOREIGN_SLICE} {forum}", case.standalone or case.question
    return Case(f"{place} {case.id}", Labels.QUESTIONS, FOREIGN_SLICE, case.lang, text, (), f"{place} {case.cluster}")


def _small_talk(number: int, lang: str, text: str) -> Case:
    name = f"{SMALL_TALK_SLICE} {number}"
    return Case(name, Labels.QUESTIONS, SMALL_TALK_SLICE, lang, text, (), name)
