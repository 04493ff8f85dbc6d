//! Which superblock to collect: a policy is one pure function from candidates to a choice.

/// A superblock that could be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub superblock: u32,
    /// Its valid units, which would have to be moved.
    pub valid: u32,
}

/// The candidate with the fewest valid units; of equals the first.
///
/// Optimal for uniform random writes; source: Desnoyers, "Analytic models of SSD write
/// performance", ACM TOS 2014.
pub fn greedy(candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
    candidates.min_by_key(|candidate| candidate.valid)
}

#[cfg(test)]
mod tests {
    use super::{Candidate, greedy};

    #[test]
    fn greedy_takes_the_fewest_valid_units_and_of_equals_the_first() {
        let valid = [5, 2, 7, 2];
        let candidates =
            |(i, valid): (usize, &u32)| Candidate { superblock: i as u32, valid: *valid };
        let chosen = greedy(valid.iter().enumerate().map(candidates));
        assert_eq!(chosen, Some(Candidate { superblock: 1, valid: 2 }));
        assert_eq!(greedy(std::iter::empty()), None);
    }
}
