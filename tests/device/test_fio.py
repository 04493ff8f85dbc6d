"""fio job files: what is parsed, what is refused, and what is written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdlab.device import (
    Aligned,
    Compressible,
    Extents,
    FioJob,
    FlushEvery,
    Job,
    Rate,
    RealOptions,
    Strided,
    Zipf,
    open_engine,
    parse_fio,
    run_job,
    to_fio,
)
from ssdlab.errors import UsageError

KIB, MIB = 1 << 10, 1 << 20
DIRECT = "direct=1\nsize=1m\n"


def _one(options: str) -> FioJob:
    [job] = parse_fio(f"[job]\n{options}")
    return job


def _any(*strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(strategies)


@st.composite
def _jobs(draw: st.DrawFn) -> Job:
    """Jobs that fio supports."""
    block = draw(st.sampled_from([512, 4096, 65536]))
    percent = draw(st.integers(1, 99))
    mix = draw(st.sampled_from([(), ((block, float(percent)), (4 * block, 100.0 - percent))]))
    threads = draw(st.integers(1, 5))
    length = draw(st.integers(1, 1000)) * 4 * block * threads
    random: st.SearchStrategy[Any] = st.sampled_from(
        ["random", Zipf(draw(st.floats(0.01, 0.99))), Aligned(2 * block)]
    )
    ordered: st.SearchStrategy[Any] = st.sampled_from(
        ["sequential"] if mix else ["sequential", "random_once"]
    )
    pattern = draw(random | ordered)
    share = 0.0 if pattern == "sequential" else draw(st.integers(0, 100)) / 100
    seconds = draw(st.none() | st.integers(1, 10**10).map(lambda us: us / 1e6))
    amounts = st.integers(1, 10**6).map(lambda blocks: blocks * 4 * block * threads)
    rates = st.builds(
        Rate, st.sampled_from([1.0, 250.0, 1000.0]).map(lambda r: r * threads), st.booleans()
    )
    flushes = st.builds(FlushEvery, st.integers(1, 99))
    return Job(
        op="write" if share else draw(st.sampled_from(["read", "write", "trim"])),
        read_share=share,
        pattern=pattern,
        offset_bytes=draw(st.integers(0, 1 << 30)) * 512,
        length_bytes=length,
        block_bytes=0 if mix else block,
        block_mix=mix,
        amount_bytes=draw(amounts if seconds is None else st.just(0) | amounts),
        seconds=seconds,
        arrival="closed" if mix or share else draw(_any(st.just("closed"), rates)),
        queue_depth=draw(st.integers(1, 1024)),
        sync=draw(_any(st.just("none"), flushes)),
        threads=threads,
        seed=draw(st.integers(0, (1 << 63) - 1)),
        interval_us=1000 * draw(st.integers(1, 1000)),
    )


@st.composite
def _steps(draw: st.DrawFn) -> FioJob:
    job = draw(_jobs())
    percent = st.integers(1, 99).map(lambda percent: percent / 100)
    flushes: st.SearchStrategy[Any] = st.sampled_from(
        ["fsync", "fdatasync"] if job.sync != "none" else ["fsync"]
    )
    shares = st.builds(Compressible, percent)
    options = RealOptions(
        direct=draw(st.booleans()),
        writable=job.op != "read",
        queue_depth=job.queue_depth,
        request_bytes_max=max([size for size, _ in job.block_mix] or [job.block_bytes]),
        registered_buffers=draw(st.booleans()),
        dsync=draw(st.booleans()),
        flush=draw(flushes),
        content=draw(_any(st.sampled_from(["incompressible", "zeros"]), shares)),
        seed=job.seed,
    )
    names = st.sampled_from(["job", "a job = 1", "4k"])
    files = st.sampled_from([None, "/dev/null", "/a:b/c d", "f=1"])
    return FioJob(draw(names), job, options, "io_uring", draw(files), draw(st.booleans()))


@given(_steps())
def test_a_written_job_file_parses_to_the_same_job(step: FioJob) -> None:
    assert parse_fio(to_fio(step)) == [step]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@settings(max_examples=25, deadline=None)
@given(step=_steps())
def test_fio_accepts_a_written_job_file(
    tmp_path_factory: pytest.TempPathFactory, step: FioJob
) -> None:
    path = tmp_path_factory.mktemp("fio") / "job.fio"
    path.write_text(to_fio(msgspec.structs.replace(step, filename="/dev/null")))
    done = subprocess.run(
        ["fio", "--parse-only", path], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), path.read_text()


def test_each_job_of_a_file_gets_the_options_of_its_global_section() -> None:
    first, second = parse_fio(
        "; a comment\n[global]\nioengine=io_uring\ndirect=1\nbs=4k # four\nsize=1g\n"
        "group_reporting\n\n[fill]\nrw=write\nbs=1M\n[reads]\nstonewall\nrw=randrw\nrwmixwrite=30\n"
        "iodepth = 32\nruntime=1m\ntime_based\nfilename=/dev/sdb\n"
    )
    fill = Job(op="write", length_bytes=1 << 30, amount_bytes=1 << 30, block_bytes=MIB)
    assert (first.name, first.job, first.stonewall) == ("fill", fill, False)
    assert first.options.request_bytes_max == MIB
    assert second.job == Job(
        op="write",
        read_share=0.7,
        pattern="random_once",
        length_bytes=1 << 30,
        block_bytes=4096,
        seconds=60.0,
        queue_depth=32,
    )
    assert (second.filename, second.stonewall, second.engine) == ("/dev/sdb", True, "io_uring")


def test_random_blocks_come_once_unless_norandommap_or_blockalign_says_otherwise() -> None:
    assert _one(f"{DIRECT}rw=randread").job.pattern == "random_once"
    assert _one(f"{DIRECT}rw=randread\nnorandommap").job.pattern == "random"
    assert _one(f"{DIRECT}rw=randread\nblockalign=4k").job.pattern == "random_once"
    assert _one(f"{DIRECT}rw=randread\nblockalign=512").job.pattern == Aligned(512)
    zipf = _one(f"{DIRECT}rw=randread\nrandom_distribution=zipf:1.2").job.pattern
    assert zipf == Zipf(1.2)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("4k", 4096), ("4KB", 4096), ("4kib", 4000), ("8192b", 8192), ("1M", MIB)],
)
def test_sizes_have_fios_units(text: str, size: int) -> None:
    assert _one(f"direct=1\nsize=512000000\nbs={text}\nsize={125 * size}").job.block_bytes == size


def test_numjobs_multiplies_amount_and_rate_and_each_job_has_its_part() -> None:
    job = _one(f"{DIRECT}numjobs=4\noffset_increment=1m\nrate_iops=100").job
    assert (job.length_bytes, job.amount_bytes, job.threads) == (4 * MIB, 4 * MIB, 4)
    assert job.arrival == Rate(400.0)
    job = _one(f"{DIRECT}rw=randread\nnorandommap\nnumjobs=4\nrate=40k").job
    assert (job.length_bytes, job.amount_bytes, job.arrival) == (MIB, 4 * MIB, Rate(40.0))


def test_a_strided_job_goes_once_through_the_region() -> None:
    strides = f"{DIRECT}zonemode=strided\nzonesize=4k\nzonerange=4k\nzoneskip=60k\n"
    step = _one(f"{strides}io_size=64k")
    assert step.job.pattern == Strided(64 * KIB)
    assert parse_fio(to_fio(step)) == [step]
    with pytest.raises(UsageError, match="io_size is 68k; it must be up to 65536"):
        _one(f"{strides}io_size=68k")


def test_a_seed_is_fresh_only_if_fio_would_use_a_new_one_in_each_run() -> None:
    assert _one(f"{DIRECT}randrepeat=0").fresh_seed
    assert not _one(DIRECT).fresh_seed
    step = _one(f"{DIRECT}randrepeat=0\nrandseed=7")
    assert (step.fresh_seed, step.job.seed) == (False, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"{DIRECT}thinktime=10", "thinktime is 10; it must be left out"),
        (f"{DIRECT}iodeph=4", "no option iodeph; did you mean iodepth?"),
        (f"{DIRECT}blocksiz=4k", "no option blocksiz; did you mean blocksize?"),
        ("direct=1\nsize=50%", "size is 50%; it must be in bytes: a percentage"),
        ("direct=1\n", "size is left out; it must be given: a test file"),
        (f"{DIRECT}size=4000", "size is 4000; it must be at least the longest block, 4096"),
        (f"{DIRECT}rw=rw", "rw is rw; it must be read write"),
        (f"{DIRECT}rw=read:8", "rw is read:8"),
        (f"{DIRECT}rw=randrw\nbs=4k,8k", "bs is 4k,8k; it must be the same for reads and writes"),
        (f"{DIRECT}bs=4ki", "bs is 4ki"),
        (f"{DIRECT}bsrange=4k-64k", "bsrange is 4k-64k; it must be one size twice"),
        (f"{DIRECT}ioengine=mmap", "ioengine is mmap; it must be psync or io_uring"),
        (f"{DIRECT}fixedbufs=1", "fixedbufs is 1; it must be given with ioengine=io_uring"),
        (f"{DIRECT}sync=2", "sync is 2; it must be none or 0 or dsync"),
        (f"{DIRECT}numjobs=2\noffset_increment=64k", "offset_increment is 64k; it must be equal"),
        (
            f"{DIRECT}time_based",
            "time_based is given|it must be given with runtime",
        ),
        (f"{DIRECT}runtime=5x", "runtime is 5x"),
        (f"{DIRECT}zonemode=zbd", "zonemode is zbd; it must be none or strided"),
        (
            f"{DIRECT}rw=randread\nrandom_distribution=pareto:0.2",
            "pareto:0.2; it must be",
        ),
        (f"{DIRECT}bssplit=4k/50:8k/20", "bssplit is 4k/50:8k/20"),
        (f"{DIRECT}rw=randrw\nrate_iops=10", "rate_iops is 10; it must be left out"),
        (f"{DIRECT}rate_iops=300000\nrate_process=poisson", "a divisor of 1000000"),
        (f"{DIRECT}verify=md5", "verify is md5; it must be left out"),
        (f"{DIRECT}nrfiles=4", "nrfiles is 4; it must be 1 for sequential access"),
        (f"{DIRECT}kb_base=1000", "kb_base is 1000; it must be 1024"),
        (f"{DIRECT}filename=a:b", "filename is a:b; it must be one file"),
        (f"{DIRECT}filename=$jobname", "must be without"),
        (f"{DIRECT}runtime=${{SSDLAB_NO_SUCH}}", "the variable SSDLAB_NO_SUCH is not set"),
    ],
)
def test_an_unsupported_option_is_refused_by_name_in_one_line(options: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        _one(options)
    assert "\n" not in str(refused.value)
    assert "fio job 'job'" in str(refused.value)


def test_all_problems_of_a_job_file_are_named_at_once_and_those_of_global_once() -> None:
    text = (
        "[global]\ndirect=1\nsize=1m\nthinktime=5\nioengine=mmap\n[a]\nrw=rw\nruntime=5x\n"
        "[b]\nrw=read\n[a]\nstonewall\nrate_iops=0\n"
    )
    with pytest.raises(UsageError) as refused:
        parse_fio(text)
    message = str(refused.value)
    assert message.startswith("7 problems: (1) ")
    assert "\n" not in message
    for problem in (
        "'global': thinktime is 5",
        "'a': ioengine is mmap",
        "'a': rw is rw",
        "'a': runtime is 5x",
        "'b': stonewall is left out",
        "two jobs are called [a]",
        "'a': rate_iops is 0",
    ):
        assert message.count(problem) == 1, problem


@pytest.mark.parametrize(
    ("engine", "own"),
    [("libaio", "io_uring"), ("posixaio", "io_uring"), ("sync", "sync"), ("pvsync2", "sync")],
)
def test_other_engines_run_by_the_own_one_with_a_note(engine: str, own: str) -> None:
    step = _one(f"{DIRECT}ioengine={engine}\niodepth=8")
    assert step.engine == own
    assert step.notes[0].startswith(f"ioengine={engine}: ")
    assert step.job.queue_depth == (8 if own == "io_uring" else 1)
    assert any("iodepth has no effect" in note for note in step.notes) == (own == "sync")


def test_sizes_are_shares_of_a_device_and_all_of_it_without_a_size() -> None:
    def on_device(options: str) -> Job:
        [step] = parse_fio(f"[job]\ndirect=1\nbs=1m\n{options}", 100 * MIB + 4096)
        return step.job

    assert on_device("").length_bytes == 100 * MIB
    assert on_device("size=100%").amount_bytes == 100 * MIB
    assert on_device("size=25%").length_bytes == 25 * MIB
    half = on_device("offset=50%\nio_size=200%".replace("200", "50"))
    assert (half.offset_bytes, half.length_bytes, half.amount_bytes) == (
        50 * MIB,
        50 * MIB,
        25 * MIB,
    )
    assert on_device("filesize=10m").length_bytes == 10 * MIB
    assert _one("direct=1\nsize=10000").job.length_bytes == 8192


def test_time_based_ramp_and_loops_become_times_and_amounts() -> None:
    step = _one(f"{DIRECT}runtime=5\ntime_based\nramp_time=2s\nend_fsync=1")
    assert (step.job.amount_bytes, step.job.seconds) == (0, 5.0)
    assert (step.ramp_s, step.flushes_at_end) == (2.0, True)
    assert _one(f"{DIRECT}loops=3").job.amount_bytes == 3 * MIB
    assert parse_fio(to_fio(step)) == [step]


def test_several_threads_have_their_own_files_or_share_one() -> None:
    own = _one(f"{DIRECT}numjobs=4").job
    assert (own.length_bytes, own.amount_bytes, own.pattern) == (4 * MIB, 4 * MIB, "sequential")
    shared = _one(f"{DIRECT}numjobs=4\nfilename=x")
    assert (shared.job.length_bytes, shared.job.amount_bytes) == (MIB, 4 * MIB)
    assert "each thread goes through a part" in shared.notes[0]
    random = _one(f"{DIRECT}rw=randread\nnumjobs=4\nfilename=x").job
    assert (random.length_bytes, random.pattern) == (MIB, "random")


def test_options_as_people_write_them_change_no_request() -> None:
    plain = _one(f"{DIRECT}rw=randwrite\nioengine=io_uring")
    text = (
        f"{DIRECT}rw=randwrite\nioengine=io_uring\nname=other\ngroup_reporting\nthread=1\n"
        "write_bw_log=x\nlat_percentiles=1\ndirectory=/tmp\noverwrite=1\nfallocate=none\n"
        "verify=0\nbs=8k,4k\nkb_base=1024\nramp_time=0\nbuffer_compress_percentage=0\n"
    )
    assert msgspec.structs.replace(_one(text), name="job") == plain
    noted = _one(f"{text}cpus_allowed=1\nrandseed=5\nsync=1\n")
    assert noted.job == plain.job
    assert noted.options.dsync
    assert len(noted.notes) == 3


def test_variables_come_from_the_environment() -> None:
    [step] = parse_fio("[a]\ndirect=1\nsize=${SIZE}m", environment={"SIZE": "4"})
    assert step.job.length_bytes == 4 * MIB


def test_the_cache_is_emptied_unless_direct_or_invalidate_says_otherwise() -> None:
    assert _one("size=1m").invalidates
    assert not _one("size=1m\ninvalidate=0").invalidates
    assert not _one(DIRECT).invalidates


def test_a_file_without_jobs_and_a_line_before_the_first_section_are_refused() -> None:
    with pytest.raises(UsageError, match="it has no job"):
        parse_fio("[global]\nbs=4k\n")
    with pytest.raises(UsageError, match="'bs=4k' is before"):
        parse_fio("bs=4k\n[job]\n")


PLAIN = Job(op="write", length_bytes=MIB, amount_bytes=MIB, block_bytes=4096)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"op": "flush"}, "op is flush"),
        ({"trim_share": 0.5}, "op is write"),
        ({"read_share": 0.5}, "read_share is 0.5; it must be 0 for a pattern in order"),
        ({"read_share": 1 / 3, "pattern": "random"}, "read_share is 0.333"),
        ({"pattern": Extents(((0, MIB),))}, "pattern is extents"),
        ({"pattern": Strided(8192)}, "io_size is left out; it must be up to 524288"),
        ({"pattern": Strided(8192, 512), "amount_bytes": 4096}, "pattern is Strided"),
        ({"sync": "durable"}, "sync is durable"),
        ({"hint": "append"}, "hint is given; it must be none"),
        ({"threads": 3}, "length_bytes is 1048576; it must be a multiple of threads, 3"),
        ({"arrival": Rate(0.5)}, "per_s is 0.5"),
        ({"seconds": 1e-7}, "runtime is 0us"),
        ({"seconds": 1 / 3}, "seconds is 0.333"),
        ({"block_bytes": 0, "block_mix": ((512, 1.0), (1024, 2.0))}, "block_mix is"),
    ],
)
def test_a_job_that_fio_does_not_support_is_refused_by_field(
    change: dict[str, object], message: str
) -> None:
    job = msgspec.structs.replace(PLAIN, **change)
    with pytest.raises(UsageError, match=message):
        to_fio(FioJob("job", job, RealOptions(), "io_uring"))


def test_weights_are_written_as_percents() -> None:
    job = msgspec.structs.replace(PLAIN, block_bytes=0, block_mix=((4096, 1.0), (8192, 1.0)))
    text = to_fio(FioJob("job", job, RealOptions()))
    assert "bssplit=4096/50:8192/50\n" in text


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(
    "change",
    [
        {"pattern": "random_once", "amount_bytes": 2 * MIB},
        {"pattern": "random", "threads": 2, "queue_depth": 8},
        {"threads": 4, "amount_bytes": MIB // 2, "offset_bytes": MIB},
        {"pattern": Strided(65536), "amount_bytes": 65536},
        {"pattern": "random", "read_share": 0.5, "sync": FlushEvery(4)},
    ],
)
def test_fio_does_the_same_requests_and_bytes_as_ssdlab(
    drive_directory: Path, change: dict[str, object]
) -> None:
    path = drive_directory / "file"
    path.write_bytes(bytes(2 * MIB))
    job = msgspec.structs.replace(PLAIN, **change)
    step = FioJob("job", job, RealOptions(), "io_uring", str(path))
    ours = run_job(open_engine(path, step.options), job)
    (drive_directory / "job.fio").write_text(to_fio(step))
    command = ["fio", "--output-format=json", str(drive_directory / "job.fio")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    [by_fio] = msgspec.json.decode(done.stdout)["jobs"]
    assert by_fio["read"]["io_bytes"] + by_fio["write"]["io_bytes"] == ours.bytes
    requests = by_fio["read"]["total_ios"] + by_fio["write"]["total_ios"]
    assert requests == ours.bytes // job.block_bytes


def test_a_parsed_job_runs(drive_directory: Path) -> None:
    path = drive_directory / "file"
    path.write_bytes(bytes(MIB))
    step = _one(f"{DIRECT}rw=randrw\nioengine=io_uring\niodepth=4\nfsync=8")
    outcome = run_job(open_engine(path, step.options, step.engine), step.job)
    assert (outcome.bytes, outcome.errors) == (MIB, 0)
