"""What is concluded from what was seen, sent and declared, also where these differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.experiments.trim.analysis import conclude
from ssdlab.records import Recording
from ssdlab.storage_stack.trim import TrimLayer

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
        recording.observe("not_read", detail="/dev/dm-1 cannot be opened, which takes root")
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
    ("end", "sent", "stops", "found"),
    [
        # Seen, sent and declared agree.
        ({"zeros": SIZE}, ALL, None, (True, "none", "zeros")),
        ({"old": SIZE}, NO, STOPPED, (False, STOPPED, "old data")),
        # What is seen counts more than what is declared.
        ({"zeros": SIZE}, ALL, STOPPED, (True, "none", "zeros")),
        # Zeros that the pool gives, whose drive was told nothing.
        ({"zeros": SIZE}, POOL, None, (False, "dm-1 (thin pool)", "zeros")),
        # The drive was told and keeps the old data: that proves nothing.
        ({"old": SIZE}, ALL, None, (None, None, "old data")),
        ({"old": SIZE}, {"dm-1": SIZE, "sda": 1.0}, None, (None, None, "old data")),
        ({"old": SIZE}, None, None, (None, None, "old data")),
        # Nobody sent any, though all would pass it.
        ({"old": SIZE}, NO, None, (False, "/data (file system)", "old data")),
        ({"old": SIZE}, POOL, None, (False, "dm-1 (thin pool)", "old data")),
        # Some blocks were given to another file meanwhile; the rest decides.
        ({"zeros": 6.0, "other": 2.0}, ALL, None, (True, "none", "zeros")),
        ({"zeros": 2.0, "other": 6.0}, ALL, None, (None, None, "other")),
        ({"zeros": 4.0, "old": 4.0}, ALL, None, (None, None, "other")),
        ({"other": SIZE}, ALL, None, (None, None, "other")),
        ({"other": SIZE}, NO, STOPPED, (False, STOPPED, "other")),
        # Erased flash, as some drives give it: nobody wrote that.
        ({"ones": SIZE}, ALL, None, (True, "none", "other")),
        # Not read at all.
        (None, ALL, None, (None, None, None)),
        (None, NO, None, (None, None, None)),
        (None, NO, STOPPED, (False, STOPPED, None)),
    ],
)
def test_what_is_seen_counts_more_than_what_was_sent_and_that_more_than_what_is_declared(
    end: dict[str, float] | None,
    sent: dict[str, float] | None,
    stops: str | None,
    found: tuple[object, object, object],
) -> None:
    assert _found(_concluded(end, sent, stops)) == found


@pytest.mark.parametrize("end", [{"zeros": SIZE}, {"ones": SIZE}, {"old": SIZE}])
def test_blocks_that_did_not_read_as_written_before_prove_nothing_after(
    end: dict[str, float],
) -> None:
    conclusion = _concluded(end, ALL, None, written={"old": 4.0, "zeros": 4.0})
    assert _found(conclusion) == (None, None, "other")
    assert "while they were the file's" in conclusion.findings["reads_back"].why


def test_what_was_freed_below_is_evidence_where_nothing_can_be_read() -> None:
    freed = {"used_written_mib": 80.0, "used_after_mib": 72.0}
    assert _found(_concluded(None, NO, None, **freed)) == (True, "none", None)
    kept = {"used_written_mib": 80.0, "used_after_mib": 79.0}
    assert _found(_concluded(None, NO, None, **kept)) == (None, None, None)


@pytest.mark.parametrize(
    ("end", "sent", "stops", "words"),
    [
        ({"zeros": SIZE}, ALL, STOPPED, "although md0 (md) declares that it passes none"),
        ({"zeros": SIZE}, POOL, None, "dm-1 (thin pool) stops it: the marked bytes are gone, but"),
        ({"old": SIZE}, ALL, None, "Undecided whether a discard reaches the flash: drives were"),
        (None, NO, STOPPED, "md0 (md) stops it: md0 (md) declares"),
    ],
)
def test_the_sentence_says_what_it_rests_on(
    end: dict[str, float] | None, sent: dict[str, float], stops: str | None, words: str
) -> None:
    verdict = _concluded(end, sent, stops).verdict
    assert words in verdict
    assert verdict.endswith(".")


def test_every_row_has_a_step_and_a_detail_and_the_layers_come_first() -> None:
    rows = _concluded({"zeros": SIZE}, ALL, None, fitrim_mib=8.0).measures
    assert {tuple(row) for row in rows} == {("step", "layer", "device", "passes", "detail")}
    assert [row["layer"] for row in rows[:4]] == ["schedule", "file system", "thin pool", "drive"]
    assert all(row["step"] and row["detail"] for row in rows)


@pytest.mark.parametrize("virtual", [False, True])
def test_a_run_that_was_broken_off_has_no_finding(virtual: bool) -> None:
    recording = Recording()
    recording.observe("mapping_units", 8.0)
    evidence = Evidence(
        recording.tables(), {"size_mib": SIZE}, outcome="interrupted", virtual=virtual
    )
    conclusion = conclude(evidence)
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")
