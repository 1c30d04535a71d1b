//! A request, parsed as far as that is possible without looking at the store.

use bytes::Bytes;
use http::Method;

use crate::api::apply::Writer;
use crate::api::decode::Decoded;
use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::time::Timestamp;

use super::media::Form;
use super::options::Options;
use super::request::{Request, ResourceTarget, Target, User};
use super::rules;

/// A request whose path, options and body have been read and found well-formed.
#[derive(Debug)]
pub struct Call {
    /// What the path points at.
    pub target: Target,
    /// What is to be done with it; the lower-case HTTP method where it is no resource.
    pub verb: &'static str,
    /// The query.
    pub options: Options,
    /// The form of the answer.
    pub form: Form,
    /// The body.
    pub body: Body,
    /// Who writes, for managedFields.
    pub manager: String,
    /// Who asks.
    pub user: User,
    /// The Accept header, for paths that are no resources.
    pub accept: String,
    /// The If-None-Match header.
    pub if_none_match: String,
}

/// The body of a request.
#[derive(Debug)]
pub enum Body {
    /// An object of the target's kind (or of its subresource's kind).
    Object(Box<Decoded>),
    /// A patch or delete options: media type and bytes, to be read where they are used.
    Raw {
        /// The media type without parameters.
        media_type: String,
        /// The bytes.
        bytes: Bytes,
    },
}

impl Call {
    /// Parses a request.
    pub fn prepare(request: &Request) -> Result<Self, Status> {
        let target = Target::parse(&request.path)?;
        let options = Options::parse(&request.query)?;
        let media_type = media_type(&request.content_type);
        let mut form = Form::Object;
        let (verb, body) = match &target {
            Target::Resource(resource) => {
                let verb = resource.verb(&request.method, options.watch)?;
                form = Form::negotiate(&request.accept, resource.has_table())?;
                let body = match verb {
                    "create" | "update" => {
                        let body = &request.body;
                        let decoded = rules::decode(resource, &media_type, body, &options)?;
                        Body::Object(Box::new(decoded))
                    }
                    _ => Body::Raw { media_type, bytes: request.body.clone() },
                };
                (verb, body)
            }
            Target::NonResource(_) => {
                let verb = if matches!(request.method, Method::GET | Method::HEAD) {
                    "get"
                } else {
                    return Err(Status::method_not_allowed());
                };
                (verb, Body::Raw { media_type, bytes: Bytes::new() })
            }
        };
        Ok(Self {
            target,
            verb,
            manager: manager(&options, &request.user_agent),
            options,
            form,
            body,
            user: request.user.clone(),
            accept: request.accept.clone(),
            if_none_match: request.if_none_match.clone(),
        })
    }

    /// Whether the store stays as it is.
    pub fn is_read(&self) -> bool {
        let stored = match &self.target {
            Target::Resource(target) => target.kind.stored_as().is_some(),
            Target::NonResource(_) => false,
        };
        !stored || matches!(self.verb, "get" | "list" | "watch")
    }

    /// The resource that the call is about.
    pub fn target(&self) -> Result<&ResourceTarget, Status> {
        match &self.target {
            Target::Resource(target) => Ok(target),
            Target::NonResource(_) => Err(Status::unknown_resource()),
        }
    }

    /// The kind that the call is about.
    pub fn kind(&self) -> Result<&'static Kind, Status> {
        Ok(self.target()?.kind)
    }

    /// Who writes, for managedFields.
    pub(super) fn writer(&self, now: Timestamp) -> Result<Writer<'_>, Status> {
        let subresource = &self.target()?.subresource;
        Ok(Writer { manager: &self.manager, subresource, now })
    }

    /// Takes the object out of the body.
    pub fn take_object(&mut self) -> Result<Decoded, Status> {
        let empty = Body::Raw { media_type: String::new(), bytes: Bytes::new() };
        match std::mem::replace(&mut self.body, empty) {
            Body::Object(decoded) => Ok(*decoded),
            Body::Raw { .. } => Err(Status::bad_request("the request has no object in its body")),
        }
    }
}

fn media_type(content_type: &str) -> String {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    // Nothing stands for JSON, but only where there is no header at all.
    let given = if media_type.is_empty() { content_type } else { media_type };
    given.to_ascii_lowercase()
}

/// The field manager: as given, else the first word of the user agent.
fn manager(options: &Options, user_agent: &str) -> String {
    if !options.field_manager.is_empty() {
        return options.field_manager.clone();
    }
    let agent = user_agent.split('/').next().unwrap_or_default();
    let agent: String = agent.chars().filter(|c| !c.is_control()).take(128).collect();
    if agent.is_empty() { "unknown".to_owned() } else { agent }
}
