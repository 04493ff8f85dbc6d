"""`KEY=VALUE` changes of a profile: their effect, and errors."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.fit.change import Change, apply_changes
from ssdlab.profiles.toml_edit import get_value, restore_value, set_value

XG5 = profiles.load("toshiba-xg5")


def test_a_change_replaces_one_value_only() -> None:
    text, changes = apply_changes("xg5", XG5, ["ftl.spare=0.27"])
    assert changes == [Change("ftl.spare", 0.0687, 0.27)]
    assert describe_twin("xg5", text)["spare"] == pytest.approx(0.27, abs=0.001)
    assert set(text.splitlines()) - set(XG5.splitlines()) == {"spare = 0.27"}


MULTI_LINE = """[
    "40.06 us", # the fast page
    "52.07 us",
    "64.09 us",
]"""


def _with_multi_line_arrays() -> str:
    lines = XG5.splitlines()
    index = next(n for n, line in enumerate(lines) if line.startswith("read = "))
    lines[index] = f"read = {MULTI_LINE}"
    text = "\n".join(lines) + "\n"
    assert get_value(text, "flash.read") == get_value(XG5, "flash.read")
    return text


def test_a_multi_line_array_survives_a_change_of_another_key() -> None:
    before = _with_multi_line_arrays()
    text, _ = apply_changes("xg5", before, ["flash.program=800 us", "ftl.spare=0.27"])
    assert MULTI_LINE in text
    assert get_value(text, "flash.program") == "800 us"
    assert set(text.splitlines()) - set(before.splitlines()) == {
        *('program = "800 us"', "spare = 0.27")
    }


def test_a_multi_line_array_is_replaced_and_restored_whole() -> None:
    before = _with_multi_line_arrays()
    text, _ = apply_changes("xg5", before, ['flash.read=["50 us", "60 us"]'])
    assert get_value(text, "flash.read") == ["50 us", "60 us"]
    assert "52.07 us" not in text
    fitted = set_value(before, "flash.read", ["50 us"], "a fit")
    assert get_value(fitted, "flash.read") == ["50 us"]
    assert 'source = "a fit", kind = "fitted"' in fitted
    assert restore_value(fitted, before, "flash.read") == before


@pytest.mark.parametrize(
    ("assignment", "becomes"),
    [
        ("flash.read=50 us", "50 us"),
        ('flash.read=["40 us", "60 us"]', ["40 us", "60 us"]),
        ("buffer.power_loss_protection=true", True),
        ("ftl.read_portion=none", None),
        ("flash.channels = 4", 4),
    ],
)
def test_values_are_toml_or_unquoted_strings(assignment: str, becomes: object) -> None:
    text, [change] = apply_changes("xg5", XG5, [assignment])
    assert get_value(text, change.key) == change.becomes == becomes


def test_a_missing_table_is_added() -> None:
    text, _ = apply_changes("xg5", XG5, ["slc.size=12 GiB", "slc.program=200 us"])
    assert get_value(text, "slc.size") == "12 GiB"
    assert get_value(text, "buffer.size") == "8 MiB"


@pytest.mark.parametrize(
    ("assignments", "reason"),
    [
        (["ftl.spar=0.2"], "ftl.spar: no such key, did you mean spare"),
        (["ftl.spare=2"], "ftl.spare: is 2; may be a share"),
        (["flash.read=50"], "flash.read: is 50; may be a time"),
        (["spare=0.2"], "TABLE.KEY=VALUE"),
        (["ftl.spare"], "TABLE.KEY=VALUE"),
        (["ftl.spare=0.2", "ftl.spare=0.3"], "twice"),
        (["ftl.spare=0.0687"], "is already 0.0687"),
        (["slc.size=none"], "is already absent"),
        (["slac.size=1 GiB"], "no such key"),
    ],
)
def test_an_invalid_change_is_refused_with_one_line(assignments: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as raised:
        apply_changes("xg5", XG5, assignments)
    assert "\n" not in str(raised.value)
