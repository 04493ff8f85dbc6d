"""Formatting of values, labels and findings."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ssdlab.records import Finding
from ssdlab.wording import (
    column,
    cut,
    finding_interval,
    finding_value,
    format_number,
    label,
    number,
    plain,
    quantity,
    shorten,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1.9, "1.90"),
        (10.71, "10.7"),
        (9.999, "10.0"),
        (5050.0, "5050"),
        (1234.5, "1234"),
        (0.000123, "0.000123"),
        (-0.0456, "-0.0456"),
        (10**15, "1000000000000000"),
        (math.inf, "-"),
        (math.nan, "-"),
    ],
)
def test_a_measured_number_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(50.0, "50"), (6.25, "6.25"), (100, "100"), (0.001, "0.001"), (251.99609375, "252")],
)
def test_a_parameter_has_no_trailing_zeros(value: float, text: str) -> None:
    assert format_number(value) == text


def test_numbers_of_a_column_have_the_same_number_of_decimals() -> None:
    assert column([1.9, 10.75, 100]) == ["1.90", "10.75", "100.00"]
    assert column([2158.1, 762.5, None, math.nan]) == ["2158", "762", "-", "-"]
    assert column([]) == []


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("capacity_bytes", 32 << 30, "32 GiB"),
        ("rests_s", [10.0, 90.0], "10 s, 1 min 30 s"),
        ("size_mib", 4096.0, "4096 MiB"),
        ("read_block_kib", 1024, "1024 KiB"),
        ("read_mib_per_s", 512.5, "512.5 MiB/s"),
        ("latency_us_p99", 40, "40 us"),
        ("dies", 16, "16"),
        ("rotational", False, "no"),
        ("serial", None, "not known"),
        ("amounts_mib", [], "none"),
        ("lost_s", -1.0, "-1 s"),
        ("odd_bytes", "many\n", "many\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_value_has_the_unit_of_its_name(key: str, value: Any, text: str) -> None:
    assert quantity(key, value) == text


def test_a_label_has_no_unit_and_no_underscores() -> None:
    assert label("read_mib_per_s") == "Read"
    assert label("latency_us_p99") == "Latency p99"
    assert label("mount_point") == "Mount point"
    assert label("mib_per_s") == "Throughput"
    assert label("read_s") == "Read"
    assert label("latency_us_p999") == "Latency p99.9"
    assert label("fresh_iops") == "Fresh IOPS"
    assert label("dies", {"dies": "Dies in all"}) == "Dies in all"


@pytest.mark.parametrize(
    ("finding", "value", "interval"),
    [
        (Finding(3.5837, "x", 3.4, 3.7, ""), "3.58x", "3.40 to 3.70x"),
        (Finding(32.0, "KiB", None, None, ""), "32 KiB", ""),
        (Finding(False, "", None, None, ""), "no", ""),
        (Finding("die conflicts", "", None, None, ""), "die conflicts", ""),
        (Finding(None, "x", None, None, ""), "not known", ""),
        (Finding(32.0, "KiB", 32.0, 32.0, ""), "32 KiB", "exactly"),
        (Finding(2.0, "s", 1.5, None, ""), "2 s", "at least 1.50 s"),
        (Finding(2.0, "s", None, 2.5, ""), "2 s", "at most 2.50 s"),
    ],
)
def test_a_finding_has_its_unit_and_interval(finding: Finding, value: str, interval: str) -> None:
    assert finding_value(finding) == value
    assert finding_interval(finding) == interval


@pytest.mark.parametrize(
    ("low", "high", "value", "interval"),
    [
        (0.38, 8.644, "not shown", "0.38 to 8.6x"),
        (0.8, 2.0, "not shown", "0.800 to 2.000x"),
        (0.989, 1.001, "2.54x", "0.989 to 1.001x"),
        (2.4, 2.6, "2.54x", "2.40 to 2.60x"),
        (3.68e-7, 2387674.5, "not shown", "3.7e-07 to 2.4e+06x"),
    ],
)
def test_a_ratio_that_may_be_anything_is_not_printed_as_a_result(
    low: float, high: float, value: str, interval: str
) -> None:
    finding = Finding(2.54, "x", low, high, "why")
    assert (finding_value(finding), finding_interval(finding)) == (value, interval)


def test_control_and_bidirectional_characters_are_replaced() -> None:
    assert plain("a\x1b[31m\n\u202eb\x9b") == "a\ufffd[31m\ufffd\ufffdb\ufffd"
    assert plain("Größe → 3") == "Größe → 3"


def test_a_long_label_is_cut_at_the_end() -> None:
    assert cut("random read: latency", 13) == "random read:…"
    assert cut("random read", 11) == "random read"


def test_a_long_text_is_cut_at_the_start() -> None:
    assert shorten("/srv/databases/mysql", 10) == "…ses/mysql"
    assert shorten("/mnt/data", 10) == "/mnt/data"
