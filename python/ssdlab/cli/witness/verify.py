"""`ssdlab witness verify`: is every acknowledged write there? `report`: findings over all cuts."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ssdlab.cli.output import write_out
from ssdlab.cli.witness import options
from ssdlab.cli.witness.options import (
    FOLDER,
    SECRET,
    full_name,
    open_target,
    print_line,
    witness_from,
)
from ssdlab.errors import UsageError
from ssdlab.witness.limits import SECTOR, SUFFIX

if TYPE_CHECKING:
    from ssdlab.witness.judge import Judgement


app = typer.Typer(add_completion=False)

CONTROLS = ("none", "negative")
FAILURES_PRINTED = 10


@app.command(
    name="verify",
    epilog="Example: ssdlab witness verify /mnt/data/witness.bin --server 10.0.0.7 --secret secret",
)
def verify(
    target: options.TargetName,
    *,
    server: options.Server,
    secret: options.Secret = SECRET,
    run: options.Run = None,
    power_was_cut: Annotated[
        bool,
        typer.Option(
            "--power-was-cut", help="State that you cut the power, for drives that do not count it."
        ),
    ] = False,
    control: Annotated[
        str, typer.Option(help="none, or negative: the writer was killed, the power was not cut.")
    ] = "none",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Read the region back and report missing or damaged writes (status 1).

    A cut counts only with proof that power was lost: one more unsafe shutdown in the drive's
    SMART log, or --power-was-cut.
    """
    if control not in CONTROLS:
        raise UsageError(f"--control is {control!r}; it must be one of {', '.join(CONTROLS)}")
    witness, console = witness_from(server, secret), Console(stderr=True, quiet=quiet)
    from ssdlab.records import encode_json
    from ssdlab.witness.controls import describe, power_loss
    from ssdlab.witness.journal import events, ledger_of
    from ssdlab.witness.judge import verify as verify_region
    from ssdlab.witness.summary import summarize, verifications_of

    name, records = witness.fetch(run, full_name(target))
    rounds = events(records, "round")
    if not rounds:
        raise UsageError(f"the witness has no round of run {name}; write first")
    begun = rounds[-1]
    state = describe(target)
    proof = power_loss(begun["known"], state, attested=power_was_cut)
    opened = open_target(target, "fdatasync", begun["size_bytes"], writes=False)
    with console.status("") as status:
        judgement = verify_region(
            opened,
            bytes.fromhex(name),
            ledger_of(records),
            begun["round"],
            lambda share: status.update(f"reading: {share:.0%}"),
        )
    opened.close()
    event = {
        "event": "verified",
        "control": "positive" if begun["plan"]["sync"] == "none" else control,
        "proof": {"level": proof.level, "sentence": proof.sentence},
        "software": [*begun["known"]["software"], *state["software"]],
        "judgement": judgement.to_json(),
    }
    witness.record_event(name, event)
    event["round"] = begun["round"]
    summary = summarize(verifications_of(name, [*records, event]))
    _print_judgement(console, judgement, proof.sentence, summary)
    if json:
        head = {"ssdlab": version("ssdlab"), "experiment": "witness", "target": full_name(target)}
        body = {key: event[key] for key in ("round", "control", "proof", "judgement")}
        result = {key: summary[key] for key in ("findings", "verdict", "warnings")}
        write_out(encode_json({**head, "run": name, **body, **result}))
    # A positive control writes without flushes: a loss is expected.
    return 0 if judgement.is_clean or event["control"] == "positive" else 1


def _print_judgement(
    console: Console, judgement: Judgement, power: str, summary: dict[str, Any]
) -> None:
    in_flight = judgement.in_flight
    print_line(
        console,
        f"{judgement.durable} of {judgement.requests} requests were acknowledged as durable; "
        f"{in_flight.requests} were in flight, of which {in_flight.near_misses} did not reach the "
        "flash",
    )
    for kind, count in judgement.kinds.items():
        print_line(console, f"  {kind}: {count}")
    for failure in judgement.failures[:FAILURES_PRINTED]:
        known = failure.age_s is not None
        age = f", acknowledged {failure.age_s:.3f} s before the end" if known else ""
        sectors = f"{failure.bad_sectors} of {failure.sectors} sectors"
        print_line(console, f"  {failure.kind} at byte {failure.first * SECTOR}: {sectors}{age}")
    print_line(console, f"power: {power}")
    for warning in summary["warnings"]:
        print_line(console, f"warning: {warning}")
    print_line(console, summary["verdict"])


@app.command(name="report", epilog="Example: ssdlab witness report ssdlab-witness")
def report(
    journals: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of journals, or one journal.")
    ] = FOLDER,
    *,
    target: Annotated[str | None, typer.Option(help="Only runs of this target.")] = None,
    json: options.Json = False,
) -> int:
    """Count the cuts, bound the loss rate, give a verdict (status 1 if data was lost)."""
    from ssdlab.records import encode_json
    from ssdlab.witness.journal import events, read
    from ssdlab.witness.summary import summarize, verifications_of

    paths = sorted(journals.glob(f"*{SUFFIX}")) if journals.is_dir() else [journals]
    verifications = []
    targets: set[str] = set()
    for path in paths:
        records = read(path)
        rounds = events(records, "round")
        name = str(rounds[0]["target"]) if rounds else ""
        if target is None or name == full_name(target):
            verifications += verifications_of(path.stem, records)
            targets.add(name)
    if not verifications:
        raise UsageError(f"{journals} has no verification; run `ssdlab witness verify` first")
    summary = summarize(verifications)
    if len(targets) > 1:
        summary["warnings"].append(
            f"The counts cover {len(targets)} targets; give --target for one of them."
        )
    if json:
        write_out(encode_json({"ssdlab": version("ssdlab"), "experiment": "witness", **summary}))
    else:
        _print_findings(summary, sorted(targets))
    return 1 if summary["bad"] else 0


def _print_findings(summary: dict[str, Any], targets: list[str]) -> None:
    from ssdlab.report.table import print_table
    from ssdlab.view import Column, Table

    console = Console()
    print_line(console, ", ".join(targets))
    columns = [Column(title, numeric=False) for title in ("finding", "value", "95 %", "why")]
    rows = []
    for name, finding in summary["findings"].items():
        low, high = finding["low"], finding["high"]
        bounds = "" if high is None else f"{low or 0:.2g} ... {high:.2g}"
        rows.append((name, _value(finding["value"]), bounds, finding["why"]))
    print_table(Table(tuple(columns), tuple(rows)), console)
    for warning in summary["warnings"]:
        print_line(console, f"warning: {warning}")
    print_line(console, summary["verdict"])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {kind}" for kind, count in value.items()) or "none"
    return "" if value is None else f"{value:.4g}"
