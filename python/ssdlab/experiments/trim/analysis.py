"""Does a discard reach the flash? What is declared, what was sent, and what was seen, weighed.

What is seen counts most, then what the kernel counted as sent, then what layers declare:

* Zeros (or FFh) where random bytes were: the discard got through, unless no drive was sent one. A
  thin pool gives zeros for what it freed itself.
* The old bytes: it did not get through where none was sent. Where the drives were sent it, nothing
  follows: a drive may keep what it need not keep, or take its time.
* Neither: the blocks are another file's now, or encrypted; nothing follows.
* Nothing could be read: a layer that declares that it passes none is believed, for the kernel then
  sends none; one that declares that it does is not, but for what is freed below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence
from ssdlab.experiments.trim import twin_analysis as trim_twin
from ssdlab.records import Finding

MOST: Final = 0.5
"""So much of what was marked must be seen, counted or freed for it to stand for all of it."""
_SENT_LEAST: Final = 0.01
"""Of what was marked; less than this is other programs' doing, or none."""
_WHENS: Final = ("trimmed", "deleted")  # the last look comes first
_KINDS: Final = ("zeros", "ones", "old", "other")
_PASSES: Final = {1.0: "yes", 0.0: "no", None: "unknown"}


@dataclass(frozen=True)
class Weighed:
    """Whether it reaches the flash (None: undecided), the layer that stops it, and why."""

    reaches: bool | None
    layer: str | None
    why: str


def conclude(evidence: Evidence) -> Conclusion:
    """A row a layer and a step; `reaches`, `layer` that stops it, what `reads_back`."""
    if evidence.virtual:
        return trim_twin.conclude(evidence)
    rows = [*_declared(evidence), *_looks(evidence), *_counts(evidence)]
    if not _ended(evidence):
        ended = ENDINGS[evidence.outcome]
        return Conclusion(
            rows, {}, f"{ended} before the blocks were discarded: too little to tell."
        )
    back, why = reads_back(evidence)
    weighed = weigh(evidence, back)
    found = {
        "reaches": Finding(weighed.reaches, "", None, None, weighed.why),
        "layer": Finding(weighed.layer, "", None, None, _why_layer(weighed)),
        "reads_back": Finding(back, "", None, None, why),
    }
    return Conclusion(rows, found, _sentence(weighed))


def reads_back(evidence: Evidence) -> tuple[str | None, str]:
    """What is read where was discarded, "zeros", "old data" or "other", and the counts behind it.

    None where nothing was read.
    """
    seen = _seen(evidence)
    if seen is None:
        return None, _why_not_read(evidence)
    whole = sum(seen.values())
    if not _is_controlled(evidence, whole):
        return "other", "while they were the file's the blocks did not read as written"
    told = ", ".join(f"{size:.4g} MiB {_WORDS[kind]}" for kind, size in seen.items() if size)
    if seen["old"] == 0 and seen["zeros"] >= MOST * whole:
        return "zeros", f"of {whole:.4g} MiB: {told}"
    if seen["zeros"] + seen["ones"] == 0 and seen["old"] >= MOST * whole:
        return "old data", f"of {whole:.4g} MiB: {told}"
    return "other", f"of {whole:.4g} MiB: {told}"


_WORDS: Final = {
    "zeros": "zeros",
    "ones": "FFh",
    "old": "as written",
    "other": "neither (perhaps another file's by now)",
}


def weigh(evidence: Evidence, back: str | None) -> Weighed:
    """The decision, from what was seen, what was sent and what is declared."""
    stops = _word(evidence, "stops")
    if back == "zeros" or _all_ones(evidence):
        return _gone(evidence, stops)
    if back == "old data":
        return _still_there(evidence, stops)
    return _unseen(evidence, stops, "nothing" if back is None else "nothing certain")


def _gone(evidence: Evidence, stops: str | None) -> Weighed:
    sent = _one(evidence, "sent_drives_mib")
    if sent is not None and sent < _SENT_LEAST * _marked_mib(evidence):
        return Weighed(
            False,
            _last_that_got(evidence),
            "the marked bytes are gone, but no drive was sent a discard: a layer above gives zeros",
        )
    after = "" if stops is None else f", although {stops} declares that it passes none"
    return Weighed(True, "none", f"the marked bytes are gone from the device{after}")


def _still_there(evidence: Evidence, stops: str | None) -> Weighed:
    sent = _one(evidence, "sent_drives_mib")
    if stops is not None:
        return Weighed(
            False, stops, f"the marked bytes are still there, and {stops} declares it passes none"
        )
    if sent is not None and sent >= MOST * _marked_mib(evidence):
        return Weighed(
            None,
            None,
            f"drives were sent {sent:.4g} MiB of discards and still give the old data: they may "
            "drop it later, or keep what they need not keep",
        )
    if sent is not None and sent < _SENT_LEAST * _marked_mib(evidence):
        return Weighed(
            False,
            _last_that_got(evidence),
            f"the marked bytes are still there, and no drive was sent a discard{_asked(evidence)}",
        )
    return Weighed(None, None, "the marked bytes are still there; what was sent is not known")


def _unseen(evidence: Evidence, stops: str | None, read: str) -> Weighed:
    if stops is not None:
        return Weighed(False, stops, f"{stops} declares that it passes none; {read} was read")
    freed = _freed_mib(evidence)
    if freed >= MOST * _marked_mib(evidence):
        return Weighed(True, "none", f"{freed:.4g} MiB were freed below; {read} was read")
    sent = _one(evidence, "sent_drives_mib")
    if sent is not None and sent >= MOST * _marked_mib(evidence):
        why = f"drives were sent {sent:.4g} MiB of discards; {read} was read"
    else:
        why = f"{read} was read, and few or no discards were counted{_asked(evidence)}"
    return Weighed(None, None, why)


def _last_that_got(evidence: Evidence) -> str:
    """The lowest layer that was sent the discard, which ends there; else the file system."""
    least = _SENT_LEAST * _marked_mib(evidence)
    got: list[str] = [
        row["detail"] for row in evidence.observed("sent_mib") if row["value"] >= least
    ]
    names: dict[str, str] = {
        row["device"]: f"{row['device']} ({row['layer']})" for row in _declared(evidence)
    }
    if got:
        return names.get(got[-1], got[-1])
    systems = [row for row in _declared(evidence) if row["layer"] == "file system"]
    return f"{systems[0]['device']} (file system)" if systems else "none"


def _sentence(weighed: Weighed) -> str:
    if weighed.reaches is None:
        return f"Undecided whether a discard reaches the flash: {weighed.why}."
    if weighed.reaches:
        return f"A discard gets through: {weighed.why}."
    return f"A discard does not get through; {weighed.layer} stops it: {weighed.why}."


def _why_layer(weighed: Weighed) -> str:
    if weighed.reaches is None:
        return "undecided"
    return "no layer stops it" if weighed.reaches else weighed.why


def _asked(evidence: Evidence) -> str:
    """What became of the request to discard, where it was not done."""
    told = _word(evidence, "fitrim_mib") or _word(evidence, "discard_mib")
    return f" (asking for it was {told})" if told else ""


def _declared(evidence: Evidence) -> list[dict[str, Any]]:
    rows = []
    for row in evidence.observed("passes"):
        told = msgspec.json.decode(row["detail"])
        rows.append(
            {
                "step": "declared, below" if told["below_file"] else "declared",
                "layer": told["layer"],
                "device": told["device"],
                "passes": _PASSES[row["value"]],
                "detail": told["why"],
            }
        )
    return rows


def _looks(evidence: Evidence) -> list[dict[str, Any]]:
    """A row for each look at the blocks, and for the request to discard, in their order."""
    rows = [_look_row(evidence, "written", "read before deleting")]
    rows.append(_look_row(evidence, "deleted", "read after deleting"))
    asked = [*evidence.observed("fitrim_mib"), *evidence.observed("discard_mib")]
    for each in asked:
        said = each["detail"] or f"{each['value']:.4g} MiB, by its own count"
        rows.append(_row("asked to discard", said))
    rows.append(_look_row(evidence, "trimmed", "read after discarding"))
    rows += [_row("not read", each["detail"]) for each in evidence.observed("not_read")]
    return [row for row in rows if row is not None]


def _look_row(evidence: Evidence, when: str, step: str) -> dict[str, Any] | None:
    seen = _seen_at(evidence, when)
    if seen is None:
        return None
    told = ", ".join(f"{size:.4g} MiB {_WORDS[kind]}" for kind, size in seen.items() if size)
    waited = _one(evidence, f"waited_{when}_s")
    return _row(step, told + (f"; waited {waited:.3g} s" if waited else ""))


def _counts(evidence: Evidence) -> list[dict[str, Any]]:
    sent = [
        _row("sent", f"{row['value']:.4g} MiB of discards counted", row["detail"])
        for row in evidence.observed("sent_mib")
    ]
    used: dict[str, list[str]] = {}
    for when in ("before", "written", "after"):
        for row in evidence.observed(f"used_{when}_mib"):
            used.setdefault(row["detail"], []).append(f"{when} {row['value']:.5g} MiB")
    return sent + [_row("in use below", ", ".join(told), name) for name, told in used.items()]


def _row(step: str, detail: str, device: str | None = None) -> dict[str, Any]:
    return {"step": step, "layer": None, "device": device, "passes": None, "detail": detail}


def _seen(evidence: Evidence) -> dict[str, float] | None:
    """MiB by what was read there, at the last look."""
    looks = (_seen_at(evidence, when) for when in _WHENS)
    return next((seen for seen in looks if seen is not None), None)


def _seen_at(evidence: Evidence, when: str) -> dict[str, float] | None:
    found = {kind: _one(evidence, f"{kind}_{when}_mib") for kind in _KINDS}
    return {kind: size for kind, size in found.items() if size is not None} or None


def _all_ones(evidence: Evidence) -> bool:
    """FFh throughout, which was not written: erased flash, as some drives give it."""
    seen = _seen(evidence)
    if seen is None or not seen["ones"]:
        return False
    whole = sum(seen.values())
    return seen["ones"] == whole and _is_controlled(evidence, whole)


def _is_controlled(evidence: Evidence, whole: float) -> bool:
    """Whether all of it read as written while it was the file's: then the addresses are right."""
    return _one(evidence, "old_written_mib") == whole


def _freed_mib(evidence: Evidence) -> float:
    """How much less is in use below, by the count of what lies there, than before the discard."""
    after = {row["detail"]: row["value"] for row in evidence.observed("used_after_mib")}
    written = evidence.observed("used_written_mib")
    return float(sum(row["value"] - after.get(row["detail"], row["value"]) for row in written))


def _why_not_read(evidence: Evidence) -> str:
    return _word(evidence, "not_read") or "nothing was read"


def _ended(evidence: Evidence) -> bool:
    return bool(evidence.observed("waited_deleted_s") or evidence.observed("waited_trimmed_s"))


def _marked_mib(evidence: Evidence) -> float:
    return float(evidence.parameters["size_mib"])


def _one(evidence: Evidence, name: str) -> float | None:
    rows = evidence.observed(name)
    return rows[-1]["value"] if rows else None


def _word(evidence: Evidence, name: str) -> str | None:
    rows = evidence.observed(name)
    return rows[-1]["detail"] or None if rows else None
