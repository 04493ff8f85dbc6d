//! `FlashWrites`: divides a twin's flash writes among the intervals of a job.

use ssdlab_device::Device;

use crate::recorder::Recorder;

/// The flash writes up to the last interval that ended.
#[derive(Clone)]
pub struct FlashWrites {
    /// `None` if the device does not report them.
    bytes: Option<u64>,
}

impl FlashWrites {
    /// Counts from now on.
    pub fn new(device: &impl Device) -> Self {
        Self { bytes: device.flash_write_bytes() }
    }

    /// Adds the flash writes since the last call to the interval of `recorder` that ended since
    /// then, if one did.
    #[inline]
    pub fn attribute(&mut self, device: &impl Device, recorder: &mut Recorder) {
        if recorder.record.intervals.len() != recorder.intervals_attributed {
            self.add(device, recorder);
        }
    }

    #[cold]
    fn add(&mut self, device: &impl Device, recorder: &mut Recorder) {
        recorder.intervals_attributed = recorder.record.intervals.len();
        if let (Some(before), Some(now), Some(interval)) =
            (self.bytes, device.flash_write_bytes(), recorder.record.intervals.last_mut())
        {
            interval.add_flash_writes(now - before);
            self.bytes = Some(now);
        }
    }
}
