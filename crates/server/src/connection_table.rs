//! The open connections: how many there are, in all and per peer, and which one is closed to make room for another.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::counters::decrement;
use crate::idle_timer::IdleTimer;
use crate::options::Limits;

/// Connections beyond the limits, which serve open routes only: health checks get through to a full server.
const RESERVE: usize = 64;
/// How long a connection of the reserve may be idle.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Owns the counts of connections. When a limit is reached, the connection that has been idle for the longest is
/// closed.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    max_connections: usize,
    max_per_peer: usize,
    idle_timeout: Duration,
    open: Mutex<OpenConnections>,
    /// Notified when the last connection has closed.
    all_closed: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_id: u64,
    by_id: HashMap<u64, Entry>,
    /// The number of regular connections by peer.
    per_peer: HashMap<IpAddr, usize>,
    regular: usize,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    class: ConnectionClass,
    idle: Arc<IdleTimer>,
}

/// The class of a connection, which limits its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionClass {
    Regular,
    /// Open routes only.
    Reserve,
}

impl ConnectionTable {
    pub fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            max_connections: limits.connections,
            max_per_peer: limits.connections_per_peer,
            idle_timeout: limits.header_timeout,
            open: Mutex::default(),
            all_closed: Notify::new(),
        })
    }

    /// Enters a new connection. `None` when not even the reserve has room: the connection is to be closed.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Admitted> {
        let peer = peer_network(peer);
        let mut open = self.locked();
        let is_of_peer = |entry: &Entry| entry.class == ConnectionClass::Regular && entry.peer == peer;
        let peer_has_room = open.per_peer.get(&peer).is_none_or(|count| *count < self.max_per_peer)
            || open.close_longest_idle(is_of_peer);
        let has_room = peer_has_room
            && (open.regular < self.max_connections
                || open.close_longest_idle(|entry| entry.class == ConnectionClass::Regular));
        let (class, timeout) = if has_room {
            (ConnectionClass::Regular, self.idle_timeout)
        } else if open.by_id.len() - open.regular < RESERVE
            || open.close_longest_idle(|entry| entry.class == ConnectionClass::Reserve)
        {
            (ConnectionClass::Reserve, self.idle_timeout.min(RESERVE_TIMEOUT))
        } else {
            return None;
        };
        let idle = IdleTimer::started(timeout);
        let id = open.enter(Entry { peer, class, idle: Arc::clone(&idle) });
        Some(Admitted { table: Arc::clone(self), id, class, idle })
    }

    /// Resolves when no connection is open.
    pub async fn wait_until_empty(&self) {
        loop {
            let closed = self.all_closed.notified();
            if self.locked().by_id.is_empty() {
                return;
            }
            closed.await;
        }
    }

    fn locked(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn enter(&mut self, entry: Entry) -> u64 {
        if entry.class == ConnectionClass::Regular {
            self.regular += 1;
            *self.per_peer.entry(entry.peer).or_default() += 1;
        }
        self.next_id += 1;
        self.by_id.insert(self.next_id, entry);
        self.next_id
    }

    /// Removes a connection, unless it was closed to make room.
    fn leave(&mut self, id: u64) {
        let Some(entry) = self.by_id.remove(&id) else { return };
        if entry.class == ConnectionClass::Reserve {
            return;
        }
        self.regular -= 1;
        decrement(&mut self.per_peer, &entry.peer);
    }

    /// Closes the connection that has been idle for the longest among those that `is_eligible` names. False when none
    /// of them is idle.
    fn close_longest_idle(&mut self, is_eligible: impl Fn(&Entry) -> bool) -> bool {
        let eligible = self.by_id.iter().filter(|(_, entry)| is_eligible(entry));
        let idle = eligible.filter_map(|(id, entry)| Some((entry.idle.idle_since()?, *id)));
        let Some((_, id)) = idle.min() else { return false };
        // It may have received a request since.
        let is_closed = self.by_id.get(&id).is_some_and(|entry| entry.idle.close());
        if is_closed {
            self.leave(id);
        }
        is_closed
    }
}

/// A connection in the table, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    table: Arc<ConnectionTable>,
    id: u64,
    pub class: ConnectionClass,
    pub idle: Arc<IdleTimer>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.table.locked();
        open.leave(self.id);
        if open.by_id.is_empty() {
            self.table.all_closed.notify_waiters();
        }
    }
}

/// The address that connections are counted by. One host usually has a whole /64 of IPv6.
fn peer_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn table(connections: usize, connections_per_peer: usize) -> Arc<ConnectionTable> {
        ConnectionTable::new(&Limits { connections, connections_per_peer, ..Limits::default() })
    }

    fn is_closed(connection: &Admitted) -> bool {
        !connection.idle.pause()
    }

    #[test]
    fn a_peer_at_its_limit_loses_its_oldest_idle_connection_and_others_keep_theirs() {
        let table = table(10, 2);
        let other = table.admit(OTHER).unwrap();
        let oldest = table.admit(ONE).unwrap();
        let newer = table.admit(ONE).unwrap();
        assert_eq!(table.admit(ONE).unwrap().class, ConnectionClass::Regular);
        assert_eq!([&oldest, &newer, &other].map(is_closed), [true, false, false]);
    }

    #[test]
    fn a_full_server_closes_whichever_connection_has_been_idle_for_the_longest() {
        let table = table(2, 2);
        let oldest = table.admit(ONE).unwrap();
        let newer = table.admit(ONE).unwrap();
        let _new = table.admit(OTHER).unwrap();
        assert_eq!([&oldest, &newer].map(is_closed), [true, false]);
        assert_eq!(table.locked().per_peer, HashMap::from([(ONE, 1), (OTHER, 1)]));
    }

    #[test]
    fn busy_connections_are_kept_and_further_ones_are_of_the_reserve() {
        let table = table(2, 2);
        let busy = [table.admit(ONE).unwrap(), table.admit(ONE).unwrap()];
        assert_eq!([is_closed(&busy[0]), is_closed(&busy[1])], [false, false]);
        let reserve: Vec<Admitted> = (0..RESERVE).map(|_| table.admit(OTHER).unwrap()).collect();
        assert!(reserve.iter().all(|connection| connection.class == ConnectionClass::Reserve));
        let newest = table.admit(OTHER).unwrap();
        assert_eq!((newest.class, is_closed(&reserve[0])), (ConnectionClass::Reserve, true));
        assert!(reserve[1..].iter().all(|connection| !is_closed(connection)) && !is_closed(&newest));
        assert!(table.admit(ONE).is_none(), "every connection of the reserve is busy");
        drop(busy);
        assert_eq!(table.admit(ONE).unwrap().class, ConnectionClass::Regular);
    }

    #[tokio::test]
    async fn the_table_is_empty_when_all_connections_are_dropped() {
        let table = table(2, 1);
        let open = [table.admit(ONE).unwrap(), table.admit(ONE).unwrap()];
        let waiting = tokio::spawn({
            let table = Arc::clone(&table);
            async move { table.wait_until_empty().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(open);
        waiting.await.unwrap();
        let open = table.locked();
        assert_eq!((open.regular, open.per_peer.len()), (0, 0));
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_are_one_peer() {
        let network = |text: &str| peer_network(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2:3::4"), network("2001:db8:1:2:ffff::1"));
        assert_ne!(network("2001:db8:1:2::4"), network("2001:db8:1:3::4"));
        assert_eq!(network("::ffff:192.0.2.1"), ONE);
    }
}
