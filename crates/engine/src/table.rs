//! Arrays for the inner loop, with bounds checks in debug builds only.

use crate::pages::lengthen;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A vector that only grows and whose indices come from the tables of the simulation itself, never from outside, so that
/// release builds do without bounds checks: they were a fifth of all instructions of a hop. Debug builds, and so all Rust
/// tests, check each one.
///
/// Contract: an index was handed out for this very table. A caller who breaks it has undefined behaviour in release builds;
/// the type is for the inner loop of the simulator and for nothing else.
#[derive(Clone, Debug, Default)]
pub struct Table<T>(Vec<T>);

impl<T> From<Vec<T>> for Table<T> {
    fn from(items: Vec<T>) -> Self {
        Table(items)
    }
}

impl<T> Table<T> {
    /// Appends an item; its index is the previous length.
    pub fn push(&mut self, item: T) {
        if self.0.len() == self.0.capacity() {
            lengthen(&mut self.0);
        }
        self.0.push(item);
    }

    /// The `length` items that start at index `at`.
    #[inline(always)]
    pub fn slice(&self, at: usize, length: usize) -> &[T] {
        debug_assert!(at + length <= self.0.len());
        // SAFETY: as for indices.
        unsafe { self.0.get_unchecked(at..at + length) }
    }

    /// Mutable access to the `length` items that start at index `at`.
    #[inline(always)]
    pub fn slice_mut(&mut self, at: usize, length: usize) -> &mut [T] {
        debug_assert!(at + length <= self.0.len());
        // SAFETY: as for indices.
        unsafe { self.0.get_unchecked_mut(at..at + length) }
    }

    /// Appends copies of `item` until the table has `length` items; never shortens it.
    pub fn grow(&mut self, length: usize, item: T)
    where
        T: Clone,
    {
        self.0.resize(length.max(self.0.len()), item);
    }

    /// Borrows the items with the start address read only once: see [`Items`].
    #[inline(always)]
    pub fn items(&self) -> Items<'_, T> {
        Items(&self.0)
    }

    /// Number of items that fit without reallocation.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

/// Borrowed items of a [`Table`], for code that accesses them often: the start address is read only once. Indices obey the
/// table's contract.
#[derive(Debug)]
pub struct Items<'a, T>(&'a [T]);

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<'_, T> {}

impl<T> Items<'_, T> {
    /// Address of the item at index `i`, which need not exist: for prefetching.
    #[inline(always)]
    pub fn address(&self, i: usize) -> *const T {
        self.0.as_ptr().wrapping_add(i)
    }
}

impl<'a, T> Items<'a, T> {
    /// The item at index `i`.
    #[inline(always)]
    pub fn at(&self, i: usize) -> &'a T {
        debug_assert!(i < self.0.len());
        // SAFETY: as for indices of tables.
        unsafe { self.0.get_unchecked(i) }
    }
}

/// Dereferences to a slice, not to a vector, so that nothing can shorten the table.
impl<T> Deref for Table<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// Dereferences to a mutable slice, which cannot shorten the table either.
impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
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
