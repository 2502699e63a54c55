//! What a process has used, as the kernel counts it.

use std::fs;
use std::time::Duration;

/// Linux counts processor time for user space in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// Returns the most memory that a process has had resident, in MiB; `None` once it has ended.
pub(crate) fn peak_memory(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes / 1024.0)
}

/// Returns the processor time of a process alone.
pub(crate) fn alone(pid: u32) -> Duration {
    Stat::read(pid).map_or(Duration::ZERO, |stat| stat.own)
}

/// Returns the processor time of a process with its children, living and ended.
pub(crate) fn with_children(pid: u32) -> Duration {
    let family = children(pid).into_iter().chain([pid]).filter_map(Stat::read);
    family.map(|stat| stat.own + stat.ended_children).sum()
}

/// Returns the living children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|child| Stat::read(*child).is_some_and(|stat| stat.parent == pid))
        .collect()
}

/// Returns whether a process runs: one that has ended and that nobody has asked about does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    Stat::read(pid).is_some_and(|stat| !stat.ended)
}

struct Stat {
    ended: bool,
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name of the program stands in brackets and may hold anything, brackets too.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks =
            |field: usize| -> Option<Duration> { Some(TICK * fields.get(field)?.parse::<u32>().ok()?) };
        Some(Self {
            ended: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            own: ticks(11)? + ticks(12)?,
            ended_children: ticks(13)? + ticks(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_whatever_the_program_is_called() {
        let stat = Stat::parse("7 (a ) b) S 3 7 7 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 1 0 9").unwrap();

        assert!(!stat.ended);
        assert_eq!(stat.parent, 3);
        assert_eq!(stat.own, Duration::from_secs(2));
        assert_eq!(stat.ended_children, Duration::from_millis(300));
    }

    #[test]
    fn one_that_has_ended_does_not_run_though_nobody_has_asked_about_it() {
        let stat = Stat::parse("7 (a) Z 3 7 7 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 1 0 9").unwrap();

        assert!(stat.ended);
        assert!(is_alive(std::process::id()));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(peak_memory(std::process::id()).unwrap() > 0.5);
    }
}
