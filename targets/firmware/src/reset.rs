//! A reset that somebody asked for. Leadership is given back before it, so that a standby leads at its next
//! look instead of after a lease.

use core::cell::Cell;

use cortex_m::peripheral::SCB;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use picokube_driver::runtime::Runtime;

static ASKED: Signal<CriticalSectionRawMutex, ()> = Signal::new();

/// Asks for a reset, from any task or interrupt: a button, a console, a new image that is ready to be booted.
///
/// From then on nothing is written but what gives leadership back, which takes no longer than the renew
/// deadline.
pub fn ask() {
    ASKED.signal(());
}

/// Resets the device when it is asked for.
pub(crate) async fn when_asked(runtime: &Cell<Option<&'static Runtime<'static>>>) -> ! {
    ASKED.wait().await;
    defmt::info!("a reset was asked for");
    if let Some(runtime) = runtime.get() {
        runtime.release_leadership().await;
    }
    defmt::info!("nothing is under way any more: reset");
    SCB::sys_reset()
}
