"""What is concluded from what was seen, sent and declared, also where these differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.experiments.trim.analysis import conclude
from ssdlab.records import Recording
from ssdlab.snapshot import TrimLayer

SIZE = 8.0
YES = (
    TrimLayer("schedule", "/data", "no", "nobody asks"),
    TrimLayer("file system", "/data", "yes", "ext4"),
    TrimLayer("thin pool", "dm-1", "unknown", "its table"),
    TrimLayer("drive", "sda", "yes", "limits"),
)
STOPPED = "md0 (md)"


def _concluded(
    end: dict[str, float] | None = None,
    sent: dict[str, float] | None = None,
    stops: str | None = None,
    **more: Any,
) -> Conclusion:
    """`end` is what the blocks read as in the end, `sent` MiB by device; `more` observations."""
    recording = Recording()
    for row in YES:
        recording.observe("passes", None, msgspec.json.encode(msgspec.structs.asdict(row)).decode())
    if stops:
        recording.observe("stops", detail=stops)
    if end is None:
        recording.observe("not_read", detail="/dev/dm-1 cannot be opened; run this as root")
    else:
        _look(recording, "written", {"old": SIZE, **more.pop("written", {})})
        _look(recording, "trimmed", end)
    for name, value in (sent or {}).items():
        recording.observe("sent_mib", value, name)
    if sent is not None:
        recording.observe("sent_drives_mib", sent["sda"], "sda")
    for name, value in more.items():
        recording.observe(name, value, "loop0")
    recording.observe("waited_trimmed_s", 0.5)
    return conclude(Evidence(recording.tables(), {"size_mib": SIZE}))


def _look(recording: Recording, when: str, seen: dict[str, float]) -> None:
    for kind in ("zeros", "ones", "old", "other"):
        recording.observe(f"{kind}_{when}_mib", seen.get(kind, 0.0))


def _found(conclusion: Conclusion) -> tuple[object, object, object]:
    reaches, layer, back = (
        conclusion.findings[name].value for name in ("reaches", "layer", "reads_back")
    )
    return reaches, layer, back


ALL = {"dm-1": SIZE, "sda": SIZE}
POOL = {"dm-1": SIZE, "sda": 0.0}
NO = {"dm-1": 0.0, "sda": 0.0}


@pytest.mark.parametrize(
    ("end", "sent", "stops", "expected"),
    [
        # Content, counters and declarations agree.
        ({"zeros": SIZE}, ALL, None, (True, "none", "zeros")),
        ({"old": SIZE}, NO, STOPPED, (False, STOPPED, "old data")),
        # Content has priority over declarations.
        ({"zeros": SIZE}, ALL, STOPPED, (True, "none", "zeros")),
        # The thin pool returns zeros, but its drive received no discard.
        ({"zeros": SIZE}, POOL, None, (False, "dm-1 (thin pool)", "zeros")),
        # The drive received the discard and returns the old data: undecided.
        ({"old": SIZE}, ALL, None, (None, None, "old data")),
        ({"old": SIZE}, {"dm-1": SIZE, "sda": 1.0}, None, (None, None, "old data")),
        ({"old": SIZE}, None, None, (None, None, "old data")),
        # No discard was sent, although all layers declare support.
        ({"old": SIZE}, NO, None, (False, "/data (file system)", "old data")),
        ({"old": SIZE}, POOL, None, (False, "dm-1 (thin pool)", "old data")),
        # Some blocks belong to another file by now; the others decide.
        ({"zeros": 6.0, "other": 2.0}, ALL, None, (True, "none", "zeros")),
        ({"zeros": 2.0, "other": 6.0}, ALL, None, (None, None, "other")),
        ({"zeros": 4.0, "old": 4.0}, ALL, None, (None, None, "other")),
        ({"other": SIZE}, ALL, None, (None, None, "other")),
        ({"other": SIZE}, NO, STOPPED, (False, STOPPED, "other")),
        # FFh: erased flash, as some drives return it.
        ({"ones": SIZE}, ALL, None, (True, "none", "other")),
        # The blocks were not read.
        (None, ALL, None, (None, None, None)),
        (None, NO, None, (None, None, None)),
        (None, NO, STOPPED, (False, STOPPED, None)),
    ],
)
def test_content_has_priority_over_counters_and_counters_over_declarations(
    end: dict[str, float] | None,
    sent: dict[str, float] | None,
    stops: str | None,
    expected: tuple[object, object, object],
) -> None:
    assert _found(_concluded(end, sent, stops)) == expected


@pytest.mark.parametrize("end", [{"zeros": SIZE}, {"ones": SIZE}, {"old": SIZE}])
def test_wrong_addresses_leave_the_result_undecided(
    end: dict[str, float],
) -> None:
    conclusion = _concluded(end, ALL, None, written={"old": 4.0, "zeros": 4.0})
    assert _found(conclusion) == (None, None, "other")
    assert "before the file was deleted" in conclusion.findings["reads_back"].why


def test_freed_space_below_decides_if_nothing_can_be_read() -> None:
    freed = {"used_written_mib": 80.0, "used_after_mib": 72.0}
    assert _found(_concluded(None, NO, None, **freed)) == (True, "none", None)
    kept = {"used_written_mib": 80.0, "used_after_mib": 79.0}
    assert _found(_concluded(None, NO, None, **kept)) == (None, None, None)


@pytest.mark.parametrize(
    ("end", "sent", "stops", "part"),
    [
        ({"zeros": SIZE}, ALL, STOPPED, "although md0 (md) declares that it passes no discards"),
        (
            {"zeros": SIZE},
            POOL,
            None,
            "dm-1 (thin pool) stops them: the marked bytes are gone",
        ),
        ({"old": SIZE}, ALL, None, "Undecided whether discards reach the flash: drives were"),
        (None, NO, STOPPED, "md0 (md) stops them: md0 (md) declares"),
    ],
)
def test_the_verdict_gives_its_reason(
    end: dict[str, float] | None, sent: dict[str, float], stops: str | None, part: str
) -> None:
    verdict = _concluded(end, sent, stops).verdict
    assert part in verdict
    assert verdict.endswith(".")


def test_layers_come_first_and_every_row_has_step_and_detail() -> None:
    rows = _concluded({"zeros": SIZE}, ALL, None, fitrim_mib=8.0).measures
    assert {tuple(row) for row in rows} == {("step", "layer", "device", "passes", "detail")}
    assert [row["layer"] for row in rows[:4]] == ["schedule", "file system", "thin pool", "drive"]
    assert all(row["step"] and row["detail"] for row in rows)


@pytest.mark.parametrize("virtual", [False, True])
def test_an_interrupted_run_has_no_findings(virtual: bool) -> None:
    recording = Recording()
    recording.observe("mapping_units", 8.0)
    evidence = Evidence(
        recording.tables(), {"size_mib": SIZE}, outcome="interrupted", virtual=virtual
    )
    conclusion = conclude(evidence)
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")


def test_blocks_that_cannot_be_read_back_are_named_with_the_reason() -> None:
    assert _concluded(sent={"sda": 0.0}).verdict == (
        "Undecided whether discards reach the flash: few or no discards were counted; the "
        "blocks could not be read back to check it (/dev/dm-1 cannot be opened; run this as root)."
    )


def test_discards_that_were_sent_but_not_checked_say_why() -> None:
    assert _concluded(sent={"sda": SIZE}).verdict == (
        f"Undecided whether discards reach the flash: drives were sent {SIZE:.4g} MiB of discards; "
        "the blocks could not be read back to check it (/dev/dm-1 cannot be opened; run this as "
        "root)."
    )
