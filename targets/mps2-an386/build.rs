//! Tells the linker where the memory map is, and which scripts to use.

fn main() {
    println!("cargo:rerun-if-env-changed=PICOKUBE_PROFILE");
    let board = env!("CARGO_MANIFEST_DIR");
    let map = match std::env::var("PICOKUBE_PROFILE").as_deref() {
        Ok(profile @ ("tiny" | "large")) => format!("{board}/memory/{profile}"),
        // The reference map at the workspace's root.
        _ => format!("{board}/../.."),
    };
    println!("cargo:rustc-link-search={map}");
    println!("cargo:rerun-if-changed={map}/memory.x");
    // Only for the target: a host build of the workspace must not see these.
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
}
