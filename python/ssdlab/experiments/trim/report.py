"""The report of the trim experiment: steps by layer, and what the marked blocks contained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Mark, stroke, text_above
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import format_number, plain

_WHENS: Final = {
    "written": "while they belonged to the file",
    "deleted": "after the file was deleted",
    "trimmed": "after the discard",
}
_CONTENTS: Final = {"zeros": "zeros", "ones": "FFh", "old": "as written", "other": "other"}
_CONTENT_ROLES: Final = {"as written": "aged", "zeros": "run2", "FFh": "run1", "other": "fill"}
_WAFS: Final = {"waf_full": "other half full", "waf_trimmed": "other half trimmed"}
_WAF_ROLES: Final = {"host": "read", "relocation": "aged"}
_BLOCKS: Final = "MiB of the marked blocks"


@dataclass(frozen=True)
class _Bar:
    """A stacked bar: the size of each part by its name."""

    label: str
    parts: Mapping[str, float]


def _table(run: Run) -> Table:
    rows = run.result.measures
    layers = [" ".join(filter(None, (row.get("layer"), row.get("device")))) for row in rows]
    return Table.of_columns(
        view.text_column(rows, "step", "Step"),
        (Column("Layer", numeric=False), [plain(layer) for layer in layers]),
        view.text_column(rows, "passes", "Passes"),
        view.text_column(rows, "detail", "Result"),
    )


def _observed(run: Run) -> dict[str, float]:
    """The last value of each observation, by name of the observation."""
    rows = run.tables["observations"].to_pylist()
    return {row["name"]: row["value"] for row in rows if row["value"] is not None}


def _contents(run: Run, prefix: str = "") -> list[_Bar]:
    """A bar for each time the marked blocks were read: MiB by what they read as."""
    values = _observed(run)
    return [
        _Bar(
            f"{prefix}{label}",
            {part: values.get(f"{kind}_{when}_mib", 0.0) for kind, part in _CONTENTS.items()},
        )
        for when, label in _WHENS.items()
    ]


def _wafs(run: Run) -> list[_Bar]:
    """Flash writes per host write on a twin, before and after half of it is trimmed."""
    values = _observed(run)
    return [
        _Bar(label, {"host": 1.0, "relocation": values[name] - 1.0})
        for name, label in _WAFS.items()
        if name in values
    ]


def _chart(name: str, across: str, roles: Mapping[str, str], bars: Sequence[_Bar]) -> Chart:
    """A chart of the bars from top to bottom, with their parts in the order of `roles`."""
    kept = [bar for bar in bars if sum(bar.parts.values()) > 0]
    marks: list[Mark] = []
    texts = []
    for at, bar in enumerate(kept):
        marks.append(text_above((0, -at), bar.label))
        ends = accumulate((max(0.0, bar.parts.get(part, 0.0)) for part in roles), initial=0.0)
        for (part, role), (start, end) in zip(roles.items(), pairwise(ends), strict=True):
            if end > start:
                marks.append(stroke([(start, -at), (end, -at)], role, part, thickness=19))
        sizes = (f"{format_number(size)} {part}" for part, size in bar.parts.items() if size)
        texts.append(f"{bar.label}: {', '.join(sizes)}")
    longest = max((sum(bar.parts.values()) for bar in kept), default=1.0)
    x = Axis(across, limits=(0, longest * 1.02))
    y = Axis(limits=(0.4 - len(kept), 0.7), ticks=())
    return Chart(name, x, y, marks, "; ".join(texts), height=46 * len(kept) + 14)


def _pictures(run: Run, number: int) -> list[Picture]:
    wafs = _chart(f"trim-worth-{number}", "flash writes per host write", _WAF_ROLES, _wafs(run))
    return [
        *view.draw_figure(
            "Contents of the marked blocks",
            "Read from the device itself, not through the page cache. If the last bar is as "
            "written, the discard had no effect.",
            _chart(f"trim-{number}", _BLOCKS, _CONTENT_ROLES, _contents(run)).svg,
        ),
        *view.draw_figure(
            "Write amplification with half of the drive trimmed",
            "One half of a full drive is overwritten at random, while the other half is full and "
            "again after it is trimmed. The trimmed half gives garbage collection free space.",
            wafs.svg,
        ),
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    if len(runs) < 2:
        return []
    last: list[_Bar] = []
    for number, run in enumerate(runs, first):
        last += [bar for bar in _contents(run, f"{number}: ") if any(bar.parts.values())][-1:]
    return view.draw_figure(
        "Contents of the marked blocks at the end",
        "As last read in each run.",
        _chart(f"trims-{first}", _BLOCKS, _CONTENT_ROLES, last).svg,
    )


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    if run.manifest.virtual:
        return Method(
            f"{text('size_mib')} were written, read, trimmed and read again. Then, on the same "
            "drive scaled to 1 GiB (more if that has too few superblocks; its own capacity if that "
            "is less) and full, one half was overwritten at random before and after the other half "
            "was trimmed.",
            "A read of a mapped unit senses flash, a read of a trimmed unit does not.",
            ("A twin stores no data: the profile determines what trimmed units read as.",),
        )
    done = (
        f"{text('size_mib')} of random data were written to a file that was unlinked at once, and "
        "its blocks were read from the device to check that they contain this data. Then the file "
        "was freed and the file system synced; if that sent no discard, the extents of the file "
        "were discarded through the file system (FITRIM). After each step the blocks were "
        f"read from the device for up to {text('wait_s')}."
    )
    meaning = (
        "What the blocks read as is the strongest evidence, then the discards that the kernel "
        "counted, then what the layers declare. Zeros: a discard reached the drive. Old data and "
        "no discard sent: none reached it. Anything else is inconclusive."
    )
    pitfalls = (
        "A drive may return old data for trimmed blocks, or drop them later.",
        "The kernel's counts include discards of other programs.",
        "A file system's own count is not evidence: ext4 skips what it has trimmed before.",
        "A loop device or thin pool returns zeros for freed blocks, even if the drive keeps them.",
        "Trimmed blocks under dm-crypt read as noise: neither zeros nor the written data.",
        "Blocks can be read only by root: without it, the discards sent are the best evidence.",
    )
    return Method(done, meaning, pitfalls)


_FINDINGS: Final = {
    "reaches": "Reaches the flash",
    "layer": "Stopped by",
    "waf_full": "WAF, full",
    "waf_trimmed": "WAF, half trimmed",
}
_PARAMETERS: Final = {"wait_s": "Longest wait"}
VIEW: Final = View(
    "TRIM through the storage stack", _table, _method, _pictures, _overview, _FINDINGS, _PARAMETERS
)
