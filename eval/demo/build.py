"""Turns the demo forum into the files of a dataset: archive, categories and natural labels."""

import json
from functools import partial
from pathlib import Path

from eval.datasets.archive import read_archive
from eval.new.files import topic_lines, write_found
from eval.new.manifest import write_manifest
from eval.new.natural import accepted_labels, link_labels, site_of
from eval.new.public import public_posts
from service.domain import ENGLISH
from service.inference.language import LanguageDetector
from service.simulator.archive import archive_lines, site_json
from service.simulator.model import Member
from service.simulator.state import BOT_ID, open_forum

BASE_URL = "https://forum.example"


def build_demo(folder: Path) -> None:
    """Write what comes from the demo forum into this folder, then its manifest; other files there stay."""
    forum = open_forum(None, base_url=BASE_URL, bot=Member(BOT_ID, "ariane", "Ariane", trust_level=1))
    archive, site = folder / "topics.jsonl.gz", folder / "site.json"
    with topic_lines(archive) as write:
        for line in archive_lines(forum):
            write(line)
    site.write_text(json.dumps(site_json(forum), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    language_of = partial(LanguageDetector(), fallback=ENGLISH)
    is_public = public_posts(archive, site)
    write_found(folder / "links.jsonl", link_labels(read_archive(archive), is_public, language_of, site_of(BASE_URL)))
    write_found(folder / "accepted.jsonl", accepted_labels(read_archive(archive), is_public, language_of))
    write_manifest(
        folder, name="demo", languages=("en", "fr"), licence="Written for Ariane; under the licence of the project."
    )
