"""Rules for the migration files, without a database."""

import hashlib
import re
from pathlib import Path

import pytest

from service.errors import Misconfigured
from service.store.migrate import check_files, migrations_folder

FILES = sorted(migrations_folder().iterdir())


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_files_are_numbered_without_a_gap() -> None:
    assert [path.name[:5] for path in FILES] == [f"{n:04}_" for n in range(1, len(FILES) + 1)]
    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", path.name) for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_ends_the_transaction_it_runs_in(path: Path) -> None:
    statements = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
    statements = re.sub(r"\$\$.*?\$\$", "", statements, flags=re.DOTALL)  # a function's BEGIN begins no transaction
    assert not re.search(r"\b(BEGIN|COMMIT|ROLLBACK|CONCURRENTLY)\b", statements, re.IGNORECASE)


def test_what_was_applied_must_be_here_and_unchanged() -> None:
    recorded = {"0001_a.sql": sha256(b"a"), "procrastinate/x.sql": "of another release"}
    check_files(recorded, {"0001_a.sql": b"a", "0002_b.sql": b"b", "procrastinate/x.sql": b"x"})
    check_files({}, {})
    with pytest.raises(Misconfigured, match=r"0001_a\.sql was edited"):
        check_files(recorded, {"0001_a.sql": b"A", "procrastinate/x.sql": b"x"})
    with pytest.raises(Misconfigured, match=r"newer than this program \(procrastinate/x\.sql is applied\)"):
        check_files(recorded, {"0001_a.sql": b"a"})
