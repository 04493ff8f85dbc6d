//! Closed forms of write amplification in steady state.
//!
//! `alpha` is physical over logical capacity, not counting flash that never holds data:
//! 1 / (1 - spare).
//! The workload is random writes of one unit, uniform within each region.

/// A share of the logical units, and the share of the writes that they get.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub space: f64,
    pub writes: f64,
}

/// A hot region and the cold rest.
pub fn hot_and_cold(space: f64, writes: f64) -> [Region; 2] {
    [Region { space, writes }, Region { space: 1.0 - space, writes: 1.0 - writes }]
}

/// Physical over logical capacity at this spare.
pub fn alpha(spare: f64) -> f64 {
    1.0 / (1.0 - spare)
}

/// Random victims: their valid share is that of the drive.
///
/// Source: Van Houdt, SIGMETRICS 2013 (d-choices with d = 1).
pub fn random(alpha: f64) -> f64 {
    1.0 / (1.0 - 1.0 / alpha)
}

/// The oldest superblock is the victim. Also the limit of greedy for large superblocks.
///
/// A = alpha / (alpha + W(-alpha exp(-alpha))). Source: Xiang and Kurkoski, arXiv 1110.4245;
/// Desnoyers, SYSTOR 2012.
pub fn fifo(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w(-alpha * (-alpha).exp()))
}

/// The principal branch of Lambert's W between -1/e and 0: W exp(W) = x, by Halley's method.
pub fn lambert_w(x: f64) -> f64 {
    assert!((-(-1.0_f64).exp()..=0.0).contains(&x), "{x} is between -1/e and 0");
    // The series at the branch point.
    let p = (2.0 * (1.0 + x * 1.0_f64.exp())).max(0.0).sqrt();
    let mut w = p - 1.0 - p * p / 3.0;
    for _ in 0..50 {
        let (e, excess) = (w.exp(), w * w.exp() - x);
        let step = excess / (e * (w + 1.0) - (w + 2.0) * excess / (2.0 * w + 2.0));
        if !step.is_finite() || step.abs() < 1e-15 {
            break;
        }
        w -= step;
    }
    w
}

/// The oldest superblock is the victim; all regions share one frontier.
///
/// T is the host writes, in drive writes, between the filling of a superblock and its collection.
/// A unit of a region stays valid for T with probability exp(-y), `y = writes / space x T`. The sum
/// of `space x y / (1 - exp(-y))` over the regions is alpha, and A = alpha / T.
/// Source: the mixture form of Desnoyers, ACM TOS 2014 (LRU, hot and cold).
pub fn fifo_mixed(alpha: f64, regions: &[Region]) -> f64 {
    let space = |writes: f64| -> f64 {
        let of = |region: &Region| {
            let y = region.writes / region.space * writes;
            region.space * y / -(-y).exp_m1()
        };
        regions.iter().map(of).sum()
    };
    alpha / bisect(1e-9, alpha, |writes| space(writes) - alpha)
}

/// The oldest superblock is the victim; each of two regions has its own log, and the spare is split
/// optimally: the best result of separation.
pub fn fifo_split(alpha: f64, regions: &[Region; 2]) -> f64 {
    let [hot, cold] = regions;
    let total = |share: f64| {
        let part = |region: &Region, share: f64| {
            region.writes * fifo(1.0 + (alpha - 1.0) * share / region.space)
        };
        part(hot, share) + part(cold, 1.0 - share)
    };
    // Convex in the share of the spare that the hot log gets: ternary search.
    let (mut low, mut high) = (1e-4, 1.0 - 1e-4);
    for _ in 0..100 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if total(left) < total(right) { high = right } else { low = left }
    }
    total(low)
}

/// The superblock with the fewest valid units is the victim; in the limit of many superblocks.
///
/// Mean field: a superblock enters with all units valid and loses one at a rate of j / logical
/// units in state j; it is collected in state m, the lowest that is reached. If F superblocks are
/// collected per host write, F / mu x sum of 1/j are in states above m and n wait in state m, which
/// some leave by a further write: 1 = F (units - m) + m mu n, 0 <= n < F / (m mu), A = units x F.
/// The exact form of Desnoyers, SYSTOR 2012 (his closed form agrees within 0.3 %).
pub fn greedy(alpha: f64, units: u32) -> f64 {
    let size = f64::from(units);
    // Sum of 1/j over the states above m; m falls until this drive's alpha is in its range.
    let (mut m, mut sum) = (units - 1, 1.0 / size);
    while m > 1 && size * (sum + 1.0 / f64::from(m)) / f64::from(units - m + 1) <= alpha {
        sum += 1.0 / f64::from(m);
        m -= 1;
    }
    let level = f64::from(m);
    size * (alpha / size - 1.0 / level) / (sum - (size - level) / level)
}

/// The emptiest of `choices` picked at random is the victim.
///
/// `S(j)` is the share of superblocks with at least j valid units, and w the host writes that fit
/// into a collected victim: `j w alpha / units x (S(j) - S(j+1)) = 1 - S(j)^d` for j from `units`
/// down to 1, and all `S(j)` add up to `units / alpha`; A = units / w.
/// Source: Van Houdt, SIGMETRICS 2013.
pub fn d_choices(alpha: f64, units: u32, choices: u32) -> f64 {
    let size = f64::from(units);
    let power = choices.cast_signed();
    let valid = |room: f64| -> f64 {
        let (mut above, mut sum) = (0.0, 0.0);
        for j in (1..=units).rev() {
            let rate = f64::from(j) * room * alpha / size;
            above = bisect(above, 1.0, |s| rate * (s - above) - (1.0 - s.powi(power)));
            sum += above;
        }
        sum
    };
    size / bisect(1e-6, size, |room| size / alpha - valid(room))
}

/// The share of the logical units that is in use if a share `trims` of all requests trims a unit
/// in use and the others write any unit. All forms then hold with alpha divided by this.
///
/// Source: balance of writes to units not in use and trims; Frankie et al., 2012.
pub fn in_use(trims: f64) -> f64 {
    (1.0 - 2.0 * trims) / (1.0 - trims)
}

/// The zero of an increasing function.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
