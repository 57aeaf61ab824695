//! The memory of one realm: a region that can be restored from a snapshot, and large blocks outside of it. QuickJS only
//! allocates pages of 4 KB and blocks of more than half a kilobyte (it has its own free lists within pages), so a call
//! makes a few dozen requests, and size classes without coalescing are enough.
//!
//! All state of QuickJS lies in this memory, its runtime included, so copying the region back restores all of it: see
//! `Arena::restore`.
#![allow(unsafe_code)]
use std::{
    alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc},
    ptr::{self, NonNull},
};

const ALIGN: usize = 16;

/// The sizes of blocks with their headers. 4160 fits QuickJS's pages.
const CLASSES: [usize; 39] = [
    64, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4160, 5120,
    6144, 7168, 8192, 10240, 12288, 14336, 16384, 20480, 24576, 28672, 32768, 40960, 49152, 57344, 65536,
    81920, 98304, 114_688, 131_072, 163_840,
];
/// Instead of a class: the block is outside the region.
const OUTSIDE: usize = usize::MAX;

/// Precedes every block.
#[repr(C, align(16))]
struct Header {
    usable: usize,
    class: usize,
}

/// Precedes the header of a block outside the region: a doubly linked list, to free all of them.
#[repr(C, align(16))]
struct Link {
    previous: *mut Link,
    next: *mut Link,
}

const HEADER: usize = size_of::<Header>();
const LINK: usize = size_of::<Link>();

#[cfg(any(test, debug_assertions))]
static ZEROS: [u8; 4096] = [0; 4096];

/// The first word of a free block: the next free block.
type Free = *mut u8;

/// The state of the allocator, saved and restored with the region.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bookkeeping {
    /// The start of the memory that is unused since the last restore; it is zeroed.
    top: usize,
    used: usize,
    free: [Free; CLASSES.len()],
}

/// The states that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The initial state of every call.
    Pristine,
    /// With the modules of one program loaded.
    Primed,
}

struct Snapshot {
    bytes: Box<[u8]>,
    bookkeeping: Bookkeeping,
}

pub(crate) struct Arena {
    region: NonNull<u8>,
    size: usize,
    bookkeeping: Bookkeeping,
    /// The head of the list of blocks outside the region.
    outside: NonNull<Link>,
    snapshots: [Option<Snapshot>; 2],
}

// SAFETY: the arena owns all memory that its pointers lead to.
unsafe impl Send for Arena {}

impl Arena {
    /// Untouched parts of the region use no physical memory.
    pub fn new(size: usize) -> Self {
        // SAFETY: the layout is not empty.
        let region = unsafe { alloc_zeroed(layout(size)) };
        let Some(region) = NonNull::new(region) else { handle_alloc_error(layout(size)) };
        let outside =
            NonNull::from(Box::leak(Box::new(Link { previous: ptr::null_mut(), next: ptr::null_mut() })));
        // SAFETY: it was made a line above; `drop` frees it.
        unsafe { outside.write(Link { previous: outside.as_ptr(), next: outside.as_ptr() }) };
        let bookkeeping = Bookkeeping { top: 0, used: 0, free: [ptr::null_mut(); CLASSES.len()] };
        Self { region, size, bookkeeping, outside, snapshots: [None, None] }
    }

    /// The bytes in all allocated blocks, without their headers.
    pub fn used(&self) -> usize {
        self.bookkeeping.used
    }

    /// A block of at least that size, or null.
    pub fn alloc(&mut self, size: usize, zeroed: bool) -> *mut u8 {
        let class = CLASSES.partition_point(|class| *class < size.saturating_add(HEADER));
        let Some(&whole) = CLASSES.get(class) else { return self.alloc_outside(size, zeroed) };
        let start = match NonNull::new(self.bookkeeping.free[class]) {
            Some(free) => {
                // SAFETY: a free block holds the address of the next in its first word, and is as large as its class.
                unsafe {
                    self.bookkeeping.free[class] = free.cast::<Free>().read();
                    if zeroed {
                        free.write_bytes(0, whole);
                    }
                }
                free
            }
            None if whole <= self.size - self.bookkeeping.top => {
                // SAFETY: it lies within the region. Blocks are multiples of `ALIGN`, so all of them are aligned.
                let fresh = unsafe { self.region.add(self.bookkeeping.top) };
                self.bookkeeping.top += whole;
                fresh
            }
            None => return self.alloc_outside(size, zeroed),
        };
        self.bookkeeping.used += whole - HEADER;
        // SAFETY: the block is this function's alone, aligned, and larger than a header.
        unsafe {
            start.cast::<Header>().write(Header { usable: whole - HEADER, class });
            start.add(HEADER).as_ptr()
        }
    }

    fn alloc_outside(&mut self, size: usize, zeroed: bool) -> *mut u8 {
        let Some(layout) = outside_layout(size) else { return ptr::null_mut() };
        // SAFETY: the layout is not empty.
        let start = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let Some(start) = NonNull::new(start) else { return ptr::null_mut() };
        self.bookkeeping.used += size;
        // SAFETY: the block is fresh and has room for both heads.
        unsafe { self.link(start, size) }
    }

    /// Writes the link and header of a block outside the region and adds it to the list.
    ///
    /// # Safety
    /// The block must come from the global allocator, with the layout of `size`, and be in no list.
    unsafe fn link(&mut self, start: NonNull<u8>, size: usize) -> *mut u8 {
        let link = start.cast::<Link>();
        let head = self.outside.as_ptr();
        // SAFETY: guaranteed by the caller; the neighbours in the list are valid.
        unsafe {
            link.write(Link { previous: head, next: (*head).next });
            (*(*head).next).previous = link.as_ptr();
            (*head).next = link.as_ptr();
            start.add(LINK).cast::<Header>().write(Header { usable: size, class: OUTSIDE });
            start.add(LINK + HEADER).as_ptr()
        }
    }

    /// # Safety
    /// `block` must have come from this arena, from `alloc` or `realloc`, and be alive.
    pub unsafe fn dealloc(&mut self, block: *mut u8) {
        // SAFETY: guaranteed by the caller a header precedes the block.
        unsafe {
            let Header { usable, class } = header(block).read();
            self.bookkeeping.used -= usable;
            if class == OUTSIDE {
                let link = block.sub(HEADER + LINK).cast::<Link>();
                unlink(link);
                release(link);
            } else {
                let start = block.sub(HEADER);
                start.cast::<Free>().write(self.bookkeeping.free[class]);
                self.bookkeeping.free[class] = start;
            }
        }
    }

    /// # Safety
    /// As for `dealloc`. If null comes back, the block is as it was.
    pub unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller a header precedes the block, and it holds `usable` bytes.
        unsafe {
            let Header { usable, class } = header(block).read();
            if class == OUTSIDE {
                return self.realloc_outside(block, usable, size);
            }
            if size <= usable {
                return block;
            }
            let moved = self.alloc(size, false);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, usable);
                self.dealloc(block);
            }
            moved
        }
    }

    /// # Safety
    /// As for `realloc`, with a block outside the region that holds `usable` bytes.
    unsafe fn realloc_outside(&mut self, block: *mut u8, usable: usize, size: usize) -> *mut u8 {
        let (Some(old), Some(new)) = (outside_layout(usable), outside_layout(size)) else {
            return ptr::null_mut();
        };
        // SAFETY: the block came from the global allocator with the layout of its size; while it may move, it is in
        // no list; if it could not grow, it is added again unchanged.
        unsafe {
            let start = block.sub(HEADER + LINK);
            unlink(start.cast());
            let moved = realloc(start, old, new.size());
            match NonNull::new(moved) {
                Some(moved) => {
                    self.bookkeeping.used = self.bookkeeping.used - usable + size;
                    self.link(moved, size)
                }
                None => {
                    self.link(NonNull::new_unchecked(start), usable);
                    ptr::null_mut()
                }
            }
        }
    }

    /// Saves the current state. Returns false if there is a block outside the region.
    pub fn take_snapshot(&mut self, state: State) -> bool {
        if self.has_outside() {
            return false;
        }
        // SAFETY: the region is that large, and all of it has been initialised, with zeros at first.
        let bytes = unsafe { std::slice::from_raw_parts(self.region.as_ptr(), self.bookkeeping.top) };
        self.snapshots[state as usize] =
            Some(Snapshot { bytes: bytes.into(), bookkeeping: self.bookkeeping });
        true
    }

    pub fn drop_snapshot(&mut self, state: State) {
        self.snapshots[state as usize] = None;
    }

    fn has_outside(&self) -> bool {
        // SAFETY: the head lives as long as the arena.
        !ptr::eq(unsafe { (*self.outside.as_ptr()).next }, self.outside.as_ptr())
    }

    /// Restores the snapshot. Blocks that were allocated since are gone.
    ///
    /// # Safety
    /// There must be a snapshot, no JavaScript may be running in this realm, and no value that was created since the
    /// snapshot may be used.
    pub unsafe fn restore(&mut self, state: State) {
        self.free_outside();
        let Some(snapshot) = &self.snapshots[state as usize] else { return };
        let (kept, touched) = (snapshot.bytes.len(), self.bookkeeping.top.max(snapshot.bytes.len()));
        // SAFETY: both lie within the region, and the copy is elsewhere.
        unsafe {
            ptr::copy_nonoverlapping(snapshot.bytes.as_ptr(), self.region.as_ptr(), kept);
            self.region.add(kept).write_bytes(0, touched - kept);
        }
        self.bookkeeping = snapshot.bookkeeping;
    }

    /// Whether the whole region equals the snapshot.
    #[cfg(any(test, debug_assertions))]
    pub fn is_restored(&self, state: State) -> bool {
        let Some(snapshot) = &self.snapshots[state as usize] else { return false };
        // SAFETY: as in `take_snapshot`.
        let region = unsafe { std::slice::from_raw_parts(self.region.as_ptr(), self.size) };
        let (kept, rest) = region.split_at(snapshot.bytes.len());
        *kept == *snapshot.bytes
            && rest.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
            && self.bookkeeping == snapshot.bookkeeping
            && !self.has_outside()
    }

    fn free_outside(&mut self) {
        let head = self.outside.as_ptr();
        // SAFETY: the list contains valid blocks only, each once, and ends at its head.
        unsafe {
            let mut link = (*head).next;
            while !ptr::eq(link, head) {
                let next = (*link).next;
                release(link);
                link = next;
            }
            *head = Link { previous: head, next: head };
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.free_outside();
        // SAFETY: allocated in `new`, with this layout and by `Box`; the runtime in it is gone.
        unsafe {
            dealloc(self.region.as_ptr(), layout(self.size));
            drop(Box::from_raw(self.outside.as_ptr()));
        }
    }
}

/// # Safety
/// `block` must be a valid block of an arena.
pub(crate) unsafe fn usable_size(block: *mut u8) -> usize {
    // SAFETY: a header precedes every block.
    unsafe { (*header(block)).usable }
}

/// # Safety
/// As for `usable_size`.
unsafe fn header(block: *mut u8) -> *mut Header {
    // SAFETY: a header precedes every block.
    unsafe { block.sub(HEADER).cast() }
}

/// # Safety
/// The link must be in a list of valid links.
unsafe fn unlink(link: *mut Link) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let Link { previous, next } = link.read();
        (*previous).next = next;
        (*next).previous = previous;
    }
}

/// # Safety
/// The link must belong to a valid block outside the region that is in no list any more.
unsafe fn release(link: *mut Link) {
    // SAFETY: guaranteed by the caller; the layout is that of the size in the header.
    unsafe {
        let usable = (*link.add(1).cast::<Header>()).usable;
        if let Some(layout) = outside_layout(usable) {
            dealloc(link.cast(), layout);
        }
    }
}

fn outside_layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(LINK + HEADER)?, ALIGN).ok()
}

const fn layout(size: usize) -> Layout {
    match Layout::from_size_align(size, 4096) {
        Ok(layout) => layout,
        Err(_) => Layout::new::<Header>(),
    }
}

#[cfg(test)]
#[path = "arena_tests.rs"]
mod tests;
