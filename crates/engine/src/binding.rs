//! The current call of a realm, for the interrupt handler, the module loader and the native function, which are created
//! before the realm has a call.
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use rquickjs::{Error, Result};

use crate::{host::CallHost, program::Compiled};

#[derive(Default)]
pub(crate) struct Binding {
    bound: Mutex<Bound>,
    panicked: AtomicBool,
}

#[derive(Default)]
struct Bound {
    call_host: Option<Arc<CallHost>>,
    compiled: Option<Arc<Compiled>>,
}

impl Binding {
    fn bound(&self) -> MutexGuard<'_, Bound> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without a host, the program can only be loaded.
    pub fn bind(&self, call_host: Option<Arc<CallHost>>, compiled: Arc<Compiled>) {
        *self.bound() = Bound { call_host, compiled: Some(compiled) };
    }

    pub fn release(&self) {
        let bound = std::mem::take(&mut *self.bound());
        drop(bound);
    }

    /// An error only while the realm is created.
    pub fn call_host(&self) -> Result<Arc<CallHost>> {
        self.bound().call_host.clone().ok_or(Error::Unknown)
    }

    pub fn compiled(&self) -> Result<Arc<Compiled>> {
        self.bound().compiled.clone().ok_or(Error::Unknown)
    }

    /// Records a panic of native code. rquickjs may resume the panic later, so the realm must not be used again.
    pub fn set_panicked(&self) {
        self.panicked.store(true, Ordering::Relaxed);
    }

    pub fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    pub fn must_stop(&self) -> bool {
        let call_host = self.call_host();
        call_host.is_ok_and(|call_host| call_host.control.must_stop())
    }
}
