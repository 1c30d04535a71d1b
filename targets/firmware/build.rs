//! Says which of the two ways of guarding a stack the processor has.

fn main() {
    println!("cargo:rustc-check-cfg=cfg(armv8m)");
    if std::env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv8m")) {
        println!("cargo:rustc-cfg=armv8m");
    }
}
