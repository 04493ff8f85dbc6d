"""Parsing and formatting of sizes and durations."""

import pytest

from ssdlab.errors import UsageError
from ssdlab.units import (
    exact_size,
    format_duration,
    format_size,
    nearest_multiples,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("512MiB", 512 << 20),
        ("1 GB", 10**9),
        ("4096 B", 4096),
        ("  1.5 KiB ", 1536),
        ("512 GB", 512 * 10**9),
        ("3 tib", 3 << 40),
        ("64 kB", 64_000),
        ("0", 0),
        ("0 MiB", 0),
        ("0.1 GB", 10**8),  # as a float: 100000000.00000001
    ],
)
def test_a_size_is_parsed_to_exact_bytes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h", 3600),
        ("30 s", 30),
        ("250us", 250e-6),
        ("250 µs", 250e-6),  # U+00B5
        ("250 \u03bcs", 250e-6),
        ("1.5 ms", 1.5e-3),
        ("1h 30min", 5400),
        ("2d12h", 216_000),
        ("0", 0),
    ],
)
def test_a_duration_is_parsed_to_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_a_number_without_unit_is_refused_with_an_example() -> None:
    with pytest.raises(UsageError, match=r"'4096': a size needs a unit: 512MiB"):
        parse_size("4096")
    with pytest.raises(UsageError, match=r"'30': a time needs a unit: 30s"):
        parse_duration("30")
    with pytest.raises(UsageError, match="needs a unit"):
        parse_duration("1h 30")


@pytest.mark.parametrize(
    "text", ["", "-1 GiB", "4k", "1 Gib/s", "GiB", "1e3 B", "1,5 GB", "٤ KiB", "nan B", "0.3 KiB"]
)
def test_an_invalid_size_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_size(text)
    assert repr(text) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "-1 s", "1 fortnight", "s", "inf s", "1h,30min", "1 M"])
def test_an_invalid_duration_is_refused_with_the_units(text: str) -> None:
    with pytest.raises(UsageError, match="ns us ms s min h d") as refused:
        parse_duration(text)
    assert repr(text) in str(refused.value)


def test_a_number_of_ten_thousand_digits_is_refused() -> None:
    with pytest.raises(UsageError):
        parse_size("9" * 10_000 + " B")


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (4096, "4 KiB"),
        (1536, "1.5 KiB"),
        (512 * 10**9, "476.8 GiB"),
        ((1 << 20) - 1, "1 MiB"),  # never "1024 KiB"
        (-(1 << 20), "-1 MiB"),
        (5000 << 60, "5000 EiB"),
    ],
)
def test_a_size_is_formatted_in_binary_units_and_four_digits(size_bytes: int, text: str) -> None:
    assert format_size(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (250e-9, "250 ns"),
        (999.9e-9, "1 us"),  # never "1e+03 ns"
        (0.00123, "1.23 ms"),
        (1.5, "1.5 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),  # never "60 s"
        (65, "1 min 5 s"),
        (119.7, "2 min"),  # never "1 min 60 s"
        (3599.7, "1 h"),
        (7800, "2 h 10 min"),
        (86_399, "1 d"),
        (270_000, "3 d 3 h"),
    ],
)
def test_a_duration_is_formatted_in_common_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("seconds", [0, 0.25, 1.5, 65, 7800, 270_000])
def test_a_formatted_duration_can_be_parsed(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0B"),
        (1001, "1001B"),
        (512 * 10**9, "512GB"),
        (1536 << 10, "1536KiB"),
        (1 << 30, "1GiB"),
        (8 << 40, "8TiB"),
    ],
)
def test_an_exact_size_is_read_back_unchanged(size_bytes: int, text: str) -> None:
    assert exact_size(size_bytes) == text
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((10**9, 1 << 20), "953MiB or 954MiB"),
        ((10**9, 8 << 20, 64 << 20), "952MiB or 960MiB"),
        ((10**6, 1 << 20, 16 << 20), "16MiB"),
        ((10**9, 1 << 20, 16 << 20, 100 << 20), "100MiB"),
        ((10**9, 1 << 20, 16 << 20, 15 << 20), ""),
    ],
)
def test_the_nearest_multiples_are_within_the_limits(bounds: tuple[int, ...], text: str) -> None:
    assert nearest_multiples(*bounds) == text
