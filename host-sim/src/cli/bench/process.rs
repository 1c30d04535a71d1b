//! What the system tells about processes and itself.

/// Resident memory of a process in bytes, where the system tells.
pub(super) fn resident(process: Option<u32>) -> Option<usize> {
    memory(process, "Rss:")
}

/// Memory of a process that belongs to no file, in bytes: stacks, heap and static memory that was
/// written to.
pub(super) fn anonymous(process: Option<u32>) -> Option<usize> {
    memory(process, "Anonymous:")
}

fn memory(process: Option<u32>, field: &str) -> Option<usize> {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process?)).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib * 1024)
}

/// CPU time that a process has used, where the system tells; it does not depend on what else the
/// machine is doing.
pub(super) fn cpu_seconds(process: Option<u32>) -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process?)).ok()?;
    let fields = stat.rsplit_once(')')?.1;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Some(ticks.sum::<Result<f64, _>>().ok()? / TICKS_PER_SECOND)
}

/// The machine, in a few words.
pub(super) fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model =
        model.and_then(|line| line.split_once(':')).map_or("unknown CPU", |(_, m)| m.trim());
    format!("{model}, {cpus} cores, {}", std::env::consts::OS)
}
