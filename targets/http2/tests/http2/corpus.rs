//! The corpora of the fuzz targets, replayed with an ordinary compiler.

use std::path::Path;

#[path = "../../fuzz/blocks.rs"]
mod blocks;
#[path = "../../fuzz/frames.rs"]
mod frames;

fn replay(name: &str, play: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut count = 0;
    for file in std::fs::read_dir(corpus).expect("a folder") {
        let file = file.expect("a file").path();
        println!("{}", file.display());
        play(&std::fs::read(&file).expect("an input"));
        count += 1;
    }
    assert!(count >= 10, "only {count} inputs");
}

#[test]
fn every_conversation_of_the_corpus_is_survived() {
    replay("frames", frames::play);
}

#[test]
fn every_header_block_of_the_corpus_is_read_as_by_the_reference() {
    replay("hpack", blocks::play);
}
