//! A gate before which threads wait.

use super::sync::{Condvar, Mutex, PoisonError};

/// Holds threads back until all are there, or sends them home.
#[derive(Default)]
pub struct Gate(Mutex<Option<bool>>, Condvar);

impl Gate {
    pub fn open(&self, go: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.1.notify_all();
    }

    pub fn wait(&self) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *said {
                Some(go) => return go,
                None => said = self.1.wait(said).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}
