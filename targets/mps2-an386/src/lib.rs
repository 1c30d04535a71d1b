//! Arm's MPS2 AN386: a Cortex-M4F with a LAN9118 Ethernet controller.
//!
//! QEMU emulates the board, so its image is the one that every change is tried on. All that is not
//! about the board is in `picokube-firmware` and `picokube-driver`.
#![no_std]

pub mod board;
mod console;
mod emulator;
pub mod executor;
pub mod lan9118;
pub mod memory_check;
pub mod time_driver;
pub mod watchdog;

use defmt_semihosting as _; // the global logger
