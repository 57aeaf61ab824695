//! The toolsets of sessions: the current one, which new sessions start with, and older ones that sessions still use.
//! The store has all of them, so that a session goes on with its own after a restart or on another server.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use tokio::sync::watch;

use crate::orchestrator::Orchestrator;
use crate::runtime::Runtime;
use crate::store::{self, Backend, SessionRecord, ToolsetInfo, ToolsetRecord};
use crate::stored_toolset::{Error, pack, unpack};

/// How often the store learns that new sessions use a toolset. Much shorter than the day after which an unused one is
/// deleted.
const TOUCH_INTERVAL_MS: i64 = 15 * 60 * 1000;

pub(crate) struct Toolsets {
    current: Runtime,
    current_key: String,
    by_key: HashMap<String, Runtime>,
    /// When the store last learned that a toolset is used, by key.
    stored_at: HashMap<String, i64>,
    /// Those that could not be loaded or stored: the log says so once.
    reported: HashSet<String>,
}

impl Toolsets {
    pub fn new(current: Runtime) -> Self {
        let current_key = key(&current);
        let by_key = HashMap::from([(current_key.clone(), current.clone())]);
        Self { current, current_key, by_key, stored_at: HashMap::new(), reported: HashSet::new() }
    }

    /// The toolsets that are held by this table alone: not current, and in use by no call.
    fn unused(&self) -> impl Iterator<Item = &String> {
        let is_unused = |(_, runtime): &(&String, &Runtime)| !runtime.is_shared();
        self.by_key.iter().filter(is_unused).map(|(key, _)| key)
    }
}

/// The key of a toolset in sessions: the version, and a digest of the handlers, which the version does not cover.
fn key(runtime: &Runtime) -> String {
    let toolset = runtime.toolset();
    let digest = toolset.content_digest.rsplit(':').next().unwrap_or_default();
    format!("{}+{}", toolset.version, &digest[..digest.len().min(12)])
}

impl Orchestrator {
    /// The toolset that new sessions start with.
    pub fn current(&self) -> Runtime {
        self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    /// The current toolset, and the key that sessions store.
    pub fn current_version(&self) -> (Runtime, String) {
        let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
        (toolsets.current.clone(), toolsets.current_key.clone())
    }

    /// The toolset of a session, from the store if it is not loaded. `None` when the store does not have it, or cannot
    /// restore it: the session can only replay calls then.
    pub async fn runtime_for(&self, session: &SessionRecord) -> store::Result<Option<Runtime>> {
        self.load_runtime(&session.toolset).await
    }

    /// A toolset that is loaded.
    pub(crate) fn runtime(&self, key: &str) -> Option<Runtime> {
        self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner).by_key.get(key).cloned()
    }

    /// As [`Self::runtime_for`], by the key that sessions store.
    pub async fn load_runtime(&self, key: &str) -> store::Result<Option<Runtime>> {
        match self.runtime(key) {
            Some(runtime) => Ok(Some(runtime)),
            None => Box::pin(self.restore(key)).await,
        }
    }

    /// Loads a toolset from the store. Concurrent callers wait for the same one.
    async fn restore(&self, key: &str) -> store::Result<Option<Runtime>> {
        let _lock = self.0.toolset_lock.lock().await;
        if let Some(runtime) = self.runtime(key) {
            return Ok(Some(runtime));
        }
        let restored = match self.0.store.toolset(key).await? {
            Some(record) => {
                let current = self.current();
                let unpacked = blocking(move || unpack(&record.content, &current)).await;
                unpacked.map_err(|error| error.to_string())
            }
            None => Err("the store does not have it".to_owned()),
        };
        let is_same = |runtime: &Runtime| self::key(runtime) == key;
        let restored = restored.and_then(|runtime| {
            is_same(&runtime).then_some(runtime).ok_or("its content has changed".to_owned())
        });
        let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
        match restored {
            Ok(runtime) => {
                toolsets.by_key.insert(key.to_owned(), runtime.clone());
                drop(toolsets);
                tracing::info!(version = key, "loaded a toolset from the store");
                Ok(Some(runtime))
            }
            Err(reason) => {
                if toolsets.reported.insert(key.to_owned()) {
                    tracing::error!(
                        "cannot load the toolset {key}: {reason}; its sessions have to start again"
                    );
                }
                Ok(None)
            }
        }
    }

    /// Stores a toolset, unless it is stored: before its first session, and after others have deleted it as unused.
    async fn store_toolset(&self, runtime: &Runtime, key: &str) -> store::Result<()> {
        let now = self.0.clock.now();
        let is_fresh = || {
            let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
            toolsets.stored_at.get(key).is_some_and(|at| now.saturating_sub(*at) < TOUCH_INTERVAL_MS)
        };
        if is_fresh() {
            return Ok(());
        }
        let _lock = self.0.toolset_lock.lock().await;
        if is_fresh() {
            return Ok(());
        }
        if !self.0.store.touch_toolset(key, now).await? {
            let packed = runtime.clone();
            match blocking(move || pack(&packed)).await {
                Ok(content) => {
                    let info = ToolsetInfo {
                        id: key.to_owned(),
                        created_at: now,
                        used_at: now,
                        tools: u32::try_from(runtime.toolset().ids().count()).unwrap_or(u32::MAX),
                        bytes: content.len() as u64,
                    };
                    self.0.store.put_toolset(ToolsetRecord { info, content: content.into() }).await?;
                }
                Err(error) => {
                    tracing::error!(
                        "cannot store the toolset {key}: {error}; its sessions end with this process"
                    );
                }
            }
        }
        let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
        toolsets.stored_at.insert(key.to_owned(), now);
        Ok(())
    }

    /// Stores the current toolset, so that it can be looked at and compared when another one has taken its place.
    /// Called every few seconds: the store learns that it is still used.
    pub async fn store_current_toolset(&self) -> store::Result<()> {
        self.stored_current_version().await.map(drop)
    }

    /// The current toolset, which is in the store, and its key. A toolset that is held is not unloaded.
    pub(crate) async fn stored_current_version(&self) -> store::Result<(Runtime, String)> {
        let (runtime, key) = self.current_version();
        Box::pin(self.store_toolset(&runtime, &key)).await?;
        Ok((runtime, key))
    }

    /// Installs the toolset that new sessions start with. Earlier sessions keep theirs, which [`Self::sweep`] unloads
    /// when no session uses it any more.
    pub fn install(&self, runtime: Runtime) {
        let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
        toolsets.current_key = key(&runtime);
        let key = toolsets.current_key.clone();
        toolsets.by_key.insert(key, runtime.clone());
        toolsets.current = runtime;
        drop(toolsets);
        self.0.installed.send_modify(|count| *count += 1);
    }

    /// Moves a session to the current toolset, for a client that has read the current list of tools.
    pub async fn adopt_current_toolset(&self, session: &str) -> store::Result<()> {
        // Held until the session is stored: a toolset that is in use is not unloaded.
        let (_runtime, key) = self.stored_current_version().await?;
        self.change(session, |session| session.toolset.clone_from(&key)).await
    }

    /// Reports each install.
    pub fn installs(&self) -> watch::Receiver<u64> {
        self.0.installed.subscribe()
    }

    /// Unloads the toolsets that no session and no call uses any more.
    pub(crate) async fn unload_unused(&self) -> store::Result<()> {
        let unused: Vec<String> = {
            let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
            toolsets.unused().cloned().collect()
        };
        for key in unused {
            if self.0.store.is_toolset_in_use(&key).await? {
                continue;
            }
            let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
            if toolsets.unused().any(|unused| *unused == key) {
                toolsets.by_key.remove(&key);
                toolsets.stored_at.remove(&key);
                drop(toolsets);
                tracing::info!(version = key, "unloaded a toolset that no session uses any more");
            }
        }
        Ok(())
    }
}

/// Runs work that reads files or decompresses on a blocking thread, if there are threads for that.
async fn blocking<T, F>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Error> + Send + 'static,
{
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.unwrap_or(Err(Error::Interrupted)),
        Err(_) => work(),
    }
}
