"""Types of the native module; only `ssdlab.device` imports it."""

from collections.abc import Callable
from os import PathLike
from typing import Any, TypeAlias, final

__version__: str

_Watch: TypeAlias = Callable[[int, int, int], object]

@final
class Drive:
    """A twin in virtual time, or a real file or block device by io_uring and direct I/O."""

    engine: str
    is_virtual: bool
    capacity_bytes: int
    sector_bytes: int
    queue_depth: int

    @staticmethod
    def twin(profile: str, capacity_bytes: int | None = None, *, seed: int = 0) -> Drive: ...
    @staticmethod
    def real(path: str | PathLike[str], options: str, by: str) -> Drive: ...
    @staticmethod
    def null(queue_depth: int) -> Drive: ...
    def run(self, job: str, watch: _Watch | None = None) -> dict[str, Any]: ...
    def rest(self, seconds: float, watch: _Watch | None = None) -> bool: ...
    def now_ns(self) -> int: ...
    def counters(self) -> dict[str, Any] | None: ...

def describe_profile(profile: str, capacity_bytes: int | None = None) -> dict[str, Any]: ...
def nop_rate(requests: int) -> float: ...
def verify(
    path: str | PathLike[str], region: tuple[int, int], run: int, *, direct: bool = True
) -> dict[str, Any]: ...
