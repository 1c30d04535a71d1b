//! The `picokube` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match picokube::cli::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("picokube: {error:#}");
            ExitCode::FAILURE
        }
    }
}
