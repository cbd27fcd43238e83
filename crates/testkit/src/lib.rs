//! Tests of the repository as a whole, in `tests/`.
