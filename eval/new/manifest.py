"""Writes a dataset's manifest.yml: its name, languages and licence as they were or are given, its files as they are."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from eval.datasets.folder import DEFAULT_LANGUAGE, MANIFEST, Manifest, checksums, files_in, name_of, read_manifest
from eval.datasets.parsing import checked

NO_LICENCE = "The posts belong to their authors: not to be passed on."


def write_manifest(
    folder: Path, *, name: str | None = None, languages: Sequence[str] = (), licence: str | None = None
) -> Manifest:
    """Say again what the folder holds, keeping what its manifest says and isn't given; raises Rejected.

    Whoever writes or changes a file of a dataset calls this afterwards.
    """
    known = read_manifest(folder)
    path = folder / MANIFEST
    values = {
        "name": name or (known.name if known else name_of(folder)),
        "languages": list(languages) or (known.languages if known else [DEFAULT_LANGUAGE]),
        "licence": licence or (known.licence if known else NO_LICENCE),
        "files": checksums(files_in(folder)),
    }
    manifest = checked(values, Manifest, str(path))
    path.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return manifest
