"""The command line: one file a verb."""

from ssdlab.cli.app import main

__all__ = ["main"]
