//! A turn that runs in this process: its events, which listeners read as they arrive, and the signals to it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::event::{Event, EventBody};

/// The events of one run of a turn, and who listens.
#[derive(Debug)]
pub(crate) struct LiveTurn {
    /// The position before the first event of this run.
    pub first: u64,
    events: Mutex<Vec<Event>>,
    /// The end of the log, and whether the run has ended.
    progress: watch::Sender<Progress>,
    listeners: watch::Sender<usize>,
    stop: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub end: u64,
    pub is_over: bool,
}

impl LiveTurn {
    pub fn new(first: u64) -> Self {
        Self {
            first,
            events: Mutex::default(),
            progress: watch::Sender::new(Progress { end: first, is_over: false }),
            listeners: watch::Sender::new(0),
            stop: watch::Sender::new(false),
        }
    }

    /// Adds an event. Consecutive pieces of one part become one event, so a position may be inside of it.
    pub fn push(&self, event: Event) {
        let end = event.position;
        {
            let mut events = self.events();
            let is_added =
                events.last_mut().is_some_and(|last| last.turn == event.turn && last.extend(&event.body));
            if !is_added {
                events.push(event);
            }
        }
        self.progress.send_modify(|progress| progress.end = end);
    }

    pub fn finish(&self) {
        self.progress.send_modify(|progress| progress.is_over = true);
    }

    /// The events after a position.
    pub fn events_after(&self, position: u64) -> Vec<Event> {
        let events = self.events();
        let start = events.partition_point(|event| event.position <= position);
        events[start..].iter().filter_map(|event| event.suffix_after(position)).collect()
    }

    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Resolves when the turn is stopped, or had no listener for the grace time.
    pub async fn cancelled(&self, grace: Duration) {
        let mut stop = self.stop.subscribe();
        let mut listeners = self.listeners.subscribe();
        let abandoned = async {
            loop {
                if listeners.wait_for(|count| *count == 0).await.is_err() {
                    return;
                }
                let returned = tokio::time::timeout(grace, listeners.wait_for(|count| *count > 0)).await;
                if returned.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            _ = stop.wait_for(|is_stopped| *is_stopped) => {}
            () = abandoned => {}
        }
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add_listener(&self) {
        self.listeners.send_modify(|count| *count += 1);
    }

    pub fn remove_listener(&self) {
        self.listeners.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Whether an event is streamed in pieces.
pub(crate) const fn is_piece(body: &EventBody) -> bool {
    matches!(body, EventBody::Text { .. } | EventBody::Reasoning { .. })
}
