"""This machine's directories, with what only programs report: device-mapper tables, ZFS pools."""

from __future__ import annotations

from ssdlab.storage_stack.health.smart import run_program
from ssdlab.storage_stack.layers import Roots
from ssdlab.storage_stack.trim.tables import read_tables
from ssdlab.storage_stack.zfs import read_pools


def live_roots() -> Roots:
    """The tables are empty without root; the pools without ZFS."""
    return Roots(tables=read_tables(), pools=read_pools(run_program))
