"""The paper that figures are drawn on: sizes, colours, and SVG that a page can hold.

Colours are roles. In the SVG each is a CSS variable with its light value to fall back on, so that a
page can show the same figure on light and on dark; text takes the page's font.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ssdlab.wording import given

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Where a home cannot be written it says so in several lines; its cache then goes elsewhere.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

# role: (on light, on dark). The light values are told apart when SVG is dressed: all differ.
PALETTE: Final = {
    "ink": ("#17212b", "#e9eef3"),
    "muted": ("#566371", "#a3b0bd"),
    "grid": ("#dde3e9", "#323d48"),
    "paper": ("#fffffe", "#171d24"),
    "run1": ("#1f6fd1", "#6eb1ff"),
    "run2": ("#0d8567", "#4fd1ab"),
    "run3": ("#8e4ec6", "#c79bf2"),
    "run4": ("#a86a0c", "#e8b65a"),
    "run5": ("#c43d7f", "#f48fbd"),
    "run6": ("#46617c", "#a9c3dd"),
    "fresh": ("#7a8da0", "#8fa3b6"),
    "aged": ("#d0451b", "#ff8a5c"),
    "fill": ("#8592a1", "#8b99a8"),
    "overwrite": ("#d0461c", "#ff8b5d"),
    "read": ("#1f6fd2", "#6eb2ff"),
}
RUN_COLOURS: Final = tuple(light for role, (light, _) in PALETTE.items() if role[:3] == "run")
INK, MUTED, GRID, PAPER = (PALETTE[role][0] for role in ("ink", "muted", "grid", "paper"))

_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": 12,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 1,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
    "xtick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.color": GRID,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}
_STYLE_ELEMENT: Final = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_FONT: Final = re.compile(r"(font: (?:\d+ )?[\d.]+px |font-family: )'DejaVu Sans'[^;\"]*")


def role_of(colour: str) -> str:
    """The role, and so the CSS variable, of a light value of the palette."""
    return next(role for role, (light, _) in PALETTE.items() if light == colour)


@dataclass(frozen=True)
class Size:
    """A figure's width in CSS pixels, for a desk or for a phone."""

    name: str
    width: int

    @property
    def narrow(self) -> bool:
        """Whether little room is left for labels."""
        return self.width < 500


WIDE: Final = Size("wide", 760)
NARROW: Final = Size("narrow", 380)


class Margins(NamedTuple):
    """Pixels around the axes."""

    left: float
    right: float
    top: float
    bottom: float


class Plate(NamedTuple):
    """What a figure is drawn on: what it is called, what it shows, and how large it is."""

    name: str  # unique in a page
    title: str  # what somebody hears who does not see it
    width: float
    height: float


def draw(plate: Plate, paint: Callable[[Figure], None]) -> str:
    """An `<svg>` element with what `paint` draws; the same call gives the same text."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    name = re.sub(r"[^A-Za-z0-9]+", "-", plate.name).strip("-")
    text = io.StringIO()
    with mpl.rc_context(), warnings.catch_warnings():
        # The page's font may have what DejaVu Sans has not.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        mpl.rcParams["svg.hashsalt"] = name
        figure = Figure(figsize=(plate.width / 72, plate.height / 72), dpi=72)
        paint(figure)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=nothing, transparent=True)
    return _dress(text.getvalue(), name, plate.title)


def axes(figure: Figure, margins: Margins) -> Axes:
    """Axes with fixed margins, so that figures of a page line up."""
    width, height = figure.get_size_inches() * 72
    left, right, top, bottom = margins
    box = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - top - bottom) / height,
    )
    return figure.add_axes(box)


def tick(value: float, _position: int | None = None) -> str:
    """A number at an axis, as `matplotlib` asks for it."""
    return given(value)


def name_axes(axes: Axes, across: str, up: str, lift: float = 14) -> None:
    """Names both axes: `across` below, `up` lying above, where it reads without a turned head.

    `lift` is the space in pixels between the axes and the name above.
    """
    axes.set_xlabel(across, loc="right", labelpad=8)
    axes.annotate(
        up,
        (0, 1),
        xytext=(2 - axes.bbox.x0, lift),
        xycoords="axes fraction",
        textcoords="offset points",
        color=MUTED,
        va="bottom",
    )


def _dress(svg: str, name: str, title: str) -> str:
    """The drawing as an element of a page: own ids, roles for colours, a title for readers."""
    svg = _STYLE_ELEMENT.sub("", svg[svg.index("<svg") :].rstrip())
    for opening in ('id="', 'href="#', "url(#"):
        svg = svg.replace(opening, f"{opening}{name}-")
    for role, (light, _) in PALETTE.items():
        svg = svg.replace(light, f"var(--{role}, {light})")
    svg = _FONT.sub(r"\1var(--font, system-ui, sans-serif)", svg)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (?:width|height)="[^"]*"', "", head)
    head += f' role="img" aria-labelledby="{name}-title"'
    head += ' style="stroke-linejoin: round; stroke-linecap: butt"'
    return f'{head}>\n <title id="{name}-title">{escape(title)}</title>{rest}'
