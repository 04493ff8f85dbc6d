"""Sphinx configuration of `make site`. No fonts, scripts or images from other hosts."""

import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))

project = "ssdlab"
extensions = ["myst_parser", "pages.generated"]
exclude_patterns: list[str] = []
# Links to headings are checked down to this level.
myst_heading_anchors = 4
# Blocks without a language are commands, output or profiles: do not guess a language.
highlight_language = "text"
# Keep the two hyphens of options.
smartquotes = False

html_theme = "furo"
html_title = "ssdlab"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_copyright = False
