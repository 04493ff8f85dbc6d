"""How the bytes before a drop are divided into buffer and SLC cache."""

from __future__ import annotations

import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.cache import sizes
from ssdlab.experiments.cache.buffers import MIB, Size, WritePass
from ssdlab.experiments.cache.sizes import find_sizes
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.stats.steady import Progress


@pytest.mark.parametrize("slower", [1.3, 4.0])
def test_reads_show_the_buffer_before_a_cache_also_if_the_drop_is_gentle(
    slower: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush empties nothing, and the cache is as fast as the link: there is one drop only."""
    fast, at = 1000.0 * MIB, 140.0 * MIB
    drop = RateDrop(at, 0.99 * at, 1.01 * at, fast, fast / slower, ahead=0.0, seconds=at / fast)
    curve = Progress([0.01] * 100, [10.0 * MIB] * 100)
    first = WritePass("first", None, 32 << 10, curve, drop, None, None)
    flushed = WritePass("flushed", None, 32 << 10, curve, None, None, None)
    monkeypatch.setattr(sizes, "_flushes", lambda _evidence: sizes._Flushes([0.0, 0.0], None))
    monkeypatch.setattr(
        sizes, "read_back_size", lambda _evidence, _rate: Size(1.8 * MIB, 2.2 * MIB, "by reads")
    )
    unknown = Finding(None, "s", None, None, "not measured")
    found = find_sizes(Evidence({}, {}), [first, flushed], drop, at, unknown)
    assert found.buffer is not None
    assert (found.buffer.low, found.buffer.high) == (1.8 * MIB, 2.2 * MIB)
    assert found.cache is not None
    assert found.cache.high == pytest.approx(at - 1.8 * MIB, rel=0.02)
