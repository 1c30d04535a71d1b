//! Tells the linker where the memory map is, and which scripts to use.

fn main() {
    // The board has no map of its own: the reference map at the workspace's root is its map.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    println!("cargo:rustc-link-search={root}");
    println!("cargo:rerun-if-changed={root}/memory.x");
    // Only for the target: a host build of the workspace must not see these.
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
}
