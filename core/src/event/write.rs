//! Events on the wire: legacy `v1` Events, as kube-controller-manager writes them.

use core::fmt::{self, Write};

use crate::json::Escape;
use crate::text::Interner;
use crate::time::Timestamp;

use super::correlate::Correlated;
use super::message::{About, Message, Subject, write_text};
use super::recorder::Sending;

/// Where an event is sent.
pub(super) fn target(
    out: &mut dyn Write,
    texts: &Interner,
    subject: &Subject,
    sending: Sending,
    name: u64,
) -> fmt::Result {
    out.write_str("/api/v1/namespaces/")?;
    write_text(out, texts, subject.namespace)?;
    out.write_str("/events")?;
    match sending {
        Sending::Create => Ok(()),
        Sending::Count => write!(out, "/{}.{name:x}", subject.name.display(texts)),
    }
}

/// What is sent.
pub(super) fn body(
    out: &mut dyn Write,
    texts: &Interner,
    subject: &Subject,
    message: &Message,
    at: Timestamp,
    correlated: &Correlated,
    sending: Sending,
) -> fmt::Result {
    let last = at.rfc3339();
    let count = correlated.count;
    write!(out, "{{\"count\":{count},\"lastTimestamp\":\"{last}\",\"message\":\"")?;
    if correlated.combined {
        out.write_str("(combined from similar events): ")?;
    }
    message.write(&mut Escape(out), texts, subject)?;
    out.write_str("\"")?;
    if sending == Sending::Create {
        new_event(out, texts, subject, message, correlated)?;
    }
    out.write_str("}")
}

fn new_event(
    out: &mut dyn Write,
    texts: &Interner,
    subject: &Subject,
    message: &Message,
    correlated: &Correlated,
) -> fmt::Result {
    let name = subject.name.display(texts);
    let (kind, api_version) = match subject.about {
        About::Object(kind) => (kind.info().name, kind.info().api_version),
        About::Node => ("Node", "v1"),
    };
    write!(out, ",\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"{name}")?;
    write!(out, ".{:x}\",\"namespace\":\"", correlated.name)?;
    write_text(out, texts, subject.namespace)?;
    write!(out, "\"}},\"involvedObject\":{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",")?;
    if subject.about == About::Node {
        // It is in no namespace. Kubelets, which do not know their Node's uid either, say its name.
        write!(out, "\"name\":\"{name}\",\"uid\":\"{name}\"}},")?;
    } else {
        out.write_str("\"namespace\":\"")?;
        write_text(out, texts, subject.namespace)?;
        write!(out, "\",\"name\":\"{name}\",\"uid\":\"{}\",", subject.uid)?;
        write!(out, "\"resourceVersion\":\"{}\"}},", subject.version)?;
    }
    write!(out, "\"type\":\"{}\",", message.event_type().name())?;
    write!(out, "\"reason\":\"{}\",", message.reason())?;
    write!(out, "\"firstTimestamp\":\"{}\",", correlated.first.rfc3339())?;
    let component = subject.component;
    write!(out, "\"source\":{{\"component\":\"{component}\"}},")?;
    write!(out, "\"reportingComponent\":\"{component}\",\"reportingInstance\":\"\"")
}
