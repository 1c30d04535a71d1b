//! From the command line to what stands on the page.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;
use picokube_config::{Certificates, ClientKey, Document, MAX_CERTIFICATES};
use picokube_kubeconfig::{Kubeconfig, Material};

use crate::identity::{self, Identity};
use crate::material;
use crate::place::Place;
use crate::{attempt, token};

/// Where the API server is, and how to be let in. What is given beside a kubeconfig counts instead of what
/// is in it.
#[derive(Args, Clone, Debug, Default)]
pub struct AccessArguments {
    /// A kubeconfig file that leads to the API server: its current context, or --context
    #[arg(long, value_name = "FILE", required_unless_present = "server")]
    pub kubeconfig: Option<PathBuf>,
    /// The context to take of it
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub context: Option<String>,
    /// The API server: https://HOST:PORT, or http://HOST:PORT for one without TLS
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Certificates of the authorities that may have issued the server's, in PEM
    #[arg(long, value_name = "FILE")]
    pub certificate_authority: Option<PathBuf>,
    /// The name in the server's certificate, if it is not the host of the server's URL
    #[arg(long, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// A file with the token that the API server wants
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The device's certificate and those between it and an authority, in PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_certificate: Option<PathBuf>,
    /// Its key, on P-256, in PEM
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    pub client_key: Option<PathBuf>,
}

impl AccessArguments {
    /// All that the device needs, checked.
    pub fn access(&self) -> Result<Access> {
        self.access_at(SystemTime::now())
    }

    /// The same for a device that is to work at `now`.
    pub fn access_at(&self, now: SystemTime) -> Result<Access> {
        let found = match &self.kubeconfig {
            Some(path) => Kubeconfig::read(path, self.context.as_deref())?,
            None => Kubeconfig::default(),
        };
        let now = now.duration_since(UNIX_EPOCH).context("the clock says it is before 1970")?;
        Access::of(self.over(found)?, now.as_secs())
    }

    /// What was given by itself, before what was found.
    fn over(&self, found: Kubeconfig) -> Result<Kubeconfig> {
        let file = |path: &PathBuf| Material::File(path.clone());
        // The command line has both or neither.
        let own = self.client_certificate.as_ref().zip(self.client_key.as_ref());
        Ok(Kubeconfig {
            server: self.server.clone().unwrap_or(found.server),
            tls_server_name: self.tls_server_name.clone().or(found.tls_server_name),
            authority: self.certificate_authority.as_ref().map(file).or(found.authority),
            token: match &self.token_file {
                Some(path) => Some(read_token(path)?),
                None => found.token,
            },
            client: own.map(|(certificate, key)| (file(certificate), file(key))).or(found.client),
            ..found
        })
    }
}

fn read_token(path: &Path) -> Result<String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    ensure!(!text.trim().is_empty(), "{name} is empty");
    Ok(text)
}

/// What a device needs to get at an API server.
#[derive(Clone, Debug)]
pub struct Access {
    /// The server's address and port, as the device asks for them: it has no DNS.
    pub server: String,
    /// The server's name and port in requests, if it is not its address.
    pub host: Option<String>,
    /// The whole `Authorization` header.
    pub authorization: Option<String>,
    /// How the server proves who it is; without it, plain HTTP is spoken.
    pub tls: Option<Tls>,
    /// What whoever configures a device should know.
    pub notes: Vec<String>,
}

/// How the server proves who it is, and as whom the device comes.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Whom the server's certificate has to name.
    pub name: String,
    /// The authorities that may have issued it, in DER.
    pub authorities: Vec<Vec<u8>>,
    /// What the device shows to a server that asks who it is.
    pub identity: Option<Identity>,
}

impl Tls {
    fn of(found: &Kubeconfig, place: &Place, now: u64, notes: &mut Vec<String>) -> Result<Self> {
        let authority = found.authority.as_ref().context(
            "the certificate of the cluster's authority is needed, since the device trusts nobody else: \
             give --certificate-authority, or a kubeconfig that has it",
        )?;
        let authorities = material::authorities(authority, now)?;
        let name = found.tls_server_name.as_ref().unwrap_or(&place.host).clone();
        let anchors: Vec<&[u8]> = authorities.iter().map(Vec::as_slice).collect();
        // As the device will.
        picokube_tls::Config::new(&name, &anchors)
            .with_context(|| format!("the server's name {name:?} and {authority}"))?;
        let identity = match &found.client {
            Some((certificate, key)) => Some(identity::identity(certificate, key, now, notes)?),
            None => None,
        };
        Ok(Self { name, authorities, identity })
    }
}

impl Access {
    fn of(found: Kubeconfig, now: u64) -> Result<Self> {
        let mut notes = Vec::new();
        let place = Place::find(&found.server)?;
        if let Some(name) = place.resolved_name() {
            notes.push(format!(
                "the device has no DNS: it will ask {}, which is {name} today; give it a new page when that \
                 changes",
                place.address
            ));
        }
        if let Some(namespace) = found.namespace.as_ref().filter(|name| *name != "default") {
            notes.push(format!(
                "the context's namespace {namespace} is for commands that name none; for a device that is \
                 to look at no other, give --namespace {namespace}"
            ));
        }
        let authorization = match &found.token {
            Some(text) => Some(token::header(text, now, &mut notes)?),
            None => None,
        };
        let tls = if place.is_secure {
            let tls = Tls::of(&found, &place, now, &mut notes)?;
            if authorization.is_none() && tls.identity.is_none() {
                notes.push(
                    "without token and client certificate, the server sees nobody in it".into(),
                );
            }
            Some(tls)
        } else {
            let has_material = found.authority.is_some() || found.tls_server_name.is_some();
            ensure!(
                found.client.is_none() && !has_material,
                "certificates and names for TLS are given, but {} is no https:// server: write \
                 https://HOST:PORT, or leave them out",
                found.server
            );
            if authorization.is_some() {
                notes.push(
                    "the token goes over the network in the clear, for whoever is on the way"
                        .into(),
                );
            }
            None
        };
        let host = (place.authority != place.address.to_string()).then_some(place.authority);
        Ok(Self { server: place.address.to_string(), host, authorization, tls, notes })
    }

    /// Adds it to what else is on a page.
    pub fn apply<'a>(&'a self, document: Document<'a>) -> Document<'a> {
        let of = |list: &'a [Vec<u8>]| {
            // There are no more than that: it was checked.
            Certificates::of(list.iter().map(Vec::as_slice).take(MAX_CERTIFICATES))
                .unwrap_or_default()
        };
        let identity = self.tls.as_ref().and_then(|tls| tls.identity.as_ref());
        Document {
            server: &self.server,
            host: document.host.or(self.host.as_deref()),
            authorization: self.authorization.as_deref(),
            tls_server_name: self.tls.as_ref().map(|tls| tls.name.as_str()),
            authorities: self.tls.as_ref().map(|tls| of(&tls.authorities)).unwrap_or_default(),
            client_certificates: identity.map(|own| of(&own.chain)).unwrap_or_default(),
            client_key: identity.map(|own| ClientKey(own.key())),
            ..document
        }
    }

    /// Goes to the server as the device would, which is to look at `namespace` or at all, and says what came
    /// of it.
    pub fn try_out(&self, namespace: Option<&str>) -> Result<String> {
        attempt::try_out(self, namespace)
    }
}
