"""Jobs on a twin and on a real file: the same tests for both."""

from __future__ import annotations

import contextlib
import os
import signal
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.device import Drive, Job, Outcome, describe_twin, open_real, open_twin, run_job
from ssdlab.errors import DeviceFailure, TargetError, UsageError

MIB = 1 << 20
SIZE = 8 * MIB
ENDLESS = 1 << 44
"""More bytes than a drive reads during a test."""


def _twin() -> Drive:
    return open_twin("toshiba-xg5", profiles.load("toshiba-xg5"), 256 * MIB)


@pytest.fixture
def real_file(drive_directory: Path) -> Path:
    """A file of SIZE zeros on a drive."""
    path = drive_directory / "file"
    path.write_bytes(bytes(SIZE))
    return path


@pytest.fixture(params=["twin", "file"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """A twin, and a real file."""
    if request.param == "twin":
        return _twin()
    return open_real(request.getfixturevalue("real_file"))


def _whole(op: str, **more: object) -> Job:
    values = {"length_bytes": SIZE, "block_bytes": MIB, "amount_bytes": SIZE, **more}
    return Job(op=op, **values)  # type: ignore[arg-type]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """`alarm(seconds)` raises KeyboardInterrupt after that time."""
    before = signal.signal(signal.SIGALRM, _interrupt)

    def start(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("queue_depth", [1, 7, 64])
@pytest.mark.parametrize("pattern", ["sequential", "random", "random_once"])
def test_a_job_completes_all_requests_and_counts_each_once(
    drive: Drive, pattern: str, queue_depth: int
) -> None:
    for op in ("write", "read"):
        job = _whole(op, pattern=pattern, queue_depth=queue_depth, block_bytes=65536)
        outcome = run_job(drive, job)
        assert (outcome.requests, outcome.bytes) == (128, SIZE)
        assert (outcome.errors, outcome.first_errno, outcome.stopped) == (0, None, False)
        assert outcome.latency["count"].sum() == 128
        assert outcome.intervals["requests"].sum() == 128
        assert outcome.intervals["bytes"].sum() == SIZE


def test_times_are_by_the_drives_clock_and_consistent(drive: Drive) -> None:
    before = drive.now_ns()
    outcome = run_job(drive, _whole("read", interval_us=1_000))
    assert before <= outcome.start_ns < outcome.end_ns <= drive.now_ns()
    assert outcome.seconds == (outcome.end_ns - outcome.start_ns) / 1e9
    starts = outcome.intervals["start_ns"].astype(np.int64)
    assert ((starts - outcome.start_ns) % 1_000_000 == 0).all()
    assert (np.diff(starts) > 0).all()
    longest = outcome.intervals["latency_ns_max"].max()
    assert outcome.latency["latency_ns"].max() >= longest
    assert longest <= outcome.end_ns - outcome.start_ns


def test_columns_are_uint64_and_have_equal_length(drive: Drive) -> None:
    outcome = run_job(drive, _whole("read"))
    for columns in (outcome.intervals, outcome.latency):
        assert {column.dtype for column in columns.values()} == {np.dtype(np.uint64)}
        assert len({len(column) for column in columns.values()}) == 1


def test_an_amount_larger_than_the_region_wraps_around(drive: Drive) -> None:
    outcome = run_job(drive, _whole("read", amount_bytes=3 * SIZE))
    assert (outcome.bytes, outcome.errors) == (3 * SIZE, 0)


def test_a_flush_is_one_request_without_bytes(drive: Drive) -> None:
    run_job(drive, _whole("write"))
    outcome = run_job(drive, Job(op="flush"))
    assert (outcome.requests, outcome.bytes, outcome.errors) == (1, 0, 0)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("block_bytes", {"block_bytes": 0}),
        ("block_bytes", {"block_bytes": 1000}),
        ("length_bytes", {"length_bytes": 1 << 50}),
        ("length_bytes", {"length_bytes": 4096}),
        ("offset_bytes", {"offset_bytes": 77}),
        ("amount_bytes", {"amount_bytes": 0}),
        ("queue_depth", {"queue_depth": 0}),
        ("queue_depth", {"queue_depth": 1 << 20}),
        ("interval_us", {"interval_us": 0}),
    ],
)
def test_a_job_that_does_not_fit_is_a_usage_error_with_the_field(
    drive: Drive, field: str, change: dict[str, int]
) -> None:
    with pytest.raises(UsageError, match=f"job: {field} is .*; may be ") as raised:
        run_job(drive, _whole("read", **change))
    assert not isinstance(raised.value, TargetError)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"op": "erase"}', '{"op": "read", "what": 1}'])
def test_a_text_that_is_not_a_job_is_a_usage_error(drive: Drive, text: str) -> None:
    with pytest.raises(UsageError, match="job: "):
        drive.run(text)


def test_progress_is_reported_up_to_the_end(drive: Drive) -> None:
    reports: list[tuple[int, int, int]] = []
    run_job(drive, _whole("read"), lambda *progress: reports.append(progress))
    assert reports[-1][:2] == (8, 8)
    assert [done for done, _, _ in reports] == sorted(done for done, _, _ in reports)
    assert reports[-1][2] <= drive.now_ns()


def _require_stopped(outcome: Outcome) -> None:
    assert outcome.stopped
    assert 0 < outcome.bytes < ENDLESS
    assert outcome.latency["count"].sum() == outcome.requests


def test_ctrl_c_ends_a_job_and_keeps_the_measurements(
    drive: Drive, alarm: Callable[[float], None]
) -> None:
    _require_stopped(_interrupted_job(drive, alarm))
    assert not run_job(drive, _whole("read")).stopped


def _interrupted_job(drive: Drive, alarm: Callable[[float], None]) -> Outcome:
    """A job interrupted after its first request; the time until then varies, hence the retries."""
    for seconds in (0.2, 2, 20, 200):
        alarm(seconds)
        with contextlib.suppress(KeyboardInterrupt):  # raised before the job had begun
            outcome = run_job(drive, _whole("read", amount_bytes=ENDLESS))
            if outcome.bytes:
                return outcome
    pytest.fail("no job was ended by Ctrl-C")


def test_ctrl_c_inside_the_progress_callback_ends_a_job(drive: Drive) -> None:
    def on_progress(_done: int, _total: int, _now_ns: int) -> None:
        signal.raise_signal(signal.SIGINT)

    _require_stopped(run_job(drive, _whole("read", amount_bytes=ENDLESS), on_progress))


def test_an_exception_of_the_progress_callback_is_raised_and_the_drive_still_works(
    drive: Drive,
) -> None:
    class OddError(Exception):
        pass

    def on_progress(_done: int, _total: int, _now_ns: int) -> None:
        raise OddError

    with pytest.raises(OddError):
        run_job(drive, _whole("read", amount_bytes=ENDLESS), on_progress)
    with pytest.raises(OddError):
        drive.rest(1e5, on_progress)
    assert run_job(drive, _whole("read")).bytes == SIZE


def test_a_rest_advances_the_drives_clock(drive: Drive) -> None:
    before = drive.now_ns()
    assert drive.rest(0.02)
    assert drive.now_ns() - before >= 20_000_000
    assert drive.rest(0)


def test_ctrl_c_ends_a_rest(drive: Drive) -> None:
    def on_progress(_done: int, _total: int, _now_ns: int) -> None:
        signal.raise_signal(signal.SIGINT)

    assert drive.rest(1e9, on_progress) is False


def test_random_once_visits_every_block_and_random_does_not(real_file: Path) -> None:
    def blocks_written(pattern: str) -> int:
        real_file.write_bytes(bytes(SIZE))
        run_job(open_real(real_file), _whole("write", pattern=pattern, block_bytes=4096, seed=3))
        content = np.frombuffer(real_file.read_bytes(), dtype=np.uint8).reshape(-1, 4096)
        return int(content.any(axis=1).sum())

    assert blocks_written("random_once") == SIZE // 4096
    assert blocks_written("random") < SIZE // 4096


def test_the_seed_determines_which_blocks_are_written(real_file: Path) -> None:
    def blocks_written(seed: int) -> bytes:
        real_file.write_bytes(bytes(SIZE))
        job = _whole("write", pattern="random_once", block_bytes=4096, amount_bytes=MIB, seed=seed)
        run_job(open_real(real_file), job)
        content = np.frombuffer(real_file.read_bytes(), dtype=np.uint8).reshape(-1, 4096)
        return content.any(axis=1).tobytes()

    assert blocks_written(1) == blocks_written(1)
    assert blocks_written(1) != blocks_written(2)


def test_written_data_is_incompressible_and_no_block_repeats(real_file: Path) -> None:
    run_job(open_real(real_file), _whole("write"))
    content = real_file.read_bytes()
    assert len(zlib.compress(content, 1)) >= SIZE
    assert len({content[at : at + 4096] for at in range(0, SIZE, 4096)}) == SIZE // 4096


def test_a_job_stays_within_its_region(real_file: Path) -> None:
    job = _whole("write", offset_bytes=MIB, length_bytes=2 * MIB, pattern="random")
    run_job(open_real(real_file), job)
    content = real_file.read_bytes()
    assert not any(content[:MIB])
    assert not any(content[3 * MIB :])


def test_a_failed_request_is_counted_and_raised_as_a_device_failure(real_file: Path) -> None:
    drive = open_real(real_file)
    os.truncate(real_file, 4 * MIB)
    outcome = run_job(drive, _whole("read"))
    assert outcome.errors > 0
    assert outcome.first_errno is not None
    assert outcome.bytes <= 4 * MIB
    with pytest.raises(DeviceFailure, match="reading: a request failed") as raised:
        outcome.raise_if_failed("reading")
    assert os.strerror(outcome.first_errno) in str(raised.value)
    run_job(_twin(), _whole("read")).raise_if_failed("reading")


def test_a_path_that_cannot_be_opened_is_a_target_error_with_the_reason(
    drive_directory: Path, make_filesystem: Callable[..., Path]
) -> None:
    (drive_directory / "empty").write_bytes(b"")
    in_memory = make_filesystem("ramfs", 1) / "file"
    in_memory.write_bytes(bytes(8192))
    for path, reason in (
        (drive_directory / "none", "does not exist"),
        (drive_directory, "is a directory"),
        (drive_directory / "empty", "holds 0 bytes"),
        (in_memory, "refuses direct I/O"),
        (Path("/dev/null"), "only a regular file or a block device"),
    ):
        with pytest.raises(TargetError, match=reason) as raised:
            open_real(path)
        assert str(path) in str(raised.value)


def test_an_invalid_profile_is_a_target_error_with_profile_and_key() -> None:
    text = profiles.load("toshiba-xg5").replace("planes =", "plains =")
    for make in (open_twin, describe_twin):
        with pytest.raises(TargetError, match=r"^mine: flash\.plains.*did you mean planes"):
            make("mine", text)


@pytest.mark.parametrize("capacity", [0, -1, 4096, 1 << 63, 1 << 200])
def test_an_impossible_capacity_is_a_target_error_with_the_capacity(capacity: int) -> None:
    for make in (open_twin, describe_twin):
        with pytest.raises(TargetError, match=r"^toshiba-xg5 scaled to "):
            make("toshiba-xg5", profiles.load("toshiba-xg5"), capacity)


def test_a_twin_repeats_its_times_with_the_same_seed_only() -> None:
    def times(seed: int) -> list[int]:
        drive = _twin()
        run_job(drive, _whole("write"))
        job = _whole("write", pattern="random", block_bytes=4096, amount_bytes=4 * MIB, seed=seed)
        run_job(drive, job)
        return [run_job(drive, _whole("read")).end_ns for _ in range(3)]

    assert times(1) == times(1)
    assert times(1) != times(2)
