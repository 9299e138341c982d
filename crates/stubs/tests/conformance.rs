//! The platform passes the conformance suite, with every switch, as root and as an unprivileged user.

use stubs::{Options, Stubs};

#[test]
fn stub() {
    let platform = Stubs::new(Options::default()).expect("the platform starts");
    platform::conformance::run(&platform);
}
