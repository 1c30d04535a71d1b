//! The `picokube` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match picokube::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("picokube: {error:#}");
            ExitCode::FAILURE
        }
    }
}
