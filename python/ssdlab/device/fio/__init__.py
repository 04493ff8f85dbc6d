"""fio's job files: read as jobs of ours, and ours printed as such.

What is equal to what, and what cannot be said by one of the two, stands in `reading.py`.
"""

from ssdlab.device.fio.reading import FioJob, parse_fio
from ssdlab.device.fio.writing import to_fio

__all__ = ["FioJob", "parse_fio", "to_fio"]
