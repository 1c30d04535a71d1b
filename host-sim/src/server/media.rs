//! Content negotiation: what form of an object a client wants to read.

use crate::api::status::Status;

/// The form in which objects are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The object itself.
    Object,
    /// A `meta.k8s.io` Table, as kubectl prints it.
    Table,
    /// Only the metadata.
    Metadata,
}

const PRODUCED: &[&str] = &["application/json"];

impl Form {
    /// The first form in an Accept header that this server can produce. Not everything can be
    /// shown in a table.
    pub fn negotiate(accept: &str, has_table: bool) -> Result<Self, Status> {
        if accept.trim().is_empty() {
            return Ok(Self::Object);
        }
        let mut forms = accept.split(',').filter_map(Self::of_media_range);
        forms.find(|form| has_table || *form != Self::Table).ok_or_else(|| {
            // Protobuf and YAML answers are optional for clients; everyone takes JSON.
            Status::not_acceptable(PRODUCED)
        })
    }

    fn of_media_range(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next()?;
        if !matches!(media_type, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let (mut form, mut group, mut version) = ("", "", "");
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("as", value)) => form = value,
                Some(("g", value)) => group = value,
                Some(("v", value)) => version = value,
                _ => {}
            }
        }
        match (form, group, version) {
            ("", ..) => Some(Self::Object),
            ("Table", "meta.k8s.io", "v1") => Some(Self::Table),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                Some(Self::Metadata)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_form_it_knows() {
        let kubectl_table = "application/json;as=Table;v=v1;g=meta.k8s.io,\
            application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let cases = [
            ("", Form::Object),
            ("*/*", Form::Object),
            ("application/json, */*", Form::Object),
            ("application/vnd.kubernetes.protobuf,application/json", Form::Object),
            ("application/json;as=Table;v=v1beta9;g=meta.k8s.io,application/json", Form::Object),
            (kubectl_table, Form::Table),
            ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Form::Metadata),
        ];
        for (accept, form) in cases {
            assert_eq!(Form::negotiate(accept, true), Ok(form), "{accept}");
        }
        assert_eq!(Form::negotiate(kubectl_table, false), Ok(Form::Object));
    }

    #[test]
    fn says_so_when_it_knows_none() {
        for accept in ["application/vnd.kubernetes.protobuf", "text/html", "application/yaml"] {
            let negotiated = Form::negotiate(accept, true).map_err(|status| status.code());
            assert_eq!(negotiated, Err(406), "{accept}");
        }
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(Form::negotiate(table, false).map_err(|status| status.code()), Err(406));
    }
}
