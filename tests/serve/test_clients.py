"""NBD clients: fio, libnbd's tools and nbdsh, qemu-img and qemu-io."""

from __future__ import annotations

import json
import random
from pathlib import Path

from rig import Attach, Serve, executable, need, run


def test_fio_verifies_its_random_writes(serve: Serve) -> None:
    need("fio")
    served = serve()
    job = "--name=t --ioengine=nbd --rw=randwrite --size=64m --bs=4k --iodepth=16"
    checks = "--verify=crc32c --verify_state_save=0"  # no state file in the current directory
    done = run("fio", *job.split(), *checks.split(), f"--uri={served.uri}", "--output-format=json")
    result = json.loads(done.stdout[done.stdout.index("{") :])
    assert result["jobs"][0]["error"] == 0
    assert served.count("host_write_bytes") == 64 << 20
    assert served.count("host_reads") >= 64 << 8, "fio reads the blocks back"


def test_nbdinfo_shows_sizes_abilities_and_mapped_blocks(serve: Serve) -> None:
    need("nbdinfo", "qemu-io")
    served = serve()
    message = json.loads(run("nbdinfo", "--json", served.uri).stdout)["exports"][0]
    assert message["export-size"] == 256 << 20
    assert (message["block_size_minimum"], message["block_size_preferred"]) == (512, 4096)
    for ability in ("flush", "fua", "trim", "zero", "multi_conn", "cache"):
        assert message[f"can_{ability}"] is True, ability
    assert "x-ssdlab:valid" in message["contexts"]
    run("qemu-io", "-f", "raw", "-c", "write 1M 64k", "-c", "discard 1M 16k", served.uri)
    for context, holes in (("x-ssdlab:valid", 0), ("base:allocation", 3)):
        rows = json.loads(run("nbdinfo", "--json", f"--map={context}", served.uri).stdout)
        mapped = [(row["offset"], row["length"]) for row in rows if row["type"] != holes]
        assert mapped == [((1 << 20) + (16 << 10), 48 << 10)]


def test_nbdcopy_copies_a_file_both_ways_and_skips_its_holes(serve: Serve, tmp_path: Path) -> None:
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


def test_qemu_img_convert_and_compare_agree(serve: Serve, tmp_path: Path) -> None:
    need("qemu-img")
    served = serve()
    source = tmp_path / "source"
    source.write_bytes(random.Random(2).randbytes(3 << 20))
    with source.open("ab") as file:
        file.truncate(256 << 20)
    raw = ["-f", "raw"]
    run("qemu-img", "convert", "-n", *raw, "-O", "raw", str(source), served.uri)
    assert "identical" in run("qemu-img", "compare", *raw, str(source), served.uri).stdout


def test_nbdsh_sends_every_command_and_gets_errors_for_invalid_ones(serve: Serve) -> None:
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


def test_a_paced_twin_reports_late_answers_when_it_ends(serve: Serve) -> None:
    need("qemu-io")
    served = serve("--pace", "real")
    assert served.messages.read_text().startswith("pace real: clients feel the drive's latencies")
    run("qemu-io", "-f", "raw", "-c", "write 1M 64k", "-c", "read 1M 64k", served.uri)
    out = json.loads(served.stop())
    assert out["counters"]["paced_answers"] >= 2
    message = served.messages.read_text()
    assert "replies were sent over 20 us late" in message
    assert "us early" in message


def test_the_transport_latency_is_measured_through_a_device_and_compensated(
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
