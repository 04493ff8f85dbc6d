"""A drive's spare, the simulated gain of more, and the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ssdlab import provision
from ssdlab.errors import TargetError
from ssdlab.provision import (
    DriveSize,
    area_of,
    gains,
    info_of_device,
    info_of_twin,
    methods,
    twin_like,
)
from ssdlab.storage_stack.blockdev import BlockDevice

GIB = 1 << 30
SDA = BlockDevice("sda", 8, 0, "sda", "sata", 512_110_190_592, model="Samsung SSD 840 PRO 512GB")


def test_the_840_pro_has_685_percent_of_all_its_flash_spare() -> None:
    area = info_of_twin("samsung-840-pro").area
    assert (area.flash, area.visible) == (512 * GIB, 1_000_215_216 * 512)
    assert area.hidden == 37_645_623_296
    assert f"{area.spare:.2%}" == "6.85%"
    assert f"{area.overprovisioning:.2%}" == "7.35%"


def test_the_850_pro_has_76_percent_of_all_its_129_gib() -> None:
    area = area_of(129 * GIB, 128 * 10**9)
    assert f"{area.spare:.1%}" == "7.6%"
    assert f"{area.overprovisioning:.1%}" == "8.2%"


def test_a_quarter_of_all_flash_spare_leaves_three_quarters_in_whole_mib() -> None:
    area = area_of(512 * GIB, 500 * GIB)
    assert area.usable_for(0.25) == 384 * GIB
    assert area.usable_for(0.27) % (1 << 20) == 0
    assert area.usable_for(0.01) == area.visible


def test_less_flash_than_visible_capacity_is_refused() -> None:
    with pytest.raises(TargetError, match="cannot show"):
        area_of(100, 101)


def test_a_drives_flash_and_twin_are_found_by_its_model() -> None:
    info = info_of_device(SDA, None, None)
    assert (info.area.flash, info.twin) == (512 * GIB, "samsung-840-pro")
    assert f"{info.area.spare:.2%}" == "6.85%"
    assert info_of_device(SDA, 600 * GIB, "toshiba-xg5").area.flash == 600 * GIB


def test_a_partition_is_refused_and_the_message_names_its_drive() -> None:
    part = replace(SDA, name="sda1")
    with pytest.raises(TargetError, match="give the whole drive, /dev/sda"):
        info_of_device(part, None, None)


@pytest.mark.parametrize(
    ("model", "twin"),
    [
        ("Samsung SSD 970 EVO Plus 500GB", "samsung-970-evo-plus-500"),
        ("Samsung SSD 980 PRO 1TB", "samsung-980-pro"),
        ("ACME 3000", None),
        ("", None),
    ],
)
def test_a_twin_matches_a_model_that_contains_all_its_words(model: str, twin: str | None) -> None:
    assert twin_like(model) == twin


def test_with_more_spare_a_full_twin_has_a_lower_waf_and_writes_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provision, "SCALED_BYTES", 1 << 30)
    now, more = gains(info_of_twin("samsung-840-pro"), (0.01, 0.27))
    assert now.spare < 0.1 < more.spare
    assert more.waf < now.waf / 2
    assert more.writes_per_s > 2 * now.writes_per_s
    assert now.p99_s is not None
    assert more.p99_s is not None
    assert more.p99_s < now.p99_s


def test_without_a_twin_nothing_is_simulated() -> None:
    assert list(gains(replace(info_of_twin("samsung-840-pro"), twin=None))) == []


def _names(transport: str) -> list[str]:
    drive = DriveSize("/dev/nvme0n1", transport, 512, 500 * GIB, 370 * GIB)
    return [method.name.split(" ")[0].rstrip(",") for method in methods(drive)]


def test_each_transport_has_its_methods() -> None:
    assert _names("sata") == ["partition", "partition", "hpa", "raid"]
    assert _names("nvme") == ["partition", "partition", "namespace", "raid"]
    assert _names("usb") == ["partition", "partition", "raid"]


def test_the_discarded_range_is_between_the_partition_and_the_backup_gpt() -> None:
    drive = DriveSize("/dev/sda", "sata", 512, 500 * GIB, 370 * GIB)
    text = " ".join(c for method in methods(drive) for step in method.steps for c in step.commands)
    words = text.split()
    offset = int(words[words.index("--offset") + 1])
    length = int(words[words.index("--length") + 1])
    assert offset > 370 * GIB
    assert offset + length < 500 * GIB
    assert f"resizepart N {370 * 1024}MiB" in text


def test_every_step_that_destroys_data_has_a_danger() -> None:
    drive = DriveSize("/dev/nvme0n1", "nvme", 4096, 500 * GIB, 370 * GIB)
    for method in methods(drive):
        for step in method.steps:
            if any(word in " ".join(step.commands) for word in ("blkdiscard", "delete-ns", "-Np")):
                assert step.danger
    assert f"--nsze={370 * GIB // 4096}" in str(methods(drive))
    assert "/dev/nvme0 " in str(methods(drive))


@pytest.mark.parametrize(
    ("transport", "sentence"),
    [
        ("virtio", "sda is a virtual machine's disk"),
        ("nbd", "sda is attached over nbd"),
        ("md", "sda (md) combines or maps other devices"),
        ("loop", "sda is a loop device"),
    ],
)
def test_a_device_without_flash_of_its_own_is_refused(
    transport: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses = ["/dev/sda is mounted at / (ext4): umount it first"]
    monkeypatch.setattr(provision, "recorded_uses", lambda _device: uses)
    device = replace(SDA, transport=transport, model="")
    with pytest.raises(TargetError) as refused:
        info_of_device(device, None, None)
    text = str(refused.value)
    assert text.startswith(f"/dev/sda is mounted at / (ext4), and {sentence}")
    assert "its flash and spare are unknown" in text
    assert info_of_device(device, 600 * GIB, None).uses == tuple(uses)


def test_the_plan_for_a_drive_in_use_cannot_be_copied_to_destroy_it() -> None:
    size = DriveSize("/dev/NAME", "sata", 512, 512 * GIB, 400 * GIB, in_use=True)
    assert [method.name for method in methods(size)] == ["partition, on a drive in use"]
    commands = [each for method in methods(size) for step in method.steps for each in step.commands]
    assert "sudo blkdiscard /dev/NAME" not in commands
