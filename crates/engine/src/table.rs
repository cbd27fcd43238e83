//! Arrays indexed in the inner loop.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A vector whose indices come from the tables of the simulation itself, never from outside, so that release builds do
/// without bounds checks: they were a fifth of all instructions of a hop. Debug builds, and so all tests, check.
#[derive(Clone, Debug, Default)]
pub struct Table<T>(Vec<T>);

impl<T> From<Vec<T>> for Table<T> {
    fn from(items: Vec<T>) -> Self {
        Table(items)
    }
}

impl<T> Deref for Table<T> {
    type Target = Vec<T>;
    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, i: usize) -> &T {
        debug_assert!(i < self.0.len());
        // SAFETY: indices are ids that the owner of the table handed out for this table, which never shrinks; debug builds
        // check each one.
        unsafe { self.0.get_unchecked(i) }
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, i: usize) -> &mut T {
        debug_assert!(i < self.0.len());
        // SAFETY: as above.
        unsafe { self.0.get_unchecked_mut(i) }
    }
}
