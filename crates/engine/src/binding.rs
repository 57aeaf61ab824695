//! The call that a realm serves at present, for those that were put into the realm before it had one: the interrupt
//! handler, the module loader, the native function.
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use rquickjs::{Error, Result};

use crate::{program::Compiled, side::Side};

#[derive(Default)]
pub(crate) struct Binding {
    bound: Mutex<Bound>,
    panicked: AtomicBool,
}

#[derive(Default)]
struct Bound {
    side: Option<Arc<Side>>,
    compiled: Option<Arc<Compiled>>,
}

impl Binding {
    fn bound(&self) -> MutexGuard<'_, Bound> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without a side, the program is loaded and nothing else.
    pub fn bind(&self, side: Option<Arc<Side>>, compiled: Arc<Compiled>) {
        *self.bound() = Bound { side, compiled: Some(compiled) };
    }

    pub fn release(&self) {
        let bound = std::mem::take(&mut *self.bound());
        drop(bound);
    }

    /// An error only while the realm is made.
    pub fn side(&self) -> Result<Arc<Side>> {
        self.bound().side.clone().ok_or(Error::Unknown)
    }

    pub fn compiled(&self) -> Result<Arc<Compiled>> {
        self.bound().compiled.clone().ok_or(Error::Unknown)
    }

    /// Native code has panicked. The binding may keep the panic for a later moment, so the realm must not be used again.
    pub fn set_panicked(&self) {
        self.panicked.store(true, Ordering::Relaxed);
    }

    pub fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    pub fn must_stop(&self) -> bool {
        let side = self.side();
        side.is_ok_and(|side| side.control.must_stop())
    }
}
