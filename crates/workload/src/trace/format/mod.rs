//! The formats of traces, and their detection.

mod ascii;
mod blkparse;
pub(super) mod blktrace;
mod cloud;
mod fio;
mod msr;
mod spc;

use super::Entry;
use super::fields::Message;

/// The format of a trace. All except `Blktrace` are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// MSR Cambridge (SNIA IOTTA 388): CSV with times of 100 ns since 1601.
    Msr,
    /// The `UMass` repository's: SPC trace file format 1.0.1.
    Spc,
    /// `MQSim` and `SSDSim`: five whole numbers, 1 is a read; time in nanoseconds.
    Mqsim,
    /// The output of `blkparse`, of which the issue events (`D`) are used.
    Blkparse,
    /// The files of `blktrace`, one per CPU, of which the issue events are used.
    Blktrace,
    /// fio's iolog, version 2 or 3.
    Fio,
    /// Alibaba's block traces of 2020.
    Alibaba,
    /// Tencent's cloud block storage traces.
    Tencent,
    /// SYSTOR '17: traces of virtual desktops.
    Systor,
}

/// Parses lines into entries.
pub trait Parse: Send {
    /// Parses a line without its end; `None` for a header or a comment.
    ///
    /// # Errors
    /// Why the line is invalid.
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Message>;
}

impl Format {
    /// All formats, in the order in which detection tries them.
    pub const ALL: [Self; 9] = [
        Self::Blktrace,
        Self::Fio,
        Self::Systor,
        Self::Msr,
        Self::Spc,
        Self::Alibaba,
        Self::Tencent,
        Self::Mqsim,
        Self::Blkparse,
    ];

    /// The names of all formats.
    pub const NAMES: &str = "blktrace, fio, systor, msr, spc, alibaba, tencent, mqsim, blkparse";

    /// The name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::Mqsim => "mqsim",
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::Fio => "fio",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Systor => "systor",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Detects the format from the first bytes of a file: the first format that can parse them.
    pub fn detect(prefix: &[u8]) -> Option<Self> {
        if blktrace::has_magic(prefix) {
            return Some(Self::Blktrace);
        }
        let text = Self::ALL.into_iter().filter(|format| *format != Self::Blktrace);
        text.into_iter().find(|format| format.matches(prefix))
    }

    /// Whether the first lines of a text are of this format, with at least one entry.
    fn matches(self, prefix: &[u8]) -> bool {
        let Some(mut parser) = self.parser() else { return false };
        let whole = prefix.iter().rposition(|byte| *byte == b'\n').map_or(prefix.len(), |end| end);
        let lines = prefix[..whole].split(|byte| *byte == b'\n').take(DETECTION_LINES);
        let mut entries = 0;
        for line in lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
            match parser.line(line) {
                Ok(Some(_)) => entries += 1,
                Ok(None) => {}
                // An invalid later line is reported by its number, not as an unknown format.
                Err(_) => break,
            }
        }
        entries > 0
    }

    /// The parser of a text format; `None` for a binary one.
    pub(super) fn parser(self) -> Option<Box<dyn Parse>> {
        Some(match self {
            Self::Msr => Box::new(msr::Msr),
            Self::Spc => Box::new(spc::Spc),
            Self::Mqsim => Box::new(ascii::Ascii),
            Self::Blkparse => Box::new(blkparse::Blkparse::default()),
            Self::Fio => Box::new(fio::Iolog::default()),
            Self::Alibaba => Box::new(cloud::Alibaba),
            Self::Tencent => Box::new(cloud::Tencent),
            Self::Systor => Box::new(cloud::Systor::default()),
            Self::Blktrace => return None,
        })
    }
}

/// Maximum number of lines parsed to detect a format.
const DETECTION_LINES: usize = 100;
