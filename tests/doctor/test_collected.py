"""Recordings of collector scripts: Linux is collected here, FreeBSD is a stored recording."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ssdlab.doctor.checks import judge
from ssdlab.doctor.collected import parse, script, snapshot_of
from ssdlab.doctor.examine import read_recorded
from ssdlab.errors import UsageError
from ssdlab.snapshot import Snapshot
from ssdlab.storage_stack.layers import Roots
from ssdlab.storage_stack.snapshot import Probes, read_snapshot
from ssdlab.storage_stack.trim.tables import read_tables

FREEBSD = Path(__file__).with_name("freebsd.txt")
RAID_OUTPUTS = Path(__file__).parents[1] / "captured" / "raid_outputs"
FREEBSD_NVME = Path(__file__).with_name("freebsd_nvme.txt")
HEAD = "=ssdlab-collector 1 linux\n=target /\n=user 0\n=kernel 6.1.0\n"
MOUNTS = "=file proc/self/mountinfo\n 22 1 0:40 / / rw - tmpfs tmpfs rw\n"


def _codes(stack: Snapshot) -> dict[str, str]:
    return {f"{verdict.code} {verdict.where}": verdict.severity for verdict in judge(stack)}


def _freebsd(target: str) -> Snapshot:
    text = FREEBSD.read_text().replace("=target /var/db/mysql", f"=target {target}")
    return snapshot_of(parse(text))


def test_a_linux_machine_is_judged_from_its_recording_as_on_the_spot(tmp_path: Path) -> None:
    collect = tmp_path / "collect.sh"
    collect.write_text(script("linux"))
    recording = tmp_path / "here.txt"
    with recording.open("wb") as out:
        subprocess.run(["sh", str(collect), "/"], stdout=out, check=True, timeout=120)
    recorded = read_recorded(recording)
    live = read_snapshot("/", Roots(tables=read_tables()), Probes())
    assert [device.name for device in recorded.devices] == [device.name for device in live.devices]
    assert recorded.devices == live.devices
    assert _codes(recorded) == _codes(live)
    assert recorded.mounts[0].layers == live.mounts[0].layers


SMARTCTL = """#!/bin/sh
case "$*" in
"-i -d cciss,0 "* | "-i -d cciss,1 "*) echo "Serial number: 9XG00003" ;;
--json*) echo "{}" ;;
esac
"""


@pytest.mark.parametrize(
    ("driver", "program", "output", "kinds"),
    [
        ("hpsa", "ssacli", "ssacli.txt", ["cciss,0", "cciss,1"]),
        ("aacraid", "arcconf", "arcconf_aacraid.txt", ["aacraid,{},0,8", "aacraid,{},0,10"]),
    ],
)
def test_the_drives_behind_a_controller_are_collected(
    tmp_path: Path, driver: str, program: str, output: str, kinds: list[str]
) -> None:
    """With programs that print published outputs, and a SCSI host below a disk of this machine."""
    disks = [path for path in Path("/sys/class/block").iterdir() if (path / "device").exists()]
    if not disks or os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs a disk, root and unshare")
    host = (disks[0] / "device").resolve().name.split(":")[0]
    programs = tmp_path / "programs"
    programs.mkdir()
    printed = RAID_OUTPUTS / output
    for name, text in ((program, f"#!/bin/sh\ncat '{printed}'\n"), ("smartctl", SMARTCTL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / "collect.sh").write_text(script("linux"))
    classes = tmp_path / "class"
    shutil.copytree("/sys/class/block", classes / "block", symlinks=True)
    (classes / "scsi_host" / f"host{host}").mkdir(parents=True)
    (classes / "scsi_host" / f"host{host}" / "proc_name").write_text(driver)
    inside = 'mount --bind "$1" /sys/class && PATH=$2:$PATH exec sh "$3" /'
    words = ["sh", "-c", inside, "sh", classes, programs, tmp_path / "collect.sh"]
    done = subprocess.run(
        ["unshare", "--mount", *map(str, words)], capture_output=True, text=True, check=True
    )
    recording = parse(done.stdout)
    node = f"/dev/{disks[0].name}"
    for kind in kinds:
        command = ("smartctl", "--json", "-x", "-d", kind.format(host), node)
        assert recording.run(command) == "{}", kind
    asked = {"ssacli": "ssacli ctrl all show config detail", "arcconf": "arcconf GETCONFIG 1 AL"}
    assert recording.programs[asked[program]].strip() == printed.read_text().strip()


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("=file ../etc/passwd\n x\n", "only /sys"),
        ("=file /etc/fstab\n x\n", "only /sys"),
        ("=file home/x\n x\n", "only /sys"),
        ("=file sys/../../../x\n x\n", "only /sys"),
        ("=link sys/a\n ../../../etc\n", "points outside"),
        ("=file etc/fstab\n x\n=link etc/fstab\n /etc/passwd\n", "two records"),
    ],
)
def test_a_recording_cannot_write_or_read_outside_its_tree(record: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        snapshot_of(parse(f"{HEAD}{MOUNTS}{record}=end\n"))


def test_a_link_to_a_file_of_this_machine_stays_in_the_tree(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("issue_discards = 1\n")
    text = f"{HEAD}{MOUNTS}=link etc/lvm/lvm.conf\n {secret}\n=end\n"
    assert snapshot_of(parse(text)).lvm_discards is None


def test_a_recording_without_mounts_is_refused() -> None:
    with pytest.raises(UsageError, match="mountinfo"):
        snapshot_of(parse(f"{HEAD}=end\n"))


def test_an_interrupted_recording_is_refused() -> None:
    with pytest.raises(UsageError, match="incomplete"):
        parse(HEAD)
    with pytest.raises(UsageError, match="this version"):
        parse("=ssdlab-collector 2 linux\n=end\n")


def test_geli_without_deletes_stops_trim_on_freebsd() -> None:
    stack = _freebsd("/var/db/mysql")
    assert [device.name for device in stack.devices] == ["ada1p1.eli", "ada1p1", "ada1"]
    codes = _codes(stack)
    assert codes["trim-stopped ada1p1.eli (GELI)"] == "bad"
    drive = stack.drives[0]
    assert (drive.model, drive.transport, drive.rotational) == (
        *("INTEL SSDSC2BB240G4", "sata"),
        False,
    )
    assert stack.mounts[0].free_bytes == 117_000_000 * 1024


def test_ufs_without_trim_is_told_how_to_enable_it() -> None:
    verdict = next(v for v in judge(_freebsd("/")) if v.code == "trim-never-asked")
    assert "tunefs -t enable /dev/gpt/root" in verdict.remedy
    assert "fstrim" not in verdict.remedy


def test_a_published_geom_tree_is_followed_from_label_to_drive() -> None:
    stack = snapshot_of(parse(FREEBSD_NVME.read_text()))
    assert [device.name for device in stack.devices] == ["gpt-partition-2", "nvd1p2", "nvd1"]
    assert [device.start_bytes for device in stack.devices] == [0, 34_359_758_848, None]
    assert (stack.drives[0].transport, stack.drives[0].rotational) == ("nvme", False)


@pytest.mark.parametrize("target", ["/", "/dev/nvd0p2", "/dev/nda0p2"])
def test_a_drive_mounted_under_its_alias_is_found(target: str) -> None:
    text = FREEBSD_NVME.read_text().replace("=target /home", f"=target {target}")
    stack = snapshot_of(parse(text))
    assert [device.name for device in stack.devices] == ["nda0p2", "nda0"]


def test_a_pool_on_a_volume_of_a_raid_controller_has_no_trim() -> None:
    codes = _codes(_freebsd("/home"))
    assert codes["trim-stopped mfid0 (RAID controller)"] == "bad"
    assert codes["raid-volume mfid0 (RAID controller)"] == "note"
