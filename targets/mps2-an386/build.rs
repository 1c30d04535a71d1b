//! Tells the linker where the memory map is, and which scripts to use.

fn main() {
    println!("cargo:rerun-if-env-changed=PICOKUBE_PROFILE");
    // The board has no map of its own: the reference map at the workspace's root is its map. (Any
    // other would lose against it: the linker looks in the folder it is started in first.)
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    println!("cargo:rustc-link-search={root}");
    println!("cargo:rerun-if-changed={root}/memory.x");
    let ram = match std::env::var("PICOKUBE_PROFILE").as_deref() {
        Ok("tiny") => 192 * 1024,
        Ok("large") => 512 * 1024,
        _ => 256 * 1024,
    };
    println!("cargo:rustc-link-arg-bins=--defsym=_profile_ram={ram}");
    // Only for the target: a host build of the workspace must not see these.
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
}
