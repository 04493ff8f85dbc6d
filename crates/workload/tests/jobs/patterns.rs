//! The addresses of each pattern.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_device::{Lba, Region};
use ssdlab_workload::{Pattern, PatternArea, PatternKind};

/// The first `count` addresses of requests of one block, on a region of `blocks` host blocks.
fn draw(kind: &PatternKind, blocks: u64, count: usize, seed: u64) -> Vec<u64> {
    let region = Region { start: Lba::new(0), blocks };
    let area = PatternArea { region, granularity: 1, longest: 1 };
    let mut pattern = Pattern::new(kind, area, seed);
    (0..count).map(|_| pattern.next(1).get()).collect()
}

#[test]
fn a_sequential_pattern_starts_again_after_the_last_block() {
    assert_eq!(draw(&PatternKind::Sequential, 3, 7, 0), [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn a_sequential_pattern_of_several_lengths_has_no_gaps_and_stays_in_its_region() {
    let region = Region { start: Lba::new(100), blocks: 10 };
    let area = PatternArea { region, granularity: 1, longest: 4 };
    let mut pattern = Pattern::new(&PatternKind::Sequential, area, 0);
    let addresses = [4, 1, 3, 4, 2].map(|blocks| pattern.next(blocks).get());
    assert_eq!(addresses, [100, 104, 105, 100, 104]);
}

#[test]
fn random_once_visits_every_block_before_any_block_again() {
    for blocks in [1, 2, 3, 5, 64, 1000, 4097] {
        let mut pass = draw(&PatternKind::RandomOnce, blocks, blocks as usize, 11);
        pass.sort_unstable();
        assert!(pass.iter().copied().eq(0..blocks), "{blocks} blocks");
    }
}

#[test]
fn the_order_differs_between_passes_and_between_seeds() {
    let two = draw(&PatternKind::RandomOnce, 1000, 2000, 1);
    assert_ne!(two[..1000], two[1000..]);
    assert_ne!(two[..1000], draw(&PatternKind::RandomOnce, 1000, 1000, 2)[..]);
    assert_eq!(two, draw(&PatternKind::RandomOnce, 1000, 2000, 1));
}

#[test]
fn random_once_scatters_over_the_whole_region() {
    let blocks = 1 << 20;
    let first = draw(&PatternKind::RandomOnce, blocks, 12_800, 3);
    let mut sixteenths = [0_u32; 16];
    for block in &first {
        sixteenths[(block * 16 / blocks) as usize] += 1;
    }
    assert!(sixteenths.iter().all(|&n| (700..900).contains(&n)), "{sixteenths:?}");
    let neighbours = first.windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count();
    assert!(neighbours < 5, "{neighbours} of 12800 follow their neighbour");
}

#[test]
fn zipf_favours_a_few_blocks_scattered_over_the_region() {
    let drawn = draw(&PatternKind::Zipf { theta: 1.0 }, 1000, 20_000, 5);
    let mut counts = BTreeMap::new();
    for block in drawn {
        *counts.entry(block).or_insert(0) += 1;
    }
    let mut ranked: Vec<(u32, u64)> = counts.into_iter().map(|(block, n)| (n, block)).collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    // The harmonic number of 1000 is 7.49: the first block has a share of 1 / 7.49.
    assert!((2500..2850).contains(&ranked[0].0), "{:?}", ranked[0]);
    let hot: BTreeSet<u64> = ranked[..10].iter().map(|&(_, block)| block / 100).collect();
    assert!(hot.len() > 3, "the ten hottest blocks are in tenths {hot:?} of the region");
}

#[test]
fn a_stride_wraps_with_a_shift_until_every_block_was_visited() {
    let strided = PatternKind::Strided { stride_bytes: 4 * 512, alignment_bytes: 0 };
    let expected = [0, 4, 8, 1, 5, 9, 2, 6, 3, 7, 0, 4];
    assert_eq!(draw(&strided, 10, 12, 0), expected);
    let by_two = PatternKind::Strided { stride_bytes: 4 * 512, alignment_bytes: 1024 };
    assert_eq!(draw(&by_two, 8, 5, 0), [0, 4, 2, 6, 0]);
}

#[test]
fn aligned_requests_start_at_multiples_only() {
    let aligned = PatternKind::Aligned { alignment_bytes: 3 * 512 };
    let starts: BTreeSet<u64> = draw(&aligned, 12, 500, 1).into_iter().collect();
    assert!(starts.into_iter().eq([0, 3, 6, 9]));
}

#[test]
fn extents_are_visited_in_order_or_uniformly_at_random() {
    let list = vec![(8 * 512, 2 * 512), (512, 3 * 512)];
    let inorder = PatternKind::Extents { list: list.clone(), random: false };
    assert_eq!(draw(&inorder, 16, 7, 0), [8, 9, 1, 2, 3, 8, 9]);
    let mut counts = [0_u32; 16];
    for block in draw(&PatternKind::Extents { list, random: true }, 16, 5000, 2) {
        counts[block as usize] += 1;
    }
    for (block, count) in counts.into_iter().enumerate() {
        let inside = matches!(block, 1..=3 | 8..=9);
        let wanted = if inside { 850..1150 } else { 0..1 };
        assert!(wanted.contains(&count), "block {block} was visited {count} times");
    }
}
