"""The command line: one file a verb."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs a verb and ends the process with its status; see `ssdlab.cli.app`."""
    _require_streams()
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


def _require_streams() -> None:
    """Refuses a closed standard output, and puts /dev/null where another stream is closed.

    Else the next file opened, a drive perhaps, takes its number, and what is printed goes there.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            if fd == 1:
                os.write(2, b"ssdlab: standard output is closed; send it to a file or /dev/null\n")
                os._exit(2)
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
