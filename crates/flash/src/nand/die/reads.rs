//! `Reads`: when the host reads of a die run; `Suspension`: of a program or erase, for reads.

use ssdlab_time::{Nanos, Span};

/// How host reads take precedence over the other operations of a die.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority {
    /// Time to suspend a program or an erase; `None`: the drive does not support that.
    pub suspend: Option<Nanos>,
    /// The longest that host reads may delay one operation; `None`: without limit.
    pub limit: Option<Nanos>,
}

impl Priority {
    /// Whether host reads may delay an operation by that much in total.
    pub fn allows(&self, delay: Nanos) -> bool {
        self.limit.is_none_or(|limit| delay <= limit)
    }
}

/// The host reads of a die.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// When the last of them ends.
    pub end: Nanos,
    /// The planes, if they read independently.
    planes: Option<Box<Planes>>,
}

#[derive(Clone, Debug)]
struct Planes {
    /// When the last read of each plane ends.
    free: Vec<Nanos>,
    latest_start: Nanos,
}

impl Reads {
    /// For a die with this many planes that read independently; 0 or 1: the whole die reads.
    pub fn new(planes: usize) -> Self {
        let free = vec![Nanos::ZERO; planes];
        let planes = (planes > 1).then(|| Box::new(Planes { free, latest_start: Nanos::ZERO }));
        Self { planes, ..Self::default() }
    }

    /// Whether planes read independently.
    #[cfg(test)]
    pub fn is_by_plane(&self) -> bool {
        self.planes.is_some()
    }

    /// When a plane has ended its reads.
    #[inline]
    pub fn free(&self, plane: usize) -> Nanos {
        self.planes.as_ref().map_or(self.end, |planes| planes.free[plane])
    }

    #[inline]
    pub fn book(&mut self, plane: usize, start: Nanos, duration: Nanos) -> Span {
        let end = start + duration;
        if let Some(planes) = &mut self.planes {
            planes.free[plane] = end;
            planes.latest_start = planes.latest_start.max(start);
            self.end = self.end.max(end);
        } else {
            self.end = end;
        }
        Span { start, end }
    }

    /// The latest start of a read, if planes read independently.
    pub fn latest_start(&self) -> Nanos {
        self.planes.as_ref().map_or(Nanos::ZERO, |planes| planes.latest_start)
    }
}

/// The last suspension of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suspension {
    /// When the die begins to suspend.
    begun: Nanos,
    /// When it has suspended, and reads can start.
    from: Nanos,
    /// When the last read ends, and the operation resumes.
    pub until: Nanos,
}

/// A read during a suspension.
#[derive(Clone, Copy, Debug)]
pub struct SuspendedFor {
    /// The suspension with this read.
    pub suspension: Suspension,
    /// When the read starts.
    pub start: Nanos,
    /// The time that the read adds to the operation.
    pub added: Nanos,
    /// Whether the operation is suspended already.
    pub joins: bool,
}

impl Suspension {
    /// When the reads end for which an operation is suspended at `now`; `None` if none is.
    pub fn reads_until(&self, now: Nanos) -> Option<Nanos> {
        (self.begun <= now && now < self.until).then_some(self.until)
    }

    /// Adds a read: a read that follows at once need not suspend the operation again.
    #[inline]
    pub fn add(self, start: Nanos, duration: Nanos, cost: Nanos) -> SuspendedFor {
        if self.begun <= start && start <= self.until {
            let start = start.max(self.from);
            let until = self.until.max(start + duration);
            let suspension = Self { until, ..self };
            return SuspendedFor { suspension, start, added: until - self.until, joins: true };
        }
        let from = start + cost;
        let suspension = Self { begun: start, from, until: from + duration };
        SuspendedFor { suspension, start: from, added: cost + duration, joins: false }
    }
}
