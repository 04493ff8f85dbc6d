"""A guest kernel's drive is a twin: the documented example, run as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from nvme_host import connect_line
from rig import Serve, need

EXAMPLES = Path(__file__).parents[2] / "examples/guest"
PACKAGES = Path(os.environ.get("SSDLAB_GUEST", Path.home() / ".cache/ssdlab/guest"))
PATIENCE_S = 4000


def test_a_guest_makes_a_file_system_finds_what_it_wrote_and_its_discards_arrive(
    serve: Serve,
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "fio", "mkfs.ext4", "e2fsck", "ldd")
    if not list(PACKAGES.glob("linux-image-*.deb")) or not list(PACKAGES.glob("busybox-*.deb")):
        pytest.skip(f"needs a guest's kernel in {PACKAGES}: see examples/guest/README.md")
    served = serve()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "guest.py"), str(served.socket), str(PACKAGES)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert served.count("host_write_bytes") >= (8 + 32) << 20
    units = 4096
    assert served.count("host_trims") >= (32 << 20) / units, "what the guest removed was trimmed"


def test_a_guests_nvme_driver_works_on_a_twin_and_comes_back_after_a_power_cut(
    serve: Serve,
) -> None:
    need("qemu-system-x86_64", "dpkg-deb", "fio", "mkfs.ext4", "e2fsck", "xfs_io", "ldd")
    for name in ("linux-image-*", "busybox-*", "nvme-cli_*", "libnvme1_*"):
        if not list(PACKAGES.glob(f"{name}.deb")):
            pytest.skip(f"needs {name}.deb in {PACKAGES}: see examples/guest/README.md")
    served = serve("--nvme-tcp", "127.0.0.1:0", capacity="512 MiB")
    (_, port), name = connect_line(served)
    words = [str(port), name, str(PACKAGES), "--cut", f"{served.socket}.control"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "nvme.py"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert served.count("host_trims") >= (32 << 20) / 4096, "what the guest removed was trimmed"
    assert served.count("power_cuts") == 1
