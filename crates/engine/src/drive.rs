//! `Drive`: what is served, seen from here: a device in virtual time that can lose its power.

use ssdlab_device::{Completion, Device, Request};
use ssdlab_time::Nanos;

/// A unit that lost writes in a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWrites {
    /// Its number.
    pub unit: u64,
    /// How many of the newest writes to it are gone.
    pub writes: u32,
}

/// What a power cut did.
#[derive(Clone, Debug, Default)]
pub struct PowerCutLoss {
    /// Units that lost writes; all else is kept.
    pub lost: Vec<LostWrites>,
    /// Requests that were in flight and are never answered.
    pub unanswered: usize,
}

/// A counter's name and value.
pub type Counter = (&'static str, Option<f64>);

/// What a drive is made of, as far as hosts are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// A host best writes so many bytes at once: what all dies take together.
    pub stripe_bytes: u64,
    /// Flash that is erased as one.
    pub superblock_bytes: u64,
    /// Streams of writes that it keeps apart, each in superblocks of its own; 0 where it does not.
    pub streams: u32,
    /// Whether what it moves stays with the stream that wrote it.
    pub persistently_isolated: bool,
}

/// What a drive has counted of its life, as its health log tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Bytes that hosts wrote.
    pub written_bytes: u64,
    /// Bytes that were programmed for whatever cause.
    pub programmed_bytes: u64,
    /// Bytes that were erased.
    pub erased_bytes: u64,
    /// Wear in per cent of what the flash is sold for; `None` where nobody says what that is.
    pub percentage_used: Option<f64>,
    /// What is left to replace bad blocks, in per cent.
    pub spare_percent: f64,
    /// Units that hold content of hosts.
    pub mapped_units: u64,
}

/// A drive to serve: a `Device` whose clock is virtual, and what a server asks beside.
///
/// It holds no bytes: the server's store does, in mapping units of `unit_bytes`.
pub trait Drive: Device + Send {
    /// Bytes of a mapping unit: what is lost, trimmed and mapped as one.
    fn unit_bytes(&self) -> u64;

    /// The longest command in bytes: a longer request is as many, of which each is a write of its
    /// own to the units that it touches.
    fn max_transfer(&self) -> u64;

    /// How many units may be buffered and not in flash: so many writes may be undone by a cut. 0
    /// where none ever is.
    fn volatile_units(&self) -> u64;

    /// Whether trimmed units read as zeros; else as what stood there.
    fn trims_to_zeros(&self) -> bool;

    /// Whether a unit holds content of the host.
    fn is_mapped(&self, unit: u64) -> bool;

    /// The die that holds a unit's content; `None` where none does.
    fn die_of(&self, unit: u64) -> Option<u32>;

    /// How often the block was erased that holds a unit's content; `None` where none does.
    fn erase_count_of(&self, unit: u64) -> Option<u32>;

    /// Whether it takes no more writes and trims: its life is over.
    fn is_read_only(&self) -> bool;

    /// What it is made of.
    fn geometry(&self) -> Geometry;

    /// What it has counted of its life.
    fn health(&self) -> Health;

    /// Bytes that a stream's open superblock still takes.
    fn stream_room(&self, stream: u32) -> u64;

    /// Lets a stream go on in another superblock; false where nothing of the open one is used, or
    /// all of it.
    fn renew_stream(&mut self, stream: u32) -> bool;

    /// A drive in the same state, which goes its own way from now on.
    fn boxed_clone(&self) -> Box<dyn Drive>;

    /// `Device::submit` of a request that is inside the device, telling at once how it will end.
    fn submit_timed(&mut self, request: Request) -> Completion;

    /// When the next request in flight will be done.
    fn next_completion(&self) -> Option<Nanos>;

    /// Cuts the power now, and turns it on again; what was in flight is never answered.
    fn power_cut(&mut self) -> PowerCutLoss;

    /// What the drive has counted, by name, as a drive's SMART log would tell; `None` where it
    /// cannot be known yet.
    fn counters(&self) -> Vec<Counter>;
}
