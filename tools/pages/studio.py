"""Links to the studio's page, which `tools/site.sh` adds to the site if its module is built."""

from ssdlab.studio.page import MODULE
from ssdlab.studio.scenes import load_scene

PAGE = "studio-page.html"


def scene_link(name: str) -> str:
    """A paragraph of a page in `experiments/` that links to a scene; empty without the module."""
    if not MODULE.exists():
        return ""
    title = load_scene(name).title
    return f'<p><a href="../{PAGE}#scene={name}">See it step by step in the studio: {title}</a></p>'


def markdown() -> str:
    """A paragraph with the link; empty without the module."""
    return f'<p><a href="{PAGE}">Open the studio</a></p>' if MODULE.exists() else ""
