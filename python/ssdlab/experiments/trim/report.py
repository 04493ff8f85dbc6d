"""How runs of the trim experiment are shown: layers, looks, and what the blocks held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from ssdlab.charts import Axis, Chart, Mark, stroke, text_above
from ssdlab.experiments.trim.parameters import Trim
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import format_number, plain, quantity

_WHENS: Final = {
    "written": "while they were the file's",
    "deleted": "after the file was deleted",
    "trimmed": "after the discard",
}
_PARTS: Final = {"zeros": "zeros", "ones": "FFh", "old": "as written", "other": "neither"}
_WAFS: Final = {"waf_full": "other half full", "waf_trimmed": "other half trimmed"}
_WAF_ROLES: Final = {"the host's": "read", "relocation": "aged"}
_BLOCKS: Final = "MiB of the marked blocks"
_WRITES: Final = "flash writes for each host write"
_ROLES: Final = {"as written": "aged", "zeros": "run2", "FFh": "run1", "neither": "fill"}


@dataclass(frozen=True)
class _Bar:
    """A stacked bar: the size of each part by its name."""

    label: str
    parts: Mapping[str, float]


def _table(run: Run) -> Table:
    columns = (
        Column("Step", numeric=False),
        Column("Layer", numeric=False),
        Column("Passes", numeric=False),
        Column("What was found", numeric=False),
    )
    rows = tuple(
        (
            plain(row.get("step") or ""),
            plain(" ".join(word for word in (row.get("layer"), row.get("device")) if word)),
            plain(row.get("passes") or ""),
            plain(row.get("detail") or ""),
        )
        for row in run.result.measures
    )
    return Table(columns, rows)


def _observed(run: Run) -> dict[str, float]:
    """Each observation's last number, by its name."""
    rows = run.tables["observations"].to_pylist()
    return {row["name"]: row["value"] for row in rows if row["value"] is not None}


def _held(run: Run, prefix: str = "") -> list[_Bar]:
    """What the marked blocks read as, at each look."""
    found = _observed(run)
    return [
        _Bar(
            f"{prefix}{words}",
            {part: found.get(f"{kind}_{when}_mib", 0.0) for kind, part in _PARTS.items()},
        )
        for when, words in _WHENS.items()
    ]


def _worth(run: Run) -> list[_Bar]:
    """Flash writes for each host write on a twin, with and without room."""
    found = _observed(run)
    return [
        _Bar(words, {"the host's": 1.0, "relocation": found[name] - 1.0})
        for name, words in _WAFS.items()
        if name in found
    ]


def _chart(name: str, across: str, roles: Mapping[str, str], bars: Sequence[_Bar]) -> Chart:
    """The bars from the top down, each with its parts in the order of `roles`."""
    kept = [bar for bar in bars if sum(bar.parts.values()) > 0]
    marks: list[Mark] = []
    for at, bar in enumerate(kept):
        marks.append(text_above((0, -at), bar.label))
        ends = accumulate((max(0.0, bar.parts.get(part, 0.0)) for part in roles), initial=0.0)
        for (part, role), (start, end) in zip(roles.items(), pairwise(ends), strict=True):
            if end > start:
                marks.append(stroke([(start, -at), (end, -at)], role, part, thickness=19))
    title = "; ".join(
        f"{bar.label}: "
        + ", ".join(f"{format_number(v)} {part}" for part, v in bar.parts.items() if v)
        for bar in kept
    )
    longest = max((sum(bar.parts.values()) for bar in kept), default=1.0)
    x = Axis(across, limits=(0, longest * 1.02))
    y = Axis(limits=(0.4 - len(kept), 0.7), ticks=())
    return Chart(name, x, y, marks, title, height=46 * len(kept) + 14)


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *drawn(
            "What the marked blocks read as",
            "Read from the device itself, past the page cache. Where the last bar is as written, "
            "no discard had an effect.",
            _chart(f"trim-{at}", _BLOCKS, _ROLES, _held(run)).svg,
        ),
        *drawn(
            "What a random write costs with half of the drive trimmed",
            "One half of a full drive is overwritten at random; the other half is full, then "
            "trimmed. What it gives up is room to collect in.",
            _chart(f"trim-worth-{at}", _WRITES, _WAF_ROLES, _worth(run)).svg,
        ),
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    if len(runs) < 2:
        return []
    looks = [_held(run, f"{number}: ") for number, run in enumerate(runs, first)]
    last = [bar for held in looks for bar in [bar for bar in held if any(bar.parts.values())][-1:]]
    return drawn(
        "What the marked blocks read as in the end",
        "The last look of each run.",
        _chart(f"trims-{first}", _BLOCKS, _ROLES, last).svg,
    )


def _method(run: Run) -> Method:
    size = quantity("size_mib", run.manifest.parameters.get("size_mib"))
    if run.manifest.virtual:
        return Method(
            f"{size} were written, read, trimmed and read again. On the same drive scaled to 1 GiB "
            "(or less), full, one half was overwritten at random before and after the other half "
            "was trimmed.",
            "A read of a mapped unit senses flash, one of a trimmed unit does not.",
            ("A twin holds no bytes: what is read back is what its profile says.",),
        )
    done = (
        f"{size} of random bytes were written to a file whose name was taken away at once, and its "
        "blocks read from the device, where they must be as written. Then the file was freed, the "
        "file system synced, and where that discarded nothing it was asked to discard the file's "
        "extents (FITRIM). The blocks were read from the device for up to "
        f"{quantity('wait_s', run.manifest.parameters.get('wait_s'))} after each."
    )
    meaning = (
        "What was seen counts most, then what the kernel counted as sent, then what layers "
        "declare. Zeros: a discard got through. Old data where none was sent: it did not. Anything "
        "else leaves it open."
    )
    pitfalls = (
        "A drive may keep giving old data for what it has dropped, or drop it later.",
        "Counts of discards hold those of other programs too.",
        "A file system's own count is no evidence: ext4 leaves out what it trimmed before.",
        "A loop device or a thin pool gives zeros for what it freed, whatever the drive was told.",
        "Trimmed blocks under dm-crypt read as noise: neither zeros nor as written.",
        "Without root blocks cannot be read: then what was sent is the most that can be known.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = View(
    title="Whether a discard reaches the flash",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "reaches": "Reaches the flash",
        "layer": "Stopped by",
        "reads_back": "Reads back",
        "waf_full": "WAF, full",
        "waf_trimmed": "WAF, half trimmed",
    },
    parameter_labels={**Trim.labels(), "wait_s": "Waits at most"},
)
