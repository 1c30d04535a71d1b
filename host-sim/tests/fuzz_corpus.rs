//! The corpus of the fuzz target for requests, replayed with an ordinary compiler.

use std::path::Path;

#[path = "../fuzz/script.rs"]
mod script;

#[test]
fn every_script_of_the_corpus_keeps_all_promises() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/requests");
    let files = std::fs::read_dir(corpus).expect("a folder");
    let mut count = 0;
    for file in files.map(|file| file.expect("a file").path()) {
        println!("{}", file.display());
        script::play(&std::fs::read(&file).expect("a script"));
        count += 1;
    }
    assert!(count >= 10, "only {count} scripts");
}
