"""`ssdlab witness`: the group of its sub-commands."""

from __future__ import annotations

from ssdlab.cli.lazy import Member, lazy_group

app = lazy_group(
    "Does a drive keep acknowledged writes? A second machine records them; you cut power.",
    "ssdlab witness serve --listen 0.0.0.0:5400",
    {
        "report": Member(
            "ssdlab.cli.witness.verify",
            "Count the cuts, bound the loss rate, give a verdict (status 1 if data was lost).",
        ),
        "serve": Member(
            "ssdlab.cli.witness.serve",
            "Record acknowledged writes of other machines, on a machine that keeps its power.",
        ),
        "verify": Member(
            "ssdlab.cli.witness.verify",
            "Read the region back and report missing or damaged writes (status 1).",
        ),
        "write": Member(
            "ssdlab.cli.witness.write", "Write stamped requests at random until the power is cut."
        ),
    },
)
