"""Twins configured like MQSim's drives, against hand calculations and MQSim's results."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ssdlab.device import describe_twin

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
READ_US, PROGRAM_US = 50, 500
OUT_US = 4096 / 800
"""Transfer of 4 KiB over a channel of 800 MB/s."""
LINK_US = 4096 / 4000


@pytest.fixture(scope="module")
def mqsim() -> ModuleType:
    """The script that prints the tables of docs/models/mqsim.md."""
    spec = importlib.util.spec_from_file_location("mqsim", ROOT / "bench/twins/mqsim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mqsim"] = module
    spec.loader.exec_module(module)
    return module


def test_both_profiles_have_the_size_of_mqsims_drives(mqsim: ModuleType) -> None:
    whole = describe_twin("default", mqsim.profile("mqsim-default", {}))
    small = describe_twin("small", mqsim.profile("mqsim-16gib", {}))
    assert (whole["flash_bytes"], whole["dies"]) == (512 * GIB, 64)
    assert (small["flash_bytes"], small["dies"]) == (16 * GIB, 8)


@pytest.mark.parametrize(
    ("variant", "sensed_us", "dies"),
    [
        ("as configured", READ_US + OUT_US, 8),
        ("planes independent", READ_US + OUT_US, 8),
        ("each plane a separate die", READ_US + OUT_US, 16),
        ("cache register", READ_US, 8),
    ],
)
def test_random_reads_take_a_page_read_at_depth_1_and_are_limited_by_dies_at_256(
    mqsim: ModuleType, variant: str, sensed_us: float, dies: int
) -> None:
    text = mqsim.profile("mqsim-16gib", mqsim.SMALL_DRIVE[variant])
    alone, many = (mqsim.closed(text, "random reads", depth).mean_us for depth in (1, 256))
    assert alone == pytest.approx(READ_US + OUT_US + LINK_US, rel=0.01)
    # Little's law; at random, some dies are idle at times.
    assert 1.0 <= many / (256 * sensed_us / dies) < 1.06


@pytest.mark.parametrize("depth", [1, 4, 16, 64, 256])
def test_random_read_latency_is_that_of_mqsim(mqsim: ModuleType, depth: int) -> None:
    text = mqsim.profile("mqsim-16gib", {})
    theirs = mqsim.MEASURED["random reads"][mqsim.DEPTHS.index(depth)]
    assert mqsim.closed(text, "random reads", depth).mean_us == pytest.approx(theirs, rel=0.05)


@pytest.mark.parametrize(("depth", "within"), [(1, 0.01), (4, 0.02), (16, 0.03), (64, 0.03)])
def test_random_write_latency_is_that_of_mqsim_if_the_address_determines_the_die(
    mqsim: ModuleType, depth: int, within: float
) -> None:
    """Measured with reads as slow as programs, because a twin's writes go to all dies in turn."""
    theirs = mqsim.MEASURED["random writes"][mqsim.DEPTHS.index(depth)]
    static = mqsim.profile("mqsim-16gib", mqsim.STATIC_ALLOCATION)
    assert mqsim.closed(static, "random reads", depth).mean_us == pytest.approx(theirs, rel=within)
    own = mqsim.closed(mqsim.profile("mqsim-16gib", {}), "random writes", depth)
    assert own.mean_us == pytest.approx(max(PROGRAM_US, depth * PROGRAM_US / 8), rel=0.03)


@pytest.mark.parametrize("depth", [1, 4, 16, 64, 256])
def test_sequential_requests_use_both_planes_almost_always_in_mqsim(
    mqsim: ModuleType, depth: int
) -> None:
    at = mqsim.DEPTHS.index(depth)
    together, alone = (
        [
            mqsim.closed(mqsim.profile("mqsim-16gib", mqsim.SMALL_DRIVE[name]), kind, depth).mean_us
            for kind in ("reads in order", "writes in order")
        ]
        for name in ("as configured", "planes independent")
    )
    read, written = (mqsim.MEASURED[kind][at] for kind in ("reads in order", "writes in order"))
    assert together[0] < read < alone[0]
    assert written == pytest.approx(together[1], rel=0.04)
    assert written < 0.55 * alone[1]


def test_traces_are_replayed_at_their_original_speed_on_chips_of_one_die_and_plane(
    mqsim: ModuleType, tmp_path: Path
) -> None:
    one = mqsim.profile("mqsim-default", {**mqsim.MAP_IN_MEMORY, **mqsim.ONE_PLANE})
    reads, writes = tmp_path / "reads.trace", tmp_path / "writes.trace"
    places = [at * 7919 % 100_000 * 16 for at in range(4000)]
    reads.write_text("".join(f"{at * 10**6} 0 {lba} 16 1\n" for at, lba in enumerate(places)))
    writes.write_text("".join(f"{at * 10_000} 0 {lba} 16 0\n" for at, lba in enumerate(places)))
    page_us, link_us = 8192 / 333, 8192 / 4000
    row = mqsim.replay(one, reads)
    assert row.mean_us == pytest.approx(75 + page_us + link_us, rel=0.01)
    # 100,000 requests/s arrive, fewer complete, and the buffer of 256 pages fills up.
    arriving, completing, seconds = 100_000, 32 / (750 + page_us) * 1e6, 0.04
    longest_s = ((arriving - completing) * seconds - 256) / completing
    mean_us = longest_s / 2 * (1 - 256 / (arriving - completing) / seconds) * 1e6
    assert mqsim.replay(one, writes).mean_us == pytest.approx(mean_us, rel=0.08)
    all_dies = mqsim.profile("mqsim-default", mqsim.MAP_IN_MEMORY)
    assert mqsim.replay(all_dies, writes).mean_us < 100


def test_write_amplification_is_that_of_mqsim_with_single_block_collection_and_ten_free_blocks(
    mqsim: ModuleType,
) -> None:
    ten, more = (mqsim.amplification(0.28, kept, blockwise=True) for kept in (10, 29))
    assert ten == pytest.approx(mqsim.AMPLIFICATION[0.28], rel=0.015)
    assert ten + 0.03 < more < 2.06
