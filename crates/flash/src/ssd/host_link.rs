//! `HostLink`: when data crosses the link, and when the controller's processor begins a command.

use ssdlab_time::{Calendar, Nanos, Span};

use crate::config::{Interface, Link, Profile};

/// The link to the host, and the controller's processor.
#[derive(Clone, Debug)]
pub struct HostLink {
    pub link: Link,
    unit_bytes: u64,
    unit_time: Nanos,
    to_host: Calendar,
    from_host: Calendar,
    /// Limits the commands per second.
    processor: Calendar,
}

impl HostLink {
    pub fn new(profile: &Profile) -> Self {
        let unit_bytes = profile.geometry.unit_bytes();
        Self {
            link: profile.link.clone(),
            unit_bytes,
            unit_time: Nanos::transfer(unit_bytes, profile.link.bandwidth),
            to_host: Calendar::default(),
            from_host: Calendar::default(),
            processor: Calendar::default(),
        }
    }

    /// Sets the clock: no later transfer or command starts before `now`.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        for calendar in [&mut self.to_host, &mut self.from_host, &mut self.processor] {
            calendar.advance(now);
        }
    }

    /// Occupies the processor for `busy`; returns when it begins with the command.
    #[inline]
    pub fn begin_command(&mut self, now: Nanos, busy: Nanos) -> Nanos {
        if busy == Nanos::ZERO {
            return now;
        }
        self.processor.book(now, busy).start
    }

    /// Sends data to the host; returns when it has arrived.
    #[inline]
    pub fn send(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        let duration = self.transfer_time(bytes);
        self.to_host.book(ready, duration).end
    }

    /// Sends units to the host while the channel still transfers them to the controller in the
    /// span `arrival`: from the first unit on, but not so early that the link runs dry before the
    /// last.
    pub fn stream(&mut self, arrival: Span, units: u32, bytes: u64) -> Nanos {
        let units = u64::from(units);
        let first = arrival.start + Nanos::new((arrival.end - arrival.start).get() / units);
        let whole = self.transfer_time(bytes);
        let last = self.transfer_time(bytes.div_ceil(units));
        let no_gap = (arrival.end + last).saturating_sub(whole);
        self.send(first.max(no_gap), bytes)
    }

    /// Receives data from the host; returns when the controller has it.
    pub fn receive(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        let duration = if self.link.write_bandwidth == self.link.bandwidth {
            self.transfer_time(bytes)
        } else {
            Nanos::transfer(bytes, self.link.write_bandwidth)
        };
        match self.link.interface {
            Interface::Nvme => self.from_host.book(ready, duration).end,
            Interface::Sata => self.to_host.book(ready, duration).end,
        }
    }

    /// Forgets all transfers and commands, because the power was cut.
    pub fn power_cut(&mut self) {
        self.to_host = Calendar::default();
        self.from_host = Calendar::default();
        self.processor = Calendar::default();
    }

    /// The time that bytes take to the host.
    fn transfer_time(&self, bytes: u64) -> Nanos {
        // Divisions are slow, and most transfers of small commands are one unit.
        if bytes == self.unit_bytes {
            return self.unit_time;
        }
        Nanos::transfer(bytes, self.link.bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_time::{Calendar, Nanos};

    use super::HostLink;
    use crate::config::{Interface, Link};

    fn host_link(interface: Interface) -> HostLink {
        let none = Nanos::ZERO;
        let link = Link {
            interface,
            bandwidth: 1 << 30,
            write_bandwidth: 1 << 30,
            read_overhead: none,
            write_overhead: none,
            read_command: none,
            write_command: none,
            max_transfer: 256 << 10,
        };
        HostLink {
            unit_bytes: 4096,
            unit_time: Nanos::transfer(4096, link.bandwidth),
            link,
            to_host: Calendar::default(),
            from_host: Calendar::default(),
            processor: Calendar::default(),
        }
    }

    #[test]
    fn sata_transfers_in_one_direction_at_a_time_and_nvme_in_both() {
        let transfer = Nanos::transfer(128 << 10, 1 << 30);
        for (interface, both) in [(Interface::Nvme, 1), (Interface::Sata, 2)] {
            let mut link = host_link(interface);
            assert_eq!(link.receive(Nanos::ZERO, 128 << 10), transfer);
            assert_eq!(link.send(Nanos::ZERO, 128 << 10).get(), both * transfer.get());
        }
    }

    #[test]
    fn each_direction_has_its_own_bandwidth() {
        let mut link = host_link(Interface::Nvme);
        link.link.write_bandwidth = 1 << 28;
        let (out, back) = (1 << 30, 1 << 28);
        assert_eq!(link.send(Nanos::ZERO, 128 << 10), Nanos::transfer(128 << 10, out));
        assert_eq!(link.receive(Nanos::ZERO, 128 << 10), Nanos::transfer(128 << 10, back));
    }
}
