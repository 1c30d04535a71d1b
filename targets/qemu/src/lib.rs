//! Boots firmware in QEMU.
