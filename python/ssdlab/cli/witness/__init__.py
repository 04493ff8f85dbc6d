"""`ssdlab witness`: one file a sub-command."""

from __future__ import annotations

# Each registers itself in the group.
from ssdlab.cli.witness import report, serve, verify, write
from ssdlab.cli.witness.group import app

__all__ = ["app", "report", "serve", "verify", "write"]
