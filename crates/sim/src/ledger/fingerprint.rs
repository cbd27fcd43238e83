//! The fingerprint of a run: of every flow's outcome and every port's counters. It is a sum of what each entity adds, so that it
//! does not depend on the order in which they were handled.

use fanin_telemetry::FlowRow;

/// Fingerprint of a run: a sum over its entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Adds an entity: its values in order, mixed (a multiply–xor–shift step for each word).
    pub fn add(&mut self, values: impl IntoIterator<Item = u64>) {
        let fold = |x: u64, value: u64| {
            let x = (x ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x ^ x >> 29
        };
        self.0 = self.0.wrapping_add(values.into_iter().fold(0xcbf2_9ce4_8422_2325, fold));
    }

    /// Adds all entities of another.
    pub fn absorb(&mut self, other: Fingerprint) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// Adds the outcome of a flow.
    pub fn add_flow(&mut self, row: &FlowRow) {
        self.add([
            u64::from(row.flow),
            row.size_bytes,
            row.start_ps,
            row.finish_ps.unwrap_or(u64::MAX),
            row.acked_ps.unwrap_or(u64::MAX),
            row.delivered_bytes,
            row.packets_sent,
            row.retransmits,
            u64::from(row.timeouts),
            row.marked,
        ]);
    }

    /// The fingerprint as a number.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn entities_add_up_in_any_order_and_their_values_do_not() {
        let of = |entities: &[[u64; 2]]| {
            let mut fingerprint = Fingerprint::default();
            entities.iter().for_each(|values| fingerprint.add(*values));
            fingerprint.value()
        };
        assert_eq!(of(&[[1, 2], [3, 4]]), of(&[[3, 4], [1, 2]]));
        assert_ne!(of(&[[1, 2]]), of(&[[2, 1]]));
        assert_ne!(of(&[[1, 2], [3, 4]]), of(&[[1, 4], [3, 2]]));
        assert_ne!(of(&[[1, 2]]), of(&[[1, 2], [1, 2]]));
    }
}
