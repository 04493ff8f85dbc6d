"""Programs that speak NBD find a drive: fio, libnbd's tools and shell, QEMU's."""

from __future__ import annotations

import json
import random
from pathlib import Path

from rig import Attach, Serve, executable, need, run


def test_fio_writes_at_random_and_finds_every_block_as_it_was(serve: Serve) -> None:
    need("fio")
    served = serve()
    job = "--name=t --ioengine=nbd --rw=randwrite --size=64m --bs=4k --iodepth=16"
    checks = "--verify=crc32c --verify_state_save=0"  # its state would be left where the test runs
    done = run("fio", *job.split(), *checks.split(), f"--uri={served.uri}", "--output-format=json")
    result = json.loads(done.stdout[done.stdout.index("{") :])
    assert result["jobs"][0]["error"] == 0
    assert served.count("host_write_bytes") == 64 << 20
    assert served.count("host_reads") >= 64 << 8, "it was read for the comparison"


def test_nbdinfo_shows_sizes_abilities_and_what_the_drive_maps(serve: Serve) -> None:
    need("nbdinfo", "qemu-io")
    served = serve()
    told = json.loads(run("nbdinfo", "--json", served.uri).stdout)["exports"][0]
    assert told["export-size"] == 256 << 20
    assert (told["block_size_minimum"], told["block_size_preferred"]) == (512, 4096)
    for ability in ("flush", "fua", "trim", "zero", "multi_conn", "cache"):
        assert told[f"can_{ability}"] is True, ability
    assert "x-ssdlab:valid" in told["contexts"]
    run("qemu-io", "-f", "raw", "-c", "write 1M 64k", "-c", "discard 1M 16k", served.uri)
    for context, holes in (("x-ssdlab:valid", 0), ("base:allocation", 3)):
        rows = json.loads(run("nbdinfo", "--json", f"--map={context}", served.uri).stdout)
        mapped = [(row["offset"], row["length"]) for row in rows if row["type"] != holes]
        assert mapped == [((1 << 20) + (16 << 10), 48 << 10)]


def test_nbdcopy_brings_a_file_there_and_back_and_skips_its_holes(
    serve: Serve, tmp_path: Path
) -> None:
    need("nbdcopy")
    served = serve()
    content = random.Random(1).randbytes(5 << 20)
    source, back = tmp_path / "source", tmp_path / "back"
    with source.open("wb") as file:
        file.seek(100 << 20)
        file.write(content)
        file.truncate(256 << 20)
    run("nbdcopy", str(source), served.uri)
    assert served.count("host_write_bytes") == 5 << 20, "holes are trimmed, not written"
    run("nbdcopy", "--connections=4", served.uri, str(back))
    assert back.stat().st_size == 256 << 20
    assert back.stat().st_blocks * 512 < 8 << 20
    with back.open("rb") as file:
        file.seek(100 << 20)
        assert file.read(5 << 20) == content


def test_qemu_img_converts_to_it_and_compares_equal(serve: Serve, tmp_path: Path) -> None:
    need("qemu-img")
    served = serve()
    source = tmp_path / "source"
    source.write_bytes(random.Random(2).randbytes(3 << 20))
    with source.open("ab") as file:
        file.truncate(256 << 20)
    raw = ["-f", "raw"]
    run("qemu-img", "convert", "-n", *raw, "-O", "raw", str(source), served.uri)
    assert "identical" in run("qemu-img", "compare", *raw, str(source), served.uri).stdout


def test_libnbds_shell_sends_every_command_and_gets_the_errors_of_wrong_ones(serve: Serve) -> None:
    need("nbdsh")
    served = serve()
    script = """
h.pwrite(b"x" * 4096, 8192, nbd.CMD_FLAG_FUA)
h.flush()
h.cache(4096, 8192)
assert h.pread(4096, 8192) == b"x" * 4096
h.zero(4096, 8192)
assert h.pread(4096, 8192) == bytes(4096)
h.trim(4096, 8192)
h.set_strict_mode(0)
for call in (lambda: h.pread(512, h.get_size()), lambda: h.pread(0, 0), lambda: h.pread(100, 0),
             lambda: h.pwrite(b"x" * 1024, h.get_size() - 512)):
    try:
        call()
    except nbd.Error as error:
        print(error.errno)
"""
    done = run("nbdsh", "-u", served.uri, "-c", script)
    assert done.stdout.split() == ["EINVAL", "EINVAL", "EINVAL", "ENOSPC"]


def test_a_paced_twin_says_at_its_end_how_late_its_answers_were(serve: Serve) -> None:
    need("qemu-io")
    served = serve("--pace", "real")
    run("qemu-io", "-f", "raw", "-c", "write 1M 64k", "-c", "read 1M 64k", served.uri)
    out = json.loads(served.stop())
    assert out["counters"]["paced_answers"] >= 2
    told = served.messages.read_text()
    assert "answers left more than 20 us late" in told
    assert "us early" in told


def test_the_way_to_a_device_is_measured_there_and_answers_leave_earlier_by_it(
    serve: Serve, attach: Attach
) -> None:
    served = serve("--pace", "real")
    device = attach(served).device
    with served.control as control:
        of_socket = control.request("lead")
        reads = control.counters()["host_reads"] or 0.0
        through = run(
            executable(), "control", f"{served.socket}.control", "lead", f"through={device}"
        )
        of_device = control.request("lead")
        assert json.loads(through.stdout) == of_device
        assert of_device != of_socket
        assert of_device["transport_us"] > 0
        assert (control.counters()["host_reads"] or 0.0) >= reads + 460, "short and long ones"
