//! Going to a server as the device would: the same TLS, the same HTTP/2.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use picokube_http2::{Event as Frame, Field, Output, Refusal, Request, Scheme};
use picokube_tls::{
    ANY_RECORD, Config, Event, Handshake, Identity, MAX_DATA, OVERHEAD, Seed, Step, Time,
};

use crate::access::{Access, Tls};
use crate::material::span;

const PATIENCE: Duration = Duration::from_secs(10);

/// Says how far a device would get with it.
pub(crate) fn try_out(access: &Access, namespace: Option<&str>) -> Result<String> {
    let server = &access.server;
    let Some(tls) = &access.tls else {
        bail!(
            "{server} is asked over plain HTTP, where there is nothing to prove: a check is for https:// \
             servers"
        );
    };
    let address: SocketAddr = server.parse().with_context(|| format!("{server} is no address"))?;
    let transport = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("cannot reach {server} from this machine"))?;
    transport.set_read_timeout(Some(PATIENCE))?;
    transport.set_write_timeout(Some(PATIENCE))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let authorities: Vec<&[u8]> = tls.authorities.iter().map(Vec::as_slice).collect();
    let chain: Vec<&[u8]> = own(tls).map(Vec::as_slice).collect();
    let mut config = Config::new(&tls.name, &authorities)?.with_protocol(b"h2")?;
    if let Some(identity) = &tls.identity {
        config = config.with_identity(Identity::new(&chain, identity.key())?);
    }
    let mut buffer = vec![0; ANY_RECORD];
    let connection = shake_hands(&config, now, &mut buffer, &transport)
        .with_context(|| format!("{server} has not proved to be {}", tls.name))?;
    let left = span(connection.server_certificate_expires().saturating_sub(now));
    let proved = format!(
        "{server} has proved to be {}: {:?}, its certificate ends in {left}",
        tls.name,
        connection.suite()
    );
    let path = path(namespace);
    let status = ask(access, &path, connection, &transport).with_context(|| proved.clone())?;
    let said = match status {
        200 => "it lets this device list Deployments",
        401 => bail!(
            "{proved}; but it does not know the token or certificate (401): is it of this cluster?"
        ),
        403 => bail!(
            "{proved}; but it does not allow this account to list Deployments (403): see deploy/rbac.yaml"
        ),
        status => bail!("{proved}; but it answers {path} with {status}"),
    };
    Ok(format!("{proved}; {said}"))
}

/// What the controllers begin with.
fn path(namespace: Option<&str>) -> String {
    let namespace = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
    format!("/apis/apps/v1/{namespace}deployments?limit=1")
}

fn own(tls: &Tls) -> impl Iterator<Item = &Vec<u8>> {
    tls.identity.iter().flat_map(|identity| &identity.chain)
}

fn shake_hands<'b>(
    config: &Config<'_>,
    now: u64,
    buffer: &'b mut [u8],
    mut transport: &TcpStream,
) -> Result<picokube_tls::Connection<'b>> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).context("this machine has no random numbers")?;
    let mut out = [0; MAX_DATA];
    let mut handshake = Handshake::new(config, Seed::new(entropy)?, Time::Exactly(now), buffer)?;
    loop {
        match handshake.step(&mut out) {
            Ok(Step::Send(count)) => transport.write_all(out.get(..count).unwrap_or_default())?,
            Ok(Step::Receive) => match transport.read(handshake.space()).context("no answer")? {
                0 => handshake.ended(),
                count => handshake.received(count),
            },
            Ok(Step::Working) => {}
            Ok(Step::Done) => return Ok(handshake.finish()?),
            Err(error) => {
                if let Some(farewell) =
                    handshake.farewell(&mut out).and_then(|count| out.get(..count))
                {
                    // It is an error already.
                    let _ = transport.write_all(farewell);
                }
                return Err(error.into());
            }
        }
    }
}

/// Asks for Deployments, and gives the status of the answer.
fn ask(
    access: &Access,
    path: &str,
    mut tls: picokube_tls::Connection<'_>,
    mut transport: &TcpStream,
) -> Result<u16> {
    let authority = access.host.as_deref().unwrap_or(&access.server);
    let token = access.authorization.as_deref().map(|value| Field::secret("authorization", value));
    let fields: Vec<Field<'_>> =
        [Field::kept("accept", "application/json")].into_iter().chain(token).collect();
    let request = Request {
        method: "GET",
        scheme: Scheme::Https,
        authority,
        path,
        fields: &fields,
        has_body: false,
    };
    let mut http = picokube_http2::Connection::<1>::new();
    http.open(picokube_http2::Config::default());
    let (mut plain, mut sealed) = (vec![0; MAX_DATA], vec![0; MAX_DATA + OVERHEAD]);
    let mut is_asked = false;
    loop {
        let mut output = Output::new(&mut plain);
        if !is_asked {
            match http.request(&request, &mut output) {
                Ok(_) => is_asked = true,
                Err(Refusal::NotReady) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        http.write(&mut output);
        if !output.written().is_empty() {
            let (_, count) = tls.seal(output.written(), &mut sealed)?;
            transport.write_all(sealed.get(..count).unwrap_or_default())?;
        }
        match tls.poll(&mut sealed)? {
            Event::Send(count) => transport.write_all(sealed.get(..count).unwrap_or_default())?,
            Event::Receive => match transport.read(tls.space()).context("no answer")? {
                0 => tls.ended(),
                count => tls.received(count),
            },
            Event::Data => {
                let mut input = tls.data();
                while let Some(frame) = http.receive(&mut input)? {
                    match frame {
                        Frame::Head { head, .. } => return Ok(head.status),
                        Frame::Reset { reason, .. } => return Err(reason.into()),
                        _ => {}
                    }
                }
                tls.consume(usize::MAX);
            }
            Event::Closed => bail!("the server has closed the connection without an answer"),
            _ => {}
        }
    }
}
