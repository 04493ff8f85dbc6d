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
    /// If planes read independently: when the last read of each plane ends.
    planes: Vec<Nanos>,
    /// If planes read independently: the latest start of a read.
    pub latest_start: Nanos,
}

impl Reads {
    /// For a die with this many planes that read independently; 0 or 1: the whole die reads.
    pub fn new(planes: usize) -> Self {
        let planes = if planes > 1 { vec![Nanos::ZERO; planes] } else { Vec::new() };
        Self { planes, ..Self::default() }
    }

    /// Whether planes read independently.
    #[cfg(test)]
    pub fn is_by_plane(&self) -> bool {
        !self.planes.is_empty()
    }

    /// When a plane has ended its reads.
    #[inline]
    pub fn free(&self, plane: usize) -> Nanos {
        if self.planes.is_empty() { self.end } else { self.planes[plane] }
    }

    #[inline]
    pub fn book(&mut self, plane: usize, start: Nanos, duration: Nanos) -> Span {
        let end = start + duration;
        self.end = self.end.max(end);
        if let Some(free) = self.planes.get_mut(plane) {
            *free = end;
            self.latest_start = self.latest_start.max(start);
        }
        Span { start, end }
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
    /// Adds a read: a read that follows at once need not suspend the operation again.
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
