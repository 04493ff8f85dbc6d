"""A twin as an NVMe drive: log pages, namespaces, LBA status, placement directives."""

from __future__ import annotations

import math
import random

import pytest
from nvme_host import IO_MANAGEMENT_RECEIVE, IO_MANAGEMENT_SEND, Host, number
from rig import Serve, Served, executable, run

PORT = ("--nvme-tcp", "127.0.0.1:0")
UNIT = 4096
WRITE = 64 << 10
WRITES = 5_500
STREAMS = {"ftl": 'placement = "streams"\nstreams = 4'}
FIRST_STREAM = 2 << 20  # directive type 2


def age(host: Host, capacity: int, writes: int) -> None:
    """Writes random units, until the drive collects garbage."""
    order = random.Random(3)
    for turn in range(writes):
        unit = order.randrange((capacity - WRITE) // UNIT)
        assert host.io.write(unit * 8, bytes([turn & 0xFF]) * WRITE) == 0


def test_the_health_logs_agree_with_the_twins_counters(serve: Serve) -> None:
    served = serve(*PORT, more={"flash": "endurance = 20"})
    with Host(served) as host:
        age(host, 256 << 20, WRITES)
        host.io.flush()
        with served.control as control:
            counters = {name: value or 0.0 for name, value in control.counters().items()}
        health, group = host.admin.log(2, 512), host.admin.log(9, 512)
        open_compute = host.admin.log(0xC0, 512)
    assert counters["host_write_bytes"] == WRITES * WRITE
    programmed = round(counters["waf"] * counters["host_write_bytes"])
    assert programmed > counters["host_write_bytes"], "it has collected garbage"
    assert number(health, 48, 16) == math.ceil(counters["host_write_bytes"] / 512_000)
    assert number(health, 80, 16) == WRITES
    assert number(group, 64, 16) == math.ceil(counters["host_write_bytes"] / 1e9)
    assert number(group, 80, 16) == math.ceil(programmed / 1e9)
    assert number(open_compute, 0, 16) == programmed
    assert counters["percentage_used"] >= 1
    assert health[5] == group[5] == int(counters["percentage_used"])
    assert health[3] == int(counters["available_spare_percent"])


def amplification(served: Served, host: Host) -> float:
    """Write amplification while the namespace is filled and written at random."""

    def host_and_flash_bytes() -> tuple[float, float]:
        written = served.count("host_write_bytes")
        return written, (served.count("waf") * written if written else 0.0)

    capacity = number(host.admin.identify(0), 0, 8) * 512
    before = host_and_flash_bytes()
    for first in range(0, capacity // 512, WRITE // 512):
        assert host.io.write(first, b"f" * WRITE) == 0
    age(host, capacity, WRITES)
    after = host_and_flash_bytes()
    assert after[0] - before[0] == capacity + WRITES * WRITE
    return (after[1] - before[1]) / (after[0] - before[0])


def test_a_smaller_namespace_adds_spare_and_lowers_write_amplification(
    serve: Serve,
) -> None:
    served = serve(*PORT)
    with Host(served) as host:
        whole = amplification(served, host)
        host.shrink((192 << 20) // 512)
        smaller = amplification(served, host)
    assert smaller - 1 < (whole - 1) / 2, f"{whole} with 10 % spare, {smaller} with 47 %"


def test_namespace_utilization_follows_writes_and_trims(serve: Serve) -> None:
    served = serve(*PORT)
    with Host(served) as host:
        assert host.used_blocks() == 0
        assert host.io.write(0, b"x" * (64 << 10)) == 0
        assert host.io.write(1001, b"y" * 512) == 0
        assert host.used_blocks() == 17 * 8
        host.io.trim(8, 64)
        assert host.used_blocks() == 9 * 8
        assert host.io.read(8, 64).data == bytes(64 * 512)
        recovery = {1: 1, 10: 5, 11: 1 << 16}
        assert host.admin.submit(0x09, recovery).code == 0
        assert host.io.read(8, 8).code == 0x287, "it was trimmed"
        assert host.io.read(0, 8).data == b"x" * UNIT


MAPPED, MAY_FAIL, HAS_FAILED = 0x02, 0x10, 0x11


def test_lba_status_reports_mapped_and_unreadable_blocks(
    serve: Serve,
) -> None:
    served = serve(*PORT)
    with Host(served) as host, served.control as control:
        assert host.io.write(0, b"x" * (64 << 10)) == 0
        host.io.trim(32, 16)
        assert host.lba_status(MAPPED) == [(0, 32), (48, 80)]
        assert host.lba_status(MAY_FAIL) == []
        control.request("fault", kind="eio", op="read", range=[4096, 8704])
        control.request("fault", kind="eio", op="write", range=[0, 4096])
        control.request("fault", kind="lost", range=[0, 4096])
        assert host.lba_status(MAY_FAIL) == [(8, 16)], "two units, the second in part"
        assert host.lba_status(HAS_FAILED) == [], "no read has failed yet"
        assert host.io.read(8, 1).code == 0x281
        assert host.lba_status(HAS_FAILED) == [(8, 16)]
        control.request("fault-clear")
        control.request("fault", kind="eio", op="read", range=[0, 512], times=1)
        assert host.io.read(0, 1).code == 0x281
        assert host.lba_status(MAY_FAIL) == host.lba_status(HAS_FAILED) == [], "the fault has ended"
        host.io.flush()
        control.request("fault", kind="die", die=0)
        assert host.io.read(0, 128).code == 0x281
        lost = sum(blocks for _, blocks in host.lba_status(HAS_FAILED))
        assert 0 < lost < 128
        assert host.lba_status(MAY_FAIL) == host.lba_status(HAS_FAILED)


def test_after_a_power_cut_a_host_that_reconnects_finds_its_flushed_data(serve: Serve) -> None:
    served = serve(*PORT)
    with Host(served) as host:
        assert host.io.write(0, b"a" * UNIT) == 0
        host.io.flush()
        assert host.io.write(0, b"b" * UNIT) == 0
        assert host.io.write(8, b"c" * UNIT, {12: 1 << 30}) == 0
        assert host.io.write(16, b"d" * UNIT) == 0
        with served.control as control:
            control.power_cut(on=True)
        with pytest.raises(ConnectionError):
            host.io.read(0, 8)
    with Host(served) as host:
        read = [host.io.read(first, 8).data[:1] for first in (0, 8, 16)]
        health = host.admin.log(2, 512)
    assert read == [b"b", b"c", b"\0"], "a FUA write makes earlier writes durable"
    assert number(health, 144, 16) == 1, "one unsafe shutdown"
    assert number(health, 112, 16) == 2


def free_blocks(host: Host) -> list[int]:
    """Free blocks in the reclaim unit of each placement handle."""
    size = 16 + 4 * 32
    status = host.io.submit(
        IO_MANAGEMENT_RECEIVE, {1: 1, 10: 1, 11: size // 4 - 1}, read_bytes=size
    ).data
    return [number(status, 16 + 32 * handle + 8, 8) for handle in range(number(status, 14, 2))]


def test_writes_to_a_handle_fill_its_reclaim_unit_and_no_other(serve: Serve) -> None:
    served = serve(*PORT, capacity="256 MiB", more=STREAMS)
    with Host(served) as host:
        log = host.admin.log(0x20, 96)
        superblock = number(log, 32, 8)
        assert free_blocks(host) == [superblock // 512] * 4
        for unit in range(10):
            assert host.io.write(unit * 8, bytes(UNIT), {12: FIRST_STREAM, 13: 2 << 16}) == 0
        assert host.io.write(800, bytes(UNIT)) == 0
        assert free_blocks(host) == [superblock // 512 - used for used in (8, 0, 80, 0)]
        counts = host.admin.log(0x22, 64)
        assert number(counts, 0, 16) == served.count("host_write_bytes") == 11 * UNIT
    assert (served.count("writes_of_stream"), served.count("writes_plain")) == (10, 1)


def test_an_updated_handle_continues_in_a_new_reclaim_unit(serve: Serve) -> None:
    served = serve(*PORT, capacity="256 MiB", more=STREAMS)
    with Host(served) as host:
        whole = free_blocks(host)[0]
        kept = random.Random(5).randbytes(10 * UNIT)
        assert host.io.write(0, kept, {12: FIRST_STREAM, 13: 2 << 16}) == 0
        assert free_blocks(host) == [whole, whole, whole - 80, whole]
        for _ in range(2):
            update = {1: 1, 10: 1 | 1 << 16}
            assert host.io.submit(IO_MANAGEMENT_SEND, update, sent=bytes([2, 0, 3, 0])).code == 0
            assert free_blocks(host) == [whole] * 4, "an empty reclaim unit is kept"
        assert host.io.write(800, kept, {12: FIRST_STREAM, 13: 2 << 16}) == 0
        assert free_blocks(host) == [whole, whole, whole - 80, whole]
        host.io.flush()
        assert host.io.read(0, 80).data == host.io.read(800, 80).data == kept


def test_writes_are_placed_by_their_access_hints(serve: Serve) -> None:
    served = serve(*PORT, more={"ftl": 'placement = "hinted"'})
    with Host(served) as host:
        assert host.io.write(0, bytes(UNIT)) == 0
        assert host.io.write(800, bytes(UNIT), {12: 1 << 24, 2: 7}) == 0
        assert host.io.write(0, bytes(UNIT), {12: 1 << 25}) == 0
    forms = ("writes_plain", "writes_append", "writes_overwrite", "writes_of_stream")
    assert [served.count(form) for form in forms] == [1, 1, 1, 0]


def test_nbd_and_nvme_clients_share_one_drive(serve: Serve) -> None:
    served = serve(*PORT)
    with Host(served) as host:
        assert host.io.write(0, b"z" * UNIT) == 0
    assert served.count("host_writes") == 1
    assert served.uri in served.messages.read_text()


def test_an_address_that_other_machines_can_reach_needs_listen() -> None:
    words = ("serve", "toshiba-xg5", "--nvme-tcp", "0.0.0.0:4420")
    done = run(executable(), *words, check=False)
    assert done.returncode == 2
    assert "--nvme-tcp 0.0.0.0:4420 can be reached from other machines" in done.stderr
    assert "--listen" in done.stderr
