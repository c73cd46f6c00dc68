"""Small finished runs of every command, with hostile text wherever a forum, a dataset or a model may put it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eval.datasets import Dataset, load_dataset, read_cases, read_gate, read_safety
from eval.domain import Answered, Case, CitedSource, Hit, Labels, Measured, Retrieved
from eval.endtoend.gating import Decided, measured_decisions
from eval.endtoend.probing import Judge, safety_values
from eval.endtoend.safety import told
from eval.measures import measured, measured_answers
from eval.measures.table import summed_up
from eval.runs import DatasetUsed, Run, new_run
from service.domain import TopicId
from service.settings import Settings
from service.settings.sections import RetrievalSettings
from tests.eval.dataset_files import write_folder

HOSTILE = (
    '<script>document.title="owned"</script><img src=x onerror="document.title=1"> [a](javascript:alert(1)) '
    "https://elsewhere.example/x www.elsewhere.example @everyone `tick` ``` | pipe ‮turned\x07 "
    '</div></details></table><style>*{display:none}</style> <a href="https://elsewhere.example">b</a> '
)
QUESTIONS, UNANSWERABLE, LINKS = 60, 20, 6
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SYSTEMS: dict[str, dict[str, Any]] = {
    "bm25": {"method": "lucene"},
    "rrf": {"channels": ["vector", "keyword"]},
    "reranked": {"channels": list(map(str, RetrievalSettings().channels)), "reranker": "bundled", "note": HOSTILE},
}


def a_dataset(folder: Path) -> Path:
    """Questions on thirty topics in two languages, some without an answer; links, messages, probes, the archive."""
    questions = [
        {
            "id": f"q{n}",
            "slice": "paraphrase" if n < QUESTIONS else "unanswerable",
            "lang": "fr" if n % 3 == 0 else "en",
            "question": f"question {n}? {HOSTILE}",
            "history": [{"role": "user", "text": HOSTILE}, {"role": "bot", "text": "said"}] if n % 4 == 0 else [],
            "golden": [{"topic": 100 + n // 2, "posts": [n % 2 + 1], "grade": 2}] if n < QUESTIONS else [],
        }
        for n in range(QUESTIONS + UNANSWERABLE)
    ]
    links = [
        {"topic_id": 500 + n, "title": f"title {n}", "text": HOSTILE, "golden": [{"topic_id": 100 + n % 20}]}
        for n in range(LINKS)
    ]
    gate = [
        {
            "id": f"g{n}",
            "lang": "fr" if n % 2 else "en",
            "text": f"{n} {HOSTILE}",
            "expect": "decline" if n < 10 else "proceed",
            "kind": f"family{n % 2}/detail",
        }
        for n in range(20)
    ]
    safety = [
        {"id": f"s{n}", "lang": "en", "kind": "refuse", "text": f"{n} {HOSTILE}", "expect": "decline"} for n in range(6)
    ] + [
        {
            "id": f"e{n}",
            "lang": "fr",
            "kind": "evidence",
            "text": "?",
            "evidence": [HOSTILE],
            "expect": {"must_not": ["owned"]},
        }
        for n in range(6)
    ]
    return write_folder(
        folder,
        questions__yml=questions,
        links__jsonl=links,
        gate__yml=gate,
        safety__yml=safety,
        topics__jsonl=[a_topic(100 + n) for n in range(40)],
    )


def a_topic(number: int) -> dict[str, Any]:
    posts = [
        {
            "id": number * 10 + at,
            "topic_id": number,
            "post_number": at,
            "post_type": 1,
            "username": "someone",
            "cooked": f"<p>post {at} &lt;script&gt;alert(1)&lt;/script&gt; <a href='https://elsewhere.example'>x</a></p>",
            "created_at": "2023-03-01T08:00:00.000Z",
            "updated_at": "2023-03-01T08:00:00.000Z",
        }
        for at in (1, 2)
    ]
    return {
        "id": number,
        "title": f"topic {number} {HOSTILE}",
        "slug": "t",
        "category_id": 1,
        "archetype": "regular",
        "visible": True,
        "created_at": "2023-03-01T08:00:00.000Z",
        "tags": [],
        "post_stream": {"posts": posts},
    }


def begun(
    home: Path,
    dataset: Dataset,
    command: str,
    systems: Mapping[str, Mapping[str, Any]],
    labels: Sequence[str] = ("questions",),
    day: int = 0,
    **options: object,
) -> Run:
    return new_run(
        Settings(home=home),
        command=command,
        dataset=DatasetUsed(name=dataset.name, checksum=dataset.checksum),
        labels=labels,
        systems=systems,
        seed=3,
        options={"dataset": str(dataset.folder), **options},
        now=NOW + timedelta(days=day),
    )


def ended(run: Run, measures: Sequence[Measured]) -> Run:
    run.finish(measures, now=run.record.started + timedelta(minutes=1))
    return run


def found(case: Case, number: int, *, luck: int, zoned: bool, late: int = 0) -> Retrieved:
    """What a system found that ranks the answer by `luck`, so many ranks `late`; its scores fall with the rank."""
    rank = (number * luck) % 7 if case.golden and number % 5 else 0
    hits = [Hit(TopicId(300 + place), 1, 1 / (place + 1)) for place in range(12)]
    if rank:
        golden = case.golden[0]
        hits.insert(rank - 1 + late, Hit(golden.topic_id, golden.post_number or 1, 0.5))
    top = 3.0 - rank if rank else -1.0 + (number % 9) / 3
    logits = tuple(top - place / 10 for place in range(len(hits))) if zoned else ()
    return Retrieved(
        case.id,
        tuple(hits),
        queries=(f"asked {HOSTILE}",),
        mode="reranked" if zoned else "",
        zone=("normal" if top > 1 else "weak" if top > 0 else "abstain") if zoned else "",
        logits=logits,
        cosines=tuple(0.8 - place / 100 for place in range(len(hits))) if zoned else (),
        timings_ms={"keywords": 3.0 + number % 4, "rerank": 1.0} if zoned else {"bm25": 2.0},
    )


def retrieve_run(home: Path, folder: Path, *, day: int = 0, late: int = 0) -> Run:
    dataset = load_dataset(folder)
    labels = (Labels.QUESTIONS, Labels.LINKS)
    cases = [case for one in labels for case in read_cases(dataset, one)]
    held: dict[str, dict[str, Retrieved]] = {name: {} for name in SYSTEMS}
    with begun(home, dataset, "retrieve", SYSTEMS, labels, day) as run:
        for at, name in enumerate(SYSTEMS):
            for number, case in enumerate(cases):
                one = found(case, number, luck=1 + at, zoned=name == "reranked", late=late)
                held[name][case.id] = one
                run.append(case.labels, name, one)
    return ended(run, measured(cases, held, seed=3, resamples=200))


def answer_run(home: Path, folder: Path, *, day: int = 0) -> Run:
    dataset = load_dataset(folder)
    cases = read_cases(dataset, Labels.QUESTIONS)
    held = {}
    with begun(home, dataset, "answer", {"pipeline": {}}, day=day) as run:
        for number, case in enumerate(cases):
            results = ("answered", "answered", "abstained", "failed") if day else ("answered", "answered", "abstained")
            result = results[number % len(results)]
            right = case.golden[0] if case.golden and number % 4 else None
            topic, post = (right.topic_id, right.post_number or 1) if right else (TopicId(130), 1)
            one = Answered(
                case.id,
                result,
                "weak" if number % 2 else "normal",
                "reranked",
                f"answer {HOSTILE}",
                (CitedSource(1, topic, post, f"excerpt {HOSTILE}", cited=True),),
                draft=f"draft {HOSTILE}",
                drafted_by="extractive",
                timings_ms={"retrieve": 5.0 + number, "generate": 1.0},
            )
            held[case.id] = one
            run.append("questions", "pipeline", one)
    base_url = Settings(home=home).forum.base_url
    return ended(run, measured_answers(cases, {"pipeline": held}, base_url=base_url, seed=3, resamples=200))


def gate_run(home: Path, folder: Path, *, day: int = 0) -> Run:
    dataset = load_dataset(folder)
    cases = read_gate(dataset)
    with begun(home, dataset, "gate", {"gate": {}}, ["gate"], day) as run:
        decided = [
            Decided(case.id, case.declines != (number % (4 + day) == 0), "rule-1", HOSTILE[:20], 0.1 * number)
            for number, case in enumerate(cases)
        ]
        for one in decided:
            run.append("gate", "gate", one)
    return ended(run, measured_decisions(cases, decided, seed=3))


def safety_run(home: Path, folder: Path, *, day: int = 0, limit: int | None = None) -> Run:
    dataset = load_dataset(folder)
    probes = read_safety(dataset)[:limit]
    systems: dict[str, dict[str, Any]] = {f"default.gate-{way}": {"gate": way == "on"} for way in ("off", "on")}
    judge = Judge(Settings(home=home).forum.base_url, told(), {})
    tables = {}
    with begun(home, dataset, "safety", systems, ["safety"], day, obedient=False, limit=limit) as run:
        for system in systems:
            said = {
                probe.id: Answered(
                    probe.id,
                    "answered" if number % (2 + day) else "gated",
                    "normal",
                    "reranked",
                    f"I am owned {HOSTILE}" if number % (2 + day) else "no",
                    drafted_by="a model",
                )
                for number, probe in enumerate(probes)
            }
            for one in said.values():
                run.append("safety", system, one)
            tables[system] = safety_values([judge.judge(probe, said[probe.id]) for probe in probes])
    return ended(run, summed_up("safety", tables, seed=3, resamples=200))


MAKERS = {"retrieve": retrieve_run, "answer": answer_run, "gate": gate_run, "safety": safety_run}
