//! The memory of one realm: a region that can be put back to how it was, and large blocks beside it. The engine asks for
//! pages of 4 KB and for blocks of more than half a kilobyte only (it keeps its own free lists within pages), so a few
//! dozen requests make a call; size classes without coalescing serve them well.
//!
//! Everything that the engine knows lies in this memory, its runtime included, so copying the region back brings back
//! all of it: see `Arena::restore`.
#![allow(unsafe_code)]
use std::{
    alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc},
    ptr::{self, NonNull},
};

const ALIGN: usize = 16;

/// Sizes of whole blocks, with their headers. One of them fits the engine's pages closely.
const CLASSES: [usize; 39] = [
    64, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4160, 5120,
    6144, 7168, 8192, 10240, 12288, 14336, 16384, 20480, 24576, 28672, 32768, 40960, 49152, 57344, 65536,
    81920, 98304, 114_688, 131_072, 163_840,
];
/// In place of a class: the block lies outside the region.
const OUTSIDE: usize = usize::MAX;

/// Stands before every block.
#[repr(C, align(16))]
struct Header {
    usable: usize,
    class: usize,
}

/// Stands before the header of a block outside the region: all of them form a ring, to be freed at once.
#[repr(C, align(16))]
struct Link {
    previous: *mut Link,
    next: *mut Link,
}

const HEADER: usize = size_of::<Header>();
const LINK: usize = size_of::<Link>();

#[cfg(any(test, debug_assertions))]
static ZEROS: [u8; 4096] = [0; 4096];

/// The first word of a free block.
type Free = *mut u8;

/// What the allocator itself knows; saved and put back with the region.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Books {
    /// Where memory that nobody has had since the last restore begins; it is all zeros.
    top: usize,
    used: usize,
    free: [Free; CLASSES.len()],
}

/// The states that can be put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// What is the same for every call.
    Pristine,
    /// With the modules of one program read in addition.
    Primed,
}

struct Snapshot {
    bytes: Box<[u8]>,
    books: Books,
}

pub(crate) struct Arena {
    region: NonNull<u8>,
    size: usize,
    books: Books,
    /// Heads the ring of blocks outside the region.
    outside: NonNull<Link>,
    snapshots: [Option<Snapshot>; 2],
}

// SAFETY: the arena owns all memory that its pointers lead to.
unsafe impl Send for Arena {}

impl Arena {
    /// With a region of that size; parts of it that are never touched cost nothing.
    pub fn new(size: usize) -> Self {
        // SAFETY: the layout is not empty.
        let region = unsafe { alloc_zeroed(layout(size)) };
        let Some(region) = NonNull::new(region) else { handle_alloc_error(layout(size)) };
        let outside =
            NonNull::from(Box::leak(Box::new(Link { previous: ptr::null_mut(), next: ptr::null_mut() })));
        // SAFETY: it was made a line above; `drop` frees it.
        unsafe { outside.write(Link { previous: outside.as_ptr(), next: outside.as_ptr() }) };
        let books = Books { top: 0, used: 0, free: [ptr::null_mut(); CLASSES.len()] };
        Self { region, size, books, outside, snapshots: [None, None] }
    }

    /// What all living blocks hold, without their headers.
    pub fn used(&self) -> usize {
        self.books.used
    }

    /// A block of at least that size, or null. Its contents are zeros if wanted, and anything otherwise.
    pub fn alloc(&mut self, size: usize, zeroed: bool) -> *mut u8 {
        let class = CLASSES.partition_point(|class| *class < size.saturating_add(HEADER));
        let Some(&whole) = CLASSES.get(class) else { return self.alloc_outside(size, zeroed) };
        let start = match NonNull::new(self.books.free[class]) {
            Some(free) => {
                // SAFETY: a free block holds the address of the next in its first word, and is as large as its class.
                unsafe {
                    self.books.free[class] = free.cast::<Free>().read();
                    if zeroed {
                        free.write_bytes(0, whole);
                    }
                }
                free
            }
            None if whole <= self.size - self.books.top => {
                // SAFETY: it lies within the region. Blocks are multiples of `ALIGN`, so all of them are aligned.
                let fresh = unsafe { self.region.add(self.books.top) };
                self.books.top += whole;
                fresh
            }
            None => return self.alloc_outside(size, zeroed),
        };
        self.books.used += whole - HEADER;
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
        self.books.used += size;
        // SAFETY: the block is fresh and has room for both heads.
        unsafe { self.enter(start, size) }
    }

    /// Writes the heads of a block outside the region and puts it into the ring.
    ///
    /// # Safety
    /// The block must come from the global allocator, with the layout of `size`, and be in no ring.
    unsafe fn enter(&mut self, start: NonNull<u8>, size: usize) -> *mut u8 {
        let link = start.cast::<Link>();
        let head = self.outside.as_ptr();
        // SAFETY: by the caller's promise; the neighbours in the ring are alive.
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
        // SAFETY: by the caller's promise a header stands before the block.
        unsafe {
            let Header { usable, class } = header(block).read();
            self.books.used -= usable;
            if class == OUTSIDE {
                let link = block.sub(HEADER + LINK).cast::<Link>();
                unlink(link);
                release(link);
            } else {
                let start = block.sub(HEADER);
                start.cast::<Free>().write(self.books.free[class]);
                self.books.free[class] = start;
            }
        }
    }

    /// # Safety
    /// As for `dealloc`. If null comes back, the block is as it was.
    pub unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: by the caller's promise a header stands before the block, and it holds `usable` bytes.
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
        // no ring; if it could not grow, it goes back as it was.
        unsafe {
            let start = block.sub(HEADER + LINK);
            unlink(start.cast());
            let moved = realloc(start, old, new.size());
            match NonNull::new(moved) {
                Some(moved) => {
                    self.books.used = self.books.used - usable + size;
                    self.enter(moved, size)
                }
                None => {
                    self.enter(NonNull::new_unchecked(start), usable);
                    ptr::null_mut()
                }
            }
        }
    }

    /// Remembers how everything is now. Impossible if something lies outside the region.
    pub fn take_snapshot(&mut self, state: State) -> bool {
        if self.has_outside() {
            return false;
        }
        // SAFETY: the region is that large, and all of it has been initialised, with zeros at first.
        let bytes = unsafe { std::slice::from_raw_parts(self.region.as_ptr(), self.books.top) };
        self.snapshots[state as usize] = Some(Snapshot { bytes: bytes.into(), books: self.books });
        true
    }

    pub fn drop_snapshot(&mut self, state: State) {
        self.snapshots[state as usize] = None;
    }

    fn has_outside(&self) -> bool {
        // SAFETY: the head lives as long as the arena.
        !ptr::eq(unsafe { (*self.outside.as_ptr()).next }, self.outside.as_ptr())
    }

    /// Makes everything as it was at the snapshot, bit by bit; what has been allocated since is gone.
    ///
    /// # Safety
    /// There must be a snapshot, nothing may be running in the engine that lives here, and nobody may hold or use
    /// what was made in it since the snapshot.
    pub unsafe fn restore(&mut self, state: State) {
        self.free_outside();
        let Some(snapshot) = &self.snapshots[state as usize] else { return };
        let (kept, touched) = (snapshot.bytes.len(), self.books.top.max(snapshot.bytes.len()));
        // SAFETY: both lie within the region, and the copy is elsewhere.
        unsafe {
            ptr::copy_nonoverlapping(snapshot.bytes.as_ptr(), self.region.as_ptr(), kept);
            self.region.add(kept).write_bytes(0, touched - kept);
        }
        self.books = snapshot.books;
    }

    /// Whether the whole region is as it was at the snapshot.
    #[cfg(any(test, debug_assertions))]
    pub fn is_restored(&self, state: State) -> bool {
        let Some(snapshot) = &self.snapshots[state as usize] else { return false };
        // SAFETY: as in `take_snapshot`.
        let region = unsafe { std::slice::from_raw_parts(self.region.as_ptr(), self.size) };
        let (kept, rest) = region.split_at(snapshot.bytes.len());
        *kept == *snapshot.bytes
            && rest.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
            && self.books == snapshot.books
            && !self.has_outside()
    }

    fn free_outside(&mut self) {
        let head = self.outside.as_ptr();
        // SAFETY: the ring holds living blocks only, each once, and ends at its head.
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
        // SAFETY: allocated in `new`, with this layout and by `Box`; the engine that lived in it is gone.
        unsafe {
            dealloc(self.region.as_ptr(), layout(self.size));
            drop(Box::from_raw(self.outside.as_ptr()));
        }
    }
}

/// # Safety
/// `block` must be a living block of an arena.
pub(crate) unsafe fn usable_size(block: *mut u8) -> usize {
    // SAFETY: a header stands before every block.
    unsafe { (*header(block)).usable }
}

/// # Safety
/// As for `usable_size`.
unsafe fn header(block: *mut u8) -> *mut Header {
    // SAFETY: a header stands before every block.
    unsafe { block.sub(HEADER).cast() }
}

/// # Safety
/// The link must be in a ring of living links.
unsafe fn unlink(link: *mut Link) {
    // SAFETY: by the caller's promise.
    unsafe {
        let Link { previous, next } = link.read();
        (*previous).next = next;
        (*next).previous = previous;
    }
}

/// # Safety
/// The link must head a living block outside the region, which no ring holds any more.
unsafe fn release(link: *mut Link) {
    // SAFETY: by the caller's promise; the layout is that of the size in the header.
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
mod tests;
