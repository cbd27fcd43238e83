//! Arrays for the inner loop, with bounds checks in debug builds only.

use crate::pages::lengthen;
use fanin_units::{FlowId, HostId, LinkId, SwitchId};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// An index of tables: a plain number, or an identifier.
pub trait Id: Copy {
    /// The position in a table.
    fn index(self) -> usize;
}

impl Id for usize {
    #[inline(always)]
    fn index(self) -> usize {
        self
    }
}

macro_rules! ids {
    ($($id:ident)*) => { $(
        impl Id for $id {
            #[inline(always)]
            fn index(self) -> usize {
                $id::index(self)
            }
        }
    )* };
}

ids!(FlowId HostId LinkId SwitchId);

/// A vector that only grows, indexed by ids of one kind, and whose indices come from the tables of the simulation itself, never from outside, so that
/// release builds do without bounds checks: they were a fifth of all instructions of a hop. Debug builds, and so all Rust
/// tests, check each one.
///
/// Contract: an index was handed out for this very table. A caller who breaks it has undefined behaviour in release builds;
/// the type is for the inner loop of the simulator and for nothing else.
#[derive(Clone, Debug)]
pub struct Table<T, I = usize>(Vec<T>, PhantomData<fn(I)>);

impl<T, I> Default for Table<T, I> {
    fn default() -> Self {
        Table(Vec::new(), PhantomData)
    }
}

impl<T, I> From<Vec<T>> for Table<T, I> {
    fn from(items: Vec<T>) -> Self {
        Table(items, PhantomData)
    }
}

impl<T, I> Table<T, I> {
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
    pub fn items(&self) -> Items<'_, T, I> {
        Items(&self.0, PhantomData)
    }

    /// Number of items that fit without reallocation.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

/// Borrowed items of a [`Table`], for code that accesses them often: the start address is read only once. Indices obey the
/// table's contract.
#[derive(Debug)]
pub struct Items<'a, T, I = usize>(&'a [T], PhantomData<fn(I)>);

impl<T, I> Clone for Items<'_, T, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, I> Copy for Items<'_, T, I> {}

impl<T, I: Id> Items<'_, T, I> {
    /// Address of the item at index `i`, which need not exist: for prefetching.
    #[inline(always)]
    pub fn address(&self, i: I) -> *const T {
        self.0.as_ptr().wrapping_add(i.index())
    }
}

impl<'a, T, I: Id> Items<'a, T, I> {
    /// The item at index `i`.
    #[inline(always)]
    pub fn at(&self, i: I) -> &'a T {
        let i = i.index();
        debug_assert!(i < self.0.len());
        // SAFETY: as for indices of tables.
        unsafe { self.0.get_unchecked(i) }
    }
}

/// Dereferences to a slice, not to a vector, so that nothing can shorten the table.
impl<T, I> Deref for Table<T, I> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// Dereferences to a mutable slice, which cannot shorten the table either.
impl<T, I> DerefMut for Table<T, I> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T, I: Id> Index<I> for Table<T, I> {
    type Output = T;
    #[inline(always)]
    fn index(&self, i: I) -> &T {
        let i = i.index();
        debug_assert!(i < self.0.len());
        // SAFETY: indices are ids that the owner of the table handed out for this table, which never shrinks; debug builds
        // check each one.
        unsafe { self.0.get_unchecked(i) }
    }
}

impl<T, I: Id> IndexMut<I> for Table<T, I> {
    #[inline(always)]
    fn index_mut(&mut self, i: I) -> &mut T {
        let i = i.index();
        debug_assert!(i < self.0.len());
        // SAFETY: as above.
        unsafe { self.0.get_unchecked_mut(i) }
    }
}
