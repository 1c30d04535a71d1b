//! The command line as a user meets it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support::{Client, Watch, eventually};

#[test]
fn up_tells_what_to_do_runs_pods_and_ends_cleanly() {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let mut process = Command::new(env!("CARGO_BIN_EXE_picokube"))
        .args(["up", "--listen", "127.0.0.1:0", "--nodes", "1", "--write-kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut output = BufReader::new(process.stdout.take().expect("piped"));
    let mut said = String::new();
    while !said.contains("nodes: 1 simulated") {
        assert!(output.read_line(&mut said).expect("text") > 0, "it ended: {said}");
    }
    assert!(said.contains("export KUBECONFIG="), "{said}");
    assert!(said.contains("kubectl get nodes"), "{said}");
    let address = said.lines().find_map(|line| line.strip_prefix("listening on http://"));
    let address = address.expect("an address").to_owned();
    let config = std::fs::read_to_string(&kubeconfig).expect("written");
    assert!(config.contains(&format!("http://{address}")), "{config}");

    let mut client = Client::new(&address);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = serde_json::json!({
        "metadata": {"name": "hello"},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    });
    assert_eq!(client.post(pods, &pod).0, 201);
    eventually("the pod runs", || {
        let (_, pod) = client.get(&format!("{pods}/hello"));
        (pod["status"]["phase"] == "Running").then_some(())
    });

    let _watch = Watch::open(&address, &format!("{pods}?watch=1"));
    let interrupted = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
    assert!(interrupted.expect("kill runs").success());
    assert!(process.wait().expect("it ends").success(), "even with a watch open");
    output.read_to_string(&mut said).expect("text");
    assert!(said.contains("stopping"), "{said}");
}

#[test]
fn help_teaches_and_mistakes_are_explained() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_picokube")).args(arguments).output();
        let output = output.expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let (fine, help) = run(&["up", "--help"]);
    assert!(fine && help.contains("--manual") && help.contains("crash-loop"), "{help}");
    let (fine, error) = run(&["up", "--listen", "nowhere"]);
    assert!(!fine && error.contains("--listen"), "{error}");
    let (fine, error) = run(&["server", "--data", "/dev/null/cluster"]);
    assert!(!fine && error.contains("/dev/null/cluster"), "{error}");
}

#[test]
fn check_reports_to_people_and_machines_and_tells_a_broken_set_up_from_a_violation() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_picokube"));
        let output = command.arg("check").args(arguments).output().expect("the binary starts");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let (xml, page) = (file("report.xml"), file("report.html"));
    let (code, out) = run(&["--seeds", "2", "--json", "--junit", &xml, "--html", &page]);
    assert_eq!(code, Some(0), "{out}");
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON and nothing else");
    assert_eq!((&told["seeds"], &told["violations"]), (&2.into(), &0.into()));
    let xml = std::fs::read_to_string(xml).expect("written");
    assert_eq!(xml.matches("<testcase ").count(), 2, "{xml}");
    let shown = std::fs::read_to_string(&page).expect("written");
    assert!(shown.contains("Every property held.") && shown.contains("link down"), "{shown}");
    let (code, _) = run(&["--seeds", "2", "--junit", "/dev/null/report.xml"]);
    assert_eq!(code, Some(2), "there is no such place");
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/both-3477.json");
    let (code, out) = run(&["--plan", plan]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("seed 3477: "), "{out}");
    let (code, _) = run(&["--plan", &page]);
    assert_eq!(code, Some(2), "that is no plan");
    let (code, _) = run(&["--plan", plan, "--seed", "3477"]);
    assert_eq!(code, Some(2), "one of both");
    let (code, _) = run(&["--seeds", "two"]);
    assert_eq!(code, Some(2), "that is no number");
}
