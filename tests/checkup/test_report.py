"""The card and the page of a checkup: values, and nothing that a picture to share must not show."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from matplotlib.figure import Figure

from ssdlab.checkup.lights import Light
from ssdlab.checkup.report import card
from ssdlab.checkup.report.card import card_kind
from ssdlab.checkup.report.content import Content
from ssdlab.checkup.report.html import bar_percent, tile
from ssdlab.checkup.table import TableRow
from ssdlab.errors import UsageError


@pytest.fixture
def content() -> Content:
    return Content(
        ssdlab="0.1.0",
        target="/home/anna/secret",
        virtual=False,
        drive="Samsung SSD 970 EVO Plus 500GB, nvme, 465.8 GiB; ext4",
        started="2026-11-24T12:00:00+00:00",
        duration_s=200.0,
        outcome="complete",
        verdict="",
        lights=[
            Light("ageing", "After random writes", "red", "It is slow."),
            Light("health", "Health", "grey", "Not measured: it takes root."),
        ],
        measures=[
            TableRow("SEQ1M Q8T1", 3493.4, 2001.6),
            TableRow("RND4K Q1T1", 83.14, None),
        ],
        table_warning="",
        notes=[],
        folder="/home/anna/ssdlab-runs/x",
        doctor=None,
        runs=[],
    )


def test_the_card_has_the_table_and_the_lights_and_no_path(content: Content) -> None:
    figure = Figure()
    card._paint(content, figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    expected = ["Samsung SSD 970 EVO Plus 500GB", "nvme, 465.8 GiB; ext4", "SEQ1M", "Q8T1"]
    expected += ["RND4K", "Q1T1", "3493", "2002", "83.1", "-", "After random writes", "red"]
    expected += [
        "Health",
        "not measured",
        "ssdlab 0.1.0 checkup; bars on a logarithmic scale",
        "2026-11-24 12:00 UTC",
    ]
    assert set(expected) <= set(texts)
    assert not [text for text in texts if "anna" in text]


def test_the_card_has_the_tables_warning_shortened_to_a_line(content: Content) -> None:
    figure = Figure()
    warning = f"The table's runs differ from their mean: {', '.join(['RND4K by 20 %'] * 20)}."
    card._paint(msgspec.structs.replace(content, table_warning=warning), figure)
    (shown,) = [text.get_text() for text in figure.axes[0].texts if "differ" in text.get_text()]
    assert shown.endswith(" ...")
    assert len(shown) <= 150


@pytest.mark.parametrize(
    ("value", "percent"), [(None, 0), (0.5, 0), (1, 0), (10, 25), (10_000, 100), (50_000, 100)]
)
def test_bars_are_logarithmic(value: float | None, percent: int) -> None:
    assert bar_percent(value) == percent


def test_the_tile_of_the_page_has_the_same_values(content: Content) -> None:
    rows = [(name, read.text, write.text) for name, read, write in tile(content)]
    assert rows == [("SEQ1M Q8T1", "3493", "2002"), ("RND4K Q1T1", "83.1", "-")]


def test_the_name_of_a_card_chooses_its_kind(tmp_path: Path) -> None:
    assert card_kind(tmp_path / "a.PNG") == "png"
    assert card_kind(tmp_path / "a.svg") == "svg"
    with pytest.raises(UsageError, match=r"a file that ends in \.png or \.svg"):
        card_kind(tmp_path / "a.gif")
