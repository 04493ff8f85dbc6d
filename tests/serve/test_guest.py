"""Twins as drives of a guest kernel: the documented examples, run as users run them."""

from __future__ import annotations

import base64
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from nvme_host import connect_line
from rig import Serve, need

ROOT = Path(__file__).parents[2]
PATIENCE_S = 4000
pytestmark = pytest.mark.timeout(PATIENCE_S + 200)
KERNELS = ("6.1", "6.12")


def need_packages(kernel: str, *folders: str) -> None:
    """Skips the test if packages have not been fetched."""
    for folder in (f"build/guest/linux-{kernel}", "build/guest/tools", *folders):
        if not (ROOT / folder).is_dir():
            pytest.skip(f"needs packages in {folder}: run `make test-guest`")


def guest(script: str, *words: str) -> str:
    """Runs an example, which must succeed; returns its output."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/guest" / script), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_guests_files_are_intact_and_its_discards_reach_the_twin(
    kernel: str, serve: Serve
) -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "ldd")
    need_packages(kernel)
    served = serve()
    guest("guest.py", str(served.socket), "--kernel", kernel)
    assert served.count("host_write_bytes") >= (8 + 32) << 20
    units = 4096
    assert served.count("host_trims") >= (32 << 20) / units, "deleted files were trimmed"


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_guests_nvme_driver_reconnects_after_a_power_cut(kernel: str, serve: Serve) -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "xfs_io", "ldd")
    need_packages(kernel)
    served = serve("--nvme-tcp", "127.0.0.1:0", capacity="512 MiB")
    (_, port), name = connect_line(served)
    words = [str(port), name, "--cut", f"{served.socket}.control"]
    guest("nvme.py", *words, "--kernel", kernel)
    assert served.count("host_trims") >= (32 << 20) / 4096, "deleted files were trimmed"
    assert served.count("power_cuts") == 1


def test_a_guests_nvme_driver_must_authenticate_if_the_twin_has_a_secret(
    serve: Serve, tmp_path: Path
) -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "xfs_io", "ldd")
    kernel = "6.12"
    need_packages(kernel)
    secret = tmp_path / "secret"
    key = random.Random(1).randbytes(32)
    coded = base64.b64encode(key + zlib.crc32(key).to_bytes(4, "little"))
    secret.write_text(f"DHHC-1:01:{coded.decode()}:\n")
    words = ["--nvme-tcp", "127.0.0.1:0", "--dhchap-secret", str(secret)]
    served = serve(*words, capacity="512 MiB")
    (_, port), name = connect_line(served)
    output = guest(
        "nvme.py",
        str(port),
        name,
        "--kernel",
        kernel,
        "--secret",
        str(secret),
        "--cut",
        f"{served.socket}.control",
    )
    assert "qid 0: authentication setup failed" in output, "the first attempt has no secret"
    assert "qid 0: authentication failed" in output, "the second attempt has another secret"
    assert output.count("authenticated with hash hmac(sha256)") >= 1
    assert coded.decode() not in output, "the secret must not be printed"


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_doctor_in_a_guest_finds_whether_md_and_dm_crypt_pass_trims_to_the_twins(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "mke2fs", "ldd")
    need_packages(kernel)
    output = guest("inside.py", "--kernel", kernel, "--case", "layers")
    line = r"GUEST: (\S+): (-?\d+) blocks freed; the doctor says: .*trim-(\w+)"
    passed = {case: (int(freed) > 0, code) for case, freed, code in re.findall(line, output)}
    stops, passes = (False, "stopped"), (True, "passes")
    all_passes = ("plain", "raid1", "raid5-safely", "crypt-discards", "crypt-raid1")
    assert passed == dict.fromkeys(all_passes, passes) | {"raid5": stops, "crypt": stops}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_doctor_in_a_guest_knows_firmware_raid_and_what_initialising_it_writes(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "mke2fs", "ldd")
    need_packages(kernel)
    output = guest("inside.py", "--kernel", kernel, "--case", "firmware")
    line = r"GUEST: (\w+ raid\d+): (\d+) blocks in use, (\d+) after initialisation"
    used = {name: (int(empty), int(full)) for name, empty, full in re.findall(line, output)}
    assert list(used) == ["imsm raid1", "imsm raid10", "imsm raid5", "ddf raid1"]
    for name in ("imsm raid1", "ddf raid1"):
        assert used[name][1] - used[name][0] > 400_000, "one member of 256 MiB is written whole"
    line = r"GUEST: (\w+) resync: provision: all-in-use; trim: all-in-use; again: \n"
    assert re.findall(line, output) == ["imsm", "ddf"], "provision and trim find the resync"
    line = r"GUEST: (\S+-raid\d+): (-?\d+) blocks freed; .*firmware-raid.*"
    freed = {name: int(blocks) for name, blocks in re.findall(line, output)}
    assert freed["imsm-raid5"] <= 0
    assert min(freed[name] for name in ("imsm-raid1", "imsm-raid10", "ddf-raid1")) > 60_000


@pytest.mark.parametrize("kernel", KERNELS)
def test_after_a_resync_of_raid_1_in_a_guest_the_second_drive_collects_until_a_trim(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "mke2fs", "ldd")
    need_packages(kernel)
    output = guest("inside.py", "--kernel", kernel, "--case", "resync")
    found = re.findall(r"GUEST: resync: (\w+): ([\d.]+) and ([\d.]+)", output)
    amplified = {name: (float(first), float(second)) for name, first, second in found}
    assert list(amplified) == ["fresh", "resynced", "trimmed"]
    first, second = amplified["resynced"]
    assert first < 1.1
    assert second > 1.15
    for name in ("fresh", "trimmed"):
        assert max(amplified[name]) < 1.1, name


def test_the_doctor_in_a_guest_knows_a_zfs_pool_and_what_zpool_trim_frees() -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "mke2fs", "ldd")
    if not (ROOT / "build/guest/zfs").is_dir():
        pytest.skip("needs ZFS for the guest's kernel: run `tools/setup.sh guest-zfs`")
    need_packages("6.1", "build/guest/zfs")
    output = guest("inside.py", "--kernel", "6.1", "--case", "zfs")
    said = [set(line.split()) for line in re.findall(r"zfs: the doctor says: (.*)", output)]
    assert [("trim-never-asked" in codes, "zfs-sync-off" in codes) for codes in said] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    assert ["zfs-pool-degraded" in codes for codes in said] == [False, False, True]
    (freed,) = re.findall(r"zfs: (\d+) blocks freed by zpool trim", output)
    assert int(freed) >= (64 << 20) / 4096, "the deleted file was trimmed"


@pytest.mark.parametrize("kernel", KERNELS)
def test_fio_in_a_guest_lowers_write_amplification_with_placement_handles(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "ldd")
    need_packages(kernel, "build/guest/fio")
    output = guest("fdp.py", "--kernel", kernel)
    line = r"GUEST: (\w+): handles ([\d ]+); (\d+) bytes of the host, (\d+) of the media"
    drives = {
        name: (handles, int(media) / int(host))
        for name, handles, host, media in re.findall(line, output)
    }
    assert drives["mixed"][0] == "0"
    assert drives["apart"][0] == "1 2", "only the handles of the jobs"
    assert drives["apart"][1] < drives["mixed"][1] / 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_runs_in_a_guest_find_the_flush_class_and_the_spare_of_twins(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "fio", "mkfs.ext4", "e2fsck", "mke2fs", "ldd")
    need_packages(kernel)
    words = ("--case", "fsync", "--case", "spare")
    output = guest("inside.py", "--kernel", kernel, *words)
    classes = dict(re.findall(r"GUEST: fsync: (\w+): (.+?) \d", output))
    assert (classes["volatile"], classes["protected"]) == ("volatile", "protected")
    assert classes["lying"] in ("None", "ignores flush"), "only the witness can show a lie"
    (hidden,) = re.findall(r"GUEST: spare: ([\d.]+) % hidden", output)
    assert 17.5 < float(hidden) < 20, "three superblocks of the 20 % are always in use"
