"""Ledger and judge: no alarm for any legal crash image, the right kind for each fault."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ssdlab.witness.judge import Judge, Judgement
from ssdlab.witness.ledger import (
    Ledger,
    ReceivedMessages,
    first_generation,
    flushed,
    issued,
    stream_of,
)
from ssdlab.witness.limits import SECTOR
from ssdlab.witness.stamps import Request, Sectors, State, decode, encode, unreadable

RUN = bytes(range(16))
REGION = 24
STEP = st.tuples(st.integers(1, 3), st.integers(0, REGION - 1), st.integers(1, 6), st.booleans())
"""Worker, first sector, number of sectors, and whether a flush follows."""


def judge(messages: list[ReceivedMessages], windows: list[tuple[int, Sectors]]) -> Judgement:
    """The judgement of windows, each with its first sector."""
    checker = Judge(Ledger(messages))
    for first, window in windows:
        checker.check(first, window)
    return checker.judgement()


@dataclass
class Drive:
    """A region that keeps all versions of each sector, and which of them are durable."""

    versions: list[list[int]] = field(default_factory=lambda: [[] for _ in range(REGION)])
    requests: dict[int, Request] = field(default_factory=dict)
    durable: set[int] = field(default_factory=set)
    messages: list[bytes] = field(default_factory=list)

    def write(self, worker: int, first: int, sectors: int) -> Request:
        """Completes a write; returns the request."""
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
        """Completes a flush after a worker's writes."""
        mine = [each for each in self.requests.values() if each.stream == stream_of(1, worker)]
        if mine:
            self.durable |= {each.generation for each in mine}
            self.messages.append(flushed(mine[0].stream, len(mine)))

    def newest(self) -> list[int]:
        """The generation of each sector if nothing was lost."""
        return [versions[-1] for versions in self.versions]

    def legal(self, choose: st.DataObject) -> list[int]:
        """A content that a cut may leave: of each sector the durable version or a newer one."""
        content = []
        for versions in self.versions:
            lowest = max(at for at, each in enumerate(versions) if each in self.durable)
            content.append(versions[choose.draw(st.integers(lowest, len(versions) - 1))])
        return content

    def bytes_of(self, generation: int, sector: int) -> bytes:
        """The bytes that a request wrote to a sector."""
        request = self.requests[generation]
        at = (sector - request.first) * SECTOR
        return bytes(encode(RUN, request)[at : at + SECTOR])

    def image(self, content: list[int]) -> bytearray:
        """The bytes of the region, from the generation of each sector."""
        sectors = (self.bytes_of(each, sector) for sector, each in enumerate(content))
        return bytearray(b"".join(sectors))

    def judged(self, image: bytes | bytearray, received: int | None = None) -> Judgement:
        """The judgement if the witness received only the first `received` messages."""
        messages = b"".join(self.messages[:received])
        half = REGION // 2
        windows = [
            (first, decode(RUN, first, bytes(image[first * SECTOR : (first + half) * SECTOR])))
            for first in (0, half)
        ]
        return judge([ReceivedMessages(1.0, messages)], windows)


def written(steps: list[tuple[int, int, int, bool]]) -> Drive:
    """A drive that was filled, flushed, and then written at random."""
    drive = Drive()
    drive.write(0, 0, REGION)
    drive.flush(0)
    for worker, first, sectors, flushes in steps:
        drive.write(worker, first, min(sectors, REGION - first))
        if flushes:
            drive.flush(worker)
    return drive


def durable_requests(drive: Drive) -> list[Request]:
    """Durable requests of which nothing is overwritten, without the fill."""
    newest = drive.newest()
    return [
        each
        for each in drive.requests.values()
        if each.generation in drive.durable
        and each.stream != stream_of(1, 0)
        and set(newest[each.first : each.first + each.sectors]) == {each.generation}
    ]


@given(st.lists(STEP, max_size=14), st.data())
def test_a_legal_crash_image_causes_no_alarm_whichever_messages_were_lost(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = written(steps)
    received = choose.draw(st.integers(2, len(drive.messages)))
    judgement = drive.judged(drive.image(drive.legal(choose)), received)
    assert judgement.kinds == {}, judgement.failures
    assert judgement.sectors == REGION


@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_a_missing_request_is_stale_or_unserialisable_if_a_later_stamp_covers_it(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = written(steps)
    safe = durable_requests(drive)
    assume(safe)
    victim = choose.draw(st.sampled_from(safe))
    content = drive.newest()
    for sector in range(victim.first, victim.first + victim.sectors):
        content[sector] = drive.versions[sector][-2]
    present = {drive.requests[each] for each in content}
    is_covered = any(
        each.stream == victim.stream and each.covered >= victim.sequence for each in present
    )
    judgement = drive.judged(drive.image(content))
    assert judgement.kinds == {"unserialisable" if is_covered else "stale": 1}
    assert judgement.failures[0].generation == victim.generation
    assert judgement.failures[0].bad_sectors == victim.sectors


@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_a_partly_missing_request_is_torn(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = written(steps)
    safe = [each for each in durable_requests(drive) if each.sectors > 1]
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
def test_any_changed_byte_of_an_acknowledged_request_is_corrupt(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = written(steps)
    image = drive.image(drive.newest())
    at = choose.draw(st.integers(0, len(image) - 1))
    newest = drive.newest()[at // SECTOR]
    assume(newest in drive.durable)
    image[at] ^= choose.draw(st.integers(1, 255))
    assert drive.judged(bytes(image)).kinds == {"corrupt": 1}


@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_a_misdirected_request_is_misplaced_and_so_is_the_one_it_overwrote(
    steps: list[tuple[int, int, int, bool]], choose: st.DataObject
) -> None:
    drive = written(steps)
    safe = durable_requests(drive)
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
def test_a_request_whose_sectors_are_zeros_is_lost(
    steps: list[tuple[int, int, int, bool]], first: int, sectors: int
) -> None:
    drive = written([*steps, (4, first, sectors, True)])
    image = drive.image(drive.newest())
    image[first * SECTOR : (first + sectors) * SECTOR] = bytes(sectors * SECTOR)
    assert drive.judged(bytes(image)).kinds == {"lost": 1}


def test_a_stamp_proves_an_acknowledgement_whose_message_was_lost() -> None:
    drive = written([(1, 0, 4, True), (1, 8, 4, False)])
    content = drive.newest()
    content[0:4] = [drive.versions[0][0]] * 4
    without_flush = len(drive.messages) - 2
    drive.messages[without_flush : without_flush + 1] = []
    judgement = drive.judged(drive.image(content))
    assert judgement.kinds == {"unserialisable": 1}
    assert judgement.failures[0].age_s is None


def test_requests_in_flight_are_counted_as_whole_part_or_absent() -> None:
    drive = written([(1, 0, 2, False), (2, 4, 2, False), (3, 8, 2, False)])
    content = drive.newest()
    content[5] = content[8] = content[9] = drive.versions[9][0]
    in_flight = drive.judged(drive.image(content)).in_flight
    assert (in_flight.whole, in_flight.part, in_flight.absent) == (1, 1, 1)
    assert (in_flight.requests, in_flight.near_misses) == (3, 2)


def test_a_sector_that_cannot_be_read_is_an_alarm() -> None:
    drive = written([(1, 0, 4, True)])
    image = drive.image(drive.newest())
    window = decode(RUN, 0, bytes(image))
    window.states[2] = unreadable(1).states[0]
    judgement = judge([ReceivedMessages(1.0, b"".join(drive.messages))], [(0, window)])
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
def test_without_an_acknowledged_write_only_damage_is_an_alarm(
    state: State, kind: str | None
) -> None:
    drive = Drive()
    drive.write(0, 0, REGION)
    window = decode(RUN, 0, bytes(drive.image(drive.newest())))
    window.states[3] = state
    judgement = judge([ReceivedMessages(1.0, b"".join(drive.messages))], [(0, window)])
    assert judgement.kinds == ({kind: 1} if kind else {})


def test_a_stamp_of_another_run_counts_as_lost() -> None:
    drive = written([(1, 0, 4, True)])
    image = drive.image(drive.newest())
    other = encode(bytes(16), Request(1 << 50, 1, 1, 0, 4))
    image[: 4 * SECTOR] = other
    assert drive.judged(bytes(image)).kinds == {"lost": 1}


def test_the_bounds_of_a_window_equal_those_of_the_region() -> None:
    drive = written([(1, 3, 6, True), (2, 5, 6, False), (3, 20, 4, True), (1, 7, 1, False)])
    ledger = Ledger([ReceivedMessages(1.0, b"".join(drive.messages))])
    lower, upper = ledger.bounds(0, REGION)
    for first in range(REGION):
        for sectors in (1, 4):
            part = ledger.bounds(first, min(sectors, REGION - first))
            np.testing.assert_array_equal(part[0], lower[first : first + sectors])
            np.testing.assert_array_equal(part[1], upper[first : first + sectors])


def test_the_age_of_a_loss_is_the_time_from_its_acknowledgement_to_the_last_message() -> None:
    drive = written([(1, 0, 1, True)])
    content = drive.newest()
    content[0] = drive.versions[0][0]
    received = [
        ReceivedMessages(10.0, b"".join(drive.messages)),
        ReceivedMessages(12.5, flushed(stream_of(1, 2), 1)),
    ]
    window = decode(RUN, 0, bytes(drive.image(content)))
    assert judge(received, [(0, window)]).failures[0].age_s == pytest.approx(2.5)
