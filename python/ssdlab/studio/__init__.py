"""The studio: one HTML page in which twins run, with scenes that repeat experiments."""

from ssdlab.studio.page import PageOptions, make_page
from ssdlab.studio.scenes import SCENES

__all__ = ["SCENES", "PageOptions", "make_page"]
