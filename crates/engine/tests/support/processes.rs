//! The processes of an engine, as the kernel lists them.

/// The spawner that this process has started, and its workers. Zombies count.
pub fn descendants() -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let parent = status_field(id, "PPid")?;
            Some((id, parent.parse().ok()?))
        })
        .collect();
    let children_of =
        |id: u32| parents.iter().filter(move |(_, parent)| *parent == id).map(|(child, _)| *child);
    children_of(std::process::id()).flat_map(|id| std::iter::once(id).chain(children_of(id))).collect()
}

/// A line of `/proc/ID/status`.
pub fn status_field(process: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    status.lines().find_map(value)
}

/// The memory of this process and its descendants; pages that several share count in part for each.
pub fn memory_kilobytes() -> u64 {
    descendants().into_iter().chain([std::process::id()]).map(proportional_kilobytes).sum()
}

fn proportional_kilobytes(process: u32) -> u64 {
    let memory = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = memory.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
