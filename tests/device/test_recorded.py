"""What is done to twins is recorded completely: repeated on new ones, it gives the same."""

from __future__ import annotations

from ssdlab import profiles
from ssdlab.device import Drive, Job, RecordedJob, RecordedRest, open_twin, record_twins, run_job

MIB = 1 << 20
NAME = "toshiba-xg5"


def _open(seed: int = 3) -> Drive:
    return open_twin(NAME, profiles.load(NAME), 128 * MIB, seed=seed)


def _use(drive: Drive) -> None:
    size = 64 * MIB
    run_job(drive, Job(op="write", length_bytes=size, block_bytes=MIB, amount_bytes=size))
    drive.rest(0.1)
    job = Job(op="write", pattern="random", length_bytes=size, block_bytes=4096, amount_bytes=MIB)
    run_job(drive, job)
    run_job(drive.writing_zeros(), job)


def test_a_record_repeats_what_was_done() -> None:
    with record_twins() as records:
        _use(_open())
    [record] = records
    assert (record.capacity_bytes, record.seed) == (128 * MIB, 3)
    again = open_twin(NAME, record.profile, record.capacity_bytes, seed=record.seed)
    zeros = again.writing_zeros()
    for step in record.steps:
        if isinstance(step, RecordedRest):
            again.rest(step.seconds)
        else:
            fields = (zeros if step.zeros else again).run(step.job)
            assert (fields["start_ns"], fields["end_ns"]) == (step.start_ns, step.end_ns)
            assert fields["requests"] == step.requests
    assert again.counters() == record.counters()
    jobs = [step for step in record.steps if isinstance(step, RecordedJob)]
    assert [job.zeros for job in jobs] == [False, False, True]
    kinds = [type(step) for step in record.steps]
    assert kinds == [RecordedJob, RecordedRest, RecordedJob, RecordedJob]


def test_each_twin_has_a_record_of_its_own() -> None:
    with record_twins() as records:
        _use(_open(1))
        _open(2)
    assert [(record.seed, len(record.steps)) for record in records] == [(1, 4), (2, 0)]


def test_without_recording_a_twin_is_the_native_one() -> None:
    with record_twins() as records:
        pass
    assert isinstance(_open(), Drive)
    assert records == []
