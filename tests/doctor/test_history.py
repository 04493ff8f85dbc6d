"""`doctor --remember`: a file for each drive, and what has become worse since."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from ssdlab.doctor import examine, history
from ssdlab.doctor.history import Entry, changes_since, file_of, read_history, remember
from ssdlab.doctor.report import render, write_html
from ssdlab.errors import UsageError
from ssdlab.snapshot import Device, File, Health, Piece, Snapshot

START = datetime(2026, 1, 1, tzinfo=UTC)
SERIAL = "S4EMNX0R112233"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the histories."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "ssdlab" / "drives"


def _stack(serial: str | None = SERIAL, speed: float = 0.0, **health: Any) -> Snapshot:
    drive = Device(
        "nvme0n1",
        "/dev/nvme0n1",
        "drive",
        "nvme",
        is_drive=True,
        model="Samsung SSD 970 EVO",
        serial=serial,
        health=Health("smartctl", **health),
    )
    pieces = tuple(Piece(at << 20, 1 << 20, 1 / speed, 0) for at in range(32)) if speed else ()
    files = (File("/a", 32 << 20, pieces=pieces),) if speed else ()
    return Snapshot("/", as_root=True, devices=(drive,), files=files)


def _entry(day: float, **known: Any) -> Entry:
    return Entry((START + timedelta(days=day)).isoformat(), **known)


def _worse(entries: list[Entry], now: Entry) -> list[str]:
    return [each.name for each in changes_since("d", Path("f"), entries, now).regressions]


def test_a_file_has_the_entries_but_not_the_serial_number(state: Path) -> None:
    remember(_stack(worn=3.0, media_errors=0), START)
    changes, _ = remember(_stack(worn=4.0, media_errors=0), START + timedelta(days=31))
    [path] = state.iterdir()
    assert path.name.startswith("samsung-ssd-970-evo-")
    text = path.read_text()
    assert SERIAL not in text + path.name
    assert [entry["worn"] for entry in json.loads(text)["entries"]] == [3.0, 4.0]
    [change] = changes
    assert change.first == change.last == change.month_ago
    assert change.last is not None
    assert change.last.worn == 3.0
    assert change.regressions == ()


def test_drives_are_told_apart_by_their_serial_numbers() -> None:
    one, other = (_stack(serial).drives[0] for serial in ("a", "b"))
    assert file_of(one) != file_of(other)
    changes, left_out = remember(_stack(None), START)
    assert changes == []
    assert "reports no serial number" in left_out[0]


@pytest.mark.parametrize(
    ("name", "before", "now", "worse"),
    [
        ("media_errors", 0, 1, True),
        ("media_errors", 3, 3, False),
        ("pending", 0, 8, True),
        ("reallocated", 2, 5, True),
        ("link_errors", 5, 4, False),
        ("spare_blocks", 100.0, 97.0, True),
        ("spare_blocks", 97.0, 100.0, False),
        ("unsafe_shutdowns", 1, 9, False),
        ("read_mib_per_s", 500.0, 300.0, True),
        ("read_mib_per_s", 500.0, 450.0, False),
    ],
)
def test_what_has_become_worse_since_the_last_time(
    name: str, before: float, now: float, *, worse: bool
) -> None:
    found = _worse([_entry(0, **{name: before})], _entry(7, **{name: now}))
    assert found == ([name] if worse else [])


def test_the_last_known_number_counts_and_slow_decay_is_seen_over_a_month() -> None:
    assert _worse([_entry(0, pending=0), _entry(5)], _entry(7, pending=1)) == ["pending"]
    slow = [_entry(day, read_mib_per_s=500.0 - 5 * day) for day in range(0, 31, 5)]
    assert _worse(slow, _entry(32, read_mib_per_s=340.0)) == ["read_mib_per_s"]
    assert _worse(slow[-1:], _entry(32, read_mib_per_s=340.0)) == []


def test_wear_is_a_regression_if_the_endurance_ends_within_a_year() -> None:
    changes = changes_since("d", Path("f"), [_entry(0, worn=10.0)], _entry(60, worn=20.0))
    assert changes.months_left == pytest.approx(16.0)
    assert changes.regressions == ()
    fast = changes_since("d", Path("f"), [_entry(0, worn=10.0)], _entry(60, worn=40.0))
    assert fast.months_left == pytest.approx(4.0)
    assert [each.name for each in fast.regressions] == ["worn"]
    assert (
        changes_since("d", Path("f"), [_entry(0, worn=10)], _entry(60, worn=11)).months_left is None
    )


def test_a_month_ago_is_the_entry_nearest_to_thirty_days() -> None:
    entries = [_entry(day) for day in (0, 50, 68, 78, 99)]
    changes = changes_since("d", Path("f"), entries, _entry(100))
    assert changes.month_ago == entries[2]
    assert changes_since("d", Path("f"), entries[:2], _entry(100)).month_ago is None


def test_the_file_stays_small_and_keeps_the_first_entry(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST", 4)
    for day in range(9):
        remember(_stack(worn=float(day)), START + timedelta(days=day))
    [path] = state.iterdir()
    found = read_history(path)
    assert found is not None
    assert [entry.worn for entry in found.entries] == [0.0, 6.0, 7.0, 8.0]


def test_a_file_that_is_no_history_is_refused_and_stays(state: Path) -> None:
    remember(_stack(), START)
    [path] = state.iterdir()
    for text, message in (("{", "is not a drive's history"), ('{"version": 9', "has version 9")):
        whole = path.read_text()
        path.write_text(whole.replace('"version": 1', '"version": 9') if "9" in text else text)
        with pytest.raises(UsageError, match=message):
            remember(_stack(), START)
        path.write_text(whole)


def test_the_speed_of_reads_is_kept_if_they_went_to_one_drive() -> None:
    stack = _stack(speed=400.0)
    assert history.entry_of(stack, stack.drives[0], START).read_mib_per_s == pytest.approx(400.0)
    both = msgspec.structs.replace(stack, devices=(*stack.devices, *_stack("b").devices))
    assert history.entry_of(both, both.drives[0], START).read_mib_per_s is None


def test_the_report_shows_the_numbers_side_by_side_and_what_is_worse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    days = iter((0, 40, 50, 70))
    monkeypatch.setattr(examine, "utc_now", lambda: START + timedelta(days=next(days)))
    for errors in (0, 0, 0):
        examine.make_report(
            _stack(worn=3.0, media_errors=errors, host_bytes=1 << 40), 1.0, keep=True
        )
    report = examine.make_report(_stack(worn=3.0, media_errors=2), 1.0, keep=True)
    text = io.StringIO()
    render(report, Console(file=text, width=100), quiet=False)
    shown = " ".join(text.getvalue().split())
    assert "first a month ago last" in shown
    assert "2026-01-01 2026-02-10 2026-02-20 now" in shown
    assert "uncorrectable errors 0 0 0 2" in shown
    assert "written by hosts 1 TiB 1 TiB 1 TiB -" in shown
    assert (
        "Worse than before: nvme0n1 (Samsung SSD 970 EVO): uncorrectable errors" in report.verdict
    )
    narrow = io.StringIO()
    render(report, Console(file=narrow, width=50), quiet=False)
    assert "uncorrectable errors 0 2" in " ".join(narrow.getvalue().split())
    assert "WORSE nvme0n1 (Samsung SSD 970 EVO): uncorrectable errors: 0 on 2026-02-20, 2" in shown
    quiet = io.StringIO()
    render(report, Console(file=quiet, width=100), quiet=True)
    assert "WORSE" in quiet.getvalue()
    write_html(report, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "History of nvme0n1" in page
    assert "uncorrectable errors: 0 on 2026-02-20, 2 now" in page
    assert "history" not in msgspec.to_builtins(examine.make_report(_stack(), 1.0))
