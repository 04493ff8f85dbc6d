//! Closed forms of write amplification in steady state: what the model is held against.
//!
//! `alpha` is physical over logical capacity, both without what never holds data: 1 / (1 - spare).
//! Traffic is random writes of one unit, uniform inside each region.

/// A part of the logical units and the part of the writes that it takes.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub space: f64,
    pub writes: f64,
}

/// A hot region and the cold rest.
pub fn hot_and_cold(space: f64, writes: f64) -> [Region; 2] {
    [Region { space, writes }, Region { space: 1.0 - space, writes: 1.0 - writes }]
}

/// Physical over logical capacity at this spare (hidden share of all flash).
pub fn alpha(spare: f64) -> f64 {
    1.0 / (1.0 - spare)
}

/// Any superblock is the victim: its valid share is the drive's.
///
/// Source: Van Houdt, SIGMETRICS 2013 (d-choices with d = 1).
pub fn random(alpha: f64) -> f64 {
    1.0 / (1.0 - 1.0 / alpha)
}

/// The oldest is the victim; also greedy for ever larger superblocks.
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

/// The oldest is the victim, all regions share one frontier.
///
/// With T for the host writes of a round over the logical units, a unit of a region is not written
/// in a round with probability exp(-y), `y = writes / space x T`; so a round passes over the sum of
/// `space x y / (1 - exp(-y))` over the regions, which is alpha, and A = alpha / T.
/// Source: the mixture form of Desnoyers, ACM TOS 2014 (LRU, hot and cold).
pub fn fifo_mixed(alpha: f64, regions: &[Region]) -> f64 {
    let space = |round: f64| -> f64 {
        let of = |region: &Region| {
            let y = region.writes / region.space * round;
            region.space * y / -(-y).exp_m1()
        };
        regions.iter().map(of).sum()
    };
    alpha / bisect(1e-9, alpha, |round| space(round) - alpha)
}

/// The oldest is the victim, each of two regions has its own log, and the spare is split between
/// them in the best way: what perfect separation could reach.
pub fn fifo_split(alpha: f64, regions: &[Region; 2]) -> f64 {
    let [hot, cold] = regions;
    let total = |share: f64| {
        let part = |region: &Region, share: f64| {
            region.writes * fifo(1.0 + (alpha - 1.0) * share / region.space)
        };
        part(hot, share) + part(cold, 1.0 - share)
    };
    // Convex in the share of the spare that the hot log gets: narrow the range by thirds.
    let (mut low, mut high) = (1e-4, 1.0 - 1e-4);
    for _ in 0..100 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if total(left) < total(right) { high = right } else { low = left }
    }
    total(low)
}

/// The superblock with the fewest valid of its `units` is the victim; many superblocks.
///
/// Mean field: a superblock enters with all units valid and loses one at a rate of j / logical
/// units in state j; it is taken at the lowest state m that any reaches. With F superblocks taken
/// a host write, those in states above m number F / mu x sum of 1/j and n wait in state m, which
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
/// With `S(j)` for the share of superblocks that have at least j valid units and w for the host
/// writes that a victim gives room for: `j w alpha / units x (S(j) - S(j+1)) = 1 - S(j)^d` for j
/// from `units` down to 1, and all `S(j)` add up to `units / alpha`; A = units / w.
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

/// The share of the logical units that is in use when a share `trims` of all requests trims a unit
/// in use and the others write any unit: then everything holds with alpha / this.
///
/// Source: balance of writes to units not in use and trims; Frankie et al., 2012.
pub fn in_use(trims: f64) -> f64 {
    (1.0 - 2.0 * trims) / (1.0 - trims)
}

/// Where a rising function passes zero.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
