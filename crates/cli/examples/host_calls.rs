//! Prints docs/host-calls.md from the table that the stub's seccomp filter is built from.

use kernel::syscall::table;

fn main() {
    println!("# Host calls that guest processes can reach on the platform `stub`\n");
    println!(
        "Generated from `crates/stubs/src/filter.rs` by `cargo xtask docs`. Every other call, and every call from"
    );
    println!(
        "elsewhere than the instruction named, traps: it is the guest's, and umlaut's kernel serves it. Outside the"
    );
    println!("stub only the three time calls of the vsyscall page pass, which the host emulates.\n");
    println!("| call | instruction of the stub | what passes | why it is safe |\n| --- | --- | --- | --- |");
    for (instruction, number, limits, reason) in stubs::reachable_host_calls() {
        let name = table::row(number).map_or("?", |row| row.name);
        println!("| {name} | `{instruction}` | {limits} | {reason} |");
    }
    println!(
        "\nLinux itself passes two numbers by every filter, uretprobe (335) and uprobe (336), and answers who may not"
    );
    println!("call them by SIGILL, as it does without umlaut.");
}
