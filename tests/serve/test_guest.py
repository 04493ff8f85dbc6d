"""A guest kernel's drive is a twin: the documented example, run as users run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
