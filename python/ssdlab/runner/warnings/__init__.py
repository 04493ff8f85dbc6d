"""Warnings about a run from what it recorded: each is a code for scripts and a sentence for people.

    ceiling       the engine or this machine's processor may have been the limit
    link-speed    faster than the drive's link can be
    unwritten     reads of what this run had not written
    cliff         the rate of writing in order fell while it was measured
    thermal       the drive was so warm that it may have slowed itself down
    few-samples   percentiles that too few requests support
    busy-host, stolen-time   others had the processor

Warnings about the target itself (page cache, virtual disk ...) come from `stack` when it is opened.
"""

from ssdlab.runner.warnings.contention import host_columns
from ssdlab.runner.warnings.from_records import few_samples, judge
from ssdlab.runner.warnings.unwritten import Coverage

__all__ = ["Coverage", "few_samples", "host_columns", "judge"]
