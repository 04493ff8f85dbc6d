"""Parses a fio job file: sections, option names, and values in fio's units."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from ssdlab.errors import UsageError

ALIASES: Final = {
    "readwrite": "rw",
    "blocksize": "bs",
    "io_limit": "io_size",
    "ba": "blockalign",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
    "blocksize_range": "bsrange",
}
# Output, and statistics that ssdlab records anyway.
_OUTPUT: Final = (
    "bwavgtime clat_percentiles clocksource description disable_bw disable_clat disable_lat "
    "disable_slat disk_util exitall group_reporting gtod_cpu gtod_reduce iopsavgtime "
    "lat_percentiles log_compression log_entries log_hist_msec log_max_value log_offset "
    "log_store_compressed log_unix_epoch new_group per_job_logs percentile_list "
    "significant_figures slat_percentiles unified_rw_reporting unit_base write_bw_log "
    "write_hist_log write_iops_log write_lat_log"
)
_THREADS: Final = (
    "allrandrepeat iomem iomem_align lockmem mem mem_align random_generator registerfiles "
    "scramble_buffers softrandommap thread"
)
# ssdlab has a file of its own, which it writes whole and removes.
_FILES: Final = (
    "allow_file_create allow_mounted_write create_fsync create_on_open create_serialize directory "
    "fadvise_hint fallocate file_service_type filename_format openfiles overwrite unlink"
)
SILENT: Final = frozenset((*_OUTPUT.split(), *_THREADS.split(), *_FILES.split()))
"""Options that change fio's output, threads, memory or files, but no request."""
_IGNORED: Final = (
    "cgroup cgroup_weight continue_on_error cpus_allowed cpus_allowed_policy force_async "
    "fsync_on_close hipri io_submit_mode iodepth_batch iodepth_batch_complete "
    "iodepth_batch_complete_max iodepth_batch_complete_min iodepth_batch_submit iodepth_low "
    "ioscheduler nice nonvectored numa_cpu_nodes numa_mem_policy prio prioclass rw_sequencer "
    "sqthread_poll sqthread_poll_cpu uncached userspace_reap"
)
WITHOUT_EFFECT: Final = frozenset(_IGNORED.split())
"""Options that ssdlab does not apply; a note says so."""
_WORDS: Final = (
    "blockalign bs bsrange bssplit buffer_compress_chunk buffer_compress_percentage "
    "buffered direct end_fsync fdatasync filename filesize fixedbufs fsync invalidate io_size "
    "iodepth ioengine kb_base log_avg_msec loops norandommap nrfiles numjobs offset "
    "offset_increment ramp_time random_distribution randrepeat randseed rate rate_iops "
    "rate_poisson rate_process refill_buffers runtime rw rwmixread rwmixwrite size stonewall sync "
    "time_based verify zero_buffers zonemode zonerange zonesize zoneskip"
)
KNOWN: Final = frozenset(_WORDS.split())

_SIMILAR: Final = 0.85
"""Similarity (difflib) above which an unknown option counts as a misspelt one."""

_SIZE: Final = re.compile(r"([0-9]{1,18})([a-z]*)")
SIZE_RULE: Final = "bytes, or a number and k, m, g, t (x1024) or kib, mib, gib, tib (x1000)"
"""The notation of sizes, for error messages."""
# With fio's default kb_base=1024, the units have swapped meanings: kb is 1024, kib is 1000.
# The meaning of "ki" without "b" depends on fio's version.
_BYTES: Final[dict[str, int]] = {
    "": 1,
    "b": 1,
    **{f"{unit}{b}": 1024 ** (i + 1) for i, unit in enumerate("kmgt") for b in ("", "b")},
    **{f"{unit}ib": 1000 ** (i + 1) for i, unit in enumerate("kmgt")},
}
_PERCENT: Final = re.compile(r"([0-9]{1,3})%")
_TIME: Final = re.compile(r"([0-9]{1,12})([a-z]*)")
_MICROSECONDS: Final[dict[str, int]] = {
    **dict.fromkeys(("us", "usec"), 1),
    **dict.fromkeys(("ms", "msec"), 1000),
    **dict.fromkeys(("", "s", "sec"), 1_000_000),
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
T = TypeVar("T")


def fio_error(section: str, option: str, value: object, allowed: str) -> UsageError:
    """The error for an option or value that cannot be converted."""
    return UsageError(f"fio job {section!r}: {option} is {value}; it must be {allowed}")


class JobSection:
    """The options of one job, each under fio's main name for it.

    `problems` are those found so far, `notes` what ssdlab does otherwise than fio.
    """

    def __init__(self, name: str, options: Mapping[str, str], notes: Sequence[str] = ()) -> None:
        """All names in `options` must be known."""
        self.name = name
        self._options = options
        self.notes = list(notes)
        self.problems: list[str] = []

    def attempt(self, convert: Callable[[], T], default: T) -> T:
        """What `convert` returns; if it raises a `UsageError`, that is a problem of the job."""
        try:
            return convert()
        except UsageError as error:
            self.problems.append(str(error))
            return default

    def __contains__(self, option: str) -> bool:
        return option in self._options

    def error(self, option: str, allowed: str) -> UsageError:
        """The error for the value of an option."""
        return fio_error(self.name, option, self._options.get(option, "left out"), allowed)

    def text(self, option: str, default: str) -> str:
        """The value as text."""
        return self._options.get(option, default)

    def choice(self, option: str, choices: tuple[str, ...]) -> str:
        """One of the choices; the first is the default.

        Raises:
            UsageError: another value.
        """
        word = self._options.get(option, choices[0])
        if word not in choices:
            raise self.error(option, " or ".join(choices))
        return word

    def flag(self, option: str, *, default: bool = False) -> bool:
        """True for 1, or for an option without a value.

        Raises:
            UsageError: the value is neither 0 nor 1.
        """
        value = self._options.get(option, str(int(default)))
        if value not in {"", "0", "1"}:
            raise self.error(option, "0 or 1")
        return value != "0"

    def number(self, option: str, default: int, lowest: int = 0, highest: int = 1 << 62) -> int:
        """An integer without a unit.

        Raises:
            UsageError: not an integer, or out of range.
        """
        text = self._options.get(option, str(default))
        if not re.fullmatch("[0-9]{1,19}", text) or not lowest <= int(text) <= highest:
            raise self.error(option, f"a whole number without a unit, {lowest} to {highest}")
        return int(text)

    def size(self, option: str, default: int) -> int:
        """A size in bytes.

        Raises:
            UsageError: a percentage, separate sizes for reads and writes, or an unknown unit.
        """
        if option not in self._options:
            return default
        size = size_bytes(self._options[option])
        if size is None:
            raise self.error(option, SIZE_RULE)
        return size

    def share_or_size(self, option: str, whole: int | None) -> int:
        """A size in bytes, or a percentage of `whole`, which is None if it has no size.

        Raises:
            UsageError: neither, or a percentage of nothing.
        """
        match = _PERCENT.fullmatch(self._options[option])
        if match is None:
            return self.size(option, 0)
        if whole is None:
            raise self.error(
                option, "in bytes: a percentage is one of a block device or a twin, not of a file"
            )
        if not 0 <= int(match[1]) <= 100:
            raise self.error(option, "0% to 100%")
        return whole * int(match[1]) // 100

    def microseconds(self, option: str) -> int:
        """A time in microseconds; a number without a unit is seconds.

        Raises:
            UsageError: not a time, or 0, which means no limit in fio.
        """
        match = _TIME.fullmatch(self._options[option].lower())
        scale = _MICROSECONDS.get(match[2]) if match else None
        if match is None or scale is None or int(match[1]) == 0:
            raise self.error(option, "above 0: seconds, or a number and us, ms, s, m, h or d")
        return int(match[1]) * scale


def size_bytes(text: str) -> int | None:
    """Converts a size in fio's notation to bytes; None if the text is not a size."""
    match = _SIZE.fullmatch(text.lower())
    if match is None or match[2] not in _BYTES:
        return None
    return int(match[1]) * _BYTES[match[2]]


def sections(text: str, environment: Mapping[str, str]) -> tuple[list[JobSection], list[str]]:
    """The jobs of a job file, each with the options of [global] before it; and the problems.

    `${NAME}` in a value is replaced by the variable of the environment.
    """
    parser = _Parser(environment)
    for line in map(_without_comment, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            parser.begin(line[1:-1])
        elif line:
            parser.add(line)
    parser.end()
    return parser.jobs, parser.problems


class _Parser:
    """The lines of a job file up to here."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """No line yet."""
        self.jobs: list[JobSection] = []
        self.problems: list[str] = []
        self._environment = environment
        self._global: tuple[dict[str, str], list[str]] = ({}, [])
        self._name: str | None = None
        self._options: dict[str, str] = {}
        self._notes: list[str] = []

    def begin(self, name: str) -> None:
        """A line [name]."""
        self.end()
        self._name = name
        self._options, self._notes = dict(self._global[0]), list(self._global[1])
        if name.startswith("global") and name != "global":
            self.problems.append(f"fio job file: [{name}]: a job's name must not begin with global")

    def end(self) -> None:
        """The end of a section."""
        if self._name == "global":
            self._global = (self._options, self._notes)
        elif self._name is not None:
            self.jobs.append(JobSection(self._name, self._options, self._notes))

    def add(self, line: str) -> None:
        """A line option=value."""
        if self._name is None:
            self.problems.append(f"fio job file: {line!r} is before the first [section]")
            return
        written, _, value = (part.strip() for part in line.partition("="))
        option = ALIASES.get(written, written)
        try:
            value = self._expanded(written, value)
            if option == "name":
                self._rename(value)
            elif option in WITHOUT_EFFECT:
                self._notes.append(f"{written} has no effect in ssdlab.")
            elif option in KNOWN:
                self._set(option, value)
            elif option not in SILENT:
                raise self._unknown(written, value or "given")
        except UsageError as error:
            self.problems.append(str(error))

    def _unknown(self, option: str, value: str) -> UsageError:
        """The error for an option without an equivalent, which may be a slip of the pen."""
        near = difflib.get_close_matches(option, [*KNOWN, *ALIASES], n=1, cutoff=_SIMILAR)
        if not near:
            allowed = "left out: ssdlab has no equivalent"
            return fio_error(self._name or "", option, value, allowed)
        return UsageError(
            f"fio job {self._name!r}: ssdlab knows no option {option}; did you mean {near[0]}? If "
            "not, leave it out"
        )

    def _rename(self, value: str) -> None:
        """`name` replaces the name of a job; in [global] it has no effect."""
        if self._name != "global" and value:
            self._name = value

    def _set(self, option: str, value: str) -> None:
        # Two options make the same choice: the last one counts.
        for one, other in (("direct", "buffered"), ("rwmixread", "rwmixwrite")):
            if option in {one, other}:
                self._options.pop(one, None)
                self._options.pop(other, None)
        self._options[option] = value

    def _expanded(self, option: str, value: str) -> str:
        assert self._name is not None
        for name in _VARIABLE.findall(value):
            if name not in self._environment:
                allowed = f"a value: the variable {name} is not set in the environment"
                raise fio_error(self._name, option, value, allowed)
        expanded = _VARIABLE.sub(lambda match: self._environment[match[1]], value)
        if "$" in expanded:
            raise fio_error(self._name, option, value, "without $, except in ${VARIABLE}")
        return expanded


def _without_comment(line: str) -> str:
    """The line up to ; or #, stripped; in fio both begin a comment anywhere in a line."""
    return re.split("[;#]", line, maxsplit=1)[0].strip()
