"""Files that a killed run left behind: they are locked (flock) as long as a run uses them."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path


def remove_if_unlocked(path: Path, *, root_may: bool = False) -> bool:
    """Removes a regular file of this user that no run has locked; False if it stays.

    With `root_may`, root also removes the files of other users.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        owners = (0, status.st_uid) if root_may else (status.st_uid,)
        if not stat.S_ISREG(status.st_mode) or os.geteuid() not in owners:
            return False
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)
