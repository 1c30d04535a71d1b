//! The memory of the controllers is all zero at the start, so that it lands in `.bss`: it takes
//! no room in flash and is not copied at boot.

use std::sync::Mutex;

use picokube_core::manager::Workspace;

/// Objects of the kinds that only some builds have.
const STATEFUL_SETS: usize = if cfg!(feature = "statefulset") { 60_000 } else { 0 };

type Large = picokube_core::resources! {
    pods: 60_000, replica_sets: 60_000, deployments: 60_000, groups: 60_000, texts: 60_000,
    stateful_sets: STATEFUL_SETS, controller_revisions: STATEFUL_SETS,
    persistent_volume_claims: STATEFUL_SETS,
};

static LARGE: Mutex<Large> = Mutex::new(Large::new());

type Busy = Workspace<80, 200, 60_000>;

static BUSY: Mutex<Busy> = Mutex::new(Busy::new());

#[test]
fn resources_take_no_room_in_the_image() {
    let memory = size_of::<Large>() as u64;
    assert!(memory > 30_000_000);
    // Used, so that it is really there; and parts() works at the largest capacities.
    let mut large = LARGE.lock().unwrap();
    assert_eq!(large.parts().cache.pods.capacity(), 60_000);
    let image = image();
    assert!(image < memory, "an image of {image} bytes holds {memory} bytes of memory");
}

#[test]
fn work_in_progress_takes_no_room_in_the_image() {
    let memory = size_of::<Busy>() as u64;
    assert!(memory > 10_000_000);
    // A single byte that is not zero would put all of it into the image.
    let _ = BUSY.lock().unwrap().parts();
    let image = image();
    assert!(image < memory, "an image of {image} bytes holds {memory} bytes of memory");
}

fn image() -> u64 {
    std::env::current_exe().and_then(std::fs::metadata).unwrap().len()
}
