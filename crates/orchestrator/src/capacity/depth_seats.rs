//! The seats of one depth of nesting, and the calls that wait for them. Principals take turns, and so do the tools of a
//! principal; calls of one tool are served in the order in which they came.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::seat_owner::{OwnerKey, OwnerKind, SeatOwner};
use super::{ReachedLimit, SeatRequest};

pub(crate) struct DepthSeats {
    seats: usize,
    /// In the order of [`OwnerKind`].
    limits: [usize; 4],
    max_waiting: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// How many seats have been given.
    served: u64,
    next_ticket: u64,
    owners: HashMap<OwnerKey, Arc<SeatOwner>>,
    /// By ticket, so the one that came first is first.
    waiting: BTreeMap<u64, Waiter>,
}

struct Waiter {
    owners: SeatOwners,
    granted: oneshot::Sender<Permit>,
}

/// One of each kind, in their order. Only a nested call has a root call.
type SeatOwners = Vec<Arc<SeatOwner>>;

pub(crate) enum Entry {
    Seat(Permit),
    Queued { ticket: u64, granted: oneshot::Receiver<Permit> },
}

/// A seat. Dropping it gives the seat to the next call.
pub(crate) struct Permit {
    level: Option<Arc<DepthSeats>>,
    owners: SeatOwners,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(level) = self.level.take() {
            level.release(&self.owners);
        }
    }
}

impl DepthSeats {
    pub fn new(seats: usize, limits: [usize; 4], max_waiting: usize) -> Self {
        Self { seats, limits, max_waiting, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Running and waiting calls.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.running, state.waiting.len())
    }

    /// Takes a seat, or joins the queue.
    pub fn enter(self: &Arc<Self>, request: &SeatRequest<'_>) -> Result<Entry, ReachedLimit> {
        let mut state = self.state();
        let owners = state.owners_of(request);
        // While a seat is free, all waiting calls are blocked by limits of their owners: taking the seat is fair.
        if self.may_run(&state, &owners) {
            return Ok(Entry::Seat(self.seat(&mut state, owners)));
        }
        if !self.has_room_to_wait(&state, &owners) {
            state.forget_idle(&owners);
            return Err(self.reached(&owners));
        }
        owners.iter().for_each(|owner| owner.count_waiting());
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let (granted, receiver) = oneshot::channel();
        state.waiting.insert(ticket, Waiter { owners, granted });
        Ok(Entry::Queued { ticket, granted: receiver })
    }

    /// Leaves the queue.
    pub fn leave(&self, ticket: u64) {
        let mut state = self.state();
        if let Some(waiter) = state.remove_waiter(ticket) {
            state.forget_idle(&waiter.owners);
        }
    }

    /// The limit because of which a call waits.
    pub fn limit_of(&self, ticket: u64) -> ReachedLimit {
        match self.state().waiting.get(&ticket) {
            Some(waiter) => self.reached(&waiter.owners),
            None => self.reached(&Vec::new()),
        }
    }

    fn limit(&self, owner: &SeatOwner) -> usize {
        self.limits[owner.kind as usize]
    }

    fn may_run(&self, state: &State, owners: &SeatOwners) -> bool {
        state.running < self.seats && owners.iter().all(|owner| owner.running() < self.limit(owner))
    }

    /// The limit that keeps a call of these owners from running. A limit of an owner is preferred to the global one.
    fn reached(&self, owners: &SeatOwners) -> ReachedLimit {
        let mut full = owners.iter().filter(|owner| owner.running() >= self.limit(owner));
        let is_shared = |owner: &&Arc<SeatOwner>| owner.kind != OwnerKind::ToolOfPrincipal;
        match full.clone().find(is_shared).or_else(|| full.next()) {
            Some(owner) => ReachedLimit { owner: Some(Arc::clone(owner)), limit: self.limit(owner) },
            None => ReachedLimit { owner: None, limit: self.seats },
        }
    }

    /// Whether a call may wait.
    fn has_room_to_wait(&self, state: &State, owners: &SeatOwners) -> bool {
        // A tool or a principal may fill half of the queue, and a principal half of its tool's share.
        let share = |owner: &SeatOwner| match owner.kind {
            OwnerKind::ToolOfPrincipal => self.max_waiting.div_ceil(4),
            _ => self.max_waiting.div_ceil(2),
        };
        state.waiting.len() < self.max_waiting && owners.iter().all(|owner| owner.waiting() < share(owner))
    }

    fn seat(self: &Arc<Self>, state: &mut State, owners: SeatOwners) -> Permit {
        state.running += 1;
        state.served += 1;
        owners.iter().for_each(|owner| owner.start(state.served));
        Permit { level: Some(Arc::clone(self)), owners }
    }

    fn release(self: &Arc<Self>, owners: &SeatOwners) {
        let mut state = self.state();
        state.release_seat(owners);
        while let Some(ticket) = self.next(&state)
            && let Some(Waiter { owners, granted }) = state.remove_waiter(ticket)
        {
            let permit = self.seat(&mut state, owners);
            if let Err(mut refused) = granted.send(permit) {
                // The waiting call was dropped. Its permit must not be dropped under the lock.
                refused.level = None;
                state.release_seat(&refused.owners);
            }
        }
    }

    /// The waiting call that is next: of the principal that was served least recently, and of its tools likewise.
    fn next(&self, state: &State) -> Option<u64> {
        let may_run = |(_, waiter): &(&u64, &Waiter)| self.may_run(state, &waiter.owners);
        let turn = |(ticket, waiter): &(&u64, &Waiter)| {
            let served = |kind: OwnerKind| waiter.owners.get(kind as usize).map(|owner| owner.served_at());
            (
                served(OwnerKind::Principal),
                served(OwnerKind::ToolOfPrincipal),
                served(OwnerKind::Call),
                **ticket,
            )
        };
        state.waiting.iter().filter(may_run).min_by_key(turn).map(|(ticket, _)| *ticket)
    }
}

impl State {
    fn owners_of(&mut self, request: &SeatRequest<'_>) -> SeatOwners {
        let SeatRequest { tool, principal, root, .. } = request;
        let principal = principal.key();
        let own_tool = format!("{tool} {principal}");
        let mut owners = Vec::with_capacity(4);
        owners.push(self.owner((OwnerKind::Principal, principal)));
        owners.push(self.owner((OwnerKind::ToolOfPrincipal, own_tool)));
        owners.push(self.owner((OwnerKind::Tool, (*tool).to_owned())));
        owners.extend(root.map(|root| self.owner((OwnerKind::Call, root.to_string()))));
        owners
    }

    fn owner(&mut self, key: OwnerKey) -> Arc<SeatOwner> {
        if let Some(known) = self.owners.get(&key) {
            return Arc::clone(known);
        }
        let owner = Arc::new(SeatOwner::new(key.clone(), self.served));
        self.owners.insert(key, Arc::clone(&owner));
        owner
    }

    fn remove_waiter(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.waiting.remove(&ticket)?;
        waiter.owners.iter().for_each(|owner| owner.stop_waiting());
        Some(waiter)
    }

    fn release_seat(&mut self, owners: &SeatOwners) {
        self.running -= 1;
        owners.iter().for_each(|owner| owner.count_end());
        self.forget_idle(owners);
    }

    fn forget_idle(&mut self, owners: &SeatOwners) {
        for owner in owners.iter().filter(|owner| owner.is_idle()) {
            self.owners.remove(&(owner.kind, owner.key.clone()));
        }
    }
}

#[cfg(test)]
impl DepthSeats {
    pub fn is_forgotten(&self) -> bool {
        self.state().owners.is_empty()
    }
}
