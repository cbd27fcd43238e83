//! Prefetch instructions, which hint to the processor that memory is needed soon.

/// Hints to the processor that `address` is read soon; never faults.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not access memory architecturally; any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Hints to the processor that the first `LINES` cache lines at `address` are read soon; never faults.
#[inline(always)]
pub fn prefetch_lines<const LINES: usize, T>(address: *const T) {
    for line in 0..LINES {
        prefetch(address.cast::<[u8; 64]>().wrapping_add(line));
    }
}
