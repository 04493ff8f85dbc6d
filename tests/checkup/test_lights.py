"""Traffic lights: their colours at the thresholds, and what they say to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from machine import CapturedMachine
from report_runs import MakeRun
from stacks import STACKS, roots_of

from ssdlab.checkup.lights import Light, lights, verdict
from ssdlab.checkup.record import Checkup, Record
from ssdlab.checkup.report.content import content_of
from ssdlab.doctor.examine import make_report
from ssdlab.records import Finding, Run
from ssdlab.snapshot import File
from ssdlab.storage_stack.snapshot import read_snapshot
from ssdlab.warning import MeasurementWarning

RunOf = Callable[..., Run]
MakeCheckup = Callable[..., Checkup]
MB = 1e6 / (1 << 20)
"""MB/s in MiB/s."""


def found(value: float | bool | str | None, *bounds: float, why: str = "measured") -> Finding:
    """A finding, with an interval if `bounds` has two numbers."""
    low, high = bounds or (None, None)
    return Finding(value, "", low, high, why)


@pytest.fixture
def run_of(make_run: MakeRun) -> Callable[..., Run]:
    """`run_of(experiment, findings, measures, ...)`: a run in a directory."""

    def make(
        experiment: str,
        findings: dict[str, Finding] | None = None,
        measures: list[dict[str, Any]] | None = None,
        **changes: Any,
    ) -> Run:
        named = {"experiment": experiment, "findings": findings or {}, "measures": measures or []}
        return make_run(experiment, virtual=False, target="/mnt/data", **named, **changes)

    return make


@pytest.fixture
def make_checkup(tmp_path: Path) -> MakeCheckup:
    """`make_checkup(*runs, stack="laptop_open", **changes)`: a finished checkup of a directory."""

    def make(*runs: Run, stack: str = "laptop_open", **changes: Any) -> Checkup:
        values: dict[str, Any] = {
            "ssdlab": "0.1.0",
            "target": "/mnt/data",
            "place": "/mnt/data",
            "virtual": False,
            "capacity_bytes": None,
            "seed": 0,
            "started": "2026-11-24T12:00:00+00:00",
            "duration_s": 200.0,
            "as_root": True,
            "outcome": "complete",
        }
        doctor = None
        if stack:
            machine = CapturedMachine(tmp_path / stack)
            captured = STACKS[stack](machine)
            roots = roots_of(machine, captured)
            doctor = make_report(read_snapshot(captured.target, roots, captured.probes()), 1.0)
        by_name = {run.manifest.experiment: run for run in runs}
        return Checkup(tmp_path, Record(**{**values, **changes}), doctor, by_name)

    return make


def light(checkup: Checkup, code: str) -> Light:
    return next(one for one in lights(checkup) if one.code == code)


def suite(run_of: RunOf, *, read_us: float, sequential_mb: float, **changes: Any) -> Run:
    rows = [
        {"test": "sequential", "op": "read", "mean": sequential_mb * MB},
        {"test": "random 4k", "op": "read", "mean": 4096 / read_us * MB},
    ]
    return run_of("suite", {}, rows, **changes)


@pytest.mark.parametrize(
    ("read_us", "sequential_mb", "colour"),
    [
        (290, 210, "green"),
        (310, 210, "yellow"),
        (290, 190, "yellow"),
        (1900, 3000, "yellow"),
        (2100, 3000, "red"),
    ],
)
def test_speed(
    make_checkup: MakeCheckup, run_of: RunOf, read_us: float, sequential_mb: float, colour: str
) -> None:
    run = suite(run_of, read_us=read_us, sequential_mb=sequential_mb)
    one = light(make_checkup(run), "speed")
    assert one.colour == colour
    assert f"{sequential_mb} MB/s sequentially" in one.says
    assert ("slow for an SSD" in one.says) is (colour != "green")
    assert bool(one.next) is (colour != "green")


def test_a_rotating_disk_is_not_judged_as_an_ssd(make_checkup: MakeCheckup, run_of: RunOf) -> None:
    rotates = [MeasurementWarning("rotational", "sda reports that it is a rotating disk.")]
    run = suite(run_of, read_us=9000, sequential_mb=150, warnings=rotates)
    one = light(make_checkup(run, stack="rotating"), "speed")
    assert (one.colour, one.next) == ("grey", "ssdlab run suite /mnt/data --quick")
    assert "the limits are those of SSDs" in one.says


@pytest.mark.parametrize(("read_us", "is_said"), [(290, False), (310, True)])
def test_a_slow_drive_in_a_busy_machine_may_be_faster(
    make_checkup: MakeCheckup, run_of: RunOf, read_us: float, is_said: bool
) -> None:
    busy = [MeasurementWarning("busy-host", "Other programs used 2 CPUs.")]
    run = suite(run_of, read_us=read_us, sequential_mb=3000, warnings=busy)
    one = light(make_checkup(run), "speed")
    assert one.says.endswith("repeat it on an idle machine.") is is_said


@pytest.mark.parametrize(
    ("kind", "flush_us", "colour"),
    [
        ("volatile", 2900.0, "green"),
        ("volatile", 3100.0, "yellow"),
        ("volatile", 8400.0, "red"),
        ("protected", 30.0, "green"),
        ("protected or ignores flush", 30.0, "yellow"),
        ("ignores flush", 30.0, "red"),
        (None, 200.0, "green"),
    ],
)
def test_durable_writes(
    make_checkup: MakeCheckup, run_of: RunOf, kind: str | None, flush_us: float, colour: str
) -> None:
    run = run_of("fsync", {"class": found(kind), "flush_us": found(flush_us)})
    assert light(make_checkup(run), "durable").colour == colour


@pytest.mark.parametrize(
    ("warnings", "do"),
    [
        ((), "ssdlab run fsync /mnt/data --data-sheet protected"),
        (("virtual",), "ssdlab witness serve --help"),
    ],
)
def test_only_a_drive_has_a_data_sheet_to_look_in(
    make_checkup: MakeCheckup, run_of: RunOf, warnings: tuple[str, ...], do: str
) -> None:
    findings = {"class": found("protected or ignores flush"), "flush_us": found(30.0)}
    doubts = [MeasurementWarning(code, "It is a virtual disk.") for code in warnings]
    one = light(make_checkup(run_of("fsync", findings, warnings=doubts)), "durable")
    assert (one.colour, one.next) == ("yellow", do)


def test_flushes_that_the_kernel_drops_are_red_whatever_was_measured(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    run = run_of("fsync", {"class": found("protected"), "flush_us": found(30.0)})
    one = light(make_checkup(run, stack="no_flush"), "durable")
    assert one.colour == "red"
    assert one.experiment == "doctor"


@pytest.mark.parametrize(
    ("cached_mb", "lasting_mb", "colour"),
    [(1000, 510, "green"), (3000, 510, "green"), (1000, 490, "yellow"), (90, 49, "red")],
)
def test_long_writes(
    make_checkup: MakeCheckup, run_of: RunOf, cached_mb: float, lasting_mb: float, colour: str
) -> None:
    rates = {
        "cached_mib_per_s": found(cached_mb * MB),
        "lasting_mib_per_s": found(lasting_mb * MB),
    }
    assert light(make_checkup(run_of("cache", rates)), "lasting").colour == colour


def test_writes_without_a_drop_are_green_and_say_how_far_that_was_seen(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    why = "no drop in speed within 1024 MiB; give a larger --size"
    rows = [{"case": "first", "written_mib": mib, "write_mib_per_s": 900.0} for mib in (1, 1024)]
    run = run_of("cache", {"slc_mib": found(None, why=why)}, rows)
    one = light(make_checkup(run), "lasting")
    assert one.colour == "green"
    assert one.says.endswith("no drop within 1 GiB.")


@pytest.mark.parametrize(
    ("slowdown", "low", "colour"),
    [(1.0, 0.9, "green"), (1.2, 1.1, "green"), (1.3, 1.2, "yellow"), (2.1, 1.5, "red")],
)
def test_ageing(
    make_checkup: MakeCheckup, run_of: RunOf, slowdown: float, low: float, colour: str
) -> None:
    run = run_of("aging", {"slowdown": found(slowdown, low, slowdown + 1)})
    assert light(make_checkup(run), "ageing").colour == colour


def test_a_slowdown_within_the_noise_is_not_measured(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    run = run_of("aging", {"slowdown": found(2.5, 0.4, 8.6)})
    one = light(make_checkup(run), "ageing")
    assert one.colour == "grey"
    assert one.says.startswith("Not measured: repeated reads differ more")
    assert one.next == "ssdlab run aging /mnt/data --quick"


def test_a_slowdown_by_the_file_system_is_not_blamed_on_the_drive(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    moved = [MeasurementWarning("layout-changed", "The file system moved it.")]
    run = run_of("aging", {"slowdown": found(3.0, 2.5, 3.5)}, warnings=moved)
    one = light(make_checkup(run), "ageing")
    assert one.colour == "yellow"
    assert "the file system moved its blocks" in one.says


@pytest.mark.parametrize("code", ["page-cache-below", "page-cache", "link-speed"])
def test_numbers_of_the_hosts_memory_are_not_the_drives(
    make_checkup: MakeCheckup, run_of: RunOf, code: str
) -> None:
    warnings = [MeasurementWarning(code, "loop3 has no direct I/O: attach it otherwise.")]
    run = suite(run_of, read_us=20, sequential_mb=9000, warnings=warnings)
    checkup = make_checkup(run)
    one = light(checkup, "speed")
    assert one.colour == "grey"
    assert "the host's memory answered, not the drive (loop3 has no direct I/O" in one.says
    content = content_of(checkup)
    assert content.table_warning.startswith("The table does not show the drive: the host's memory")


def test_the_doctors_warning_about_trim_counts_also_if_the_hosts_memory_answered(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    cached = [MeasurementWarning("page-cache-below", "loop3 has no direct I/O: attach it.")]
    run = run_of("trim", {"reaches": found(True)}, warnings=cached)
    asked_never = light(make_checkup(run, stack="raid1"), "trim")
    assert (asked_never.colour, asked_never.says[:16]) == ("yellow", "All layers pass ")
    declared = light(make_checkup(run, stack="laptop_open"), "trim")
    assert declared.colour == "green"
    assert "not proved: the host's memory answered" in declared.says


def test_a_run_that_ended_undecided_is_not_to_be_repeated(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    one = light(make_checkup(run_of("trim", {"reaches": found(None)}), stack="memory"), "trim")
    assert (one.colour, one.next) == ("grey", "")


def test_files_on_a_buffered_loop_device_are_not_judged(make_checkup: MakeCheckup) -> None:
    one = light(make_checkup(stack="loop"), "files")
    assert one.colour == "grey"
    assert "the host's memory answered" in one.says


def test_runs_of_the_table_that_differ_are_named(make_checkup: MakeCheckup, run_of: RunOf) -> None:
    rows = [
        {"test": "random 4k x32", "op": op, "mean": 500.0, "error_percent": error}
        for op, error in (("read", 3.0), ("write", 34.2))
    ]
    content = content_of(make_checkup(run_of("suite", {}, rows)))
    expected = "The table's runs differ from their mean: RND4K Q32T1 write by 34 %."
    assert content.table_warning == expected


def test_an_interrupted_checkup_says_so_first(make_checkup: MakeCheckup) -> None:
    content = content_of(make_checkup(outcome="interrupted"))
    assert content.verdict.startswith("Interrupted. ")


@pytest.mark.parametrize(
    ("stack", "reaches", "colour"),
    [
        ("laptop_open", True, "green"),
        ("laptop", False, "red"),
        ("usb", False, "yellow"),
        ("usb_unmap", True, "yellow"),
        ("laptop_open", False, "yellow"),
        ("laptop_open", None, "green"),
    ],
)
def test_trim(
    make_checkup: MakeCheckup, run_of: RunOf, stack: str, reaches: bool | None, colour: str
) -> None:
    run = run_of("trim", {"reaches": found(reaches)})
    assert light(make_checkup(run, stack=stack), "trim").colour == colour


def test_a_run_of_trim_that_did_not_decide_is_not_recommended_again(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    run = run_of("trim", {"reaches": found(None)})
    assert light(make_checkup(run), "trim").next == ""


def test_a_run_of_trim_that_is_missing_is_recommended_with_sudo(
    make_checkup: MakeCheckup,
) -> None:
    missing = light(make_checkup(why_not={"trim": "no time was left"}), "trim")
    assert missing.next == "sudo ssdlab run trim /mnt/data"


def test_without_root_trim_is_what_the_layers_declare(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    warnings = [MeasurementWarning("needs-root", "The blocks were not read back.")]
    run = run_of("trim", {"reaches": found(None)}, warnings=warnings)
    one = light(make_checkup(run, as_root=False), "trim")
    assert one.colour == "green"
    assert "not proved: the proof needs root" in one.says
    assert one.next == "sudo ssdlab run trim /mnt/data"


@pytest.mark.parametrize(
    ("stack", "health", "setup"),
    [
        ("laptop_open", "green", "green"),
        ("btrfs", "red", "yellow"),
        ("hba", "red", "green"),
        ("laptop_off", "green", "red"),
        ("full", "green", "red"),
        ("guest", "grey", "green"),
    ],
)
def test_health_and_setup_follow_the_doctor(
    make_checkup: MakeCheckup, stack: str, health: str, setup: str
) -> None:
    checkup = make_checkup(stack=stack)
    assert light(checkup, "health").colour == health
    assert light(checkup, "setup").colour == setup


def test_health_that_takes_root_names_the_command(make_checkup: MakeCheckup) -> None:
    one = light(make_checkup(stack="laptop_as_user", as_root=False), "health")
    assert one.says == "Not measured: it takes root."
    assert one.next == "sudo ssdlab doctor /mnt/data"


def test_a_part_that_failed_is_red_and_one_that_did_not_run_says_why(
    make_checkup: MakeCheckup,
) -> None:
    checkup = make_checkup(
        failed={"aging": "/mnt/data: EIO while reading"},
        why_not={"cache": "only 3 MiB may be used"},
    )
    aged, lasting = light(checkup, "ageing"), light(checkup, "lasting")
    assert (aged.colour, aged.says) == ("red", "The drive failed: /mnt/data: EIO while reading.")
    assert (lasting.colour, lasting.says) == ("grey", "Not measured: only 3 MiB may be used.")


def test_the_worst_light_is_first_and_gives_the_verdict(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    checkup = make_checkup(
        suite(run_of, read_us=100, sequential_mb=3000),
        run_of("fsync", {"class": found("volatile"), "flush_us": found(4000.0)}),
        run_of("aging", {"slowdown": found(3.5, 3.4, 3.6)}),
    )
    found_lights = lights(checkup)
    order = [one.colour for one in found_lights]
    assert order == sorted(order, key=["red", "yellow", "green", "grey"].index)
    sentence = verdict(found_lights)
    assert sentence.startswith(
        f"Not all right (1 red, 1 yellow, {order.count('green')} green). "
        "After random writes: A file that was overwritten at random takes 3.5"
    )
    assert "Not measured: Long writes, Your files." in sentence
    harmless = [one for one in found_lights if one.colour != "red"]
    assert verdict(harmless).startswith("No fault found, but one thing to note (1 yellow, ")
    assert verdict([harmless[0], *harmless]).startswith("No fault found, but 2 things to note (2 ")


def test_a_checkup_without_a_problem_says_so(make_checkup: MakeCheckup, run_of: RunOf) -> None:
    checkup = make_checkup(suite(run_of, read_us=100, sequential_mb=3000))
    found_lights = lights(checkup)
    assert verdict(found_lights).startswith("No problem found. Not measured: Durable writes, ")
    measured = [one for one in found_lights if one.colour == "green"]
    assert verdict(measured) == "All right: nothing needs to be done."


def test_a_twin_has_the_lights_of_the_experiments_only(make_checkup: MakeCheckup) -> None:
    checkup = make_checkup(stack="", virtual=True, target="twin:toshiba-xg5")
    assert {one.code for one in lights(checkup)} == {
        *("speed", "durable", "lasting", "ageing", "trim")
    }


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ((), "there is no file of 8 MiB or more to read."),
        ((File("/a", 5, not_read="it is smaller"),), "there is no file of 8 MiB or more to read."),
        ((File("/a", 5), File("/b", 9 << 20, not_read="EIO")), "of /b: EIO."),
    ],
)
def test_files_that_were_not_read_say_why(
    make_checkup: MakeCheckup, files: tuple[File, ...], why: str
) -> None:
    checkup = make_checkup()
    assert checkup.doctor is not None
    stack = msgspec.structs.replace(checkup.doctor.stack, files=files)
    doctor = msgspec.structs.replace(checkup.doctor, stack=stack)
    one = light(replace(checkup, doctor=doctor), "files")
    assert (one.colour, one.says) == ("grey", f"Not measured: {why}")


def test_smaller_test_files_are_named_if_they_were_used(
    make_checkup: MakeCheckup, run_of: RunOf
) -> None:
    sizes = {"suite": 128 << 20, "aging": 64 << 20, "cache": 64 << 20}
    run = run_of("aging", {"slowdown": found(1.0, 0.9, 1.1)})
    notes = content_of(make_checkup(run, sizes=sizes, room_bytes=64 << 20)).notes
    (note,) = [note for note in notes if note.startswith("Smaller test files")]
    assert "(aging 64 MiB instead of 512 MiB)" in note
