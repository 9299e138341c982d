//! `umlaut explain-sites`: the system-call sites of a program or library, and how the platform `stub` would treat each.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, bail};
use stubs::{ExplainedSite, Shape};

/// Prints a line for each site, and how many are treated how.
pub(crate) fn explain(path: &Path, left_only: bool) -> anyhow::Result<i32> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let sites = match stubs::explain_sites(file.as_fd()).with_context(|| format!("reading {shown}"))? {
        Ok(sites) => sites,
        Err(why) => bail!("{shown} is left as it is: {why}. Its system calls come by SIGSYS"),
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let write = |out: &mut dyn Write| -> std::io::Result<()> {
        for site in sites.iter().filter(|site| !left_only || site.treatment.is_err()) {
            writeln!(out, "{}", line(site))?;
        }
        writeln!(out, "{}", summary(&sites))?;
        out.flush()
    };
    write(&mut out).context("writing to stdout")?;
    Ok(0)
}

/// `address  bytes  instructions  treatment`.
fn line(site: &ExplainedSite) -> String {
    let bytes: String = site.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let ExplainedSite { address, code, treatment, .. } = site;
    let treatment = match treatment {
        Ok(Shape::Before) => "patched, the instruction before makes room".to_owned(),
        Ok(Shape::Behind) => "patched, with the instruction behind".to_owned(),
        Err(why) => format!("left to SIGSYS: {why}"),
    };
    format!("{address:10x}  {bytes:<30}  {code:<40}  {treatment}")
}

fn summary(sites: &[ExplainedSite]) -> String {
    let count = |shape| sites.iter().filter(|site| site.treatment == Ok(shape)).count();
    let (before, behind) = (count(Shape::Before), count(Shape::Behind));
    let all = sites.len();
    let left = all.saturating_sub(before).saturating_sub(behind);
    format!(
        "{all} sites: {before} patched by the instruction before, {behind} with the one behind, {left} left to SIGSYS"
    )
}
