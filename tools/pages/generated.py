"""A Sphinx extension that inserts generated references and shortens titles in the page list.

`<!-- generated: NAME -->` on a line of its own is replaced by the output of `PARTS[NAME]`, with the
line in italics after it, which is for readers of a checkout.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from docutils import nodes

from pages import columns, profile_keys, python, statuses, studio, verbs
from ssdlab.studio import SCENES

_PLACE = re.compile(r"^<!-- generated: ([a-z-]+) -->(?:\n\*.*\*)?$", re.MULTILINE)
_AFTER_COLLECTORS: Final = 900
PARTS: Final[dict[str, Callable[[], str]]] = {
    "verbs": verbs.markdown,
    "profile-keys": profile_keys.markdown,
    "columns": columns.markdown,
    "python": python.markdown,
    "statuses": statuses.markdown,
    "studio": studio.markdown,
    **{f"scene-{name}": partial(studio.scene_link, name) for name in SCENES},
}


def fill(source: str) -> str:
    """The page with its generated parts.

    Raises:
        KeyError: an unknown part.
    """
    return _PLACE.sub(lambda match: PARTS[match[1]](), source)


def setup(app: Any) -> dict[str, Any]:
    """The entry point that Sphinx calls."""
    app.connect("source-read", lambda _app, _name, source: _fill(source))
    app.connect("doctree-read", _shorten, priority=_AFTER_COLLECTORS)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _fill(source: list[str]) -> None:
    source[0] = fill(source[0])


def _shorten(app: Any, _doctree: Any) -> None:
    """Shorten `aging: does random writing ...` to `aging` in the list of pages."""
    entry = next(app.env.tocs[app.env.docname].findall(nodes.reference))
    name, colon, _ = entry.astext().partition(": ")
    if colon:
        entry.children = [nodes.Text(name)]
