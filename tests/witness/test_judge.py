"""The ledger and the judge: no alarm for any legal crash image, the right kind for any fault."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ssdlab.witness.judge import Judgement, judge
from ssdlab.witness.ledger import Ledger, Told, first_generation, flushed, issued, stream_of
from ssdlab.witness.stamps import SECTOR, Request, State, decode, encode, unreadable

RUN = bytes(range(16))
REGION = 24
STEP = st.tuples(st.integers(1, 3), st.integers(0, REGION - 1), st.integers(1, 6), st.booleans())
"""A worker, where it writes, how much, and whether it flushes afterwards."""


@dataclass
class Drive:
    """A region whose sectors remember all their versions, and what was flushed."""

    versions: list[list[int]] = field(default_factory=lambda: [[] for _ in range(REGION)])
    requests: dict[int, Request] = field(default_factory=dict)
    durable: set[int] = field(default_factory=set)
    messages: list[bytes] = field(default_factory=list)

    def write(self, worker: int, first: int, sectors: int) -> Request:
        """A write that returned."""
        stream = stream_of(1, worker)
        mine = [each for each in self.requests.values() if each.stream == stream]
        covered = sum(each.generation in self.durable for each in mine)
        generation = first_generation(1) + len(self.requests) + 1
        request = Request(generation, stream, len(mine) + 1, first, sectors, covered)
        self.requests[generation] = request
        self.messages.append(issued(request))
        for sector in range(first, first + sectors):
            self.versions[sector].append(generation)
        return request

    def flush(self, worker: int) -> None:
        """A flush of a worker's writes that returned."""
        mine = [each for each in self.requests.values() if each.stream == stream_of(1, worker)]
        if mine:
            self.durable |= {each.generation for each in mine}
            self.messages.append(flushed(mine[0].stream, len(mine)))

    def newest(self) -> list[int]:
        """The content if nothing was lost: a generation a sector."""
        return [versions[-1] for versions in self.versions]

    def legal(self, choose: st.DataObject) -> list[int]:
        """Any content that a cut may leave: a sector's durable version or a newer one."""
        found = []
        for versions in self.versions:
            lowest = max(at for at, each in enumerate(versions) if each in self.durable)
            found.append(versions[choose.draw(st.integers(lowest, len(versions) - 1))])
        return found

    def bytes_of(self, generation: int, sector: int) -> bytes:
        """A sector as a request wrote it."""
        request = self.requests[generation]
        at = (sector - request.first) * SECTOR
        return bytes(encode(RUN, request)[at : at + SECTOR])

    def image(self, content: list[int]) -> bytearray:
        """The bytes of a content."""
        whole = (self.bytes_of(each, sector) for sector, each in enumerate(content))
        return bytearray(b"".join(whole))

    def judged(self, image: bytes | bytearray, told: int | None = None) -> Judgement:
        """What the witness says that has heard the first `told` messages."""
        heard = b"".join(self.messages[:told])
        half = REGION // 2
        windows = [
            (first, decode(RUN, first, bytes(image[first * SECTOR : (first + half) * SECTOR])))
            for first in (0, half)
        ]
        return judge(Ledger([Told(1.0, heard)]), windows)


def lived(steps: list[tuple[int, int, int, bool]]) -> Drive:
    """A drive that was filled, flushed, and then written to."""
    drive = Drive()
    drive.write(0, 0, REGION)
    drive.flush(0)
    for worker, first, sectors, flushes in steps:
        drive.write(worker, first, min(sectors, REGION - first))
        if flushes:
            drive.flush(worker)
    return drive


def whole_and_safe(drive: Drive) -> list[Request]:
    """Requests that a flush covers and nothing has overwritten, the fill apart."""
    newest = drive.newest()
    return [
        each
        for each in drive.requests.values()
        if each.generation in drive.durable
        and each.stream != stream_of(1, 0)
        and set(newest[each.first : each.first + each.sectors]) == {each.generation}
    ]


@given(st.lists(STEP, max_size=14), st.data())
def test_no_legal_crash_image_gives_an_alarm_whatever_messages_the_cut_swallowed(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = lived(steps)
    told = choose.draw(st.integers(2, len(drive.messages)))
    judgement = drive.judged(drive.image(drive.legal(choose)), told)
    assert judgement.kinds == {}, judgement.failures
    assert judgement.sectors == REGION


@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_a_request_that_is_gone_is_stale_or_unserialisable_if_a_later_one_tells_of_its_flush(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = lived(steps)
    safe = whole_and_safe(drive)
    assume(safe)
    victim = choose.draw(st.sampled_from(safe))
    content = drive.newest()
    for sector in range(victim.first, victim.first + victim.sectors):
        content[sector] = drive.versions[sector][-2]
    there = {drive.requests[each] for each in content}
    tells = any(each.stream == victim.stream and each.covered >= victim.sequence for each in there)
    judgement = drive.judged(drive.image(content))
    assert judgement.kinds == {"unserialisable" if tells else "stale": 1}
    assert judgement.failures[0].generation == victim.generation
    assert judgement.failures[0].bad_sectors == victim.sectors


@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_a_request_of_which_a_part_is_gone_is_torn(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = lived(steps)
    safe = [each for each in whole_and_safe(drive) if each.sectors > 1]
    assume(safe)
    victim = choose.draw(st.sampled_from(safe))
    cut = choose.draw(st.integers(1, victim.sectors - 1))
    content = drive.newest()
    for sector in range(victim.first + cut, victim.first + victim.sectors):
        content[sector] = drive.versions[sector][-2]
    judgement = drive.judged(drive.image(content))
    assert judgement.kinds == {"torn": 1}
    assert judgement.failures[0].bad_sectors == victim.sectors - cut


@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_any_changed_byte_of_what_was_acknowledged_is_corrupt(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = lived(steps)
    image = drive.image(drive.newest())
    at = choose.draw(st.integers(0, len(image) - 1))
    newest = drive.newest()[at // SECTOR]
    assume(newest in drive.durable)
    image[at] ^= choose.draw(st.integers(1, 255))
    assert drive.judged(bytes(image)).kinds == {"corrupt": 1}


@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_a_request_that_landed_elsewhere_is_misplaced_and_so_is_what_it_hit(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = lived(steps)
    safe = whole_and_safe(drive)
    assume(safe)
    victim = choose.draw(st.sampled_from(safe))
    shift = choose.draw(st.integers(1, REGION - victim.sectors))
    astray = (victim.first + shift) % (REGION - victim.sectors + 1)
    assume(astray != victim.first)
    content = drive.newest()
    for sector in range(victim.first, victim.first + victim.sectors):
        content[sector] = drive.versions[sector][-2]
    image = drive.image(content)
    data = encode(RUN, victim)
    image[astray * SECTOR : (astray + victim.sectors) * SECTOR] = data
    judgement = drive.judged(bytes(image))
    assert set(judgement.kinds) == {"misplaced"}
    assert victim.generation in {each.generation for each in judgement.failures}


@given(st.lists(STEP, max_size=14), st.integers(0, REGION - 6), st.integers(1, 6))
def test_a_request_whose_place_is_blank_is_lost(
    steps: list[tuple[int, int, int, bool]], first: int, sectors: int
) -> None:
    drive = lived([*steps, (4, first, sectors, True)])
    image = drive.image(drive.newest())
    image[first * SECTOR : (first + sectors) * SECTOR] = bytes(sectors * SECTOR)
    assert drive.judged(bytes(image)).kinds == {"lost": 1}


def test_a_stamp_on_the_drive_proves_an_acknowledgment_whose_message_the_cut_swallowed() -> None:
    drive = lived([(1, 0, 4, True), (1, 8, 4, False)])
    content = drive.newest()
    content[0:4] = [drive.versions[0][0]] * 4
    without_flush = len(drive.messages) - 2
    drive.messages[without_flush : without_flush + 1] = []
    judgement = drive.judged(drive.image(content))
    assert judgement.kinds == {"unserialisable": 1}
    assert judgement.failures[0].age_s is None


def test_what_was_in_flight_is_counted_whole_in_part_and_absent() -> None:
    drive = lived([(1, 0, 2, False), (2, 4, 2, False), (3, 8, 2, False)])
    content = drive.newest()
    content[5] = content[8] = content[9] = drive.versions[9][0]
    found = drive.judged(drive.image(content)).in_flight
    assert (found.whole, found.part, found.absent) == (1, 1, 1)
    assert (found.requests, found.near_misses) == (3, 2)


def test_a_sector_that_cannot_be_read_is_an_alarm() -> None:
    drive = lived([(1, 0, 4, True)])
    image = drive.image(drive.newest())
    found = decode(RUN, 0, bytes(image))
    found.states[2] = unreadable(1).states[0]
    judgement = judge(Ledger([Told(1.0, b"".join(drive.messages))]), [(0, found)])
    assert judgement.kinds == {"unreadable": 1}


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (State.BROKEN, "corrupt"),
        (State.ELSEWHERE, "misplaced"),
        (State.UNREADABLE, "unreadable"),
        (State.BLANK, None),
        (State.OTHER, None),
    ],
)
def test_where_nothing_was_acknowledged_only_damage_is_an_alarm(
    state: State, kind: str | None
) -> None:
    drive = Drive()
    drive.write(0, 0, REGION)
    found = decode(RUN, 0, bytes(drive.image(drive.newest())))
    found.states[3] = state
    judgement = judge(Ledger([Told(1.0, b"".join(drive.messages))]), [(0, found)])
    assert judgement.kinds == ({kind: 1} if kind else {})


def test_what_another_run_wrote_is_no_trace_of_this_one() -> None:
    drive = lived([(1, 0, 4, True)])
    image = drive.image(drive.newest())
    other = encode(bytes(16), Request(1 << 50, 1, 1, 0, 4))
    image[: 4 * SECTOR] = other
    assert drive.judged(bytes(image)).kinds == {"lost": 1}


def test_bounds_of_a_window_are_those_of_the_whole() -> None:
    drive = lived([(1, 3, 6, True), (2, 5, 6, False), (3, 20, 4, True), (1, 7, 1, False)])
    ledger = Ledger([Told(1.0, b"".join(drive.messages))])
    lower, upper = ledger.bounds(0, REGION)
    for first in range(REGION):
        for sectors in (1, 4):
            part = ledger.bounds(first, min(sectors, REGION - first))
            np.testing.assert_array_equal(part[0], lower[first : first + sectors])
            np.testing.assert_array_equal(part[1], upper[first : first + sectors])


def test_the_age_of_a_loss_is_told_from_its_acknowledgment_to_the_last_message() -> None:
    drive = lived([(1, 0, 1, True)])
    content = drive.newest()
    content[0] = drive.versions[0][0]
    told = [Told(10.0, b"".join(drive.messages)), Told(12.5, flushed(stream_of(1, 2), 1))]
    found = decode(RUN, 0, bytes(drive.image(content)))
    assert judge(Ledger(told), [(0, found)]).failures[0].age_s == pytest.approx(2.5)
