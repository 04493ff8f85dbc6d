"""The link to the studio's page, which `tools/site.sh` adds to the site if its module is built."""

from ssdlab.studio.page import MODULE

PAGE = "studio-page.html"


def markdown() -> str:
    """A paragraph with the link; empty without the module."""
    return f'<p><a href="{PAGE}">Open the studio</a></p>' if MODULE.exists() else ""
