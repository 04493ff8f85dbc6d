//! The formats of traces, and their detection.

mod blkparse;
pub(super) mod blktrace;
mod fio;
mod lines;

use blkparse::Blkparse;
use fio::Iolog;

use super::Entry;
use super::fields::Message;

/// The format of a trace. All except `Blktrace` are text. In the order of `Format::ALL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The files of `blktrace`, one per CPU, of which the issue events are used.
    Blktrace,
    /// fio's iolog, version 2 or 3.
    Fio,
    /// SYSTOR '17: traces of virtual desktops.
    Systor,
    /// MSR Cambridge (SNIA IOTTA 388): CSV with times of 100 ns since 1601.
    Msr,
    /// The `UMass` repository's: SPC trace file format 1.0.1.
    Spc,
    /// Alibaba's block traces of 2020.
    Alibaba,
    /// Tencent's cloud block storage traces.
    Tencent,
    /// `MQSim` and `SSDSim`: five whole numbers, 1 is a read; time in nanoseconds.
    Mqsim,
    /// The output of `blkparse`, of which the issue events (`D`) are used.
    Blkparse,
}

/// The entry of a line, `None` for a header or a comment, or why the line is invalid.
pub type Parsed = Result<Option<Entry>, Message>;

/// Parses the lines of a trace in order, each without its end.
pub type Parser = Box<dyn FnMut(&[u8]) -> Parsed + Send>;

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

    /// The name of each format, in the same order.
    pub const NAMES: [&str; 9] =
        ["blktrace", "fio", "systor", "msr", "spc", "alibaba", "tencent", "mqsim", "blkparse"];

    /// The name of the format.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
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
        Self::ALL.into_iter().find(|format| format.matches(prefix))
    }

    /// Whether the first lines of a text are of this format, with at least one entry.
    fn matches(self, prefix: &[u8]) -> bool {
        let Some(mut parser) = self.parser() else { return false };
        let whole = prefix.iter().rposition(|byte| *byte == b'\n').unwrap_or(prefix.len());
        let lines = prefix[..whole].split(|byte| *byte == b'\n').take(DETECTION_LINES);
        let mut entries = 0;
        for line in lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
            match parser(line) {
                Ok(Some(_)) => entries += 1,
                Ok(None) => {}
                // An invalid later line is reported by its number, not as an unknown format.
                Err(_) => break,
            }
        }
        entries > 0
    }

    /// The parser of a text format; `None` for a binary one.
    pub(super) fn parser(self) -> Option<Parser> {
        let (mut has_header, mut blkparse) = (false, Blkparse::default());
        let mut iolog = Iolog::default();
        Some(match self {
            Self::Msr => Box::new(lines::msr),
            Self::Spc => Box::new(lines::spc),
            Self::Mqsim => Box::new(lines::mqsim),
            Self::Blkparse => Box::new(move |line| blkparse.line(line)),
            Self::Fio => Box::new(move |line| iolog.line(line)),
            Self::Alibaba => Box::new(lines::alibaba),
            Self::Tencent => Box::new(lines::tencent),
            Self::Systor => Box::new(move |line| lines::systor(line, &mut has_header)),
            Self::Blktrace => return None,
        })
    }
}

/// Maximum number of lines parsed to detect a format.
const DETECTION_LINES: usize = 100;
