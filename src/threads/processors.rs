//! The number of processors that the process may use: those of its affinity mask, limited by its control group. The
//! standard library counts the same way but allocates.

/// The number of processors, at least 1.
pub(super) fn available() -> usize {
    system::available()
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn available() -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use crate::text::Text;
    use std::ffi::CStr;
    use std::fmt::Write;

    /// The longest path and the longest file that are read, in bytes. Paths of control groups
    /// rarely have more than 300.
    const LONGEST: usize = 4096;

    pub(super) fn available() -> usize {
        let processors = of_affinity().unwrap_or_else(online);
        quota().map_or(processors, |quota| processors.min(quota)).max(1)
    }

    fn of_affinity() -> Option<usize> {
        // SAFETY: the set is plain memory, and the call writes it.
        let (found, set) = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set), set)
        };
        // SAFETY: the set was written.
        (found == 0).then(|| unsafe { libc::CPU_COUNT(&set) } as usize).filter(|count| *count > 0)
    }

    fn online() -> usize {
        // SAFETY: no pointers.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
    }

    /// The processors that the control group and those above it grant; `None` without a limit.
    fn quota() -> Option<usize> {
        let mut buffer = [0; LONGEST];
        let groups = read(c"/proc/self/cgroup", &mut buffer)?;
        groups.lines().filter_map(of_hierarchy).min()
    }

    /// The limit from a line of `/proc/self/cgroup`: `number:controllers:path`.
    fn of_hierarchy(line: &str) -> Option<usize> {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_second_version = number == "0" && controllers.is_empty();
        if !is_second_version && !controllers.split(',').any(|controller| controller == "cpu") {
            return None;
        }
        let mut least: Option<usize> = None;
        let mut path = path.trim_end_matches('/');
        loop {
            let limit = if is_second_version { of_group(path) } else { of_old_group(path) };
            least = least.into_iter().chain(limit).min();
            match path.rfind('/') {
                Some(at) => path = &path[..at],
                None => return least,
            }
        }
    }

    /// `cpu.max` is `quota period`, or `max period` without a limit.
    fn of_group(path: &str) -> Option<usize> {
        let mut buffer = [0; 64];
        let text = read_at("/sys/fs/cgroup", path, "cpu.max", &mut buffer)?;
        let (quota, period) = text.trim().split_once(' ')?;
        whole(quota.parse().ok()?, period.parse().ok()?)
    }

    /// Version 1 has the numbers in two files; a quota of -1 means no limit.
    fn of_old_group(path: &str) -> Option<usize> {
        let number = |file: &str| {
            let mut buffer = [0; 64];
            let text = read_at("/sys/fs/cgroup/cpu", path, file, &mut buffer)?;
            text.trim().parse::<i64>().ok()
        };
        let quota = usize::try_from(number("cpu.cfs_quota_us")?).ok()?;
        whole(quota, usize::try_from(number("cpu.cfs_period_us")?).ok()?)
    }

    /// The processors of a quota, rounded down, at least 1.
    fn whole(quota: usize, period: usize) -> Option<usize> {
        Some(quota.checked_div(period)?.max(1))
    }

    /// The content of a file of a control group.
    fn read_at<'a>(mount: &str, group: &str, file: &str, buffer: &'a mut [u8]) -> Option<&'a str> {
        let mut path = Text::<LONGEST>::new();
        write!(path, "{mount}{group}/{file}").ok()?;
        if path.is_cut() { None } else { read(path.as_c_str(), buffer) }
    }

    /// As much of a file as the buffer holds.
    fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
        // SAFETY: the path is a C string.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if file < 0 {
            return None;
        }
        let mut len = 0;
        while len < buffer.len() {
            let rest = &mut buffer[len..];
            // SAFETY: the rest is writable.
            match unsafe { libc::read(file, rest.as_mut_ptr().cast(), rest.len()) } {
                more @ 1.. => len += more as usize,
                _ => break,
            }
        }
        // SAFETY: opened above.
        unsafe { libc::close(file) };
        std::str::from_utf8(&buffer[..len]).ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn processors_are_those_that_the_standard_library_counts() {
            let counted = std::thread::available_parallelism().unwrap().get();
            assert_eq!(available(), counted);
        }

        #[test]
        fn quotas_are_whole_processors() {
            assert_eq!(whole(250_000, 100_000), Some(2));
            assert_eq!(whole(50_000, 100_000), Some(1));
            assert_eq!(whole(1, 0), None);
            // No group has this name, and a group without the controller has no limit.
            assert_eq!(of_hierarchy("0::/none such/group"), of_hierarchy("0::/"));
            assert_eq!(of_hierarchy("4:memory:/"), None);
            assert_eq!(of_hierarchy("4"), None);
        }
    }
}
