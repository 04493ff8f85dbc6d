//! The formats of traces, and which of them a file has.

mod ascii;
mod blkparse;
pub(super) mod blktrace;
mod cloud;
mod fio;
mod msr;
mod spc;

use super::Entry;
use super::fields::Wrong;

/// How a trace is written down. All but `Blktrace` are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// MSR Cambridge (SNIA IOTTA 388): CSV with times of 100 ns since 1601.
    Msr,
    /// The `UMass` repository's: SPC trace file format 1.0.1.
    Spc,
    /// `MQSim` and `SSDSim`: five whole numbers, 1 is a read; time in nanoseconds.
    Mqsim,
    /// What `blkparse` prints; its issues (`D`) are taken.
    Blkparse,
    /// What `blktrace` writes, a file for each processor; its issues are taken.
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

/// What turns lines into entries. A line may hold none: a header, a remark.
pub trait Parse: Send {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Wrong>;
}

impl Format {
    /// All of them, in the order in which they are tried.
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

    /// Their names.
    pub const NAMES: &str = "blktrace, fio, systor, msr, spc, alibaba, tencent, mqsim, blkparse";

    /// Its name.
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

    /// The format of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of a file that begins like this: the first that can read its first entries.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        if blktrace::is_one(beginning) {
            return Some(Self::Blktrace);
        }
        let text = Self::ALL.into_iter().filter(|format| *format != Self::Blktrace);
        text.into_iter().find(|format| format.reads(beginning))
    }

    /// Whether the first whole lines of a text are of this format, and at least one is an entry.
    fn reads(self, beginning: &[u8]) -> bool {
        let Some(mut parser) = self.parser() else { return false };
        let whole =
            beginning.iter().rposition(|byte| *byte == b'\n').map_or(beginning.len(), |end| end);
        let lines = beginning[..whole].split(|byte| *byte == b'\n').take(TRIED);
        let mut entries = 0;
        for line in lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
            match parser.line(line) {
                Ok(Some(_)) => entries += 1,
                Ok(None) => {}
                // The damage of a later line is told by its number, not as another format.
                Err(_) => break,
            }
        }
        entries > 0
    }

    /// What reads its lines; none of a binary one.
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

/// How many lines are tried to know a format.
const TRIED: usize = 100;
