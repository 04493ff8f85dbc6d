"""Spare and full file systems, at the thresholds."""

from __future__ import annotations

import pytest

from ssdlab.doctor.checks import Verdict, judge
from ssdlab.doctor.checks.drives import flash_of, is_protected
from ssdlab.snapshot import Device, Health, Mounted, Snapshot

GIB = 1 << 30


def _verdicts(
    size: int, model: str = "X", unallocated: int | None = None, free: float = 0.5
) -> dict[str, Verdict]:
    drive = Device(
        "nvme0n1",
        "/dev/nvme0n1",
        "drive",
        "nvme",
        is_drive=True,
        rotational=False,
        size_bytes=size,
        model=model,
        health=Health("smartctl", unallocated_bytes=unallocated),
    )
    mount = Mounted("/", "ext4", "/dev/nvme0n1", total_bytes=1000, free_bytes=int(1000 * free))
    stack = Snapshot("/", True, mounts=(mount,), devices=(drive,))
    return {verdict.code: verdict for verdict in judge(stack)}


@pytest.mark.parametrize(
    ("size", "flash"),
    [(480 * 10**9, 512), (512 * 10**9, 512), (128 * GIB, 128), (128 * GIB + 1, 256)],
)
def test_an_unknown_model_has_the_next_power_of_two_of_flash(size: int, flash: int) -> None:
    assert flash_of("ACME", size).size_bytes == flash * GIB


def test_known_models_have_their_published_flash() -> None:
    assert flash_of("Samsung SSD 850 PRO 128GB", 128 * 10**9).size_bytes == 129 * GIB
    verdict = _verdicts(128 * 10**9, "Samsung SSD 850 PRO 128GB")["spare"]
    assert (verdict.value, "7.6%" in verdict.says, "8.2%" in verdict.says) == (0.0759, True, True)


def test_capacity_outside_namespaces_counts_as_spare() -> None:
    verdict = _verdicts(500 * 10**9, unallocated=500 * 10**9)["spare"]
    assert verdict.severity == "good"
    assert verdict.value == pytest.approx(1 - 500e9 / 2**40, abs=1e-4)
    assert "not in any namespace" in verdict.evidence
    assert _verdicts(1000 * 10**9)["spare"].severity == "note"


@pytest.mark.parametrize(
    ("free", "severity"), [(0.11, None), (0.10, "warn"), (0.04, "warn"), (0.03, "bad")]
)
def test_a_file_system_is_nearly_full_from_90_percent(free: float, severity: str | None) -> None:
    verdict = _verdicts(10**12, free=free).get("nearly-full")
    assert (verdict.severity if verdict else None) == severity


@pytest.mark.parametrize(
    ("model", "protected"),
    [
        ("Micron_5100_MTFDDAK960TCB", True),
        ("Micron_5300_MTFDDAK480TDS", True),
        ("INTEL SSDSC2KG480G8", True),
        ("INTEL SSDSC2BB480G6", True),
        ("SAMSUNG MZ7LH960HAJR-00005", True),
        ("Seagate Nytro XA3840ME10063", True),
        ("Samsung SSD 860 EVO 500GB", False),
        ("CT1000MX500SSD1", False),
        ("Micron_1100_MTFDDAK256TBN", False),
        ("INTEL SSDSC2CW120A3", False),
        ("INTEL SSDSC2BW240A4", False),
        ("INTEL SSDSC2KW256G8", False),
        ("Samsung SSD 840 PRO Series", False),
        ("KINGSTON SA400S37240G", False),
        (None, False),
    ],
)
def test_power_loss_protection_is_known_by_model(model: str | None, protected: bool) -> None:
    assert is_protected(model) is protected
