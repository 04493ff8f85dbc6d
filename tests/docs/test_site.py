"""The site builds, no link or anchor in it is broken, and it asks no other host for anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from built import CHECKOUT, built, copied

import ssdlab
from pages import columns, generated, profile_keys, python, statuses, verbs
from ssdlab import records

# What a browser fetches without being asked: all but the targets of links.
FETCHED = re.compile(r'(?:\bsrc=|<link [^>]*href=|url\(|@import )["\']?(?:https?:)?//[^\s"\')]+')


@pytest.mark.pages
def test_the_site_builds_and_every_page_of_docs_is_in_it(site: Path) -> None:
    pages = {path.relative_to(CHECKOUT / "docs") for path in (CHECKOUT / "docs").rglob("*.md")}
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {page.with_suffix(".html") for page in pages} <= made
    assert (site / "searchindex.js").is_file()


@pytest.mark.pages
def test_nothing_is_fetched_from_another_host(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css"}]
    found = {hit[0] for path in files for hit in FETCHED.finditer(path.read_text("utf-8"))}
    assert len(files) > 30
    assert not found


def test_a_broken_link_a_broken_anchor_and_a_lost_page_fail_the_build(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    for page in (copy / "docs").rglob("*"):
        if page.is_file():
            page.unlink()
    (copy / "docs" / "index.md").write_text(
        "# One\n\n[a](nowhere.md) [b](#no-such-heading) [c](other.md)\n"
    )
    (copy / "docs" / "other.md").write_text("# Other\n")
    done = built(copy)
    assert done.returncode != 0
    for told in ("nowhere.md", "no-such-heading", "other.md"):
        assert told in done.stdout


def test_every_key_that_the_model_knows_is_described() -> None:
    keys = list(profile_keys.read_keys())
    source = "".join(path.read_text() for path in (CHECKOUT / "crates/flash/src/config").glob("*"))
    lists = re.findall(r"KEYS: &\[&str\] = &\[(.*?)\];", source, re.DOTALL)
    listed = [name for each in lists for name in re.findall(r'^\s*"(\w+)"', each, re.MULTILINE)]
    assert sorted(key.name for key in keys) == sorted(listed)
    assert len(listed) >= 55
    assert all(key.allowed and key.meaning for key in keys)


@pytest.mark.parametrize(
    ("section", "name", "allowed", "default"),
    [
        ("ftl", "victim", 'one of "greedy", "fifo"', '"greedy"'),
        ("ftl", "mapping_unit", "a power of two", "4 KiB"),
        ("ftl", "wear_spread", "left out, unless", "32"),
        ("flash", "failure_spread", "a share from 0", "0.1"),
        ("flash", "program", "a time with its unit", "required"),
        ("slc", "program", "a time with its unit", "required"),
        ("slc", "bits_per_cell", "2 to 16", "3"),
        ("slc", "mode", 'one of "static", "dynamic"', '"static"'),
        ("buffer", "honours_flush", "true or false", "true"),
        ("drive", "interface", 'one of "nvme", "sata"', "required"),
        ("link", "max_transfer", "a size with its unit", "128 KiB"),
    ],
)
def test_what_a_key_may_be_and_its_default_are_those_of_the_code(
    section: str, name: str, allowed: str, default: str
) -> None:
    named = [key for key in profile_keys.read_keys() if key.section == section]
    (key,) = (key for key in named if key.name == name)
    assert allowed in key.allowed
    assert key.default == default


def test_every_column_of_every_table_is_listed() -> None:
    listed = {name: [row[0] for row in columns.rows(body)] for name, body in columns.tables()}
    names = ("STEPS", "INTERVALS", "LATENCY", "INTERVAL_LATENCY", "OBSERVATIONS")
    assert listed == {name: getattr(records, name).names for name in names}


def test_every_option_of_every_verb_is_listed() -> None:
    text = verbs.markdown()
    assert "## ssdlab serve" in text
    assert "### ssdlab run steady" in text
    assert "`--drive-writes" in text
    assert "Example: `ssdlab watch" in text


def test_every_name_of_python_is_listed_and_no_call_is_cut_off() -> None:
    text = python.markdown()
    assert all(f"### ssdlab.{name}\n" in text for name in ssdlab.__all__)
    calls = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(calls) > 10
    assert max(len(line) for call in calls for line in call.splitlines()) <= 72


def test_every_exit_status_but_0_is_listed_with_its_error() -> None:
    rows = [line.split(" | ")[:2] for line in statuses.markdown().splitlines()[2:]]
    assert ["| 1", "`DeviceFailure`"] in rows
    assert ["| 2", "`UsageError`"] in rows
    assert ["| 3", "`Interrupted`"] in rows


def test_a_generated_part_that_nothing_makes_stops_the_build() -> None:
    with pytest.raises(KeyError):
        generated.fill("# A page\n\n<!-- generated: no-such-part -->\n")


@pytest.mark.parametrize("model", sorted((CHECKOUT / "docs" / "models").glob("*.md")))
def test_a_model_says_what_it_leaves_out_and_links_the_glossary(model: Path) -> None:
    text = model.read_text()
    assert "glossary.md" in text
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    limits = {"Not modelled", "What it cannot know", "When it misleads", "Limits"}
    assert limits & set(headings), f"{model.name}: {headings}"
