//! What is special about a kind when its objects are written: the hooks of the table.

use serde_json::Value;

use super::field::FieldErrors;

/// The hooks of a kind. The defaults fit a kind about which nothing is special.
#[derive(Debug)]
pub struct Rules {
    /// Fills in what absent fields stand for.
    pub defaults: fn(&mut Value),
    /// Sets what the server decides when an object is made. Status is already cleared.
    pub prepare_create: fn(&mut Value),
    /// Sets what the server decides when an object is changed. Arguments: new, old.
    pub prepare_update: fn(&mut Value, &Value),
    /// Which metadata a write of the status may change.
    pub status_metadata: StatusMetadata,
    /// What an object must fulfil.
    pub validate: fn(&Value, &mut FieldErrors),
    /// What a new object must fulfil besides.
    pub validate_create: fn(&Value, &mut FieldErrors),
    /// What a change must fulfil besides. Arguments: new, old.
    pub validate_update: fn(&Value, &Value, &mut FieldErrors),
    /// What a change of the status must fulfil. Arguments: new, old.
    pub validate_status: fn(&Value, &Value, &mut FieldErrors),
    /// Whether the status survives a create (nodes register with theirs).
    pub status_on_create: bool,
}

/// Which metadata a write through `/status` may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// Labels, annotations and the rest.
    Everything,
    /// Everything but labels: a Deployment's revision annotation comes this way.
    NotLabels,
    /// Everything but owners (pods).
    NotOwners,
}
