"""Bundles of a twin and its measurements: nothing in them identifies a host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssdlab import profiles
from ssdlab.errors import TargetError, UsageError
from ssdlab.fit import bundle
from ssdlab.profiles.toml_edit import set_value
from ssdlab.records import Finding, Manifest, Result, Run

SECRETS = ("S3CRET-SERIAL-77", "/home/alice/data", "alice", "db-host-9", "eui.0025385b71b0d9c1")
ELSEWHERE = "/srv/elsewhere/y.csv"
"""A path that no manifest has."""


def _run(folder: Path, experiment: str = "stripe", **device: Any) -> Run:
    drive = {
        "name": "nvme0n1",
        "model": "Drive X 512",
        "firmware": "FW1",
        "serial": SECRETS[0],
        "wwid": SECRETS[4],
        "transport": "nvme",
        "size_bytes": 512 * 10**9,
    }
    manifest = Manifest(
        run="run",
        ssdlab="0.1.0",
        experiment=experiment,
        target=SECRETS[1],
        virtual=False,
        seed=1,
        started="2026-01-01T00:00:00Z",
        parameters={},
        versions={},
        host={"hostname": SECRETS[3], "user": SECRETS[2], "machine": "x86_64"},
        device={"kind": "directory", "path": SECRETS[1], "drives": [drive], **device},
        profile=None,
        wish={"target": SECRETS[1]},
        label=f"of {SECRETS[2]}",
    )
    result = Result(
        ssdlab="0.1.0",
        experiment=experiment,
        target=SECRETS[1],
        virtual=False,
        seed=1,
        duration_s=3.0,
        parameters={"size_mib": 256, "file": SECRETS[1]},
        measures=[{"alignment_kib": 32.0, "read_mib_per_s": 1500.0, "note": SECRETS[1]}],
        findings={
            "chunk_kib": Finding(32.0, "KiB", None, None, f"in {SECRETS[1]}"),
            "where": Finding(SECRETS[1], "", None, None, ""),
        },
        verdict=f"read {SECRETS[1]}",
        warnings=[],
        folder=str(folder),
    )
    return Run(folder, manifest, result, {})


def _profile() -> str:
    text = set_value(profiles.load("toshiba-xg5"), "drive.model", "Drive X 512")
    source = f"fit of stripe of {SECRETS[1]} on {SECRETS[3]} by {SECRETS[2]}, from {ELSEWHERE}"
    text = set_value(text, "flash.read", "55 us", source)
    return f"# from {SECRETS[1]}/start.toml on {SECRETS[3]}\n{text}"


@pytest.fixture
def made(tmp_path: Path) -> bundle.Bundle:
    return bundle.make(_profile(), [_run(tmp_path / "20260101-stripe-alice")], "0.1.0")


def test_a_bundle_has_no_serial_host_user_or_path(made: bundle.Bundle) -> None:
    text = bundle.encode(made).decode()
    for secret in (*SECRETS, ELSEWHERE, "start.toml", "20260101", "nvme0n1"):
        assert secret not in text, secret
    assert "fit of stripe of (removed) on (removed) by (removed)" in text


def test_a_bundle_has_what_another_needs(made: bundle.Bundle, tmp_path: Path) -> None:
    assert (made.model, made.firmware, made.interface) == ("Drive X 512", "FW1", "nvme")
    assert made.capacity_bytes == 512 * 10**9
    assert "flash.read" in made.fitted
    [run] = made.runs
    assert run.measures == [{"alignment_kib": 32.0, "read_mib_per_s": 1500.0}]
    assert run.parameters["size_mib"] == 256
    assert list(run.findings) == ["chunk_kib"]
    [accuracy] = made.accuracy
    assert (accuracy.experiment, accuracy.values) == ("stripe", 1)
    path = tmp_path / "mine.json"
    path.write_bytes(bundle.encode(made))
    again = bundle.read(path)
    assert again == made
    assert bundle.accuracy_of(again.profile, bundle.results_of(again)) == made.accuracy


def test_a_serial_number_in_the_model_is_refused(tmp_path: Path) -> None:
    text = set_value(_profile(), "ftl.victim", {"value": "greedy", "source": f"x{SECRETS[0]}x"})
    with pytest.raises(UsageError, match="the bundle would contain 'S3CRET-SERIAL-77'"):
        bundle.make(text, [_run(tmp_path)], "0.1.0")


def test_a_model_that_is_a_path_is_not_kept(tmp_path: Path) -> None:
    text = set_value(_profile(), "drive.model", SECRETS[1])
    assert bundle.make(text, [_run(tmp_path)], "0.1.0").model == "unknown drive"


def test_runs_that_no_fit_accepts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of these runs is of an experiment that a fit"):
        bundle.make(_profile(), [_run(tmp_path, "trim")], "0.1.0")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "version 2; this ssdlab reads 'ssdlab twin' version 1"),
        ({"format": "other"}, "is 'other' version 1"),
        ({"serial": "x"}, "is not a bundle .*serial"),
        ({"model": "Drive Y"}, "but its profile is of 'Drive X 512'"),
        ({"runs": 3}, "is not a bundle"),
    ],
)
def test_a_wrong_bundle_is_refused(
    made: bundle.Bundle, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**json.loads(bundle.encode(made)), **change}))
    with pytest.raises(UsageError, match=reason):
        bundle.read(path)


def test_a_bundle_with_an_invalid_profile_is_refused(made: bundle.Bundle, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    text = made.profile.replace("channels", "canals")
    path.write_text(json.dumps({**json.loads(bundle.encode(made)), "profile": text}))
    with pytest.raises(TargetError, match="canals"):
        bundle.read(path)
