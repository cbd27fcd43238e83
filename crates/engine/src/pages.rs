//! Huge pages for large tables: with small pages, each access that misses the TLB also walks the page table.

/// Vectors below this size stay in small pages \[bytes\], as they would not fill a few huge ones.
const LARGE: usize = 1 << 22;

/// Alignment of advised memory \[bytes\]: the largest normal page size of all systems. Asking the kernel for its page size
/// would end in a fault under valgrind, which hides where the kernel tells it.
#[cfg(target_os = "linux")]
const PAGE: usize = 1 << 16;

/// An empty vector with room for `capacity` items, in huge pages if it is large.
pub fn vec_in_huge_pages<T>(capacity: usize) -> Vec<T> {
    let vec = Vec::with_capacity(capacity);
    advise(&vec);
    vec
}

/// Doubles the capacity of a full vector, in huge pages if it is large.
#[cold]
#[inline(never)]
pub(crate) fn lengthen<T>(vec: &mut Vec<T>) {
    vec.reserve(1);
    advise(vec);
}

/// Advises the kernel to use huge pages for a vector's whole capacity, written or not; pages already in use stay as they are.
/// The advice is a hint, ignored on systems without huge pages.
fn advise<T>(vec: &Vec<T>) {
    let bytes = vec.capacity().saturating_mul(std::mem::size_of::<T>());
    if bytes >= LARGE {
        advise_memory(vec.as_ptr().cast_mut().cast(), bytes);
    }
}

#[cfg(target_os = "linux")]
fn advise_memory(start: *mut u8, bytes: usize) {
    let skipped = start.align_offset(PAGE);
    let whole = bytes.saturating_sub(skipped) / PAGE * PAGE;
    // SAFETY: whole pages of memory that this process has allocated; the advice changes nothing of what is in them.
    let _ = unsafe { rustix::mm::madvise(start.wrapping_add(skipped).cast(), whole, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise_memory(_start: *mut u8, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_vectors_keep_what_is_in_them() {
        let mut vec = vec_in_huge_pages(LARGE / 8 - 1);
        vec.extend(0..LARGE as u64 / 8 - 1);
        let mut small: Vec<u64> = vec_in_huge_pages(2);
        small.push(7);
        for (i, vec) in [&mut vec, &mut small].into_iter().enumerate() {
            let before = vec.clone();
            vec.resize(vec.capacity(), 9);
            lengthen(vec);
            assert!(vec.capacity() > vec.len(), "vector {i}");
            assert_eq!(vec[..before.len()], before);
        }
    }
}
