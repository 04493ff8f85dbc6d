//! What can be asked over the control socket.

use std::path::PathBuf;

use serde::Deserialize;

use super::fault::FaultWish;
use super::fork::ForkWish;
use super::lead::LeadWish;

/// A request: `{"do": "counters"}`.
#[derive(Deserialize, Debug)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    /// What the drive and the server have counted.
    Counters {},
    /// Whether there is power, and what cuts did and will do.
    Power {},
    /// Cuts the power, now or when something happens.
    PowerCut(CutWish),
    /// Turns it on.
    PowerOn {},
    /// What clients did, by kind, with latencies.
    Meter {},
    /// How early answers leave; measures or says it.
    #[serde(rename = "lead")]
    LatencyCompensation(LeadWish),
    /// Lets something go wrong.
    Fault(FaultWish),
    /// What is to go wrong, or did.
    Faults {},
    /// Nothing goes wrong any more, or one fault is over.
    FaultClear { fault: Option<u64> },
    /// Names this moment in the log.
    Mark { name: String },
    /// Keeps the drive as it is now, by name.
    Snapshot { name: String },
    /// Gives a snapshot up.
    SnapshotDrop { name: String },
    /// Serves a drive that was this one until now.
    Fork(ForkWish),
    /// Ends such a one.
    ForkEnd { unix: PathBuf },
    /// Snapshots and forks that there are.
    Forks {},
}

/// When the power is to fail; now, where nothing says so.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct CutWish {
    /// While this write from now on is half way; 1 is the next.
    pub after_writes: Option<u64>,
    /// So many seconds from now, by the wall's clock.
    pub after_s: Option<f64>,
    /// At a moment that chance decides.
    pub random: Option<Chance>,
    /// Whether the power comes back at once.
    #[serde(default)]
    pub on: bool,
}

/// Some share of the way of some write among the next `writes`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Chance {
    pub seed: u64,
    pub writes: u64,
}
