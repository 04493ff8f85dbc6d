"""How Sphinx makes the site: `make site`. No fonts, scripts or images of other hosts."""

import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))

project = "ssdlab"
extensions = ["myst_parser", "pages.generated"]
exclude_patterns: list[str] = []
# A link to a heading is checked down to this level.
myst_heading_anchors = 4
# Blocks without a language are commands, their output, or profiles: none is coloured by a guess.
highlight_language = "text"
# Two hyphens begin an option, in text and in help that is text here.
smartquotes = False

html_theme = "furo"
html_title = "ssdlab"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_copyright = False
