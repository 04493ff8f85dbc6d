"""`ssdlab run steady` and `ssdlab run cache` for scripts: JSON, errors, report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program


def test_steady_prints_the_documented_keys(ssdlab: Program, tmp_path: Path) -> None:
    target = ("twin:toshiba-xg5", "--capacity", "512MiB", "--drive-writes", "4", "--quick")
    done = ssdlab("run", "steady", *target, "--out", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {"round", "iops", "latency_us_p50", "latency_us_p99", "latency_us_p999", "waf"} <= (
        result["measures"][0].keys()
    )
    assert {"steady", "steady_from_round", "iops", "iops_cv", "waf"} <= result["findings"].keys()
    assert result["findings"]["waf"]["value"] > 1
    assert len(result["measures"]) == 20
    page = tmp_path / "page.html"
    assert ssdlab("report", result["folder"], "--html", str(page)).returncode == 0
    assert "collection begins" in page.read_text()


def test_cache_prints_the_documented_keys(ssdlab: Program, tmp_path: Path) -> None:
    target = ("twin:toshiba-xg5", "--capacity", "1GiB", "--size", "64MiB", "--quick")
    done = ssdlab("run", "cache", *target, "--out", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {"written_mib", "write_mib_per_s"} <= result["measures"][0].keys()
    assert {"buffer_mib", "slc_mib", "refill_s"} <= result["findings"].keys()
    page = tmp_path / "page.html"
    assert ssdlab("report", result["folder"], "--html", str(page)).returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--spare", "7"), "--spare is '7'"),
        (("--spare", "28%,7%"), "--spare is"),
        (("--size", "2GiB"), "--size is 2GiB"),
        (("--region", "2GiB"), "--size is 2GiB"),
        (("--block-size", "3KiB"), "--block-size is 3 KiB"),
        (("--pattern", "spiral"), "--pattern is 'spiral'"),
        (("--drive-writes", "0"), "--drive-writes is 0"),
    ],
)
def test_a_wrong_option_is_a_one_line_error(
    refused: Callable[..., str], options: tuple[str, ...], message: str
) -> None:
    assert message in refused("run", "steady", "twin:toshiba-xg5", "--capacity", "1GiB", *options)
