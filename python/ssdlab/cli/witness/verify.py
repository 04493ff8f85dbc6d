"""`ssdlab witness verify`: after the cut: is all there that was acknowledged?"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any, cast

import typer
from rich.console import Console

from ssdlab.cli.output import write_out
from ssdlab.cli.witness import options
from ssdlab.cli.witness.options import SECRET, named, open_target, say, witness_at
from ssdlab.errors import UsageError
from ssdlab.records import encode_json
from ssdlab.witness.controls import Proof, describe, proof
from ssdlab.witness.journal import events, ledger_of
from ssdlab.witness.judge import Judgement, as_record
from ssdlab.witness.summary import Control, looks_of, summarize
from ssdlab.witness.verify import verify as look

app = typer.Typer(add_completion=False)

CONTROLS = ("none", "negative")


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
        bool, typer.Option("--power-was-cut", help="You saw to it; where no drive counts it.")
    ] = False,
    control: Annotated[
        str, typer.Option(help="none, or negative: the writer was killed, no power was cut.")
    ] = "none",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Read the whole region back and say what is missing, and of what kind (status 1).

    A look without proof that power was lost (unsafe shutdowns + 1, or --power-was-cut) is told but
    not counted.
    """
    if control not in CONTROLS:
        raise UsageError(f"--control is {control!r}; it may be one of {', '.join(CONTROLS)}")
    witness, console = witness_at(server, secret), Console(stderr=True, quiet=quiet)
    name, records = witness.records(run, named(target))
    rounds = events(records, "round")
    if not rounds:
        raise UsageError(f"the witness has no round of run {name}; write first")
    begun = rounds[-1]
    known = describe(target)
    shown = proof(begun["known"], known, attested=power_was_cut)
    kind = "positive" if begun["plan"]["sync"] == "none" else control
    opened = open_target(target, "fdatasync", begun["size_bytes"], writes=False)
    with console.status("") as status:
        judgement = look(
            opened,
            bytes.fromhex(name),
            ledger_of(records),
            begun["round"],
            lambda share: status.update(f"reading: {share:.0%}"),
        )
    opened.close()
    event = {
        "event": "verified",
        "control": kind,
        "proof": {"level": shown.level, "sentence": shown.sentence},
        "software": [*begun["known"]["software"], *known["software"]],
        "judgement": as_record(judgement),
    }
    witness.note(name, event)
    event["round"] = begun["round"]
    summary = summarize(looks_of(name, [*records, event]))
    _tell(console, judgement, shown, summary)
    if json:
        write_out(encode_json(_result(name, named(target), event, summary)))
    return _status(cast("Control", kind), judgement)


def _status(control: Control, judgement: Judgement) -> int:
    """1 where something is missing; a positive control is meant to lose."""
    return 0 if judgement.is_clean or control == "positive" else 1


def _tell(console: Console, judgement: Judgement, shown: Proof, summary: dict[str, Any]) -> None:
    flight = judgement.in_flight
    say(
        console,
        f"{judgement.durable} of {judgement.requests} requests were acknowledged as durable; in "
        f"flight {flight.requests}, of which {flight.near_misses} did not reach the flash",
    )
    for kind, count in judgement.kinds.items():
        say(console, f"  {kind}: {count}")
    for failure in judgement.failures[:10]:
        age = (
            "" if failure.age_s is None else f", acknowledged {failure.age_s:.3f} s before the end"
        )
        say(
            console,
            f"  {failure.kind} at byte {failure.first * 512}: {failure.bad_sectors} of "
            f"{failure.sectors} sectors{age}",
        )
    say(console, f"power: {shown.sentence}")
    for warning in summary["warnings"]:
        say(console, f"warning: {warning}")
    say(console, summary["verdict"])


def _result(
    run: str, target: str, event: dict[str, Any], summary: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ssdlab": version("ssdlab"),
        "experiment": "witness",
        "target": target,
        "run": run,
        "round": event["round"],
        "control": event["control"],
        "proof": event["proof"],
        "judgement": event["judgement"],
        **{key: summary[key] for key in ("findings", "verdict", "warnings")},
    }
