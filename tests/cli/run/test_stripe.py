"""`ssdlab run stripe` for scripts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable


def test_stripe_prints_the_documented_findings(
    ssdlab: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    words = ("twin:toshiba-xg5", "--capacity", "1GiB", "--size", "256MiB", "--quick", "--json")
    done = ssdlab("run", "stripe", *words)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    values = {name: finding["value"] for name, finding in result["findings"].items()}
    assert values == {"chunk_kib": 32, "stripe_kib": 512, "units": 16, "regular": True}
    assert {"alignment_kib", "read_mib_per_s"} <= result["measures"][0].keys()
    assert result["verdict"] == "A stripe of 512 KiB: chunks of 32 KiB on 16 units in turn."
