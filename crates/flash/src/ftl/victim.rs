//! Which superblock to collect: each policy is a pure function of the candidates.

use ssdlab_time::Random;

use crate::config::VictimPolicy;

/// The closed superblocks, of which there is at least one.
pub trait Candidates {
    /// Their number.
    fn count(&self) -> usize;
    /// The one at an index below `count`, in arbitrary order.
    fn at(&self, index: usize) -> u32;
    /// Units in a superblock.
    fn units(&self) -> u32;
    /// Its number of valid units.
    fn valid(&self, superblock: u32) -> u32;
    /// The number of units that the host had written when it was closed.
    fn closed_at(&self, superblock: u32) -> u64;
    /// One with the fewest valid units.
    fn fewest_valid(&mut self) -> u32;
    /// The one that was closed first.
    fn oldest(&self) -> u32;
}

/// The superblock that a policy collects when the host has written `now` units.
pub fn choose(
    policy: VictimPolicy,
    candidates: &mut impl Candidates,
    now: u64,
    random: &mut Random,
) -> u32 {
    match policy {
        VictimPolicy::Greedy => candidates.fewest_valid(),
        VictimPolicy::Fifo => candidates.oldest(),
        VictimPolicy::Random => any(candidates, random),
        VictimPolicy::DChoices(choices) => d_choices(candidates, choices, random),
        VictimPolicy::CostBenefit => cost_benefit(candidates, now),
    }
}

fn any(candidates: &impl Candidates, random: &mut Random) -> u32 {
    candidates.at(random.below(candidates.count() as u64) as usize)
}

/// The emptiest of `choices` picked at random (Van Houdt, SIGMETRICS 2013).
fn d_choices(candidates: &impl Candidates, choices: u32, random: &mut Random) -> u32 {
    let picks = (0..choices).map(|_| any(candidates, random));
    picks.min_by_key(|pick| candidates.valid(*pick)).expect("at least one choice")
}

/// The one with the highest age x (1 - u) / 2u, where u is its valid share (Rosenblum and
/// Ousterhout, TOCS 1992, with the cost of reading only the valid units).
fn cost_benefit(candidates: &impl Candidates, now: u64) -> u32 {
    let units = f64::from(candidates.units());
    let benefit = |superblock: u32| {
        let used = f64::from(candidates.valid(superblock)) / units;
        let age = (now - candidates.closed_at(superblock)) as f64;
        if used == 0.0 { f64::INFINITY } else { age * (1.0 - used) / (2.0 * used) }
    };
    let all = (0..candidates.count()).map(|index| candidates.at(index));
    all.map(|superblock| (benefit(superblock), superblock))
        .max_by(|(a, x), (b, y)| a.total_cmp(b).then(y.cmp(x)))
        .expect("a superblock is closed")
        .1
}

#[cfg(test)]
mod tests {
    use super::{Candidates, choose};
    use crate::config::VictimPolicy;
    use ssdlab_time::Random;

    /// Superblocks of 10 units: the valid count of each, and when it was closed.
    struct Plain([(u32, u64); 4]);

    impl Candidates for Plain {
        fn count(&self) -> usize {
            4
        }
        fn at(&self, index: usize) -> u32 {
            index as u32
        }
        fn units(&self) -> u32 {
            10
        }
        fn valid(&self, superblock: u32) -> u32 {
            self.0[superblock as usize].0
        }
        fn closed_at(&self, superblock: u32) -> u64 {
            self.0[superblock as usize].1
        }
        fn fewest_valid(&mut self) -> u32 {
            (0..4).min_by_key(|each| self.valid(*each)).unwrap()
        }
        fn oldest(&self) -> u32 {
            (0..4).min_by_key(|each| self.closed_at(*each)).unwrap()
        }
    }

    fn chosen(policy: VictimPolicy) -> u32 {
        let mut plain = Plain([(8, 90), (4, 99), (9, 10), (6, 50)]);
        choose(policy, &mut plain, 100, &mut Random::new(1, "victim"))
    }

    #[test]
    fn each_policy_chooses_by_its_rule() {
        assert_eq!(chosen(VictimPolicy::Greedy), 1, "the fewest valid units");
        assert_eq!(chosen(VictimPolicy::Fifo), 2, "closed first");
        // Benefits: 10 x 0.2 / 1.6, 1 x 0.6 / 0.8, 90 x 0.1 / 1.8, 50 x 0.4 / 1.2.
        assert_eq!(chosen(VictimPolicy::CostBenefit), 3, "old and fairly empty");
    }

    #[test]
    fn d_choices_finds_the_emptiest_with_many_and_any_with_one() {
        assert_eq!(chosen(VictimPolicy::DChoices(64)), 1);
        let mut plain = Plain([(8, 0), (4, 0), (9, 0), (6, 0)]);
        let mut random = Random::new(1, "victim");
        let mut chosen = [0; 4];
        for _ in 0..400 {
            chosen[choose(VictimPolicy::DChoices(1), &mut plain, 1, &mut random) as usize] += 1;
            chosen[choose(VictimPolicy::Random, &mut plain, 1, &mut random) as usize] += 1;
        }
        assert!(chosen.iter().all(|count| (150..250).contains(count)), "{chosen:?}");
    }
}
