"""`ssdlab twin`: its commands register themselves in one group."""

from ssdlab.cli.twin import fit, what_if
from ssdlab.cli.twin.profiles import app

__all__ = ["app", "fit", "what_if"]
