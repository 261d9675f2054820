//! Memory and time of one piece of work on a thread of its own: what it holds is counted as it allocates, and a thread
//! that nobody waits for any more stands still at its next allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// What a thread may hold. An allocator must not unwind, so a thread that asks for more is stopped for good, and the
/// memory it holds is lost.
pub struct Meter {
    held: AtomicI64,
    most: i64,
    exceeded: AtomicBool,
    abandoned: AtomicBool,
}

impl Meter {
    pub fn new(most: usize) -> Meter {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        Meter { held: AtomicI64::new(0), most, exceeded: AtomicBool::new(false), abandoned: AtomicBool::new(false) }
    }

    pub fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Acquire)
    }

    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// Counts what this thread allocates while `body` runs.
    pub fn measure<T>(&self, body: impl FnOnce() -> T) -> T {
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                METER.set(std::ptr::null());
            }
        }
        METER.set(self);
        let _reset = Reset;
        body()
    }

    fn count(&self, more: i64) {
        let held = self.held.fetch_add(more, Ordering::Relaxed) + more;
        if more > 0 && held > self.most {
            self.exceeded.store(true, Ordering::Release);
        } else if !self.abandoned.load(Ordering::Acquire) {
            return;
        }
        loop {
            // SAFETY: waits for a signal, and again after it.
            unsafe { libc::pause() };
        }
    }
}

thread_local! {
    static METER: Cell<*const Meter> = const { Cell::new(std::ptr::null()) };
}

fn count(more: i64) {
    // SAFETY: set by measure(), which outlives what runs under it.
    if let Some(meter) = METER.try_with(|meter| unsafe { meter.get().as_ref() }).ok().flatten() {
        meter.count(more);
    }
}

struct Counted;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        System.alloc(layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        System.alloc_zeroed(layout)
    }
    unsafe fn realloc(&self, data: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        System.realloc(data, layout, size)
    }
    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        System.dealloc(data, layout);
        count(-(layout.size() as i64));
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;
