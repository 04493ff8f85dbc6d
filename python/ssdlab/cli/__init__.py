"""The command line: one file a verb."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs a verb and ends the process with its status; see `ssdlab.cli.app`."""
    try:
        # Loading the verbs takes a moment, in which Ctrl-C must end as cleanly as later.
        from ssdlab.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("ssdlab: interrupted\n")
        sys.exit(3)
    run()
