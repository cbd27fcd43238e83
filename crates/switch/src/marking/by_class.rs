//! Marking by class: queues of some classes have marking settings of their own, and are marked by their own length alone.

use super::Marking;
use crate::{PortSettings, Unit, PRIORITIES};
use fanin_params::{params, Cx, Param};

params! {
    /// Marking policy of some classes. With any entry each queue of a port is marked by itself, as by a switch's WRED or ECN
    /// profile; classes without an entry follow `switch.marking`, by their own queues too. Source: SAI
    /// (SAI_QUEUE_ATTR_WRED_PROFILE_ID).
    pub struct ClassMarking {
        /// Classes that the policy marks; those beyond the last queue of a port share that queue.
        pub classes: Vec<u8>;
        /// Marking policy of these classes.
        pub marking: Marking;
    }
}

/// Records errors that entries show by themselves; `cx` is at their list.
pub(crate) fn check(entries: &[ClassMarking], cx: &mut Cx) {
    for (i, entry) in entries.iter().enumerate() {
        cx.index(i, |cx| {
            cx.key("marking", |cx| entry.marking.check(cx));
            if entry.marking.amounts().into_iter().any(|amount| Unit::of(amount) == Unit::Cells) {
                cx.key("marking", |cx| {
                    let message = "compares queues in cells, which are counted for whole ports only";
                    cx.error(None, message, Some("bytes or packets".to_string())).severity
                });
            }
            cx.key("classes", |cx| check_classes(&entries[..i], &entry.classes, cx));
        });
    }
}

fn check_classes(before: &[ClassMarking], classes: &[u8], cx: &mut Cx) {
    let accepted = format!("classes from 0 to {}", PRIORITIES - 1);
    if classes.is_empty() {
        cx.error(None, "is empty: nothing is marked so", Some(accepted.clone()));
    }
    for (i, class) in classes.iter().enumerate() {
        let earlier = before.iter().position(|entry| entry.classes.contains(class));
        let problem = match earlier {
            _ if usize::from(*class) >= PRIORITIES => ("is no class".to_string(), accepted.clone()),
            Some(entry) => (format!("is in entry {entry}, too"), "each class once".to_string()),
            None if classes[..i].contains(class) => ("is there twice".to_string(), "each class once".to_string()),
            None => continue,
        };
        cx.index(i, |cx| cx.error(Some(&class.to_value().into()), problem.0, Some(problem.1)).severity);
    }
}

impl<'a> PortSettings<'a> {
    /// Marking of each queue, where that differs by class; none where the port is marked as a whole.
    pub fn marking_by_class(&self) -> Option<Vec<&'a Marking>> {
        let queues = self.scheduling.classes();
        let any = queues > 1 && !self.class_marking.is_empty();
        any.then(|| (0..queues).map(|queue| self.marking_of(queue as u8)).collect())
    }

    /// Marking policies at this port, each with its classes, a bit for each.
    pub fn markings(&self) -> Vec<(u8, &'a Marking)> {
        let Some(queues) = self.marking_by_class() else { return vec![(u8::MAX, self.marking)] };
        let last = queues.len() - 1;
        let classes = |queue: usize| if queue == last { u8::MAX << queue } else { 1 << queue };
        queues.into_iter().enumerate().map(|(queue, marking)| (classes(queue), marking)).collect()
    }

    /// True if some packets are marked by the policy of the whole port: it has one queue, or a queue without an entry.
    pub fn marks_as_a_port(&self) -> bool {
        self.marking_by_class().is_none_or(|queues| queues.into_iter().any(|marking| std::ptr::eq(marking, self.marking)))
    }

    /// Marking of packets of a class.
    pub fn marking_of(&self, class: u8) -> &'a Marking {
        let queues = self.scheduling.classes();
        let queue = usize::from(class).min(queues - 1);
        let has =
            |entry: &&ClassMarking| queues > 1 && entry.classes.iter().any(|class| usize::from(*class).min(queues - 1) == queue);
        self.class_marking.iter().find(has).map_or(self.marking, |entry| &entry.marking)
    }
}
