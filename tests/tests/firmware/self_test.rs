//! The driver's cases on the firmware's own network stack.

use picokube_first_light::CASES;
use picokube_tests::firmware;

#[test]
fn every_case_passes_on_the_firmware() {
    let image = firmware::self_test_image().expect("firmware that builds");
    let mut passed = Vec::new();
    let mut log = String::new();
    let status = firmware::self_test(&image, |line| {
        log.push_str(&format!("{line}\n"));
        passed.extend(line.message.strip_prefix("passed: ").map(str::to_owned));
    });
    let status = status.unwrap_or_else(|error| panic!("{error:#}; the log so far:\n{log}"));
    assert_eq!(passed, CASES, "the firmware's log:\n{log}");
    assert!(status.success(), "the firmware's log:\n{log}");
}
