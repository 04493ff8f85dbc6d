"""Power cuts under clients that reconnect at once, checked against the rules for a drive.

Usage: python bench/cuts.py [--cuts 2000] [--clients 8] [--twin volatile|protected|lying]
       [--pace none|real|10x] [--data] [--ways WAY,...] [--seed 1] [--ssdlab PROGRAM]

Serves a small twin by `ssdlab serve`, over NBD and NVMe/TCP. Half of the clients use NBD, half
NVMe. Each writes, flushes and reads its own units, reads those of the others, and checks each read
against its history (`tests/power_cuts/history.py` has the rules). Cuts come at once, after writes,
at random and after a time; the power returns at once or later. `--data` keeps the content in a
file. Prints the tally as one line of JSON and the first violations; exit status 1 if there is one.
`--ssdlab` is the program that serves, if not that of this checkout.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serve"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fixtures"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "power_cuts"))

from director import METHODS, CutOptions
from history import Twin
from rig import executable
from served_run import Run, run_served

VIOLATIONS_PRINTED = 20


def main() -> None:
    """Serves, makes all cuts, and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--twin", default="volatile", choices=[twin.value for twin in Twin])
    parser.add_argument("--pace", default="none")
    parser.add_argument("--data", action="store_true", help="keep the content in a file")
    parser.add_argument(
        "--ways", default=",".join(METHODS), help="methods of cutting [%(default)s]"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ssdlab", default=executable(), help="the program that serves")
    arguments = parser.parse_args()
    methods = tuple(arguments.ways.split(","))
    if unknown := set(methods) - set(METHODS):
        parser.error(f"--ways: {', '.join(unknown)}; give some of: {', '.join(METHODS)}")
    options = CutOptions(arguments.cuts, arguments.clients, arguments.seed, methods=methods)
    run = Run(options, Twin(arguments.twin), arguments.pace, arguments.data, arguments.ssdlab)
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_served(Path(folder), run)
    print(json.dumps(outcome.tally), flush=True)
    if outcome.tally["server_failed"]:
        print(outcome.messages, file=sys.stderr)
    for line in outcome.broken_rules[:VIOLATIONS_PRINTED]:
        print(line, file=sys.stderr)
    sys.exit(1 if outcome.tally["rules_broken"] else 0)


if __name__ == "__main__":
    main()
