//! `Frontiers`: all frontiers of a drive, by lane: for host writes, for relocations, and for the
//! SLC cache.
//!
//! Lanes that fill one die each share their superblocks: they are a group. With packed placement,
//! the host has two groups. The second opens a superblock when it is first written, and hands it
//! over to the first when that one's superblock is full, so that an unused group occupies no space.

use std::ops::Range;

use super::frontier::{Frontier, Lane};
use crate::config::{PlacementRule, Profile, Relocation};
use crate::counters::Cause;

#[derive(Clone, Debug)]
pub struct Frontiers {
    all: Vec<Frontier>,
    /// The number of lanes that share a superblock: one, or one per die. The SLC lane shares none.
    group: u32,
    /// The number of host lanes, which come first.
    host: u32,
    /// Whether the host has two groups, the second for packed pages.
    packs: bool,
    /// The first lane for relocations; 0 if they share the host's.
    pub relocations: Lane,
    /// The last lane, if the drive has an SLC cache.
    pub slc: Option<Lane>,
}

impl Frontiers {
    /// Frontiers without a superblock.
    pub fn new(profile: &Profile) -> Self {
        let geometry = &profile.geometry;
        let units = geometry.superblock_units();
        let (host, group) = match profile.placement {
            PlacementRule::Striped => (1, 1),
            PlacementRule::Streams(count) => (count, 1),
            PlacementRule::Hinted | PlacementRule::Inferred => (geometry.dies(), geometry.dies()),
            PlacementRule::Packed => (2 * geometry.dies(), geometry.dies()),
        };
        let separate = profile.collection.relocation == Relocation::Separate;
        let rule = profile.placement;
        let stripes = matches!(rule, PlacementRule::Striped | PlacementRule::Streams(_));
        let frontier = |lane: u32| {
            let die = (!stripes).then_some(lane % group);
            Frontier::new(geometry, die, units / group, false)
        };
        let for_relocations = if separate { group } else { 0 };
        let mut all: Vec<Frontier> = (0..host + for_relocations).map(frontier).collect();
        let slc = profile.slc.as_ref().map(|slc| {
            let units = slc.superblock_units(geometry);
            all.push(Frontier::new(geometry, None, units, true));
            Lane(all.len() as u32 - 1)
        });
        let relocations = Lane(if separate { host } else { 0 });
        let packs = profile.placement == PlacementRule::Packed;
        Self { all, group, host, packs, relocations, slc }
    }

    /// The lanes that share their superblocks with this one, including itself.
    fn group(&self, lane: Lane) -> Range<usize> {
        if self.group == 1 || Some(lane) == self.slc {
            return lane.index()..lane.index() + 1;
        }
        let first = lane.0 - lane.0 % self.group;
        first as usize..(first + self.group) as usize
    }

    /// This lane if it has room; else the lane of its group with the most room, the next one among
    /// equals. `None` if the group's superblock is full and no other is handed over.
    pub fn with_room(&mut self, lane: Lane) -> Option<Lane> {
        self.roomiest(lane).or_else(|| self.take_over(lane).then(|| self.roomiest(lane))?)
    }

    /// Hands the second group's superblock over to the first, if this is a lane of the first;
    /// returns whether it did.
    fn take_over(&mut self, lane: Lane) -> bool {
        if !self.packs || lane.0 >= self.group {
            return false;
        }
        let (first, rest) = self.all.split_at_mut(self.group as usize);
        let second = &mut rest[..self.group as usize];
        let has_room = second.iter().any(|frontier| !frontier.is_full());
        let can = has_room && second.iter().all(|frontier| frontier.open_units == 0);
        if can {
            first.iter_mut().zip(second).for_each(|(to, from)| to.take_over(from));
        }
        can
    }

    fn roomiest(&self, lane: Lane) -> Option<Lane> {
        let Range { start, end } = self.group(lane);
        let count = end - start;
        let after =
            (0..count).map(|step| Lane((start + (lane.index() - start + step) % count) as u32));
        let mut most: Option<(Lane, u32)> = None;
        for other in after {
            let room = self.all[other.index()].room();
            if room > most.map_or(0, |(_, room)| room) {
                most = Some((other, room));
            }
            if other == lane && room > 0 {
                break;
            }
        }
        most.map(|(lane, _)| lane)
    }

    /// Whether a lane has a superblock from the start: others open one when they are written.
    pub fn opens_at_once(&self, lane: Lane) -> bool {
        let is_second = self.packs && (self.group..self.host).contains(&lane.0);
        Some(lane) != self.slc && !is_second
    }

    /// Whether the superblock of a lane is full on all dies.
    pub fn is_filled(&self, lane: Lane) -> bool {
        self.all[self.group(lane)].iter().all(Frontier::is_full)
    }

    /// Continues in an erased superblock after all of the old one was filled.
    pub fn open(&mut self, lane: Lane, superblock: u32, undo_log: usize) {
        let group = self.group(lane);
        for frontier in &mut self.all[group] {
            frontier.open(superblock, undo_log);
        }
    }

    #[inline]
    pub fn of(&mut self, lane: Lane) -> &mut Frontier {
        &mut self.all[lane.index()]
    }

    /// Free units in the open superblock of a stream; 0 if streams are not separated.
    pub fn room(&self, stream: u32) -> u32 {
        let has_one = self.group == 1 && stream < self.host;
        if has_one { self.all[stream as usize].room() } else { 0 }
    }

    pub fn lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        (0..self.all.len() as u32).map(Lane)
    }

    /// The lanes for host writes, except that of the SLC cache.
    pub fn host_lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        (0..self.host).map(Lane)
    }

    /// The host stream that fills a lane; 0 if streams are not separated.
    pub fn stream(&self, lane: Lane) -> u8 {
        if self.group == 1 && lane.0 < self.host { lane.0 as u8 } else { 0 }
    }

    /// Units written for a cause that are in partly filled pages.
    pub fn waiting(&self, cause: Cause) -> u64 {
        self.all.iter().map(|frontier| u64::from(frontier.waiting(cause))).sum()
    }

    /// How far each frontier is filled now.
    pub fn marks(&self) -> Marks {
        Marks(self.all.iter().map(|frontier| frontier.taken).collect())
    }

    /// Lanes with units before the marks in partly filled pages.
    pub fn behind<'a>(&'a self, marks: &'a Marks) -> impl Iterator<Item = Lane> + 'a {
        let both = self.lanes().zip(self.all.iter().zip(&marks.0));
        both.filter(|(_, (frontier, mark))| frontier.programmed() < **mark).map(|(lane, _)| lane)
    }

    /// Whether all units before the marks are being programmed or in flash.
    pub fn programmed_up_to(&self, marks: &Marks) -> bool {
        self.behind(marks).next().is_none()
    }
}

/// How far each frontier was filled at a point in time, in units taken since the drive was new.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<u64>);
