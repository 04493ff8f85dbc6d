"""A guest kernel's drive is a twin: the documented example, run as users run it."""

from __future__ import annotations

import base64
import os
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from nvme_host import connect_line
from rig import Serve, need

EXAMPLES = Path(__file__).parents[2] / "examples/guest"
PACKAGES = Path(os.environ.get("SSDLAB_GUEST", Path.home() / ".cache/ssdlab/guest"))
PATIENCE_S = 4000


KERNELS = ("6.1.", "6.12.")


def need_packages(kernel: str, *names: str) -> None:
    """Skips where the folder has not this kernel, or lacks another package."""
    for name in (f"linux-image-{kernel}*", "busybox-static_*", *names):
        if not list(PACKAGES.glob(f"{name}.deb")):
            pytest.skip(f"needs {name}.deb in {PACKAGES}: see examples/guest/README.md")


def guest(script: str, *words: str) -> str:
    """Runs an example to its good end; returns what it printed."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_guest_makes_a_file_system_finds_what_it_wrote_and_its_discards_arrive(
    kernel: str, serve: Serve
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "fio", "mkfs.ext4", "e2fsck", "ldd")
    need_packages(kernel)
    served = serve()
    guest("guest.py", str(served.socket), str(PACKAGES), "--kernel", kernel)
    assert served.count("host_write_bytes") >= (8 + 32) << 20
    units = 4096
    assert served.count("host_trims") >= (32 << 20) / units, "what the guest removed was trimmed"


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_guests_nvme_driver_works_on_a_twin_and_comes_back_after_a_power_cut(
    kernel: str, serve: Serve
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "fio", "mkfs.ext4", "e2fsck", "xfs_io", "ldd")
    need_packages(kernel, "nvme-cli_*", "libnvme1_*")
    served = serve("--nvme-tcp", "127.0.0.1:0", capacity="512 MiB")
    (_, port), name = connect_line(served)
    words = [str(port), name, str(PACKAGES), "--cut", f"{served.socket}.control"]
    guest("nvme.py", *words, "--kernel", kernel)
    assert served.count("host_trims") >= (32 << 20) / 4096, "what the guest removed was trimmed"
    assert served.count("power_cuts") == 1


def test_a_guests_nvme_driver_needs_the_secret_of_a_twin_that_has_one(
    serve: Serve, tmp_path: Path
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "fio", "mkfs.ext4", "e2fsck", "xfs_io", "ldd")
    kernel = "6.12."
    need_packages(kernel, "nvme-cli_*", "libnvme1_*")
    secret = tmp_path / "secret"
    key = random.Random(1).randbytes(32)
    coded = base64.b64encode(key + zlib.crc32(key).to_bytes(4, "little"))
    secret.write_text(f"DHHC-1:01:{coded.decode()}:\n")
    words = ["--nvme-tcp", "127.0.0.1:0", "--dhchap-secret", str(secret)]
    served = serve(*words, capacity="512 MiB")
    (_, port), name = connect_line(served)
    told = guest(
        "nvme.py",
        str(port),
        name,
        str(PACKAGES),
        "--kernel",
        kernel,
        "--secret",
        str(secret),
        "--cut",
        f"{served.socket}.control",
    )
    assert "qid 0: authentication setup failed" in told, "it came without a secret"
    assert "qid 0: authentication failed" in told, "it came with another"
    assert told.count("authenticated with hash hmac(sha256)") >= 1
    assert coded.decode() not in told, "nobody reads it over one's shoulder"


INSIDE = (
    *("nvme-cli_*", "libnvme1_*", "mdadm_*", "cryptsetup-bin_*", "libcryptsetup12_*"),
    *("libdevmapper1.02.1_*", "dmsetup_*", "libpopt0_*"),
)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_doctor_in_a_guest_knows_whether_trims_pass_md_and_dm_crypt_to_the_twins(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "fio", "mkfs.ext4", "e2fsck", "mke2fs", "ldd")
    need_packages(kernel, *INSIDE)
    told = guest("inside.py", str(PACKAGES), "--kernel", kernel, "--case", "layers")
    found = re.findall(r"GUEST: (\S+): (-?\d+) blocks freed; the doctor says: .*trim-(\w+)", told)
    passed = {case: (int(freed) > 0, said) for case, freed, said in found}
    stops, passes = (False, "stopped"), (True, "passes")
    all_passes = ("plain", "raid1", "raid5-safely", "crypt-discards", "crypt-raid1")
    assert passed == dict.fromkeys(all_passes, passes) | {"raid5": stops, "crypt": stops}


@pytest.mark.parametrize("kernel", KERNELS)
def test_fio_in_a_guest_keeps_apart_by_handles_what_dies_early_and_the_drive_moves_less(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "ldd")
    need_packages(kernel, "nvme-cli_*", "libnvme1_*", "fio/fio_*", "fio/libc6_*")
    told = guest("fdp.py", str(PACKAGES), "--kernel", kernel)
    said = r"GUEST: (\w+): handles ([\d ]+); (\d+) bytes of the host, (\d+) of the media"
    drives = {
        name: (handles, int(media) / int(host))
        for name, handles, host, media in re.findall(said, told)
    }
    assert drives["mixed"][0] == "0"
    assert drives["apart"][0] == "1 2", "the handles that the jobs named, and no others"
    assert drives["apart"][1] < drives["mixed"][1] / 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_run_in_a_guest_finds_what_twins_do_with_a_flush_and_what_flash_they_hide(
    kernel: str,
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "fio", "mkfs.ext4", "e2fsck", "mke2fs", "ldd")
    need_packages(kernel, *INSIDE, "smartmontools_*")
    words = ("--case", "fsync", "--case", "spare")
    told = guest("inside.py", str(PACKAGES), "--kernel", kernel, *words)
    classes = dict(re.findall(r"GUEST: fsync: (\w+): (.+?) \d", told))
    assert (classes["volatile"], classes["protected"]) == ("volatile", "protected")
    assert classes["lying"] in ("None", "ignores flush"), "no timing shows a lie, only the witness"
    (hidden,) = re.findall(r"GUEST: spare: ([\d.]+) % hidden", told)
    assert 17.5 < float(hidden) < 20, "of 20 % three superblocks are always in use"
