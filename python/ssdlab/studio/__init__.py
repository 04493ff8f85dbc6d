"""Pages that show the inside of twins: the studio with its scenes, and a served twin, live."""

from ssdlab.studio.page import PageOptions, make_page, make_watch_page
from ssdlab.studio.recorder import Recorder
from ssdlab.studio.scenes import SCENES

__all__ = ["SCENES", "PageOptions", "Recorder", "make_page", "make_watch_page"]
