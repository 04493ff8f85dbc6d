//! Requests of the control socket, as JSON: `{"do": "counters"}`.

use std::path::PathBuf;

use serde::Deserialize;
use ssdlab_engine::OperationKind;

/// A request. Its verbs and fields are a stable interface.
#[derive(Deserialize, Debug)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    /// The counters of drive and server.
    Counters {},
    /// Whether the power is on, and the last and the next cut.
    Power {},
    PowerCut(PowerCutRequest),
    PowerOn {},
    /// Commands, bytes and latencies by kind of command.
    Meter {},
    /// The drive's dimensions, superblocks, dies and all counters of its model.
    Inside {},
    /// Sets or shows the latency compensation.
    #[serde(rename = "lead")]
    LatencyCompensation(LatencyCompensationRequest),
    Fault(FaultRequest),
    Faults {},
    /// Removes one fault, or all.
    FaultClear {
        fault: Option<u64>,
    },
    /// Writes a mark to the log.
    Mark {
        name: String,
    },
    Snapshot {
        name: String,
    },
    SnapshotDrop {
        name: String,
    },
    /// Serves a clone of the drive or of a snapshot.
    Fork(CloneRequest),
    /// Stops serving a clone.
    ForkEnd {
        unix: PathBuf,
    },
    /// Lists all snapshots and clones.
    Forks {},
}

/// When to cut the power: at once, unless a trigger is given.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct PowerCutRequest {
    /// In the middle of the Nth write from now on; 1 is the next.
    pub after_writes: Option<u64>,
    /// After this many seconds of wall-clock time.
    pub after_s: Option<f64>,
    /// At a random moment.
    pub random: Option<RandomCut>,
    /// Whether the power comes back at once.
    #[serde(default)]
    pub on: bool,
}

/// At a random point of a random write among the next `writes`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct RandomCut {
    pub seed: u64,
    pub writes: u64,
}

/// The latency compensation: measured through a device, given, or (if empty) only shown.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct LatencyCompensationRequest {
    /// A device or file on this machine that reads from this drive.
    pub through: Option<PathBuf>,
    /// Latency of a request and a reply of 4 KiB on the way between client and server.
    pub transport_us: Option<f64>,
    /// Latency of each further byte.
    pub ns_per_byte: Option<f64>,
}

/// A fault to inject; a command must meet all conditions that are given.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct FaultRequest {
    pub kind: FaultName,
    /// First byte, and the byte after the last.
    pub range: Option<(u64, u64)>,
    pub op: Option<OperationKind>,
    /// From the Nth matching command on; 1 is the next.
    pub at: Option<u64>,
    pub after_s: Option<f64>,
    pub probability: Option<f64>,
    #[serde(default)]
    pub seed: u64,
    /// How many commands it hits at most.
    pub times: Option<u64>,
    /// Duration of a delay or a stall.
    pub for_s: Option<f64>,
    /// The die that fails.
    pub die: Option<u32>,
}

#[derive(Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FaultName {
    Eio,
    ReadOnly,
    Delay,
    Stall,
    Die,
    Torn,
    Misdirected,
    Lost,
}

/// A clone to serve.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct CloneRequest {
    pub unix: PathBuf,
    /// The snapshot to clone; default: the drive as it is now.
    pub from: Option<String>,
    /// Whether the clone keeps volatile data; otherwise it starts with a power cut.
    #[serde(default)]
    pub as_is: bool,
}
