"""The command line: one file or folder per command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs a command and exits with its status; see `ssdlab.cli.app`."""
    _require_streams()
    # OpenBLAS's idle worker threads made single requests 4 to 7 % slower, and nothing needs them.
    # numpy reads this when it is first imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        # The import takes a moment, in which Ctrl-C must end the program as cleanly as later.
        from ssdlab.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("ssdlab: interrupted\n")
        sys.exit(3)
    run()


def _require_streams() -> None:
    """Refuses a closed standard output; replaces other closed streams by /dev/null.

    Otherwise the next file opened, perhaps a drive, gets the descriptor, and output goes there.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            if fd == 1:
                os.write(2, b"ssdlab: standard output is closed; send it to a file or /dev/null\n")
                os._exit(2)
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
