"""Power cuts under clients that reconnect at once: what they find, against what a drive may do.

Usage: python bench/cuts.py [--cuts 2000] [--clients 8] [--twin volatile|protected|lying]
       [--pace none|real|10x] [--data] [--ways WAY,...] [--seed 1] [--ssdlab PROGRAM]

Serves a small twin by `ssdlab serve`, over NBD and NVMe/TCP together. Half of the clients speak
either. Each writes, flushes and reads its own units, reads those of the others, and checks each
read against its history (`tests/power_cuts/history.py` has the rules). Cuts come at once, after
writes, at random and after a time; the power comes back at once or later. `--data` keeps the
content in a file. Prints the tally as one line of JSON and the first broken rules; exit status 1 if
a rule is broken. `--ssdlab` is the program to serve with, if it is not this checkout's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serve"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "power_cuts"))

from director import WAYS, Wish
from history import Twin
from rig import executable
from served_run import Run, run_served

SHOWN = 20


def main() -> None:
    """Serves, runs all cuts, and prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--twin", default="volatile", choices=[each.value for each in Twin])
    parser.add_argument("--pace", default="none")
    parser.add_argument("--data", action="store_true", help="keep the content in a file")
    parser.add_argument("--ways", default=",".join(WAYS), help="how cuts come, of: %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ssdlab", default=executable(), help="the program that serves")
    given = parser.parse_args()
    wish = Wish(given.cuts, given.clients, given.seed, ways=tuple(given.ways.split(",")))
    if unknown := set(wish.ways) - set(WAYS):
        parser.error(f"--ways: {', '.join(unknown)}; give some of: {', '.join(WAYS)}")
    wanted = Run(wish, Twin(given.twin), given.pace, given.data, given.ssdlab)
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_served(Path(folder), wanted)
    print(json.dumps(outcome.tally), flush=True)
    if outcome.tally["server_failed"]:
        print(outcome.messages, file=sys.stderr)
    for line in outcome.broken_rules[:SHOWN]:
        print(line, file=sys.stderr)
    sys.exit(1 if outcome.tally["rules_broken"] else 0)


if __name__ == "__main__":
    main()
