"""Decides whether a discard reaches the flash.

The evidence, strongest first: what the blocks read as, the discards that the kernel counted, and
what each layer declares.

* Zeros (or FFh) instead of the random bytes: the discard reached the drive, unless no drive was
  sent one: a thin pool returns zeros for blocks that it freed itself.
* The old bytes: the discard did not reach the drive, if none was sent. If drives were sent
  discards, the result is undecided: a drive may ignore a discard or apply it later.
* Other bytes: the blocks belong to another file now, or are encrypted: undecided.
* Nothing could be read: if a layer declares no discard support, discards stop there, because the
  kernel sends it none. If a layer declares support, that counts only if space was freed below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence
from ssdlab.experiments.trim import twin_analysis as trim_twin
from ssdlab.records import Finding

MOST: Final = 0.5
"""At least this share of the marked bytes must be read, counted or freed to decide for all."""
_SENT_LEAST: Final = 0.01
"""Discards of a smaller share of the marked bytes may come from other programs."""
_WHENS: Final = ("trimmed", "deleted")  # the last read-back first
_KINDS: Final = ("zeros", "ones", "old", "other")
_PASSES: Final = {1.0: "yes", 0.0: "no", None: "unknown"}


@dataclass(frozen=True)
class Decision:
    """Whether discards reach the flash (None: undecided), the layer that stops them, and why."""

    reaches: bool | None
    layer: str | None
    why: str


def conclude(evidence: Evidence) -> Conclusion:
    """A row for each layer and each step; the findings `reaches`, `layer` and `reads_back`."""
    if evidence.virtual:
        return trim_twin.conclude(evidence)
    rows = [*_declared(evidence), *_read_backs(evidence), *_counts(evidence)]
    if not _ended(evidence):
        ended = ENDINGS[evidence.outcome]
        return Conclusion(
            rows, {}, f"{ended} before the blocks were discarded: too little to tell."
        )
    back, why = reads_back(evidence)
    decision = decide(evidence, back)
    findings = {
        "reaches": Finding(decision.reaches, "", None, None, decision.why),
        "layer": Finding(decision.layer, "", None, None, _why_layer(decision)),
        "reads_back": Finding(back, "", None, None, why),
    }
    return Conclusion(rows, findings, _sentence(decision))


def reads_back(evidence: Evidence) -> tuple[str | None, str]:
    """What discarded blocks read as ("zeros", "old data" or "other"), and how many of each.

    None if nothing was read.
    """
    counts = _last_read_back(evidence)
    if counts is None:
        return None, _detail(evidence, "not_read") or "nothing was read"
    total = sum(counts.values())
    if not _addresses_are_right(evidence, total):
        return "other", "before the file was deleted, the blocks did not read as written"
    why = f"of {total:.4g} MiB: {_listed(counts)}"
    if counts["old"] == 0 and counts["zeros"] >= MOST * total:
        return "zeros", why
    if counts["zeros"] + counts["ones"] == 0 and counts["old"] >= MOST * total:
        return "old data", why
    return "other", why


_KIND_NAMES: Final = {
    "zeros": "zeros",
    "ones": "FFh",
    "old": "as written",
    "other": "neither (perhaps another file's data by now)",
}


def _listed(counts: dict[str, float]) -> str:
    return ", ".join(f"{mib:.4g} MiB {_KIND_NAMES[kind]}" for kind, mib in counts.items() if mib)


def decide(evidence: Evidence, back: str | None) -> Decision:
    """Decides from the content read back, the discards sent, and the layers' declarations."""
    stops = _detail(evidence, "stops")
    if back == "zeros" or _all_ones(evidence):
        return _if_gone(evidence, stops)
    if back == "old data":
        return _if_unchanged(evidence, stops)
    return _if_unknown(evidence, stops, _reading(evidence, back))


def _reading(evidence: Evidence, back: str | None) -> str:
    """What reading the blocks back showed, if that decides nothing."""
    if back is not None:
        return "what the blocks read as afterwards is not conclusive"
    reason = _detail(evidence, "not_read")
    return "the blocks could not be read back to check it" + (f" ({reason})" if reason else "")


def _if_gone(evidence: Evidence, stops: str | None) -> Decision:
    sent = _last_value(evidence, "sent_drives_mib")
    if sent is not None and sent < _SENT_LEAST * _marked_mib(evidence):
        return Decision(
            False,
            _lowest_reached(evidence),
            "the marked bytes are gone, but no drive was sent a discard: a layer above it returns "
            "zeros",
        )
    although = "" if stops is None else f", although {stops} declares that it passes no discards"
    return Decision(True, "none", f"the marked bytes are gone from the device{although}")


def _if_unchanged(evidence: Evidence, stops: str | None) -> Decision:
    sent = _last_value(evidence, "sent_drives_mib")
    if stops is not None:
        return Decision(
            False,
            stops,
            f"the marked bytes are unchanged, and {stops} declares that it passes no discards",
        )
    if sent is not None and sent >= MOST * _marked_mib(evidence):
        return Decision(
            None,
            None,
            f"drives were sent {sent:.4g} MiB of discards and still return the old data: they may "
            "drop it later, or ignore the discards",
        )
    if sent is not None and sent < _SENT_LEAST * _marked_mib(evidence):
        return Decision(
            False,
            _lowest_reached(evidence),
            f"the marked bytes are unchanged, and no drive was sent a discard{_refusal(evidence)}",
        )
    return Decision(
        None, None, "the marked bytes are unchanged; the number of discards sent is unknown"
    )


def _if_unknown(evidence: Evidence, stops: str | None, read: str) -> Decision:
    if stops is not None:
        why = f"{stops} declares that it passes no discards; {read}"
        return Decision(False, stops, why)
    freed = _freed_mib(evidence)
    if freed >= MOST * _marked_mib(evidence):
        return Decision(True, "none", f"{freed:.4g} MiB were freed below; {read}")
    sent = _last_value(evidence, "sent_drives_mib")
    if sent is not None and sent >= MOST * _marked_mib(evidence):
        why = f"drives were sent {sent:.4g} MiB of discards; {read}"
    else:
        why = f"few or no discards were counted{_refusal(evidence)}; {read}"
    return Decision(None, None, why)


def _lowest_reached(evidence: Evidence) -> str:
    """The lowest layer that was sent the discard; the file system if none was."""
    least = _SENT_LEAST * _marked_mib(evidence)
    reached: list[str] = [
        row["detail"] for row in evidence.observed("sent_mib") if row["value"] >= least
    ]
    names: dict[str, str] = {
        row["device"]: f"{row['device']} ({row['layer']})" for row in _declared(evidence)
    }
    if reached:
        return names.get(reached[-1], reached[-1])
    systems = [row for row in _declared(evidence) if row["layer"] == "file system"]
    return f"{systems[0]['device']} (file system)" if systems else "none"


def _sentence(decision: Decision) -> str:
    if decision.reaches is None:
        return f"Undecided whether discards reach the flash: {decision.why}."
    if decision.reaches:
        return f"Discards reach the flash: {decision.why}."
    return f"Discards do not reach the flash; {decision.layer} stops them: {decision.why}."


def _why_layer(decision: Decision) -> str:
    if decision.reaches is None:
        return "undecided"
    return "no layer stops it" if decision.reaches else decision.why


def _refusal(evidence: Evidence) -> str:
    """Why the discard was not carried out, if it was not."""
    detail = _detail(evidence, "fitrim_mib") or _detail(evidence, "discard_mib")
    return f" (the request to discard: {detail})" if detail else ""


def _declared(evidence: Evidence) -> list[dict[str, Any]]:
    rows = []
    for row in evidence.observed("passes"):
        passage = msgspec.json.decode(row["detail"])
        rows.append(
            {
                "step": "declared, below" if passage["below_file"] else "declared",
                "layer": passage["layer"],
                "device": passage["device"],
                "passes": _PASSES[row["value"]],
                "detail": passage["why"],
            }
        )
    return rows


def _read_backs(evidence: Evidence) -> list[dict[str, Any]]:
    """Rows in order of time: one for each read of the blocks, and one for the discard request."""
    rows = [_read_back_row(evidence, "written", "read before deleting")]
    rows.append(_read_back_row(evidence, "deleted", "read after deleting"))
    requests = [*evidence.observed("fitrim_mib"), *evidence.observed("discard_mib")]
    for request in requests:
        detail = request["detail"] or f"{request['value']:.4g} MiB, by its own count"
        rows.append(_row("asked to discard", detail))
    rows.append(_read_back_row(evidence, "trimmed", "read after discarding"))
    rows += [_row("not read", row["detail"]) for row in evidence.observed("not_read")]
    return [row for row in rows if row is not None]


def _read_back_row(evidence: Evidence, when: str, step: str) -> dict[str, Any] | None:
    counts = _read_back(evidence, when)
    if counts is None:
        return None
    waited = _last_value(evidence, f"waited_{when}_s")
    return _row(step, _listed(counts) + (f"; waited {waited:.3g} s" if waited else ""))


def _counts(evidence: Evidence) -> list[dict[str, Any]]:
    sent = [
        _row("sent", f"{row['value']:.4g} MiB of discards counted", row["detail"])
        for row in evidence.observed("sent_mib")
    ]
    used: dict[str, list[str]] = {}
    for when in ("before", "written", "after"):
        for row in evidence.observed(f"used_{when}_mib"):
            used.setdefault(row["detail"], []).append(f"{when} {row['value']:.5g} MiB")
    return sent + [_row("in use below", ", ".join(sizes), name) for name, sizes in used.items()]


def _row(step: str, detail: str, device: str | None = None) -> dict[str, Any]:
    return {"step": step, "layer": None, "device": device, "passes": None, "detail": detail}


def _last_read_back(evidence: Evidence) -> dict[str, float] | None:
    """MiB by kind of content, from the last read of the blocks after the file was deleted."""
    read_backs = (_read_back(evidence, when) for when in _WHENS)
    return next((counts for counts in read_backs if counts is not None), None)


def _read_back(evidence: Evidence, when: str) -> dict[str, float] | None:
    counts = {kind: _last_value(evidence, f"{kind}_{when}_mib") for kind in _KINDS}
    return {kind: mib for kind, mib in counts.items() if mib is not None} or None


def _all_ones(evidence: Evidence) -> bool:
    """Whether all blocks read as FFh: some drives return erased flash this way."""
    counts = _last_read_back(evidence)
    if counts is None or not counts["ones"]:
        return False
    total = sum(counts.values())
    return counts["ones"] == total and _addresses_are_right(evidence, total)


def _addresses_are_right(evidence: Evidence, total_mib: float) -> bool:
    """Whether all blocks read as written before the file was deleted."""
    return _last_value(evidence, "old_written_mib") == total_mib


def _freed_mib(evidence: Evidence) -> float:
    """MiB that the layers below the file system freed during the discard, by their own counts."""
    after = {row["detail"]: row["value"] for row in evidence.observed("used_after_mib")}
    written = evidence.observed("used_written_mib")
    return float(sum(row["value"] - after.get(row["detail"], row["value"]) for row in written))


def _ended(evidence: Evidence) -> bool:
    return bool(evidence.observed("waited_deleted_s") or evidence.observed("waited_trimmed_s"))


def _marked_mib(evidence: Evidence) -> float:
    return float(evidence.parameters["size_mib"])


def _last_value(evidence: Evidence, name: str) -> float | None:
    rows = evidence.observed(name)
    return rows[-1]["value"] if rows else None


def _detail(evidence: Evidence, name: str) -> str | None:
    rows = evidence.observed(name)
    return rows[-1]["detail"] or None if rows else None
