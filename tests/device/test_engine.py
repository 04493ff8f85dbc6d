"""The measuring engine from Python: patterns, arrivals, engines, and recorded columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.device import (
    OPS,
    Aligned,
    Compressible,
    Dedupable,
    Drive,
    Extents,
    FlushEvery,
    HostWatch,
    Job,
    Outcome,
    Rate,
    RealOptions,
    Stamped,
    Stream,
    Strided,
    Zipf,
    nop_rate,
    open_engine,
    open_null,
    open_real,
    open_twin,
    run_job,
    verify,
)
from ssdlab.device.jobs import Op
from ssdlab.device.kinds import Arrival, Content, Hint, Pattern, Sync, encode
from ssdlab.errors import TargetError, UsageError
from ssdlab.records import INTERVAL_LATENCY, INTERVALS, Recording, StepRow

MIB = 1 << 20
SIZE = 8 * MIB
NAMES = ("reads", "writes", "trims", "flushes")


@pytest.fixture
def real_file(drive_directory: Path) -> Path:
    """A file of SIZE zeros on a drive."""
    path = drive_directory / "file"
    path.write_bytes(bytes(SIZE))
    return path


@pytest.fixture(params=["twin", "io_uring", "sync"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """A twin, and a real file with each engine."""
    if request.param == "twin":
        return open_twin("toshiba-xg5", profiles.load("toshiba-xg5"), 256 * MIB)
    return open_engine(request.getfixturevalue("real_file"), RealOptions(), request.param)


def _job(op: str, **more: object) -> Job:
    values = {"length_bytes": SIZE, "block_bytes": 4096, "amount_bytes": MIB, **more}
    return Job(op=op, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern",
    [
        Zipf(0.9),
        Strided(65536),
        Strided(65536, 8192),
        Aligned(12288),
        Extents(((MIB, MIB), (0, 65536))),
        Extents(((MIB, MIB), (0, 65536)), random=True),
    ],
)
def test_every_pattern_with_parameters_runs_on_every_drive(drive: Drive, pattern: Pattern) -> None:
    outcome = run_job(drive, _job("write", pattern=pattern))
    assert (outcome.requests, outcome.bytes, outcome.errors) == (256, MIB, 0)


@pytest.mark.parametrize("arrival", ["closed", Rate(4000), Rate(4000, poisson=True)])
@pytest.mark.parametrize("sync", ["none", "durable", FlushEvery(4)])
def test_every_arrival_and_durability_runs_on_every_drive(
    drive: Drive, arrival: Arrival, sync: Sync
) -> None:
    job = _job("write", arrival=arrival, sync=sync, amount_bytes=65536)
    outcome = run_job(drive, job)
    flushes = 4 if isinstance(sync, FlushEvery) else 0
    assert outcome.requests == 16 + flushes
    assert outcome.intervals["flushes"].sum() == flushes
    assert outcome.latency_of("flush")["count"].sum() == flushes


@pytest.mark.parametrize("hint", ["append", "overwrite", Stream(3)])
def test_every_hint_runs_on_every_drive(drive: Drive, hint: Hint) -> None:
    outcome = run_job(drive, _job("write", hint=hint))
    assert (outcome.requests, outcome.errors) == (256, 0)


def test_counts_by_kind_add_up_in_every_table(drive: Drive) -> None:
    mix = ((4096, 3.0), (8192, 1.0))
    job = _job(
        "write", read_share=0.5, trim_share=0.1, block_bytes=0, block_mix=mix, pattern="random"
    )
    outcome = run_job(drive, job)
    rows = outcome.interval_latency
    for number, (op, name) in enumerate(zip(OPS, NAMES, strict=True)):
        counted = int(outcome.intervals[name].sum())
        assert rows["count"][rows["op"] == number].sum() == counted
        assert outcome.latency_of(op)["count"].sum() == counted
    assert outcome.latency["count"].sum() == outcome.requests == outcome.intervals["requests"].sum()
    by_kind = outcome.intervals["read_bytes"].sum() + outcome.intervals["write_bytes"].sum()
    assert 0 < by_kind < outcome.bytes, "trims name bytes too"
    for number, requests in enumerate(outcome.intervals["requests"]):
        assert rows["count"][rows["interval"] == number].sum() == requests


def test_seconds_end_a_job_and_the_last_report_is_complete(drive: Drive) -> None:
    reports: list[tuple[int, int, int]] = []
    job = _job("read", amount_bytes=0, seconds=0.05, pattern="random")
    outcome = run_job(drive, job, lambda *progress: reports.append(progress))
    assert not outcome.stopped
    assert outcome.seconds >= 0.049
    assert reports[-1][0] == reports[-1][1] == outcome.requests


def test_percentiles_match_the_histogram_and_are_none_with_too_few_requests() -> None:
    twin = open_twin("toshiba-xg5", profiles.load("toshiba-xg5"), 256 * MIB)
    job = _job("write", read_share=0.9, amount_bytes=4096 * 12_000, pattern="random")
    outcome = run_job(twin, job)
    cases: tuple[tuple[Op | None, bool], ...] = ((None, True), ("read", False))
    for op, enough in cases:
        columns, result = outcome.latency_of(op), outcome.percentiles_ns(op)
        latency = np.repeat(columns["latency_ns"], columns["count"].astype(int))
        assert (len(latency) >= 11_000) == enough
        assert result.p50 == latency[-(-len(latency) // 2) - 1]
        assert result.p90 == latency[-(-len(latency) * 9 // 10) - 1]
        assert result.p999 == (latency[-(-len(latency) * 999 // 1000) - 1] if enough else None)
        assert result.p9999 is None
    assert outcome.percentiles_ns("trim") == (None,) * 5


def test_an_outcome_has_the_columns_of_the_records(
    drive: Drive, request: pytest.FixtureRequest
) -> None:
    outcome = run_job(drive, _job("read"))
    recording = Recording()
    columns = (outcome.intervals, outcome.latency, outcome.interval_latency)
    recording.add(StepRow({"phase": "read"}, *columns))
    tables = recording.tables()
    for name, schema in (("intervals", INTERVALS), ("interval_latency", INTERVAL_LATENCY)):
        assert tables[name].schema == schema
        known = [column for column in schema.names if column != "flash_write_bytes"]
        assert all(tables[name].column(column).null_count == 0 for column in known)
    written = tables["intervals"].column("flash_write_bytes")
    is_twin = "twin" in request.node.name
    assert written.null_count == (0 if is_twin else len(written)), "a real drive does not say"
    assert sum(tables["interval_latency"]["count"].to_pylist()) == outcome.requests


def _content(path: Path, content: Content) -> bytes:
    drive = open_engine(path, RealOptions(content=content))
    run_job(drive, _job("write", block_bytes=65536, amount_bytes=SIZE, queue_depth=4))
    return path.read_bytes()


def test_content_compresses_and_repeats_as_requested(real_file: Path) -> None:
    assert not any(_content(real_file, "zeros"))
    half = _content(real_file, Compressible(0.5))
    assert len(zlib.compress(half, 1)) / SIZE == pytest.approx(0.5, abs=0.03)
    copies = _content(real_file, Dedupable(0.25))
    blocks = {copies[at : at + 4096] for at in range(0, SIZE, 4096)}
    assert len(blocks) / (SIZE // 4096) == pytest.approx(0.25, abs=0.05)


def test_verify_finds_damage_in_stamped_content(real_file: Path) -> None:
    content = _content(real_file, Stamped(42))
    assert len(zlib.compress(content, 1)) / SIZE > 0.95
    assert verify(real_file, (0, SIZE), 42).good_bytes == SIZE
    with real_file.open("r+b") as file:
        file.seek(3 * MIB + 200)
        file.write(b"damage")
    damaged = verify(real_file, (0, SIZE), 42)
    assert (damaged.good_bytes, damaged.offset) == (3 * MIB, 3 * MIB)
    assert damaged.found is not None
    assert damaged.found[:2] == (3 * MIB, 42)
    foreign = verify(real_file, (MIB, MIB), 43)
    assert (foreign.good_bytes, foreign.offset) == (0, MIB)


def test_threads_share_the_amount_of_a_job(real_file: Path) -> None:
    job = _job("write", threads=3, amount_bytes=SIZE, length_bytes=6 * MIB, queue_depth=4)
    for engine in ("io_uring", "sync"):
        drive = open_engine(real_file, RealOptions(), engine)
        outcome = run_job(drive, job)
        assert outcome.requests == 3 * -(-SIZE // 3 // 4096)
        assert outcome.errors == 0
    twin = open_twin("toshiba-xg5", profiles.load("toshiba-xg5"), 256 * MIB)
    assert run_job(twin, job).requests == 3 * -(-SIZE // 3 // 4096)


@pytest.mark.parametrize(
    ("options", "engine", "named"),
    [
        (RealOptions(registered_buffers=False), "io_uring", "io_uring direct"),
        # Registered automatically if allowed; every system allows this amount.
        (
            RealOptions(queue_depth=1, request_bytes_max=4096),
            "io_uring",
            "io_uring direct registered_buffers",
        ),
        (RealOptions(registered_buffers=True), "io_uring", "io_uring direct registered_buffers"),
        (
            RealOptions(direct=False, registered_buffers=False, dsync=True),
            "io_uring",
            "io_uring buffered dsync",
        ),
        (
            RealOptions(batch=True, registered_buffers=True),
            "io_uring",
            "io_uring direct batch registered_buffers",
        ),
        (RealOptions(batch=True), "sync", "sync direct"),
    ],
)
def test_an_outcome_names_the_engine_and_its_modes(
    real_file: Path, options: RealOptions, engine: str, named: str
) -> None:
    try:
        drive = open_engine(real_file, options, engine)  # type: ignore[arg-type]
    except TargetError as error:
        if os.geteuid() == 0 or "ulimit -l" not in str(error):
            raise
        pytest.skip(f"the limit of locked memory is too low: {error}")
    outcome = run_job(drive, _job("write"))
    assert outcome.engine == named


_WITHOUT_LOCKED_MEMORY = """
import ctypes, resource, sys
from pathlib import Path
from ssdlab.device import Job, RealOptions, open_engine, run_job

libc = ctypes.CDLL(None, use_errno=True)
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert not libc.capget(header, sets)
for place in (0, 1):  # effective and permitted: without CAP_IPC_LOCK
    sets[place] &= ~(1 << 14)
assert not libc.capset(header, sets)
resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
drive = open_engine(Path(sys.argv[1]), RealOptions())
print(run_job(drive, Job("read", length_bytes=4096, block_bytes=4096, amount_bytes=4096)).engine)
try:
    open_engine(Path(sys.argv[1]), RealOptions(registered_buffers=True))
except Exception as error:
    print(error)
"""


def test_without_lockable_memory_buffers_are_not_registered_unless_requested(
    real_file: Path,
) -> None:
    words = [sys.executable, "-c", _WITHOUT_LOCKED_MEMORY, str(real_file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    without, refused = done.stdout.splitlines()
    assert without == "io_uring direct"
    assert "ulimit -l" in refused or "lock" in refused


def test_an_invalid_option_is_an_error_with_its_name(real_file: Path) -> None:
    with pytest.raises(UsageError, match="engine is aio; may be io_uring or sync"):
        open_engine(real_file, RealOptions(), "aio")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"options: .*erase"):
        open_engine(real_file, RealOptions(content="erase"))  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="queue_depth is 0"):
        open_engine(real_file, RealOptions(queue_depth=0))
    with pytest.raises(TargetError, match=r"`to` is 2; allowed is 0 to 1"):
        open_engine(real_file, RealOptions(content=Compressible(2)))
    with pytest.raises(UsageError, match=r"job: block_bytes is 2097152; .* up to 1048576"):
        run_job(open_real(real_file), _job("read", block_bytes=2 * MIB, amount_bytes=SIZE))


def test_a_tagged_union_is_encoded_by_its_tag() -> None:
    text = encode(_job("read", pattern=Zipf(1.5), arrival=Rate(3), sync=FlushEvery(2)))
    assert json.loads(encode(_job("write", hint=Stream(3))))["hint"] == {"stream": {"number": 3}}
    job = json.loads(text)
    assert job["pattern"] == {"zipf": {"theta": 1.5}}
    assert job["arrival"] == {"rate": {"per_s": 3, "poisson": False}}
    assert job["sync"] == {"flush": {"every": 2}}


def test_the_null_device_and_nop_rate_measure_the_cost_of_the_engine() -> None:
    outcome = run_job(open_null(8), _job("read", queue_depth=8, pattern="random"))
    assert (outcome.requests, outcome.engine) == (256, "null")
    assert nop_rate(1000) > 0


def test_the_host_load_is_measured_during_each_job_of_a_real_drive(drive: Drive) -> None:
    watch = HostWatch()
    outcome: Outcome = run_job(drive, _job("read", pattern="random"))
    load = watch.load()
    if drive.is_virtual:
        assert outcome.host is None
        return
    assert outcome.host is not None
    assert 0 < outcome.host.wall_s <= load.wall_s
    assert 0 <= outcome.host.own_cpu_s <= load.own_cpu_s
    assert (outcome.host.foreign_cpu_s or 0) >= 0
    assert (outcome.host.stolen_cpu_s or 0) >= 0
