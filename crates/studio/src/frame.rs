//! `Frame`: the state of a twin as flat arrays, for a page to draw.

use ssdlab_device::Device;
use ssdlab_flash::{UnitLocation, die_rows, superblock_rows};

use crate::lists::Row;
use crate::player::Player;
use crate::position::Position;
use crate::state::{Current, State};

/// The number of values in a frame's header.
pub const HEADER: usize = 40;

/// Arrays that `Twin::frame` fills.
#[derive(Default)]
pub struct Frame {
    /// Numbers, and the lengths and addresses of the arrays.
    pub header: Vec<f64>,
    /// The rows of `superblock_rows`.
    pub superblocks: Vec<[u32; 4]>,
    /// The rows of `die_rows`.
    pub dies: Vec<[f64; 4]>,
    /// The counters, in the order of `Counters::named`.
    pub counters: Vec<f64>,
    /// Commands since the last frame.
    pub commands: Vec<Row>,
    /// Flash operations since the last frame.
    pub operations: Vec<Row>,
    /// The units of `Twin::units`: die and state, and page.
    pub units: Vec<[u32; 2]>,
    /// Moves since the last frame.
    pub moves: Vec<Row>,
}

/// What the header says of the past.
pub struct History {
    pub furthest: Position,
    pub snapshots: usize,
    pub bytes: u64,
}

impl Frame {
    /// Fills it with the state of now; lists have what happened since the last time. Its header has
    /// numbers, and for each array its length and address.
    pub fn fill(&mut self, player: &mut Player, history: &History) {
        let frame = self;
        let ssd = &player.state.ssd;
        let counters = ssd.counters();
        frame.counters.clear();
        frame.counters.extend(counters.named().map(|(_, count)| count as f64));
        frame.superblocks.clear();
        frame.superblocks.extend(superblock_rows(ssd));
        frame.dies.clear();
        frame.dies.extend(die_rows(ssd));
        if let Some(lists) = &mut player.lists {
            lists.commands.take(&mut frame.commands);
            lists.operations.take(&mut frame.operations);
            lists.moves.take(&mut frame.moves);
        } else {
            for rows in [&mut frame.commands, &mut frame.operations, &mut frame.moves] {
                rows.clear();
            }
        }
        frame.write_header(player, history);
    }

    /// Fills `units` with the places of `count` units from `first` on, as far as the drive has
    /// them. A unit in flash is 2 << 16 and its die, then its page over all blocks of that die.
    pub fn fill_units(&mut self, state: &State, first: u64, count: u64) {
        let ssd = &state.ssd;
        let pages = state.profile.geometry.pages_per_block;
        let end = first.saturating_add(count).min(state.profile.logical_units());
        self.units.clear();
        self.units.extend((first..end).map(|unit| match ssd.locate(unit) {
            UnitLocation::Unmapped => [0, 0],
            UnitLocation::Buffer => [1 << 16, 0],
            UnitLocation::Flash { die, block, page } => [2 << 16 | die, block * pages + page],
        }));
    }

    fn write_header(&mut self, player: &Player, history: &History) {
        let (state, frame) = (&player.state, self);
        let (ssd, position) = (&state.ssd, state.position());
        let (done, total) = match &state.current {
            Some(Current::Job(job)) => (state.requests - job.before, job.progress.total),
            _ => (0, 0),
        };
        let rows = &player.series.rows()[..state.rows];
        let named = |length: usize, address: usize| [length as f64, address as f64];
        let array = |rows: &Vec<Row>| named(rows.len(), rows.as_ptr().addr());
        let lists = [array(&frame.commands), array(&frame.operations), array(&frame.moves)];
        let header = &mut frame.header;
        header.clear();
        header.extend([ssd.now().get(), position.tick, position.requests].map(|n| n as f64));
        header.extend([state.step, player.steps.len()].map(|n| n as f64));
        header.extend([done, total, ssd.in_flight() as u64].map(|n| n as f64));
        header.extend(named(frame.superblocks.len(), frame.superblocks.as_ptr().addr()));
        header.extend(named(frame.dies.len(), frame.dies.as_ptr().addr()));
        header.extend(named(frame.counters.len(), frame.counters.as_ptr().addr()));
        header.extend(named(rows.len(), rows.as_ptr().addr()));
        header.extend(lists.into_iter().flatten());
        let (furthest, space) = (history.furthest, ssd.space());
        let counters = ssd.counters();
        header.extend(
            [
                furthest.tick,
                furthest.requests,
                furthest.time.get(),
                ssd.mapped_units(),
                ssd.capacity_bytes() / ssd.unit_bytes(),
                space.free_superblocks as u64,
                history.snapshots as u64,
                history.bytes,
                counters.nand_writes(),
                state.power_cuts,
                counters.host_writes_lost,
                position.time.get(),
            ]
            .map(|number| number as f64),
        );
        header.extend([ssd.wear().erases_mean, ssd.service().spare_percent()]);
        header.push(f64::from(u8::from(ssd.service().read_only)));
        header.push(ssd.temperature().map_or(f64::NAN, |now| now.celsius));
        let buffer = state.profile.buffer.size / ssd.unit_bytes();
        header.extend([space.buffered_units, buffer].map(|units| units as f64));
        assert_eq!(header.len(), HEADER);
    }
}
