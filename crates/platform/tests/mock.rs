//! The mock passes the conformance suite.

#[test]
fn conforms() {
    platform::conformance::run(&platform::mock::Mock::new());
}
