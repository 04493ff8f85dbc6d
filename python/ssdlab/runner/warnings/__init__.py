"""Warnings that follow from the records of a run: a code for scripts, a sentence for people.

    ceiling       the I/O engine or this machine's CPUs may have been the limit
    link-speed    faster than the drive's link
    unwritten     reads of blocks that this run had not written
    cliff         sequential write throughput fell within a step
    thermal       the drive was near its temperature limit and may have throttled
    few-samples   percentiles with too few requests above them
    busy-host, stolen-time   other programs or virtual machines used the CPUs

Warnings about the target (page cache, virtual disk ...) come from `storage_stack`.
"""

from ssdlab.runner.warnings.contention import host_columns
from ssdlab.runner.warnings.from_records import check_percentiles, check_recording
from ssdlab.runner.warnings.unwritten import Coverage

__all__ = ["Coverage", "check_percentiles", "check_recording", "host_columns"]
