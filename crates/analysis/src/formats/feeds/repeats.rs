//! Messages that came twice, as where two mirrors feed one capture.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

/// Senders that are known by their last message, at most.
const SENDERS: usize = 65_536;

/// The last message of each sender: its number and a hash of its bytes.
pub struct Repeats<K> {
    last: BTreeMap<K, (u32, u64)>,
    /// Messages that were their sender's last once more.
    pub count: u64,
}

impl<K> Default for Repeats<K> {
    fn default() -> Self {
        Repeats { last: BTreeMap::new(), count: 0 }
    }
}

impl<K: Ord> Repeats<K> {
    /// True if a message is the sender's last once more, number and bytes; it is counted then.
    pub fn has(&mut self, sender: K, number: u32, message: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        hasher.write(message);
        let this = (number, hasher.finish());
        if self.last.len() == SENDERS && !self.last.contains_key(&sender) {
            return false;
        }
        let repeated = self.last.insert(sender, this) == Some(this);
        self.count += u64::from(repeated);
        repeated
    }
}
