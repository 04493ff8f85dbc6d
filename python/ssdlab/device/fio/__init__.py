"""fio job files: converted to jobs and back. `reading.py` has the differences and limits."""

from ssdlab.device.fio.reading import FioJob, parse_fio
from ssdlab.device.fio.writing import to_fio

__all__ = ["FioJob", "parse_fio", "to_fio"]
