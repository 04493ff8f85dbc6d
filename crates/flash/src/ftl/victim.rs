//! Which superblock to collect: each policy is a pure function of the closed ones.

use ssdlab_time::Random;

use super::store::Closed;
use crate::config::VictimPolicy;

/// The superblock that a policy collects when the host has written `now` units.
pub fn choose(policy: VictimPolicy, closed: &mut Closed, now: u64, random: &mut Random) -> u32 {
    match policy {
        VictimPolicy::Greedy => closed.fewest_valid(),
        VictimPolicy::Fifo => closed.oldest(),
        VictimPolicy::Random => any(closed, random),
        VictimPolicy::DChoices(choices) => d_choices(closed, choices, random),
        VictimPolicy::CostBenefit => cost_benefit(closed, now),
    }
}

fn any(closed: &Closed, random: &mut Random) -> u32 {
    closed.at(random.below(closed.count() as u64) as usize)
}

/// The emptiest of `choices` picked at random (Van Houdt, SIGMETRICS 2013).
fn d_choices(closed: &Closed, choices: u32, random: &mut Random) -> u32 {
    let picks = (0..choices).map(|_| any(closed, random));
    picks.min_by_key(|pick| closed.valid(*pick)).expect("at least one choice")
}

/// The one with the highest age x (1 - u) / 2u, where u is its valid share (Rosenblum and
/// Ousterhout, TOCS 1992, with the cost of reading only the valid units).
///
/// No age is 0, so that a superblock with invalid units precedes full ones. One that collection has
/// just closed has no age by the units that the host wrote.
fn cost_benefit(closed: &Closed, now: u64) -> u32 {
    let units = f64::from(closed.units);
    let benefit = |superblock: u32| {
        let used = f64::from(closed.valid(superblock)) / units;
        let age = (1 + now - closed.closed_at(superblock)) as f64;
        if used == 0.0 { f64::INFINITY } else { age * (1.0 - used) / (2.0 * used) }
    };
    let all = (0..closed.count()).map(|index| closed.at(index));
    all.map(|superblock| (benefit(superblock), superblock))
        .max_by(|(a, x), (b, y)| a.total_cmp(b).then(y.cmp(x)))
        .expect("a superblock is closed")
        .1
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::config::VictimPolicy;
    use crate::ftl::store::Closed;
    use ssdlab_time::Random;

    /// Superblocks of 10 units, in the order in which they were closed: number, valid count, and
    /// units that the host had written.
    fn closed(superblocks: [(u32, u32, u64); 4]) -> Closed {
        let mut closed = Closed::new(4, 10);
        for (superblock, valid, at) in superblocks {
            closed.add(superblock, valid, at);
        }
        closed
    }

    fn chosen(policy: VictimPolicy) -> u32 {
        let mut closed = closed([(2, 9, 10), (3, 6, 50), (0, 8, 90), (1, 4, 99)]);
        choose(policy, &mut closed, 100, &mut Random::new(1, "victim"))
    }

    #[test]
    fn each_policy_chooses_by_its_rule() {
        assert_eq!(chosen(VictimPolicy::Greedy), 1, "the fewest valid units");
        assert_eq!(chosen(VictimPolicy::Fifo), 2, "closed first");
        // Benefits: 11 x 0.2 / 1.6, 2 x 0.6 / 0.8, 91 x 0.1 / 1.8, 51 x 0.4 / 1.2.
        assert_eq!(chosen(VictimPolicy::CostBenefit), 3, "old and fairly empty");
    }

    #[test]
    fn cost_benefit_prefers_a_superblock_that_was_just_closed_to_a_full_one() {
        let mut closed = closed([(0, 10, 0), (1, 10, 5), (2, 9, 100), (3, 10, 50)]);
        let mut random = Random::new(0, "victim");
        assert_eq!(choose(VictimPolicy::CostBenefit, &mut closed, 100, &mut random), 2);
    }

    #[test]
    fn d_choices_finds_the_emptiest_with_many_and_any_with_one() {
        assert_eq!(chosen(VictimPolicy::DChoices(64)), 1);
        let mut closed = closed([(0, 8, 0), (1, 4, 0), (2, 9, 0), (3, 6, 0)]);
        let mut random = Random::new(1, "victim");
        let mut chosen = [0; 4];
        for _ in 0..400 {
            chosen[choose(VictimPolicy::DChoices(1), &mut closed, 1, &mut random) as usize] += 1;
            chosen[choose(VictimPolicy::Random, &mut closed, 1, &mut random) as usize] += 1;
        }
        assert!(chosen.iter().all(|count| (150..250).contains(count)), "{chosen:?}");
    }
}
