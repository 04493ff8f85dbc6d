"""Generic profiles: usual numbers of an interface, a capacity and a type of flash."""

from __future__ import annotations

import tomllib

import pytest

from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.profiles.generic import GenericDrive, nand_types, numbers, profile, variants
from ssdlab.profiles.toml_edit import list_values
from ssdlab.units import parse_duration

DRIVE = GenericDrive("nvme", 512 * 10**9, "tlc")


@pytest.mark.parametrize("nand", nand_types())
@pytest.mark.parametrize(("interface", "gb"), [("nvme", 256), ("nvme", 4000), ("sata", 960)])
def test_a_generic_profile_makes_a_twin(nand: str, interface: str, gb: int) -> None:
    drive = GenericDrive("nvme" if interface == "nvme" else "sata", gb * 10**9, nand)
    twin = describe_twin("generic", profile(drive))
    assert twin["capacity_bytes"] == pytest.approx(gb * 1e9, rel=1e-4)
    assert 0.065 <= twin["spare"] < 0.35
    assert twin["interface"] == interface


def test_each_number_has_a_source_and_none_claims_to_be_measured() -> None:
    entries = [entry for entry in list_values(profile(DRIVE)) if entry["kind"]]
    assert len(entries) > 15
    assert all(entry["source"] for entry in entries)
    assert {entry["kind"] for entry in entries} == {"guessed", "datasheet"}
    known = [entry["key"] for entry in entries if entry["kind"] == "datasheet"]
    assert set(known) == {"drive.capacity", "buffer.power_loss_protection"}


def test_what_is_given_is_in_the_profile() -> None:
    drive = GenericDrive(
        "nvme", 512 * 10**9, "tlc", "Drive X", channels=4, dies=16, spare=0.12, protected=True
    )
    twin = describe_twin("x", profile(drive))
    assert (twin["model"], twin["channels"], twin["dies"]) == ("Drive X", 4, 16)
    assert twin["spare"] == pytest.approx(0.12, abs=0.01)
    ranges = {one.key: (one.low, one.high) for one in numbers(drive)}
    assert ranges["flash.dies_per_channel"] == (4, 4)


def test_variants_stay_within_the_ranges_and_differ() -> None:
    read = next(one for one in numbers(DRIVE) if one.key == "flash.read")
    times = [
        parse_duration(tomllib.loads(text)["flash"]["read"]["value"])
        for text in variants(DRIVE, 20)
    ]
    for text in variants(DRIVE, 20):
        link = tomllib.loads(text)["link"]
        whole, part = (link[f"write_{name}"]["value"] for name in ("overhead", "command"))
        assert parse_duration(part) <= parse_duration(whole)
    low, high = parse_duration(read.low), parse_duration(read.high)
    assert all(low * 0.99 <= time <= high * 1.01 for time in times)
    assert max(times) > 1.3 * min(times)
    assert list(variants(DRIVE, 2)) == list(variants(DRIVE, 2))


@pytest.mark.parametrize(
    ("drive", "reason"),
    [
        (GenericDrive("nvme", 512 * 10**9, "xlc"), "--nand is 'xlc'; it must be one of slc, mlc"),
        (GenericDrive("nvme", 10**9, "tlc"), "--capacity is 1 GB; it must be from 8 GB"),
        (GenericDrive("nvme", 10**12, "tlc", dies=0), "--dies is 0; it must be from 1 to 128"),
        (GenericDrive("nvme", 10**12, "tlc", spare=2.0), "--spare is 2; it must be from 0.01"),
    ],
)
def test_impossible_drives_are_refused(drive: GenericDrive, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        numbers(drive)
