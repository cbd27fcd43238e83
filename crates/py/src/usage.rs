//! Time and memory that this process has used.

#[cfg(unix)]
fn usage() -> libc::rusage {
    // SAFETY: rusage is plain data, for which all zeroes are valid; getrusage fills the struct that it is given.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    }
}

/// User and system time of this process [s].
#[cfg(unix)]
pub fn cpu_seconds() -> f64 {
    let usage = usage();
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Most memory that this process has had [bytes].
#[cfg(unix)]
pub fn peak_bytes() -> f64 {
    // macOS counts in bytes, others in KiB.
    let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
    usage().ru_maxrss as f64 * unit
}

/// User and system time of this process [s].
#[cfg(windows)]
pub fn cpu_seconds() -> f64 {
    use windows_sys::Win32::Foundation::FILETIME;
    use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [created, ended, kernel, user] = &mut times;
    // SAFETY: the handle is this process's own, and the four structs outlive the call.
    unsafe { GetProcessTimes(GetCurrentProcess(), created, ended, kernel, user) };
    let seconds = |t: &FILETIME| ((u64::from(t.dwHighDateTime) << 32) | u64::from(t.dwLowDateTime)) as f64 * 1e-7;
    seconds(&times[2]) + seconds(&times[3])
}

/// Most memory that this process has had [bytes].
#[cfg(windows)]
pub fn peak_bytes() -> f64 {
    use windows_sys::Win32::System::ProcessStatus::{GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
    use windows_sys::Win32::System::Threading::GetCurrentProcess;
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    // SAFETY: the struct is plain data, for which all zeroes are valid; its size goes with it.
    unsafe {
        let mut counters: PROCESS_MEMORY_COUNTERS = std::mem::zeroed();
        GetProcessMemoryInfo(GetCurrentProcess(), &mut counters, size);
        counters.PeakWorkingSetSize as f64
    }
}
