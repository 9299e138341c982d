//! Prints docs/compat.md from the table of system calls: `cargo xtask docs` writes it, `cargo xtask tidy` compares it.

use kernel::syscall::show::Form;
use kernel::syscall::{Row, Support, table};
use platform::Place;

fn main() {
    let rows: Vec<&Row> = table::rows().collect();
    let full = rows.iter().filter(|row| row.support == Support::Full).count();
    let missing = rows.iter().filter(|row| matches!(row.support, Support::Missing(_))).count();
    let partial = rows.len() - full - missing;
    println!("# System calls\n");
    println!(
        "Generated from the table in `crates/kernel/src/syscall/table/` by `cargo xtask docs`: do not edit.\n"
    );
    println!(
        "Of the {} system calls of x86-64 Linux 6.18, umlaut serves {full} in full and {partial} in part; {missing} \
         are missing: they decode in the trace, are counted, and return ENOSYS.\n",
        rows.len()
    );
    println!(
        "On the platform `stub` those with *guest* in the third column are served in the guest's process, those with *files* there \
         too, on regular files that it was handed.\n"
    );
    println!("| number | call | where | served | remark |\n| ---: | --- | --- | --- | --- |");
    for row in rows {
        let arguments: Vec<&str> = row.arguments.iter().map(|argument| argument.name).collect();
        let (served, remark) = match row.support {
            Support::Full => ("yes", ""),
            Support::Partial(what) => ("in part", what),
            Support::Missing(why) => ("no", why),
        };
        let place = match row.place {
            Place::Stub => "guest",
            Place::Delegated => "files",
            Place::Kernel => "",
        };
        println!(
            "| {} | `{}({})` | {place} | {served} | {remark} |",
            row.number,
            row.name,
            arguments.join(", ")
        );
    }
    commands();
}

/// The second-level tables: `fcntl`, `ioctl`, `prctl`.
fn commands() {
    let remark = |support: Support| match support {
        Support::Full => String::new(),
        Support::Partial(what) | Support::Missing(what) => what.to_string(),
    };
    let argument = |form: Form| match form.name() {
        "" => String::new(),
        name => format!("`{name}`"),
    };
    println!("\n## fcntl\n\nOther commands are refused with EINVAL.\n");
    println!("| command | argument | remark |\n| --- | --- | --- |");
    for row in kernel::fs::fcntl::ROWS {
        println!("| `{}` | {} | {} |", row.cmd, argument(row.argument), remark(row.support));
    }
    println!("\n## ioctl\n\nOther requests are refused as by files that do not know them.\n");
    println!("| request | argument | files |\n| --- | --- | --- |");
    for row in kernel::fs::ioctl::ROWS {
        println!("| `{}` | {} | {} |", row.request, argument(row.argument), row.files);
    }
    println!("\n## prctl\n\nOther operations are refused with EINVAL.\n");
    println!("| operation | remark |\n| --- | --- |");
    for row in kernel::prctl::ROWS {
        println!("| `{}` | {} |", row.op, remark(row.support));
    }
}
