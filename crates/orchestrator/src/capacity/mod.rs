//! The seats of handlers that run JavaScript or send HTTP requests: how many calls run at a time, of a tool, of a
//! principal and in all, and which of the waiting calls is next. It must not know what a call does.
//!
//! A nested call counts for the tool and the principal of its root call. Every depth of nesting has its own seats, so a
//! call waits only for calls that are nested deeper, and the deepest wait for none: calls cannot deadlock.

mod depth_seats;
mod seat_owner;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use toolwright_contract::{ErrorKind, Failure, Principal};

use depth_seats::{DepthSeats, Entry};
use seat_owner::{OwnerKind, SeatOwner};

pub(crate) use depth_seats::Permit;

/// The wait that a refusal suggests: nobody knows when one of the running calls ends.
const RETRY_AFTER_MS: u64 = 1000;
/// How many tools deep tools may call tools.
pub(crate) const MAX_CALL_DEPTH: usize = 8;

/// The limits of handlers that run at a time, and of calls that wait for one to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Calls in all. Nested calls have seats of their own: at each depth half as many as at the depth before, and at
    /// least two.
    pub max_concurrent: usize,
    /// Calls of one tool.
    pub max_concurrent_per_tool: usize,
    /// Calls of one principal.
    pub max_concurrent_per_principal: usize,
    /// Nested calls of one call, at each depth.
    pub max_nested_per_call: usize,
    /// Waiting calls in all, at each depth; of one tool or one principal at most half as many.
    pub max_waiting: usize,
    /// Tasks that run at a time, in the background.
    pub max_background: usize,
    /// How long a call waits for a seat. It never waits beyond its deadline.
    pub max_wait: Duration,
}

impl Default for Capacity {
    fn default() -> Self {
        Self::with_concurrency(256)
    }
}

impl Capacity {
    /// The default shares of this many concurrent calls: a tool has at most half of them and a principal three
    /// quarters, so that other tools of the same principal, and other principals, find room.
    pub fn with_concurrency(max_concurrent: usize) -> Self {
        Self {
            max_concurrent,
            max_concurrent_per_tool: max_concurrent.div_ceil(2),
            max_concurrent_per_principal: max_concurrent.saturating_mul(3).div_ceil(4),
            max_nested_per_call: 8,
            max_waiting: 1024,
            max_background: max_concurrent.div_ceil(4),
            max_wait: Duration::from_secs(10),
        }
    }

    /// Calls that can run at the same time, nested ones included.
    pub fn total(&self) -> usize {
        (0..MAX_CALL_DEPTH).map(|depth| self.seats(depth)).sum()
    }

    fn seats(&self, depth: usize) -> usize {
        if depth == 0 { self.max_concurrent.max(1) } else { (self.max_concurrent >> depth).max(2) }
    }

    fn level(&self, depth: usize) -> DepthSeats {
        let seats = self.seats(depth);
        let share = |limit: usize| (limit.saturating_mul(seats) / self.max_concurrent.max(1)).clamp(1, seats);
        let (principal, tool) =
            (share(self.max_concurrent_per_principal), share(self.max_concurrent_per_tool));
        // The rest is for other principals that call the same tool.
        let tool_of_principal = tool - tool / 8;
        let limits = [principal, tool_of_principal, tool, self.max_nested_per_call.max(1)];
        DepthSeats::new(seats, limits, self.max_waiting)
    }
}

/// How many calls hold a seat or wait for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapacityUse {
    pub running: usize,
    pub waiting: usize,
    /// Seats of calls that are not nested, in all and taken.
    pub seats: usize,
    pub seats_taken: usize,
}

impl CapacityUse {
    /// Whether another call that is not nested would have to wait.
    pub fn is_full(&self) -> bool {
        self.seats_taken >= self.seats
    }
}

/// On whose account a call takes a seat.
pub(crate) struct SeatRequest<'a> {
    /// The tool of the root call.
    pub tool: &'a str,
    pub principal: &'a Principal,
    /// Identifies the root call among those that run, if this one is nested.
    pub root: Option<usize>,
    /// How many calls it is nested in.
    pub depth: usize,
}

/// All seats.
pub(crate) struct Seats {
    capacity: Capacity,
    /// By depth.
    levels: [Arc<DepthSeats>; MAX_CALL_DEPTH],
}

/// The answer to a request for a seat.
pub(crate) enum SeatAnswer {
    Taken(Permit),
    Waiting(Waiting),
}

/// A call that waits for a seat. Dropping it leaves the queue.
pub(crate) struct Waiting {
    level: Arc<DepthSeats>,
    ticket: u64,
    granted: oneshot::Receiver<Permit>,
    until: Instant,
}

impl Seats {
    pub fn new(capacity: Capacity) -> Self {
        let levels = std::array::from_fn(|depth| Arc::new(capacity.level(depth)));
        Self { capacity, levels }
    }

    /// Takes a seat, or a place in the queue until `deadline` at the latest.
    pub fn request(&self, request: &SeatRequest<'_>, deadline: Instant) -> Result<SeatAnswer, Failure> {
        let level = &self.levels[request.depth.min(MAX_CALL_DEPTH - 1)];
        match level.enter(request) {
            Ok(Entry::Seat(permit)) => Ok(SeatAnswer::Taken(permit)),
            Ok(Entry::Queued { ticket, granted }) => {
                let until = Instant::now()
                    .checked_add(self.capacity.max_wait)
                    .map_or(deadline, |end| deadline.min(end));
                Ok(SeatAnswer::Waiting(Waiting { level: Arc::clone(level), ticket, granted, until }))
            }
            Err(limit) => Err(limit.refusal()),
        }
    }

    pub fn used(&self) -> CapacityUse {
        let mut used = CapacityUse { seats: self.capacity.seats(0), ..CapacityUse::default() };
        for (depth, level) in self.levels.iter().enumerate() {
            let (running, waiting) = level.counts();
            used.running += running;
            used.waiting += waiting;
            if depth == 0 {
                used.seats_taken = running;
            }
        }
        used
    }
}

impl Waiting {
    /// Waits for the seat.
    pub async fn seat(mut self) -> Result<Permit, Failure> {
        match tokio::time::timeout_at(self.until.into(), &mut self.granted).await {
            Ok(Ok(permit)) => Ok(permit),
            // A seat may have been granted at the last moment.
            _ => self.granted.try_recv().map_err(|_| self.level.limit_of(self.ticket).refusal()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.level.leave(self.ticket);
    }
}

/// The limit that a call has met.
pub(crate) struct ReachedLimit {
    /// `None`: all seats are taken.
    pub owner: Option<Arc<SeatOwner>>,
    pub limit: usize,
}

impl ReachedLimit {
    fn refusal(&self) -> Failure {
        refusal(self.owner.as_deref(), self.limit)
    }
}

/// The refusal of a call that finds no seat in time.
fn refusal(owner: Option<&SeatOwner>, limit: usize) -> Failure {
    let (kind, message, suggestion) = match owner.map(|owner| (owner.kind, owner.name())) {
        Some((OwnerKind::Tool, tool)) => (
            ErrorKind::RateLimit,
            format!(
                "The tool `{tool}` has {limit} calls running, which is its limit (`max_concurrent_per_tool`)."
            ),
            "Call it again when one of its calls has ended, or use another tool.",
        ),
        Some((OwnerKind::Principal, _)) => (
            ErrorKind::RateLimit,
            format!(
                "The user has {limit} calls running, which is the limit (`max_concurrent_per_principal`)."
            ),
            "Call it again when one of the user's calls has ended.",
        ),
        Some((OwnerKind::Call, _)) => (
            ErrorKind::RateLimit,
            format!("The call has {limit} nested calls running, which is the limit (`max_nested_per_call`)."),
            "Await some of the nested calls before starting others.",
        ),
        Some((OwnerKind::ToolOfPrincipal, _)) => (
            ErrorKind::RateLimit,
            format!("The user has {limit} calls of this tool running, which is the limit for one user."),
            "Call it again when one of these calls has ended, or use another tool.",
        ),
        None => (
            ErrorKind::Unavailable,
            format!(
                "The server has {limit} calls of handlers running, which is its limit (`max_concurrent`)."
            ),
            "Call it again in a moment.",
        ),
    };
    Failure { retryable: true, ..Failure::new(kind, message) }.retry_after(RETRY_AFTER_MS).suggest(suggestion)
}

#[cfg(test)]
#[path = "capacity_tests.rs"]
mod tests;
