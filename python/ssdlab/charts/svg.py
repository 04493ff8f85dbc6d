"""A matplotlib figure as an SVG element for an HTML page.

Colours are named by role. In the SVG each role is a CSS variable with its light value as fallback,
so the page chooses light or dark. Text uses the page's font.
"""

from __future__ import annotations

import io
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Without a writable home directory matplotlib warns and uses a temporary cache.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

# role: (light, dark). Light values differ, because each has its own role in the drawing.
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
LIGHT: Final = {role: light for role, (light, _) in PALETTE.items()}
RUN_ROLES: Final = tuple(role for role in PALETTE if role.startswith("run"))

_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],  # part of matplotlib: the same layout on every machine
    "font.size": 12,
    "text.color": LIGHT["ink"],
    "axes.edgecolor": LIGHT["grid"],
    "axes.facecolor": "none",
    "axes.labelcolor": LIGHT["muted"],
    "axes.axisbelow": True,
    "axes.formatter.limits": (-12, 15),  # no powers of ten
    "axes.formatter.useoffset": False,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "grid.color": LIGHT["grid"],
    "grid.linewidth": 1,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
    "xtick.color": LIGHT["grid"],
    "xtick.labelcolor": LIGHT["muted"],
    "ytick.color": LIGHT["grid"],
    "ytick.labelcolor": LIGHT["muted"],
    "ytick.major.size": 0,
}
_FONT: Final = ("'DejaVu Sans'", "var(--font, system-ui, sans-serif)")
_DPI: Final = 72  # a pixel is a point
_NO_METADATA: Final = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Size:
    """A figure's width in CSS pixels."""

    name: str
    width: int

    @property
    def narrow(self) -> bool:
        """Whether the figure is for a phone."""
        return self.width < 500


WIDE: Final = Size("wide", 760)
NARROW: Final = Size("narrow", 380)


def run_colour(number: int) -> str:
    """The colour role of a run by its number (from 1), the same in all figures of a report."""
    return RUN_ROLES[(number - 1) % len(RUN_ROLES)]


@dataclass(frozen=True)
class Hint:
    """Lines of text about the point at `x`, `y`, in pixels from the figure's upper left corner."""

    x: float
    y: float
    lines: tuple[str, ...]


def draw(
    name: str,
    title: str,
    size: tuple[float, float],
    paint: Callable[[Figure], Sequence[Hint]],
) -> str:
    """The figure as an `<svg>` element; the same input gives the same text.

    `name` must be unique on the page. `title` is the accessible name; `size` is in pixels. The
    values that `paint` returns become the attribute `data-values`: the page's script shows them
    under the pointer.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    text = io.StringIO()
    with _figure(*size, {"svg.hashsalt": name}) as figure:
        values = paint(figure)
        figure.savefig(text, format="svg", metadata=_NO_METADATA, transparent=True)
    return _for_page(text.getvalue(), name, title, _as_json(values))


def draw_file(
    kind: Literal["png", "svg"], width: float, height: float, paint: Callable[[Figure], None]
) -> bytes:
    """The figure as the content of an image file: opaque, in light colours, with its own fonts.

    A PNG has twice as many pixels as `width` and `height`, for screens of high resolution.
    """
    content = io.BytesIO()
    own: dict[Any, Any] = {
        "svg.fonttype": "path",
        "svg.hashsalt": "file",
        "figure.facecolor": LIGHT["paper"],
    }
    with _figure(width, height, own) as figure:
        paint(figure)
        if kind == "svg":
            figure.savefig(content, format="svg", metadata=_NO_METADATA)
        else:
            figure.savefig(content, format="png", dpi=2 * _DPI, metadata={"Software": None})
    return content.getvalue()


@contextmanager
def _figure(width: float, height: float, own: dict[Any, Any]) -> Iterator[Figure]:
    """An empty figure, and matplotlib's settings to save it with; `own` replaces some of them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(), warnings.catch_warnings():
        # The page's font may have glyphs that DejaVu Sans lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        mpl.rcParams.update(own)
        yield Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)


def _as_json(values: Sequence[Hint]) -> str:
    """A list of the distinct texts, and a row for each value: x, y, indices of its texts."""
    texts = list(dict.fromkeys(line for value in values for line in value.lines))
    index = {text: at for at, text in enumerate(texts)}
    points = [[round(v.x), round(v.y), *(index[line] for line in v.lines)] for v in values]
    return json.dumps([texts, points], ensure_ascii=False, separators=(",", ":"))


def _for_page(drawing: str, name: str, title: str, values: str) -> str:
    """Prefix ids, replace colours and fonts with CSS variables, and add the accessible name."""
    root = ET.fromstring(drawing)  # noqa: S314 - matplotlib wrote it
    root.remove(root[0])  # a style sheet that would apply to the whole page
    for element in root.iter():
        if element.tag == f"{_NAMESPACE}g":
            element.attrib.pop("id", None)  # never referenced
        for key, value in element.attrib.items():
            element.set(key, _attribute(key, value, name))
    del root.attrib["width"], root.attrib["height"]
    root.attrib |= {
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "style": "stroke-linejoin: round; stroke-linecap: butt",
        "data-values": values,
    }
    label = ET.Element(f"{_NAMESPACE}title", id=f"{name}-title")
    label.text = title
    root.insert(0, label)
    ET.register_namespace("", _NAMESPACE.strip("{}"))
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    return ET.tostring(root, encoding="unicode")


def _attribute(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "style":
        for role, light in LIGHT.items():
            value = value.replace(light, f"var(--{role}, {light})")
        return value.replace(*_FONT)
    return value.replace("#", f"#{name}-") if key.endswith(("href", "clip-path")) else value
