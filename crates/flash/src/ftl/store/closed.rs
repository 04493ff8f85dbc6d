//! `Closed`: the closed superblocks, found by fewest valid units, by age, or at random.

use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    valid: u32,
    /// Index in `dense`, or `NONE` if it is not closed.
    position: u32,
    /// Neighbours in the list of superblocks with the same valid count.
    before: u32,
    after: u32,
    /// Units that the host had written when it was closed.
    closed_at: u64,
}

/// The possible victims.
///
/// Doubly linked lists by valid count give the fewest at once and cost a few words per write; a
/// queue gives the oldest, and an array gives one at random.
#[derive(Clone, Debug)]
pub struct Closed {
    entries: Vec<Entry>,
    dense: Vec<u32>,
    /// The first superblock of each valid count.
    heads: Vec<u32>,
    /// All lists below this valid count are empty.
    lowest: u32,
    /// By time of closing. Also has superblocks that were collected since: their time differs.
    by_age: VecDeque<(u32, u64)>,
    /// Units in a superblock.
    pub units: u32,
}

impl Closed {
    /// For a drive of `superblocks` superblocks of `units` units, none of them closed.
    pub fn new(superblocks: u32, units: u32) -> Self {
        let open = Entry { valid: 0, position: NONE, before: NONE, after: NONE, closed_at: 0 };
        Self {
            entries: vec![open; superblocks as usize],
            dense: Vec::new(),
            heads: vec![NONE; units as usize + 1],
            lowest: units,
            by_age: VecDeque::new(),
            units,
        }
    }

    /// Adds a superblock that was closed when the host had written `now` units.
    pub fn add(&mut self, superblock: u32, valid: u32, now: u64) {
        let position = self.dense.len() as u32;
        self.dense.push(superblock);
        self.by_age.push_back((superblock, now));
        let entry = Entry { valid, position, before: NONE, after: NONE, closed_at: now };
        self.entries[superblock as usize] = entry;
        self.link(superblock, valid);
    }

    /// Removes a superblock that becomes the victim.
    pub fn remove(&mut self, superblock: u32) {
        self.unlink(superblock);
        let position = self.entries[superblock as usize].position;
        self.dense.swap_remove(position as usize);
        if let Some(moved) = self.dense.get(position as usize) {
            self.entries[*moved as usize].position = position;
        }
        self.entries[superblock as usize].position = NONE;
        while self.by_age.front().is_some_and(|(oldest, at)| !self.is_closed_since(*oldest, *at)) {
            self.by_age.pop_front();
        }
    }

    /// Decrements the valid count of a superblock, if it is closed.
    #[inline]
    pub fn lose_unit(&mut self, superblock: u32) {
        self.change_valid(superblock, |valid| valid - 1);
    }

    /// Increments the valid count of a superblock, if it is closed.
    pub fn gain_unit(&mut self, superblock: u32) {
        self.change_valid(superblock, |valid| valid + 1);
    }

    #[inline]
    fn change_valid(&mut self, superblock: u32, change: impl FnOnce(u32) -> u32) {
        if self.entries[superblock as usize].position == NONE {
            return;
        }
        self.unlink(superblock);
        let entry = &mut self.entries[superblock as usize];
        entry.valid = change(entry.valid);
        let valid = entry.valid;
        self.link(superblock, valid);
    }

    pub fn count(&self) -> usize {
        self.dense.len()
    }

    /// The one at an index below `count`, in arbitrary order.
    pub fn at(&self, index: usize) -> u32 {
        self.dense[index]
    }

    pub fn valid(&self, superblock: u32) -> u32 {
        self.entries[superblock as usize].valid
    }

    /// Units that the host had written when it was closed.
    pub fn closed_at(&self, superblock: u32) -> u64 {
        self.entries[superblock as usize].closed_at
    }

    /// One with the fewest valid units. At least one superblock must be closed.
    pub fn fewest_valid(&mut self) -> u32 {
        while self.heads[self.lowest as usize] == NONE {
            self.lowest += 1;
        }
        self.heads[self.lowest as usize]
    }

    /// The one that was closed first. At least one superblock must be closed.
    pub fn oldest(&self) -> u32 {
        self.by_age.front().expect("a superblock is closed").0
    }

    fn is_closed_since(&self, superblock: u32, at: u64) -> bool {
        let entry = &self.entries[superblock as usize];
        entry.position != NONE && entry.closed_at == at
    }

    #[inline]
    fn link(&mut self, superblock: u32, valid: u32) {
        let head = std::mem::replace(&mut self.heads[valid as usize], superblock);
        if head != NONE {
            self.entries[head as usize].before = superblock;
        }
        let entry = &mut self.entries[superblock as usize];
        (entry.before, entry.after) = (NONE, head);
        self.lowest = self.lowest.min(valid);
    }

    #[inline]
    fn unlink(&mut self, superblock: u32) {
        let Entry { valid, before, after, .. } = self.entries[superblock as usize];
        match before {
            NONE => self.heads[valid as usize] = after,
            _ => self.entries[before as usize].after = after,
        }
        if after != NONE {
            self.entries[after as usize].before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Closed;
    use ssdlab_time::Random;

    #[test]
    fn the_lists_agree_with_a_linear_search_after_any_history() {
        let (count, units) = (40, 16);
        let mut closed = Closed::new(count, units);
        let mut plain: Vec<(u32, u32, u64)> = Vec::new();
        let mut random = Random::new(2, "closed");
        for now in 0..20_000 {
            let superblock = random.below(u64::from(count)) as u32;
            let known = plain.iter().position(|(each, ..)| *each == superblock);
            match (known, random.below(8)) {
                (None, _) => {
                    closed.add(superblock, units, now);
                    plain.push((superblock, units, now));
                }
                (Some(index), 0) => {
                    closed.remove(superblock);
                    plain.remove(index);
                }
                (Some(index), _) if plain[index].1 > 0 => {
                    closed.lose_unit(superblock);
                    plain[index].1 -= 1;
                }
                _ => {}
            }
            assert_eq!(closed.count(), plain.len());
            if let Some(fewest) = plain.iter().map(|(_, valid, _)| *valid).min() {
                let chosen = closed.fewest_valid();
                assert_eq!(closed.valid(chosen), fewest);
                assert_eq!(closed.oldest(), plain.iter().min_by_key(|(.., at)| *at).unwrap().0);
            }
        }
    }
}
