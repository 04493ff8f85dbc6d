"""The doctor's report: hostile names, quiet output, maps, the HTML page."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from ssdlab.doctor.checks import findings, judge, summary
from ssdlab.doctor.report import Report, render, write_html
from ssdlab.doctor.report.content import age, columns
from ssdlab.errors import UsageError
from ssdlab.snapshot import Device, File, Health, Mounted, Piece, Snapshot, TrimLayer
from ssdlab.warning import MeasurementWarning

MIB = 1 << 20
HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e[bold]"


def _file(slow: range, count: int = 40) -> File:
    pieces = tuple(
        Piece(4 * at * MIB, 4 * MIB, 0.1 if at in slow else 0.01, 0) for at in range(count)
    )
    return File(f"/data/{HOSTILE}", 4 * count * MIB, 3, 4 * count * MIB, 1, 12.0, pieces=pieces)


def _report(*files: File) -> Report:
    health = Health("smartctl", passed=False, warnings=(HOSTILE,))
    drive = Device(
        "sda",
        "/dev/sda",
        "drive",
        "sata",
        is_drive=True,
        model=HOSTILE,
        size_bytes=10**12,
        rotational=False,
        health=health,
    )
    layers = (
        TrimLayer("schedule", "/data", "no", HOSTILE),
        TrimLayer("file system", "/data", "yes", "sends"),
        TrimLayer("drive", "sda", "no", HOSTILE),
    )
    mount = Mounted("/data", "ext4", HOSTILE, (HOSTILE,), ("sda",), layers=layers)
    stack = Snapshot(HOSTILE, True, mounts=(mount,), devices=(drive,), files=files)
    verdicts = judge(stack)
    return Report(
        ssdlab="0",
        target=HOSTILE,
        duration_s=1.0,
        measures=[],
        findings=findings(verdicts),
        verdict=summary(verdicts),
        verdicts=verdicts,
        warnings=[MeasurementWarning("unread", HOSTILE)],
        stack=stack,
    )


def _printed(report: Report, *, quiet: bool = False, width: int = 100) -> str:
    out = io.StringIO()
    render(report, Console(file=out, width=width), quiet=quiet)
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_control_characters_in_names_are_replaced_and_no_line_is_too_long(width: int) -> None:
    text = _printed(_report(_file(range(10, 20))), width=width)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text.replace("\n", "").replace(" ", "")
    assert max(map(len, text.splitlines())) <= width


def test_quiet_prints_only_bad_and_warn() -> None:
    report = _report()
    text = _printed(report, quiet=True)
    assert "BAD  failing" in text
    assert "BAD  trim-stopped" in text
    assert "note" not in text
    assert "Layer" not in text


def test_each_verdict_starts_with_its_severity() -> None:
    text = _printed(_report(_file(range(0))))
    assert "\n BAD  failing" in text
    assert "\n note write-cache" not in text
    assert "\n good reads-even" in text


def test_the_height_of_a_column_is_its_speed_and_slow_columns_are_marked() -> None:
    file = _file(range(10, 20))
    bars = columns(file, 400.0, 20)
    assert "".join(column.sign for column in bars) == "█████▁▁▁▁▁██████████"
    assert [column.is_slow for column in bars] == [False] * 5 + [True] * 5 + [False] * 10
    assert len(columns(file, 400.0, 200)) == 40


@pytest.mark.parametrize(
    ("days", "words"),
    [(0.5, "12 hours"), (0.04, "1 hour"), (0.0, "0 hours"), (3.0, "3 days"), (800.0, "2.2 years")],
)
def test_age_in_hours_days_or_years(days: float, words: str) -> None:
    assert age(days) == words


def test_the_page_escapes_names_and_has_a_figure_for_each_map(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_html(_report(_file(range(10, 20)), _file(range(0))), path)
    text = path.read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert text.count("<figure>") == 2
    assert "var(--aged" in text
    assert 'class="finding bad"' in text


def test_a_page_without_maps_has_no_figures(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_html(_report(), path)
    assert "<figure>" not in path.read_text()


def test_a_page_never_replaces_a_device_and_needs_an_existing_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a regular file"):
        write_html(_report(), Path("/dev/null"))
    with pytest.raises(UsageError, match="cannot be written"):
        write_html(_report(), tmp_path / "nowhere" / "page.html")
