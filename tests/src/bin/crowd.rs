//! Clients that connect, ask once, and then hold their connections.
//!
//! `picokube-crowd ADDRESS COUNT`: prints `holding` when all have been answered, and ends with its
//! standard input. One process may not have as many files as a test wants connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};
use picokube_tests::picokube::PATIENCE;
use socket2::SockRef;

const QUESTION: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: picokube-crowd ADDRESS COUNT");
    let (address, count): (SocketAddr, usize) = (next()?.parse()?, next()?.parse()?);
    let files = rlimit::increase_nofile_limit(u64::MAX)?;
    ensure!(files > count as u64 + 16, "this machine permits {files} files a process only");
    let mut held = Vec::with_capacity(count);
    for number in 0..count {
        let stream = ask(address).with_context(|| format!("connection {number} of {count}"))?;
        held.push(stream);
    }
    println!("holding");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn ask(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // Thousands of connections must not linger after the test.
    SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO))?;
    stream.write_all(QUESTION)?;
    let mut status = [0; 12];
    stream.read_exact(&mut status)?;
    ensure!(&status == b"HTTP/1.1 200", "answered {}", String::from_utf8_lossy(&status));
    Ok(stream)
}
