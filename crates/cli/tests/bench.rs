//! `umlaut bench` from end to end, on few workloads. What it measures is no test's concern.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str], directory: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_umlaut"));
    command.arg("bench").args(arguments).current_dir(directory);
    command.output().expect("umlaut starts")
}

#[test]
fn a_quick_run_gives_json_markdown_and_a_picture() {
    let directory = tempfile::tempdir().expect("a directory");
    let words =
        "--quick getpid page-touch fork-exit start --runs 2 --json a.json --markdown a.md --plot a.svg";
    let output = bench(&words.split(' ').collect::<Vec<_>>(), directory.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "", "progress is for terminals");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(!table.contains("missing"), "{table}");
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("it was written");
    let results: Value = serde_json::from_str(&read("a.json")).expect("JSON");
    assert_eq!(results["rounds"], 2);
    assert!(results["machine"]["cpus"].as_u64().is_some_and(|cpus| cpus > 0));
    let cells = results["cells"].as_array().expect("cells");
    for workload in ["getpid", "page-touch", "fork-exit", "start"] {
        for place in ["native", "sysemu"] {
            let cell = cells.iter().find(|cell| cell["workload"] == workload && cell["place"] == place);
            let cell = cell.unwrap_or_else(|| panic!("no {workload} at {place}: {table}"));
            assert_eq!(cell["runs"].as_array().map(Vec::len), Some(2), "{cell}");
            assert!(cell["summary"]["median"].as_f64().is_some_and(|median| median > 0.0), "{cell}");
            assert_eq!(cell["ratio"].is_null(), place == "native", "{cell}");
        }
    }
    let getpid = cells.iter().find(|cell| cell["workload"] == "getpid" && cell["place"] == "sysemu");
    let hand_overs = getpid.and_then(|cell| cell["kernel"]["hand_overs"].as_f64()).expect("a counter");
    assert!((0.9..1.5).contains(&hand_overs), "one for each call: {hand_overs}");
    assert!(read("a.md").contains("| getpid |"));
    assert!(read("a.svg").trim_end().ends_with("</svg>"));

    // What was measured shows again, and does not differ from itself.
    let again = bench(&["--from", "a.json", "--compare", "a.json", "--fail-above", "0"], directory.path());
    assert!(again.status.success());
    assert!(String::from_utf8_lossy(&again.stdout).contains("figures did not change beyond noise"));
}

#[test]
fn processes_that_call_at_once_give_their_losses() {
    let directory = tempfile::tempdir().expect("a directory");
    let words = "contention-hand-over tracers pairs idle --runs 1 --json a.json";
    let output = bench(&words.split(' ').collect::<Vec<_>>(), directory.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(directory.path().join("a.json")).expect("it was written");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(results["missing"].as_array().map(Vec::len), Some(0), "{text}");
    let cells = results["cells"].as_array().expect("cells");
    let find = |workload: &str, place: &str| {
        cells.iter().find(|cell| cell["workload"] == workload && cell["place"] == place)
    };
    for place in ["native", "stub", "sysemu"] {
        for workload in ["contention-hand-over/2-loss", "contention-hand-over/2-cpu-loss", "idle"] {
            assert_eq!(
                find(workload, place).map(|cell| &cell["unit"]),
                Some(&"%".into()),
                "{workload} {place}"
            );
        }
        // These are measured without a kernel of ours around them.
        for tracers in ["tracers/2-threads-loss", "tracers/2-processes-loss", "pairs/2-loss"] {
            assert_eq!(find(tracers, place).is_some(), place == "native", "{tracers} {place}");
        }
    }
}

#[test]
fn what_is_not_known_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = bench(&["getpit"], directory.path());
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("umlaut bench --list"));
    let output = bench(&["getpid", "--platforms", "sysemu+no-such-switch"], directory.path());
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing runs at sysemu+no-such-switch"));
}
