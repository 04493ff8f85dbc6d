"""The report of a checkup: on the terminal, as JSON, as an HTML page, and as a card to share."""

from ssdlab.checkup.report.card import write_card
from ssdlab.checkup.report.content import Content, content_of
from ssdlab.checkup.report.html import write_html
from ssdlab.checkup.report.terminal import render

__all__ = ["Content", "content_of", "render", "write_card", "write_html"]
