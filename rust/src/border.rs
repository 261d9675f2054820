//! What crosses the C border: owned buffers, borrowed texts, statuses, and the guard against panics.

use crate::allocation::Meter;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

pub const OK: i32 = 0;
pub const INVALID: i32 = 1;
pub const RAISED: i32 = 2;
pub const PANIC: i32 = 3;

const PANIC_TEXT: &str =
    "internal error of the text library, most likely over a damaged file; take a fresh copy of the model's files";

/// Why a call failed: its status and one line of text.
pub struct Failure {
    pub status: i32,
    pub text: String,
}

impl Failure {
    pub fn invalid(text: impl Into<String>) -> Failure {
        Failure { status: INVALID, text: text.into() }
    }
}

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::invalid(error.to_string())
    }
}

#[repr(C)]
pub struct VtBytes {
    data: *mut u8,
    size: usize,
}

impl From<Vec<u8>> for VtBytes {
    fn from(bytes: Vec<u8>) -> VtBytes {
        let boxed = bytes.into_boxed_slice();
        let size = boxed.len();
        VtBytes { data: Box::into_raw(boxed) as *mut u8, size }
    }
}

#[repr(C)]
pub struct VtIds {
    data: *mut u32,
    size: usize,
}

impl From<Vec<u32>> for VtIds {
    fn from(ids: Vec<u32>) -> VtIds {
        let boxed = ids.into_boxed_slice();
        let size = boxed.len();
        VtIds { data: Box::into_raw(boxed) as *mut u32, size }
    }
}

#[repr(C)]
pub struct VtTexts {
    bytes: *const u8,
    size: usize,
    ends: *const u32,
    count: usize,
}

/// Texts laid end to end, each checked to lie inside the buffer and to be UTF-8.
pub struct Texts<'a> {
    text: &'a str,
    ends: &'a [u32],
}

impl<'a> Texts<'a> {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Of all texts together.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> {
        let text = self.text;
        let mut start = 0usize;
        self.ends.iter().map(move |&end| &text[std::mem::replace(&mut start, end as usize)..end as usize])
    }
}

impl VtTexts {
    /// # Safety
    /// The pointers hold `size` bytes and `count` ends for as long as the result is used.
    pub unsafe fn read<'a>(&self) -> Result<Texts<'a>, Failure> {
        let bytes = borrow(self.bytes, self.size);
        let ends = borrow(self.ends, self.count);
        let valid = std::str::from_utf8(bytes);
        let mut start = 0usize;
        for (index, &end) in ends.iter().enumerate() {
            let end = end as usize;
            if end < start || end > bytes.len() {
                return Err(Failure::invalid(format!("text {index} ends at {end} outside the buffer")));
            }
            if !valid.is_ok_and(|text| text.is_char_boundary(end)) && std::str::from_utf8(&bytes[start..end]).is_err() {
                return Err(Failure::invalid(format!("token or merge {index} is not valid UTF-8")));
            }
            start = end;
        }
        Ok(Texts { text: std::str::from_utf8(&bytes[..start])?, ends })
    }
}

/// A slice from a C pointer; an empty one may come with a null pointer.
///
/// # Safety
/// `data` holds `size` elements that live as long as the result is used.
pub unsafe fn borrow<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 || data.is_null() {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

/// # Safety
/// As for [`borrow`].
pub unsafe fn borrow_str<'a>(data: *const u8, size: usize) -> Result<&'a str, Failure> {
    std::str::from_utf8(borrow(data, size)).map_err(|_| Failure::invalid("text is not valid UTF-8"))
}

/// Runs `body`, stores its value or its error, and turns a panic into a status.
///
/// # Safety
/// `error` may be written.
pub unsafe fn guard<T>(error: *mut VtBytes, body: impl FnOnce() -> Result<T, Failure>, store: impl FnOnce(T)) -> i32 {
    quiet_panics();
    GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    GUARDED.set(false);
    let failure = match outcome {
        Ok(Ok(value)) => {
            store(value);
            return OK;
        }
        Ok(Err(failure)) => failure,
        // What a library says of its own broken assumptions tells a user nothing.
        Err(_) => Failure { status: PANIC, text: PANIC_TEXT.to_string() },
    };
    if !error.is_null() {
        error.write(one_line(&failure.text).into_bytes().into());
    }
    failure.status
}

const MAX_MESSAGE_CHARACTERS: usize = 1000;

/// A message can quote what a file or request holds: its control characters become spaces, and it is cut where a reader
/// would have stopped.
fn one_line(text: &str) -> String {
    let mut characters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line: String = characters.by_ref().take(MAX_MESSAGE_CHARACTERS).collect();
    if characters.next().is_some() {
        line.push_str(" ...");
    }
    line
}

/// Stack for work that recurses over a template's tree or values; memory is taken only where it is used.
const LARGE_STACK: usize = 256 << 20;

/// Runs `body` on a thread of its own with a large stack. A panic there goes on here.
pub fn on_large_stack<T: Send>(body: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = large_stack().spawn_scoped(scope, guarded(body)).map_err(no_thread)?;
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

/// What a piece of work may take.
#[derive(Clone, Copy)]
pub struct Limits {
    pub time: Duration,
    pub memory: usize,
}

/// Threads that were left to themselves, of the process: their memory cannot be had back, so there is an end to it.
static GIVEN_UP: AtomicUsize = AtomicUsize::new(0);
const MOST_GIVEN_UP: usize = 32;

enum Beyond {
    Time,
    Memory,
}

/// The same, but with limits, beyond which the thread is left to itself and stands still at its next allocation: an
/// error that names them, and `given_up` is set, since what the thread holds is lost. The body holds no lock.
pub fn on_large_stack_limited<T: Send + 'static>(
    limits: Limits,
    given_up: &AtomicBool,
    body: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    if GIVEN_UP.load(Ordering::Relaxed) >= MOST_GIVEN_UP {
        return Err(Failure::invalid(format!(
            "expected no more work after {MOST_GIVEN_UP} renderings beyond their limits, whose memory is lost; use a \
             simpler template and restart the process"
        )));
    }
    run_limited(limits, true, body)?.map_err(|beyond| {
        given_up.store(true, Ordering::Relaxed);
        GIVEN_UP.fetch_add(1, Ordering::Relaxed);
        Failure::invalid(match beyond {
            Beyond::Time => {
                format!("expected to be done within {} seconds, was not; use a simpler template", limits.time.as_secs())
            }
            Beyond::Memory => {
                format!("expected at most {} MiB of values, found more; use a simpler template", limits.memory >> 20)
            }
        })
    })
}

/// The same for at most `time`, then nothing. The thread goes on to its end, as it may hold locks.
pub fn on_large_stack_within<T: Send + 'static>(
    time: Duration,
    body: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Option<T>, Failure> {
    run_limited(Limits { time, memory: usize::MAX }, false, body).map(Result::ok)
}

fn run_limited<T: Send + 'static>(
    limits: Limits,
    may_stop: bool,
    body: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Result<T, Beyond>, Failure> {
    let end = Instant::now() + limits.time;
    let meter = Arc::new(Meter::new(limits.memory));
    let (sender, outcome) = std::sync::mpsc::sync_channel(1);
    let body = guarded(body);
    let measure = meter.clone();
    let work = move || {
        let _ = sender.send(measure.measure(body));
    };
    let thread = large_stack().spawn(work).map_err(no_thread)?;
    loop {
        let wait = end.saturating_duration_since(Instant::now()).min(POLL);
        match outcome.recv_timeout(wait) {
            Ok(outcome) => {
                // Its work is done: nothing of it is left once this returns.
                let _ = thread.join();
                return outcome.map(Ok);
            }
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(payload) => std::panic::resume_unwind(payload),
                Ok(()) => return Err(Failure { status: PANIC, text: PANIC_TEXT.to_string() }),
            },
            Err(RecvTimeoutError::Timeout) => {}
        }
        if meter.exceeded() {
            return Ok(Err(Beyond::Memory));
        }
        if Instant::now() >= end {
            if may_stop {
                meter.abandon();
            }
            return Ok(Err(Beyond::Time));
        }
    }
}

/// How often the limits are looked at.
const POLL: Duration = Duration::from_millis(10);

fn large_stack() -> std::thread::Builder {
    std::thread::Builder::new().name("template".to_string()).stack_size(LARGE_STACK)
}

fn guarded<T>(body: impl FnOnce() -> T) -> impl FnOnce() -> T {
    || {
        GUARDED.set(true);
        body()
    }
}

fn no_thread(error: std::io::Error) -> Failure {
    let text = format!(
        "expected {} MiB of address space for a thread's stack: {error}; raise the limit of the process's memory",
        LARGE_STACK >> 20
    );
    Failure { status: PANIC, text }
}

thread_local! {
    /// Whether a panic on this thread is caught and reported by [`guard`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// A panic that is caught and reported is not also printed to the terminal.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                previous(info);
            }
        }));
    });
}

#[no_mangle]
pub unsafe extern "C" fn vt_bytes_free(bytes: VtBytes) {
    if !bytes.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.size)));
    }
}

#[no_mangle]
pub unsafe extern "C" fn vt_ids_free(ids: VtIds) {
    if !ids.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(ids.data, ids.size)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_given_up_has_an_end() {
        let limits = Limits { time: Duration::from_secs(600), memory: 1 << 20 };
        let mark = AtomicBool::new(false);
        let fits = || on_large_stack_limited(limits, &AtomicBool::new(false), || Ok(vec![1u8; 1000].len()));
        for _ in 0..MOST_GIVEN_UP {
            assert!(fits().is_ok());
            let beyond = on_large_stack_limited(limits, &mark, || Ok(vec![1u8; 2 << 20].len()));
            assert!(beyond.err().is_some_and(|failure| failure.text.contains("at most 1 MiB")));
            assert!(mark.load(Ordering::Relaxed));
        }
        assert!(fits().err().is_some_and(|failure| failure.text.contains("restart the process")));
    }
}
