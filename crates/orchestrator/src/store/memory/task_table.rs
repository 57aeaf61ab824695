//! The tasks of a store in memory: by id, in the order of their age, and which of them have no owner.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{Memory, lock};
use crate::store::Result;
use crate::store::journal::{Change, Deletion, Journal};
use crate::store::records::Durability;
use crate::store::task::{TaskChange, TaskQuery, TaskRecord, TaskScope};

#[derive(Default)]
pub struct TaskTable {
    by_id: HashMap<String, Arc<TaskRecord>>,
    /// The list of all, of each session and of each principal: list, creation time and id.
    lists: BTreeSet<(List, i64, String)>,
    /// Those that have not ended and have lost their owner: creation time and id.
    orphaned: BTreeSet<(i64, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    All,
    Session(String),
    Principal(String),
}

impl List {
    fn of_scope(scope: TaskScope<'_>) -> Self {
        match scope {
            TaskScope::All => Self::All,
            TaskScope::Session(id) => Self::Session(id.to_owned()),
            TaskScope::Principal(key) => Self::Principal(key.to_owned()),
        }
    }

    fn of_task(task: &TaskRecord) -> [Self; 3] {
        [Self::All, Self::Session(task.session.clone()), Self::Principal(task.principal.key())]
    }
}

impl TaskTable {
    pub fn get(&self, id: &str) -> Option<&Arc<TaskRecord>> {
        self.by_id.get(id)
    }

    /// Adds a task.
    pub fn insert(&mut self, task: Arc<TaskRecord>, is_owned: bool) {
        let place = (task.created_at, task.id.clone());
        self.lists.extend(List::of_task(&task).map(|list| (list, place.0, place.1.clone())));
        if !is_owned && !task.has_ended() {
            self.orphaned.insert(place.clone());
        }
        self.by_id.insert(place.1, task);
    }

    /// Replaces the record of a task.
    fn replace(&mut self, task: &Arc<TaskRecord>) {
        if let Some(known) = self.by_id.get_mut(&task.id) {
            *known = Arc::clone(task);
        }
    }

    fn remove(&mut self, id: &str) {
        let Some(task) = self.by_id.remove(id) else { return };
        let place = (task.created_at, task.id.clone());
        self.orphaned.remove(&place);
        for list in List::of_task(&task) {
            self.lists.remove(&(list, place.0, place.1.clone()));
        }
    }

    pub fn page(&self, TaskQuery { scope, before, limit }: TaskQuery<'_>) -> Vec<Arc<TaskRecord>> {
        let list = List::of_scope(scope);
        let end = match before {
            Some((at, id)) => (list.clone(), at, id.to_owned()),
            // No task is created at the end of time.
            None => (list.clone(), i64::MAX, String::new()),
        };
        let start = (list, i64::MIN, String::new());
        let places = self.lists.range(start..end).rev().take(limit);
        places.filter_map(|(_, _, id)| self.by_id.get(id).cloned()).collect()
    }

    pub fn adopt(&mut self, limit: usize) -> Vec<Arc<TaskRecord>> {
        let places: Vec<_> = self.orphaned.iter().take(limit).cloned().collect();
        places
            .into_iter()
            .filter_map(|place| {
                self.orphaned.remove(&place);
                // One that was cancelled before it was adopted has ended.
                self.by_id.get(&place.1).filter(|task| !task.has_ended()).cloned()
            })
            .collect()
    }
}

impl<J: Journal> Memory<J> {
    pub(super) async fn write_new_task(&self, task: TaskRecord) -> Result<Arc<TaskRecord>> {
        let (task, written) = {
            let mut tasks = lock(&self.tasks);
            if let Some(known) = tasks.get(&task.id) {
                return Ok(Arc::clone(known));
            }
            let task = Arc::new(task);
            tasks.insert(Arc::clone(&task), true);
            let written = self.journal.write(Change::Task(Arc::clone(&task)), Durability::Committed);
            (task, written)
        };
        let written = written.wait().await;
        if written.is_err() {
            let mut tasks = lock(&self.tasks);
            if tasks.get(&task.id).is_some_and(|known| Arc::ptr_eq(known, &task)) {
                tasks.remove(&task.id);
            }
        }
        written.map(|()| task)
    }

    pub(super) async fn write_task_change(
        &self,
        id: &str,
        change: TaskChange,
        now: i64,
    ) -> Result<Option<Arc<TaskRecord>>> {
        let durability = change.durability();
        let (before, after, written) = {
            let mut tasks = lock(&self.tasks);
            let Some(before) = tasks.get(id).cloned() else { return Ok(None) };
            let Some(after) = before.after_change(change, now).map(Arc::new) else { return Ok(None) };
            tasks.replace(&after);
            let written = self.journal.write(Change::Task(Arc::clone(&after)), durability);
            (before, after, written)
        };
        let written = written.wait().await;
        if written.is_err() {
            let mut tasks = lock(&self.tasks);
            if tasks.get(id).is_some_and(|known| Arc::ptr_eq(known, &after)) {
                tasks.replace(&before);
            }
        }
        written.map(|()| Some(after))
    }

    /// Deletes the tasks that ended at this time or earlier, and those of deleted sessions.
    pub(super) fn sweep_tasks(&self, ended_before: i64, deleted_sessions: &HashSet<String>) {
        let mut tasks = lock(&self.tasks);
        let is_old = |task: &&Arc<TaskRecord>| {
            task.ended_at.is_some_and(|at| at <= ended_before) || deleted_sessions.contains(&task.session)
        };
        let old: Vec<String> = tasks.by_id.values().filter(is_old).map(|task| task.id.clone()).collect();
        old.iter().for_each(|id| tasks.remove(id));
        self.delete(Deletion { tasks: old, ..Deletion::default() });
    }
}
