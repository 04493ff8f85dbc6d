"""`ssdlab twin submit` and `add`: from a run to another's twin by name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

from ssdlab import profiles

Refused = Callable[..., str]
SERIAL, HOST, PATH = "S3CRET-SERIAL-77", "db-host-9", "/home/alice/data"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path / "own"), "USER": "alice"}


@pytest.fixture
def run(ssdlab: Program, tmp_path: Path) -> Path:
    """A run of a twin, whose manifest then has a serial number, a host and a path."""
    words = ("stripe", "twin:toshiba-xg5", "--capacity", "1GiB", "--quick", "--quiet")
    done = ssdlab("run", *words, "--out", tmp_path / "runs", "--json")
    assert done.returncode == 0, done.stderr
    folder = Path(json.loads(done.stdout)["folder"])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["device"]["drives"] = [{"model": "Drive X", "serial": SERIAL, "firmware": "F1"}]
    manifest["device"]["model"] = "Drive X"
    manifest["device"]["path"] = manifest["target"] = PATH
    manifest["host"]["hostname"] = HOST
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def bundle(ssdlab: Program, run: Path, env: dict[str, str], tmp_path: Path) -> Path:
    profile, out = tmp_path / "mine.toml", tmp_path / "mine.json"
    source = f'"fit of stripe of {PATH} on {HOST}, alice"'
    text = profiles.load("toshiba-xg5").replace("Toshiba XG5 KXG50ZNV512G", "Drive X")
    profile.write_text(text.replace('"64-layer BiCS3 TLC"', source))
    done = ssdlab("twin", "submit", run, "--profile", profile, "--out", out, env=env)
    assert done.returncode == 0, done.stderr
    return out


def test_a_bundle_has_nothing_that_identifies_the_host(bundle: Path, run: Path) -> None:
    text = bundle.read_text()
    for secret in (SERIAL, HOST, PATH, "alice", run.name, str(run), os.uname().nodename):
        assert not re.search(rf"\b{re.escape(secret)}\b", text), secret
    assert "(removed)" in text
    assert json.loads(text)["model"] == "Drive X"


def test_an_added_twin_can_be_used_by_its_name(
    ssdlab: Program, bundle: Path, env: dict[str, str]
) -> None:
    added = ssdlab("twin", "add", bundle, env=env)
    assert added.returncode == 0, added.stderr
    assert "added as twin:drive-x" in added.stdout
    assert "stripe" in added.stdout
    shown = json.loads(ssdlab("twin", "show", "drive-x", "--json", env=env).stdout)
    assert shown["model"] == "Drive X"
    listed = json.loads(ssdlab("twin", "list", "--json", env=env).stdout)["twins"]
    assert "drive-x" in [twin["name"] for twin in listed]
    words = ("run", "stripe", "twin:drive-x", "--capacity", "1GiB", "--quick", "--quiet", "--json")
    assert ssdlab(*words, env=env).returncode == 0
    assert ssdlab("twin", "add", bundle, env=env).returncode == 0  # the same again


def test_without_a_profile_the_runs_are_fitted_and_name_the_drive(
    ssdlab: Program, run: Path, env: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "fitted.json"
    done = ssdlab(
        "twin", "submit", run, "--start", "samsung-pm981", "--out", out, "--json", env=env
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["model"] == "Drive X"
    made = json.loads(done.stdout)
    assert made["accuracy"][0]["mean_error"] < 0.1
    assert "flash.read" in made["fitted"]


def test_what_add_refuses(
    refused: Refused, ssdlab: Program, bundle: Path, env: dict[str, str], tmp_path: Path
) -> None:
    assert "is not a bundle" in refused("twin", "add", __file__, env=env)
    none = tmp_path / "none.json"
    assert f"{none} cannot be read (No such file or directory); give" in refused(
        "twin", "add", none
    )
    assert "is a shipped twin" in refused("twin", "add", bundle, "--name", "toshiba-xg5", env=env)
    assert "lower-case letters" in refused("twin", "add", bundle, "--name", "../evil", env=env)
    assert not (tmp_path / "own").exists()
    assert ssdlab("twin", "add", bundle, env=env).returncode == 0
    other = json.loads(bundle.read_text())
    other["profile"] = other["profile"].replace("700 us", "710 us")
    bundle.write_text(json.dumps(other))
    assert "there is another twin:drive-x" in refused("twin", "add", bundle, env=env)


def test_what_submit_refuses(refused: Refused, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.json"
    assert "give either --profile FILE or --start" in refused("twin", "submit", run, "--out", out)
    words = ("--profile", "toshiba-xg5", "--out", out)
    assert "does not exist" in refused("twin", "submit", tmp_path / "none", *words)
    assert not out.exists()
