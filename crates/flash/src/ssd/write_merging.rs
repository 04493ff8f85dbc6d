//! `WriteMerging`: writes in order that each cover a part of a mapping unit become one write of it.

use std::collections::VecDeque;
use std::ops::Range;

/// Streams that are followed at the same time; a new one replaces the one used least recently.
const STREAMS: usize = 16;

/// The streams of writes in order.
///
/// Modelled: a command that begins where an earlier one ended continues its stream. A part that
/// continues a unit in the buffer takes no more space there, and needs no read. Nor does the part
/// with which a stream enters a unit: its other parts are expected to follow.
///
/// Not modelled: merging of parts that are not in order; reading the rest of a unit if a stream
/// ends inside it.
///
/// Differs from hardware: the program of a page may begin before its last unit is complete. A part
/// is merged until that program ends.
#[derive(Clone, Debug, Default)]
pub struct WriteMerging {
    /// The byte where each stream continues; the stream used last is at the end.
    ends: VecDeque<u64>,
}

impl WriteMerging {
    /// Whether a command that writes these bytes continues a stream; another may continue it.
    pub fn continues(&mut self, range: Range<u64>) -> bool {
        let stream = self.ends.iter().rposition(|end| *end == range.start);
        if let Some(stream) = stream {
            self.ends.remove(stream);
        } else if self.ends.len() == STREAMS {
            self.ends.pop_front();
        }
        self.ends.push_back(range.end);
        stream.is_some()
    }

    /// Forgets all streams.
    pub fn clear(&mut self) {
        self.ends.clear();
    }
}
