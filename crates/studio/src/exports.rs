//! The functions of the module. Numbers are `i32` and `f64`, which JavaScript has; texts are UTF-8
//! in linear memory. A negative result is an error, and the text then says which.

use std::cell::RefCell;

use serde_json::Value;
use ssdlab_time::Nanos;

use crate::position::SeekBy;
use crate::spec::Spec;
use crate::twin::Twin;

/// The version of the exports and of the layout of frames.
const VERSION: i32 = 1;

thread_local! {
    static TWINS: RefCell<Vec<Option<Box<Twin>>>> = const { RefCell::new(Vec::new()) };
    /// The result or the message of the last call.
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn set_text(text: String) {
    TEXT.with(|last| *last.borrow_mut() = text);
}

/// Runs a call on a twin; an error becomes the text and -1.
fn with_twin(number: i32, call: impl FnOnce(&mut Twin) -> Result<i32, String>) -> i32 {
    let done = TWINS.with(|twins| {
        let mut twins = twins.borrow_mut();
        let twin = usize::try_from(number).ok().and_then(|number| twins.get_mut(number)?.as_mut());
        twin.map_or_else(|| Err(format!("there is no twin {number}")), |twin| call(twin))
    });
    done.unwrap_or_else(|message| {
        set_text(message);
        -1
    })
}

/// A number of JavaScript as a count: infinity is the largest.
fn count(number: f64) -> u64 {
    number as u64 // saturates, and NaN is 0
}

/// Takes a text that the page has written to memory from `studio_alloc`.
///
/// # Safety
/// `address` is from `studio_alloc(bytes)`, and no other call had it.
unsafe fn take_text(address: *mut u8, bytes: usize) -> Result<String, String> {
    // SAFETY: as the caller promises, this is one allocation of that size, initialised to zeros.
    let text = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(address, bytes)) };
    String::from_utf8(text.into_vec()).map_err(|_| "the text is not UTF-8".to_owned())
}

/// The version of these functions and of the layout of frames.
#[unsafe(no_mangle)]
pub extern "C" fn studio_version() -> i32 {
    // After a panic the page finds its message in the text.
    std::panic::set_hook(Box::new(|panic| set_text(panic.to_string())));
    VERSION
}

/// Memory for a text of `bytes` bytes, to be passed to one call, which frees it.
#[unsafe(no_mangle)]
pub extern "C" fn studio_alloc(bytes: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; bytes].into_boxed_slice()).cast()
}

/// The address of the text of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn studio_text() -> *const u8 {
    TEXT.with(|text| text.borrow().as_ptr())
}

/// The length of the text of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn studio_text_bytes() -> usize {
    TEXT.with(|text| text.borrow().len())
}

/// Makes a twin from its specification in JSON; returns its number.
///
/// # Safety
/// `address` is from `studio_alloc(bytes)`, and no other call had it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn studio_new(address: *mut u8, bytes: usize) -> i32 {
    // SAFETY: as the caller promises.
    let text = unsafe { take_text(address, bytes) };
    let twin = text.and_then(|text| Spec::from_json(&text)).and_then(Twin::new);
    match twin {
        Ok(twin) => TWINS.with(|twins| {
            let mut twins = twins.borrow_mut();
            let number = twins.iter().position(Option::is_none).unwrap_or(twins.len());
            if number == twins.len() {
                twins.push(None);
            }
            twins[number] = Some(Box::new(twin));
            i32::try_from(number).expect("memory ends before that")
        }),
        Err(message) => {
            set_text(message);
            -1
        }
    }
}

/// Frees a twin.
#[unsafe(no_mangle)]
pub extern "C" fn studio_free(twin: i32) {
    TWINS.with(|twins| {
        let mut twins = twins.borrow_mut();
        if let Some(place) = usize::try_from(twin).ok().and_then(|number| twins.get_mut(number)) {
            *place = None;
        }
    });
}

/// Appends steps, a JSON array.
///
/// # Safety
/// `address` is from `studio_alloc(bytes)`, and no other call had it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn studio_add_steps(twin: i32, address: *mut u8, bytes: usize) -> i32 {
    // SAFETY: as the caller promises.
    let text = unsafe { take_text(address, bytes) };
    with_twin(twin, |twin| twin.add_steps(&text?).map(|()| 0))
}

/// Forgets what has not run yet.
#[unsafe(no_mangle)]
pub extern "C" fn studio_clear_steps(twin: i32) -> i32 {
    with_twin(twin, |twin| {
        twin.clear_steps();
        Ok(0)
    })
}

/// Runs until that many requests have completed or the time is reached: 0 if there is more to do,
/// 1 if all steps have run.
#[unsafe(no_mangle)]
pub extern "C" fn studio_advance(twin: i32, requests: f64, until_ns: f64) -> i32 {
    with_twin(twin, |twin| {
        twin.advance(count(requests), Nanos::new(count(until_ns))).map(i32::from)
    })
}

/// Goes to the first tick at which a number (0: ticks, 1: requests, 2: nanoseconds) is at least
/// this.
#[unsafe(no_mangle)]
pub extern "C" fn studio_seek(twin: i32, by: i32, value: f64) -> i32 {
    with_twin(twin, |twin| {
        let by = match by {
            0 => SeekBy::Tick,
            1 => SeekBy::Requests,
            2 => SeekBy::Time,
            _ => return Err(format!("seek by {by}; may be 0, 1 or 2")),
        };
        twin.seek(by, count(value));
        Ok(0)
    })
}

/// Cuts the power as the next tick.
#[unsafe(no_mangle)]
pub extern "C" fn studio_power_cut(twin: i32) -> i32 {
    with_twin(twin, |twin| {
        twin.power_cut();
        Ok(0)
    })
}

/// Starts (1) or ends (0) the lists of commands, operations and moves.
#[unsafe(no_mangle)]
pub extern "C" fn studio_observe(twin: i32, on: i32) -> i32 {
    with_twin(twin, |twin| {
        twin.observe(on != 0);
        Ok(0)
    })
}

/// The address of a frame's header, or 0. It is valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn studio_frame(twin: i32) -> *const f64 {
    let mut address = std::ptr::null();
    with_twin(twin, |twin| {
        address = twin.frame().header.as_ptr();
        Ok(0)
    });
    address
}

/// The address of the places of units, two words each; fewer than `units` at the drive's end.
#[unsafe(no_mangle)]
pub extern "C" fn studio_units(twin: i32, first: f64, units: f64) -> *const u32 {
    let mut address = std::ptr::null();
    with_twin(twin, |twin| {
        address = twin.units(count(first), count(units)).as_ptr().cast();
        Ok(0)
    });
    address
}

fn json_of(twin: i32, value: impl FnOnce(&Twin) -> Value) -> i32 {
    with_twin(twin, |twin| {
        set_text(value(twin).to_string());
        Ok(0)
    })
}

/// Leaves the dimensions of the drive as text.
#[unsafe(no_mangle)]
pub extern "C" fn studio_describe(twin: i32) -> i32 {
    json_of(twin, Twin::describe)
}

/// Leaves the counters as text.
#[unsafe(no_mangle)]
pub extern "C" fn studio_counters(twin: i32) -> i32 {
    json_of(twin, Twin::counters)
}

/// Leaves the results of the steps that have run as text.
#[unsafe(no_mangle)]
pub extern "C" fn studio_results(twin: i32) -> i32 {
    json_of(twin, |twin| twin.results().iter().map(|result| result.0.clone()).collect())
}
