//! `Frontiers`: all frontiers of a drive, by lane: those of the host, those of what is moved, one
//! of the SLC cache. Lanes that fill a die each share their superblocks: they are a group. The host
//! has two groups where it packs: the second opens a superblock when it is written to, and hands it
//! over to the first as soon as that has none, so that one that rests holds no room back.

use std::ops::Range;

use super::frontier::{Frontier, Lane, Span};
use crate::cause::Cause;
use crate::config::{PlacementRule, Profile, Relocation};

/// The frontiers of a drive.
#[derive(Clone, Debug)]
pub struct Frontiers {
    all: Vec<Frontier>,
    /// How many lanes share a superblock: one, or one for each die. That of the cache has its own.
    group: u32,
    /// How many the host has: the first ones.
    host: u32,
    /// Whether these are two groups, the second of which rests where nothing is packed.
    packs: bool,
    /// The first that takes what is moved; the host's first where it shares them.
    moves: Lane,
    /// The last, where there is an SLC cache.
    slc: Option<Lane>,
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
        let apart = profile.collection.relocation == Relocation::Separate;
        let frontier = |lane: u32| match profile.placement {
            PlacementRule::Hinted | PlacementRule::Inferred | PlacementRule::Packed => {
                let span = Span::OneDie(lane % group);
                Frontier::new(geometry, span, units / group, false)
            }
            PlacementRule::Striped | PlacementRule::Streams(_) => {
                Frontier::new(geometry, Span::AllDies, units, false)
            }
        };
        let moves = if apart { group } else { 0 };
        let mut all: Vec<Frontier> = (0..host + moves).map(frontier).collect();
        let slc = profile.slc.as_ref().map(|slc| {
            let units = slc.superblock_units(geometry);
            all.push(Frontier::new(geometry, Span::AllDies, units, true));
            Lane(all.len() as u32 - 1)
        });
        let moves = Lane(if apart { host } else { 0 });
        let packs = profile.placement == PlacementRule::Packed;
        Self { all, group, host, packs, moves, slc }
    }

    /// The lanes that share their superblocks with this one, itself among them.
    fn group(&self, lane: Lane) -> Range<u32> {
        if self.group == 1 || Some(lane) == self.slc {
            return lane.0..lane.0 + 1;
        }
        let first = lane.0 - lane.0 % self.group;
        first..first + self.group
    }

    fn frontiers_with(&self, lane: Lane) -> &[Frontier] {
        let Range { start, end } = self.group(lane);
        &self.all[start as usize..end as usize]
    }

    /// This lane if it has room; else the one of its group with the most, of equals the next one.
    /// None where all of it is filled, and none is handed over.
    pub fn with_room(&mut self, lane: Lane) -> Option<Lane> {
        self.roomiest(lane).or_else(|| self.take_over(lane).then(|| self.roomiest(lane))?)
    }

    /// Hands the second group's superblock over to the first, if that is this lane's; false where
    /// there is no such thing.
    fn take_over(&mut self, lane: Lane) -> bool {
        if !self.packs || lane.0 >= self.group {
            return false;
        }
        let (first, rest) = self.all.split_at_mut(self.group as usize);
        let second = &mut rest[..self.group as usize];
        let has_room = second.iter().any(|frontier| !frontier.is_full());
        let may = has_room && second.iter().all(|frontier| frontier.units_open() == 0);
        if may {
            first.iter_mut().zip(second).for_each(|(to, from)| to.take_over(from));
        }
        may
    }

    fn roomiest(&self, lane: Lane) -> Option<Lane> {
        let Range { start, end } = self.group(lane);
        let count = end - start;
        let after = (0..count).map(|step| Lane(start + (lane.0 - start + step) % count));
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

    /// Whether a lane has a superblock from the start: others get theirs when they are written to.
    pub fn opens_at_once(&self, lane: Lane) -> bool {
        let rests = self.packs && (self.group..self.host).contains(&lane.0);
        Some(lane) != self.slc && !rests
    }

    /// Whether the superblock of a lane has no room left on any die.
    pub fn is_filled(&self, lane: Lane) -> bool {
        self.frontiers_with(lane).iter().all(Frontier::is_full)
    }

    /// Goes on in an erased superblock after all of the old one was filled.
    pub fn open(&mut self, lane: Lane, superblock: u32, log: usize) {
        let Range { start, end } = self.group(lane);
        for frontier in &mut self.all[start as usize..end as usize] {
            frontier.open(superblock, log);
        }
    }

    /// The frontier of a lane.
    #[inline]
    pub fn of(&mut self, lane: Lane) -> &mut Frontier {
        &mut self.all[lane.index()]
    }

    /// Units that the superblock of a stream still takes, where each has one; else 0.
    pub fn room(&self, stream: u32) -> u32 {
        let has_one = self.group == 1 && stream < self.host;
        if has_one { self.all[stream as usize].room() } else { 0 }
    }

    /// The lane of what is moved; 0 where it shares the host's.
    pub fn moves(&self) -> Lane {
        self.moves
    }

    /// The lane of the SLC cache.
    #[inline]
    pub fn slc(&self) -> Option<Lane> {
        self.slc
    }

    /// All lanes.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        (0..self.all.len() as u32).map(Lane)
    }

    /// The lanes that take what the host writes, but for that of the SLC cache.
    pub fn host_lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        (0..self.host).map(Lane)
    }

    /// The stream of the host that fills a lane; 0 where that is no one's or all of them do.
    pub fn stream(&self, lane: Lane) -> u8 {
        if self.group == 1 && lane.0 < self.host { lane.0 as u8 } else { 0 }
    }

    /// Units written for a cause that wait in pages that are not full.
    pub fn waiting(&self, cause: Cause) -> u64 {
        self.all.iter().map(|frontier| u64::from(frontier.waiting(cause))).sum()
    }

    /// How far each is filled, so that what was written up to now can be told from what follows.
    pub fn marks(&self) -> Marks {
        Marks(self.all.iter().map(Frontier::taken).collect())
    }

    /// Lanes with something written up to the marks that waits in a page that is not full.
    pub fn behind<'a>(&'a self, marks: &'a Marks) -> impl Iterator<Item = Lane> + 'a {
        let both = self.lanes().zip(self.all.iter().zip(&marks.0));
        both.filter(|(_, (frontier, mark))| frontier.programmed() < **mark).map(|(lane, _)| lane)
    }

    /// Whether all that was written up to the marks is being programmed or in flash.
    pub fn programmed_up_to(&self, marks: &Marks) -> bool {
        self.behind(marks).next().is_none()
    }
}

/// How far each frontier was filled at some moment, in units taken since the drive was new.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<u64>);
