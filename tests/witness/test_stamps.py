"""Stamps: a sector identifies its write, and any change to it is detected."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from ssdlab.witness.limits import SECTOR
from ssdlab.witness.stamps import Request, State, decode, encode

RUN = b"0123456789abcdef"
REQUEST = Request(generation=7, stream=3, sequence=2, first=40, sectors=4, covered=1)


def test_a_decoded_stamp_equals_the_encoded_request() -> None:
    decoded = decode(RUN, 40, encode(RUN, REQUEST))
    assert decoded.states.tolist() == [State.OURS] * 4
    for name in ("generation", "stream", "sequence", "first", "sectors", "covered"):
        assert set(decoded.stamps[name].tolist()) == {getattr(REQUEST, name)}
    assert decoded.stamps["sector"].tolist() == [40, 41, 42, 43]


def test_the_same_request_has_the_same_bytes_and_another_generation_has_others() -> None:
    other = Request(8, 3, 2, 40, 4, 1)
    assert encode(RUN, REQUEST) == encode(RUN, REQUEST)
    assert encode(RUN, REQUEST)[72:508] != encode(RUN, other)[72:508]


def test_a_stamp_does_not_compress() -> None:
    data = bytes(encode(RUN, Request(1, 1, 1, 0, 64)))
    assert len(zlib.compress(data, 9)) > 0.85 * len(data)


@given(st.integers(0, SECTOR - 1), st.integers(1, 255))
def test_any_changed_byte_breaks_the_stamp(at: int, mask: int) -> None:
    data = bytearray(encode(RUN, REQUEST)[:SECTOR])
    data[at] ^= mask
    assert decode(RUN, 40, bytes(data)).states[0] == State.BROKEN


def test_a_stamp_identifies_its_sector_and_its_run() -> None:
    data = encode(RUN, REQUEST)
    assert decode(RUN, 41, data).states.tolist() == [State.ELSEWHERE] * 4
    assert decode(bytes(16), 40, data).states.tolist() == [State.FOREIGN] * 4
    assert decode(RUN, 40, bytes(SECTOR)).states.tolist() == [State.BLANK]
    assert decode(RUN, 40, bytes([9]) * SECTOR).states.tolist() == [State.OTHER]
