//! The async shell around `picokube-core`.
#![no_std]
