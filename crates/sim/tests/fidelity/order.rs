//! The order of events of the same time.
