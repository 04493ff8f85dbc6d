"""The command line: one file a verb."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs a verb and ends the process with its status; see `ssdlab.cli.app`."""
    # A measuring process has no thread but its own: the linear algebra's idle workers made single
    # requests 4 to 7 % slower, and nothing here needs them. Read when numpy is first loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        # Loading the verbs takes a moment, in which Ctrl-C must end as cleanly as later.
        from ssdlab.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("ssdlab: interrupted\n")
        sys.exit(3)
    run()
