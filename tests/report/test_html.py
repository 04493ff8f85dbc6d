"""The HTML page: complete, self-contained, and safe with hostile names."""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markupsafe import escape
from rich.console import Console

from ssdlab.errors import UsageError
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.records import Finding, Recording, Run
from ssdlab.report import render, write_html
from ssdlab.report.html import html_page

HOSTILE = '</title><script>alert("1")</script>$\\frac{'


@pytest.fixture
def page_of(tmp_path: Path) -> Any:
    """`page_of(runs)` -> the HTML of their page."""

    def write(runs: list[Run]) -> str:
        path = tmp_path / "report.html"
        write_html(runs, path)
        return path.read_text(encoding="utf-8")

    return write


class Elements(HTMLParser):
    """Collects elements and attributes; fails on a mismatched end tag."""

    VOID = frozenset({"meta", "br", "img", "link", "hr", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def test_the_page_loads_nothing_and_has_one_constant_script(page: str, make_run: Any) -> None:
    scripts = re.findall(r"<script.*?</script>", page, re.DOTALL)
    assert scripts == re.findall(r"<script>.*?</script>", html_page([make_run()]), re.DOTALL)
    assert len(scripts) == 1
    for tag, attributes in parsed(page).elements:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base"}
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\(\s*['\"]?([^)]*)", page))
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "http://" not in without_namespaces
    assert "https://" not in without_namespaces


def test_every_element_that_is_opened_is_closed(page: str) -> None:
    assert parsed(page).open == []


def test_no_two_elements_share_an_id(page: str) -> None:
    names = Counter(attributes.get("id") for _, attributes in parsed(page).elements)
    del names[None]
    assert [name for name, count in names.items() if count > 1] == []


def test_links_within_the_page_lead_somewhere(page: str) -> None:
    elements = parsed(page).elements
    names = {attributes.get("id") for _, attributes in elements}
    links = [str(attributes["href"])[1:] for tag, attributes in elements if tag == "a"]
    assert {"summary", "run-1", "run-2", "warnings-2"} == set(links)
    assert set(links) <= names


def test_every_run_has_its_verdict_target_and_name(two_runs: list[Run], page: str) -> None:
    for run in two_runs:
        assert str(escape(run.result.verdict)) in page
        assert f'<span class="mono">{run.manifest.target}</span>' in page
        assert run.manifest.run in page


def test_every_warning_is_a_box_with_its_sentence(two_runs: list[Run], page: str) -> None:
    boxes = re.findall(r'<p class="warning" role="note">(.*?)</p>', page)
    texts = [unescape(re.sub("<.*?>", "", box)) for box in boxes]
    for warning in two_runs[1].result.warnings:
        assert any(warning.code in box and warning.sentence in box for box in texts)
    assert "2 warnings" in page


def test_an_interrupted_run_is_marked_as_not_complete(two_runs: list[Run], page_of: Any) -> None:
    page = page_of(two_runs)
    assert page.count("not complete") == 2  # in the summary and on the verdict
    assert "This run was interrupted: the results cover only the part that was measured." in page
    assert "not complete" not in page_of(two_runs[:1])


def test_measures_and_findings_have_their_values(page: str) -> None:
    rows = re.findall(r"<tr>(<td.*?)</tr>", page)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    assert ["250", "6.1", "6.80", "602", "6.80 6.80 6.85"] in cells
    assert ["50", "1.2", "18.9", "217", "19.4"] in cells
    assert '<span class="value">3.58x</span>' in page
    assert ">3.40 to 3.70x<" in page
    assert '<span class="value">no</span>' in page
    assert FINDING_WHY in page


FINDING_WHY = "best of 3 reads fresh 1.9 s, after 250 MiB 6.8 s"


def test_the_target_is_described_with_units(page: str) -> None:
    facts = dict(re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td></tr>', page))
    assert facts["Capacity"] == "476.8 GiB (512 GB)"
    assert facts["Spare (of all flash)"] == "6.9 %"
    assert facts["Flash page"] == "16 KiB"
    assert facts["Protected against power loss"] == "no"
    assert facts["File system"] == "ext4"
    assert facts["Random writes"] == "50 MiB, 200 MiB"
    assert facts["Host: memory"] == "8 GiB"
    assert facts["Started"] == "2026-11-21 10:15:00 UTC"


@pytest.mark.parametrize("experiment", ["aging", "fragments"])
def test_hostile_names_are_escaped(make_run: Any, page_of: Any, experiment: str) -> None:
    run = make_run(
        experiment=experiment,
        target=f"/mnt/{HOSTILE}",
        device={HOSTILE: HOSTILE, "drives": [{"model": HOSTILE}]},
        host={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        parameters={"size_mib": 64.0, HOSTILE: HOSTILE},
        findings={HOSTILE: Finding(HOSTILE, HOSTILE, None, None, HOSTILE)},
        profile=HOSTILE,
        verdict=HOSTILE,
    )
    page = page_of([run])
    assert page.count("<script") == 1
    assert str(escape(HOSTILE)) in page
    assert parsed(page).open == []


def test_control_characters_do_not_reach_the_page(make_run: Any, page_of: Any) -> None:
    page = page_of([make_run(target="/mnt/\x1b[31m\x00\u202e", verdict="a\x07b")])
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page)


def test_each_figure_is_valid_xml_with_a_title_in_both_widths(page: str) -> None:
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(figures) == 2 * (1 + 2 * 4)
    for figure in figures:
        root = ET.fromstring(figure)
        title = root.find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text
        assert root.get("aria-labelledby") == title.get("id")
        assert "width" not in root.attrib


def test_a_run_without_measures_has_a_page(make_run: Any, page_of: Any) -> None:
    page = page_of([make_run(measures=[], findings={}, verdict="", outcome="interrupted")])
    assert "Nothing was measured." in page
    assert "No verdict: too little was measured." in page


def test_an_unknown_experiment_shows_all_its_measures(make_run: Any, page_of: Any) -> None:
    run = make_run(
        experiment="another",
        measures=[
            {"alignment_kib": 32, "read_mib_per_s": 512.5, "mode": "slow <1>"},
            {"alignment_kib": 64, "read_mib_per_s": None, "odd": [1.25, True]},
        ],
        findings={"chunk_kib": Finding(32, "KiB", None, None, "because")},
        parameters={"region_bytes": 1 << 30},
    )
    page = page_of([run])
    assert "Alignment<br>KiB" in page
    assert "Read<br>MiB/s" in page
    cells = [
        re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(<td.*?)</tr>", page)
    ]
    assert ["32", "512", "slow &lt;1&gt;", "-"] in cells
    assert ["64", "-", "-", "1.25 yes"] in cells
    assert '<span class="value">32 KiB</span>' in page
    assert "1 GiB" in page


def test_runs_are_grouped_by_experiment(make_run: Any, page_of: Any) -> None:
    runs = [make_run("a"), make_run("b", experiment="another"), make_run("c")]
    page = page_of(runs)
    sections = re.findall(r'id="run-(\d)".*?<td>([abc])</td>', page, re.DOTALL)
    assert sections == [("1", "a"), ("2", "c"), ("3", "b")]
    headings = re.findall(r"<h1>(.*?)</h1>", page)
    assert headings == ["3 runs on twin:toshiba-xg5"]
    assert re.findall(r'<h2 class="experiment".*?>(.*?)</h2>', page) == [
        "Ageing by random writes",
        "Measurement",
    ]
    contents = page[page.index('<nav class="contents"') : page.index("</nav>")]
    assert re.findall(r'href="#(run-\d)"', contents) == ["run-1", "run-2", "run-3"]


def test_several_runs_have_a_summary_with_links_first(two_runs: list[Run], page: str) -> None:
    summary = page[page.index('id="summary"') : page.index('id="run-1"')]
    rows = re.findall(r"<tr>(.*?)</tr>", summary, re.DOTALL)[1:]
    texts = [" ".join(unescape(re.sub("<.*?>", " ", row)).split()) for row in rows]
    assert len(rows) == 2
    for number, (run, row, text) in enumerate(zip(two_runs, rows, texts, strict=True), 1):
        assert f'href="#run-{number}"' in row
        assert run.result.verdict in text
        assert run.manifest.target in text
    assert "3.58x Slowdown" in texts[0]
    assert "not complete 2 warnings" in texts[1]
    assert page.index('id="summary"') < page.index("<svg")


def test_a_single_run_has_neither_summary_nor_contents(two_runs: list[Run]) -> None:
    page = html_page(two_runs[:1])
    assert page.count("<h1>") == 1
    assert 'id="summary"' not in page
    assert "<nav" not in page
    assert page.index(two_runs[0].result.verdict) < page.index("<svg")


def test_figures_have_their_values_for_the_pointer(page: str) -> None:
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    read_time = next(figure for figure in figures if "read-time-1-wide" in figure)
    root = ET.fromstring(read_time)
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    texts, points = json.loads(str(root.get("data-values")))
    lines = [[texts[at] for at in rest] for _, _, *rest in points]
    assert ["read time, s: 6.8", "MiB of random writes to the file, in total: 250"] in lines
    assert all(0 <= x <= width and 0 <= y <= height for x, y, *_ in points)


def test_a_run_on_a_twin_names_the_command_that_shows_its_inside(
    make_run: Any, page_of: Any
) -> None:
    small = {"capacity_bytes": 256 << 20, "target": "twin:my drive.toml"}
    page = page_of([make_run("twin", wish=small)])
    command = "ssdlab studio &#39;twin:my drive.toml&#39; --capacity 256MiB --seed 7"
    assert f"<pre>{command} --scene ageing</pre>" in page
    changes = {"experiment": "stripe", "wish": {"capacity_bytes": 512 << 30}}
    assert "<pre>ssdlab studio twin:toshiba-xg5 --seed 7</pre>" in page_of([make_run(**changes)])
    real = make_run("dir", target="/mnt/data", virtual=False, device={"kind": "directory"})
    assert "ssdlab studio" not in page_of([real])


def test_the_command_repeats_the_run(make_run: Any, page_of: Any) -> None:
    command = "<pre>ssdlab run aging twin:toshiba-xg5 --size 4096MiB --capacity 512GB"
    scaled = {"options": {"--size": "4096MiB"}, "wish": {"capacity_bytes": 512_000_000_000}}
    assert f"{command} --seed 7</pre>" in page_of([make_run("twin", **scaled)])
    options = {"--size": "512MiB", "--quick": True, "--rest": "90s"}
    run = make_run("dir", target="/mnt/my disk", device={"kind": "directory"}, options=options)
    words = "'/mnt/my disk' --size 512MiB --quick --rest 90s --seed 7"
    assert f"<pre>ssdlab run aging {escape(words)}</pre>" in page_of([run])


def test_the_same_runs_give_the_same_page(two_runs: list[Run], page_of: Any) -> None:
    assert page_of(two_runs) == page_of(two_runs)


def test_a_page_that_cannot_be_written_leaves_no_files(two_runs: list[Run], tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "file").touch()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match="occupied is not a regular file"):
        write_html(two_runs[:1], occupied)
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(UsageError, match="No such file or directory"):
        write_html(two_runs[:1], tmp_path / "missing" / "report.html")


def test_a_report_never_replaces_a_device_or_pipe_and_follows_links(
    two_runs: list[Run], tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(UsageError, match="is not a regular file"):
            write_html(two_runs[:1], path)
    assert Path("/dev/null").is_char_device()
    assert pipe.is_fifo()
    link, file = tmp_path / "link.html", tmp_path / "report.html"
    link.symlink_to(file)
    write_html(two_runs[:1], link)
    assert link.is_symlink()
    assert file.is_file()


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_report_needs_a_name(two_runs: list[Run], name: str) -> None:
    with pytest.raises(UsageError, match="is not a regular file"):
        write_html(two_runs[:1], Path(name))


def test_a_report_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run to report on"):
        write_html([], tmp_path / "report.html")


@pytest.mark.parametrize("experiment", sorted(EXPERIMENTS))
def test_a_run_without_requests_does_not_break_the_report(
    make_run: Any, page_of: Any, experiment: str
) -> None:
    nothing = {"measures": [], "findings": {}, "verdict": "", "parameters": {}}
    failed = make_run(
        "failed", experiment=experiment, outcome="failed", recording=Recording(), **nothing
    )
    render(failed, Console(file=io.StringIO(), width=80))
    whole = make_run()
    assert whole.result.verdict in page_of([failed, whole])
