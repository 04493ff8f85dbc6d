"""A checkup as a picture to share: the table and the lights.

It names the drive's model, not the path, the serial number or the machine. matplotlib, which draws
the figures of all reports, also writes PNG.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ssdlab.charts import LIGHT, draw_file
from ssdlab.checkup.report.content import Content, speed_text, when
from ssdlab.checkup.report.html import bar_percent
from ssdlab.errors import UsageError
from ssdlab.report.html import put

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 1200, 630
"""The size in pixels that most sites show a picture in without cutting it."""
_MARGIN: Final = 56
_COLOURS: Final = {"red": "aged", "yellow": "run4", "green": "run2", "grey": "fill"}
_ROWS_TOP, _ROW, _GAP = 178, 84, 10
_NAME_WIDTH, _CELL_WIDTH = 150, 262
_LIGHTS_LEFT: Final = 790
_WARNING_LENGTH: Final = 150
"""Characters of the table's warning that fit on a line."""
_DRIVE_LENGTH: Final = 74
"""Characters of the drive's name that fit on a line."""


def card_kind(path: Path) -> Literal["png", "svg"]:
    """The kind of picture that a file name asks for.

    Raises:
        UsageError: neither .png nor .svg, or no such directory.
    """
    kind = path.suffix.lower()
    if kind not in {".png", ".svg"} or not path.absolute().parent.is_dir():
        raise UsageError(
            f"--card is {path}; give a file that ends in .png or .svg, in an existing directory"
        )
    return "png" if kind == ".png" else "svg"


def write_card(content: Content, path: Path) -> None:
    """Write the picture atomically.

    Raises:
        UsageError: the file cannot be written, or is neither .png nor .svg.
    """
    kind = card_kind(path)
    put(path, draw_file(kind, WIDTH, HEIGHT, lambda figure: _paint(content, figure)))


def _paint(content: Content, figure: Figure) -> None:
    """Draw in pixels from the upper left corner."""
    pane = figure.add_axes((0, 0, 1, 1))
    pane.set_xlim(0, WIDTH)
    pane.set_ylim(HEIGHT, 0)
    pane.set_axis_off()
    _paint_head(content, pane)
    for number, row in enumerate(content.measures):
        _paint_row(pane, _ROWS_TOP + number * (_ROW + _GAP), row.test, row)
    if content.measures:
        below = textwrap.shorten(content.table_warning, _WARNING_LENGTH, placeholder=" ...")
        _text(pane, _MARGIN, HEIGHT - 64, below, 13, "muted")
    else:
        _text(pane, _MARGIN, _ROWS_TOP + 60, "Speed was not measured.", 20, "muted")
    for number, light in enumerate(content.lights):
        y = _ROWS_TOP + 16 + number * 44
        _lamp(pane, _LIGHTS_LEFT, y, light.colour)
        _text(pane, _LIGHTS_LEFT + 26, y, light.title, 19)
        word = "not measured" if light.colour == "grey" else light.colour
        _text(pane, WIDTH - _MARGIN, y, word, 15, "muted", ha="right")
    foot = f"ssdlab {content.ssdlab} checkup; bars on a logarithmic scale"
    _text(pane, _MARGIN, HEIGHT - 34, foot, 15, "muted")
    kind = "twin, virtual time" if content.virtual else when(content).partition(",")[0]
    _text(pane, WIDTH - _MARGIN, HEIGHT - 34, kind, 15, "muted", ha="right")


def _paint_head(content: Content, pane: Axes) -> None:
    model, _, rest = content.drive.partition(", ")
    model = model if len(model) <= 46 else f"{model[:45]}…"
    _text(pane, _MARGIN, 66, model, 30, weight="bold")
    _text(pane, _MARGIN, 108, rest[:_DRIVE_LENGTH], 17, "muted")
    for at, name in enumerate(("Read", "Write")):
        x = _MARGIN + _NAME_WIDTH + at * (_CELL_WIDTH + _GAP) + _CELL_WIDTH
        _text(pane, x, _ROWS_TOP - 24, f"{name} MB/s", 16, "muted", ha="right")


def _paint_row(pane: Axes, y: float, name: str, row: Any) -> None:
    _text(pane, _MARGIN, y + _ROW / 2 - 14, name[:5], 21, weight="bold")
    _text(pane, _MARGIN, y + _ROW / 2 + 16, name[5:].strip(), 17, "muted")
    for at, value in enumerate((row.read_mb_per_s, row.write_mb_per_s)):
        x = _MARGIN + _NAME_WIDTH + at * (_CELL_WIDTH + _GAP)
        _box(pane, x, y, _CELL_WIDTH, "grid", 0.45)
        _box(pane, x, y, _CELL_WIDTH * bar_percent(value) / 100, "run1", 0.3)
        _text(pane, x + _CELL_WIDTH - 16, y + _ROW / 2, speed_text(value), 32, ha="right")


def _box(pane: Axes, x: float, y: float, width: float, colour: str, alpha: float) -> None:
    from matplotlib.patches import Rectangle

    style: dict[str, Any] = {"facecolor": LIGHT[colour], "alpha": alpha, "linewidth": 0}
    pane.add_patch(Rectangle((x, y), width, _ROW, **style))


def _lamp(pane: Axes, x: float, y: float, colour: str) -> None:
    from matplotlib.patches import Circle

    role = LIGHT[_COLOURS[colour]]
    style = {"facecolor": "none" if colour == "grey" else role, "edgecolor": role, "linewidth": 2}
    pane.add_patch(Circle((x, y), 9, **style))


def _text(
    pane: Axes, x: float, y: float, text: str, size: float, role: str = "ink", **style: Any
) -> None:
    pane.text(x, y, text, fontsize=size, color=LIGHT[role], va="center", **style)
