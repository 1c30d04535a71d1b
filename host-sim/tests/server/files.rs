//! Files with secrets in them: for their owner only, whatever was there before.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{CONFIG_MAPS, Server, config_map, eventually};

#[test]
fn data_is_for_its_owner_only_from_the_first_start_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("new/data");
    drop(Server::start(&["--secure", "--data", text(&data)]));
    let files = all_below(&data);
    assert!(files.len() > 4, "cluster, certificates and token: {files:?}");
    assert_private(&files);

    // Somebody, or an older version, has left everything open.
    for path in &files {
        chmod(path, if path.is_dir() { 0o777 } else { 0o666 });
    }
    drop(Server::start(&["--secure", "--data", text(&data)]));
    assert_private(&all_below(&data));

    // A link to a directory leads there; what counts is the directory.
    let link = directory.path().join("link");
    symlink(&data, &link).expect("a link");
    chmod(&data, 0o755);
    drop(Server::on_disk(&link));
    assert_private(&all_below(&data));
}

#[test]
fn data_that_could_be_somebody_elses_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let own = fs::metadata(directory.path()).expect("there").uid();
    let theirs = directory.path().join("theirs");
    let foreign = if own == 0 {
        fs::create_dir(&theirs).expect("made");
        std::os::unix::fs::chown(&theirs, Some(12_345), None).expect("root may");
        theirs
    } else {
        // This one is root's.
        PathBuf::from("/")
    };
    let before = fs::metadata(&foreign).expect("there").mode();
    let message = refusal(&["--data", text(&foreign)]);
    assert!(message.contains(text(&foreign)) && message.contains("belongs to user"), "{message}");
    assert!(message.contains("chown") && message.contains("a directory of your own"), "{message}");
    assert_eq!(fs::metadata(&foreign).expect("there").mode(), before, "it was left alone");

    // Planted while the directory was open to others, it would take the cluster elsewhere.
    let data = directory.path().join("data");
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&data).expect("made");
    fs::write(&elsewhere, "").expect("made");
    symlink(&elsewhere, data.join("cluster.redb")).expect("a link");
    let message = refusal(&["--data", text(&data)]);
    assert!(message.contains("cluster.redb is a symbolic link"), "{message}");
    assert_eq!(fs::metadata(&elsewhere).expect("there").len(), 0);

    // Somebody else may need what is here.
    let shared = directory.path().join("shared");
    fs::create_dir(&shared).expect("made");
    fs::write(shared.join("notes"), "").expect("made");
    chmod(&shared, 0o755);
    let message = refusal(&["--data", text(&shared)]);
    assert!(message.contains("(notes)") && message.contains("shared/picokube"), "{message}");
    assert_eq!(mode(&shared), 0o755, "it was left alone");
    chmod(&shared, 0o700);
    drop(Server::on_disk(&shared));

    let message = refusal(&["--data", text(&elsewhere)]);
    assert!(message.contains("elsewhere") && message.contains("directory"), "{message}");
}

#[test]
fn a_kubeconfig_is_never_written_into_what_others_can_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("kubeconfig");
    fs::write(&file, "something old").expect("made");
    chmod(&file, 0o644);
    let mut opened_before = fs::File::open(&file).expect("open to everybody");
    let link = directory.path().join("config");
    symlink("kubeconfig", &link).expect("a link");

    let server = Server::start(&["--secure", "--write-kubeconfig", text(&link)]);
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink(), "the link stays");
    assert_eq!(mode(&file), 0o600);
    assert!(token(&file).len() > 40);
    opened_before.rewind().expect("a file");
    let mut seen = String::new();
    opened_before.read_to_string(&mut seen).expect("text");
    assert_eq!(seen, "something old", "who had it open has not seen the token");
    drop(server);

    let dangling = directory.path().join("dangling");
    let new = directory.path().join("new");
    symlink(&new, &dangling).expect("a link");
    drop(Server::start(&["--secure", "--write-kubeconfig", text(&dangling)]));
    assert!(fs::symlink_metadata(&dangling).expect("there").is_symlink(), "the link stays");
    assert_eq!(mode(&new), 0o600);
    assert!(token(&new).len() > 40);
    let left: Vec<_> = fs::read_dir(directory.path()).expect("there").collect();
    assert_eq!(left.len(), 4, "nothing is left behind: {left:?}");

    let message = refusal(&["--secure", "--write-kubeconfig", text(directory.path())]);
    assert!(message.contains("is a directory"), "{message}");
}

#[test]
fn a_kubeconfig_can_go_to_standard_output() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("output");
    let output = fs::File::create(&path).expect("made");
    let mut process = Command::new(env!("CARGO_BIN_EXE_picokube"))
        .args(["server", "--listen", "127.0.0.1:0", "--write-kubeconfig", "/dev/stdout"])
        .stdout(output)
        .spawn()
        .expect("it starts");
    let said = eventually("the server listens", || {
        let said = fs::read_to_string(&path).ok()?;
        said.contains("Then try:").then_some(said)
    });
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    assert!(said.starts_with("{") && said.contains("\"current-context\""), "{said}");
    assert!(said.contains("}\nlistening on http://"), "{said}");
}

#[test]
fn keys_that_others_can_read_are_closed_before_they_are_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let pki = directory.path().join("pki");
    drop(Server::start(&["--secure", "--cert-dir", text(&pki)]));
    let secrets = ["server.key", "token"].map(|name| pki.join(name));
    for secret in &secrets {
        chmod(secret, 0o644);
    }
    drop(Server::start(&["--secure", "--cert-dir", text(&pki)]));
    assert_private(&secrets);
    // Half of it is gone: all is made anew, and the key that was left open is not written into.
    fs::remove_file(pki.join("server.crt")).expect("there");
    chmod(&secrets[0], 0o644);
    let before = fs::read_to_string(&secrets[0]).expect("a key");
    drop(Server::start(&["--secure", "--cert-dir", text(&pki)]));
    assert_private(&secrets);
    assert_ne!(fs::read_to_string(&secrets[0]).expect("a key"), before);
}

#[test]
fn what_was_kept_with_wide_modes_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::on_disk(directory.path());
    assert_eq!(server.client().post(CONFIG_MAPS, &config_map("c", "1")).0, 201);
    server.kill();
    chmod(&directory.path().join("cluster.redb"), 0o644);
    let server = Server::on_disk(directory.path());
    assert_eq!(server.client().get(&format!("{CONFIG_MAPS}/c")).0, 200);
    assert_private(&all_below(directory.path()));
}

/// What `picokube server` says when it does not start.
fn refusal(arguments: &[&str]) -> String {
    let mut process = Command::new(env!("CARGO_BIN_EXE_picokube"))
        .args(["server", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut said = String::new();
    let mut output = BufReader::new(process.stdout.take().expect("piped"));
    output.read_line(&mut said).expect("text");
    // It ends by itself, or else it has said where it listens.
    process.kill().expect("ours to end");
    let ended = process.wait_with_output().expect("it ends");
    assert_eq!(said, "", "{arguments:?} was accepted");
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

fn token(kubeconfig: &Path) -> String {
    let text = fs::read_to_string(kubeconfig).expect("written");
    let config: Value = serde_json::from_str(&text).expect("JSON");
    config["users"][0]["user"]["token"].as_str().expect("a token").to_owned()
}

/// A directory and all that is in it.
fn all_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(all_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn assert_private(paths: &[PathBuf]) {
    for path in paths {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(path), expected, "{} has {:o}", path.display(), mode(path));
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its owner may");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
