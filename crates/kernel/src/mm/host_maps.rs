//! What the host accounts for each mapping of a guest process: its `/proc/PID/smaps`.

use crate::mm::Mm;

/// One mapping of the host process.
#[derive(Clone, Debug, Default)]
pub struct HostMapping {
    pub start: u64,
    pub end: u64,
    /// Sizes in KiB by name (`Rss`, `Pss`, …), in the host's order.
    pub sizes: Vec<(String, u64)>,
    /// What is no size (`THPeligible`, `VmFlags`, …), in the host's order.
    pub rest: Vec<(String, String)>,
}

impl Mm {
    /// The mappings of the host process, ascending; the platform's own among them. Empty: it is gone.
    pub fn host_mappings(&self) -> Vec<HostMapping> {
        let path = format!("/proc/{}/smaps", self.space.host_pid());
        parse(&host::user::as_guests(|| std::fs::read_to_string(path)).unwrap_or_default())
    }
}

fn parse(text: &str) -> Vec<HostMapping> {
    let mut mappings: Vec<HostMapping> = Vec::new();
    for line in text.lines() {
        let first = line.split_ascii_whitespace().next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            mappings.push(HostMapping { start: number(start), end: number(end), ..HostMapping::default() });
        } else if let (Some((name, value)), Some(mapping)) = (line.split_once(':'), mappings.last_mut()) {
            match value.trim_ascii().strip_suffix(" kB").and_then(|size| size.parse().ok()) {
                Some(size) => mapping.sizes.push((name.into(), size)),
                None => mapping.rest.push((name.into(), value.trim_ascii().into())),
            }
        }
    }
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_text_is_taken_apart() {
        let text = "55e0-55f0 r--p 00000000 fe:00 24 /usr/bin/a-b: c\nSize:   8 kB\nRss:  4 kB\nTHPeligible:  0\n\
                    VmFlags: rd mr \n7ff0-7fff rw-p 00000000 00:00 0\nRss:  12 kB\n";
        let mappings = parse(text);
        assert_eq!(mappings.len(), 2);
        assert_eq!((mappings[0].start, mappings[0].end), (0x55e0, 0x55f0));
        assert_eq!(mappings[0].sizes, [("Size".into(), 8), ("Rss".into(), 4)]);
        assert_eq!(
            mappings[0].rest,
            [("THPeligible".into(), "0".into()), ("VmFlags".into(), "rd mr".into())]
        );
        assert_eq!(mappings[1].sizes, [("Rss".into(), 12)]);
    }
}
