//! Values in steps that are only known while the scenario runs.

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::object::{lookup, text};
use super::player::Player;
use super::resource::Resource;

/// What stands for a value.
#[derive(Debug, PartialEq, Eq)]
enum Placeholder<'a> {
    /// `@alias`: the real name.
    Name(&'a str),
    /// `${uid:RESOURCE/NAME}`: the uid of an object.
    Uid(&'a str, &'a str),
    /// `${path:RESOURCE/NAME/PATH}`: a value in an object.
    Path(&'a str, &'a str, &'a str),
    /// `${saved:NAME}`: what a step has saved.
    Saved(&'a str),
}

impl<'a> Placeholder<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if text.starts_with('@') {
            return Some(Self::Name(text));
        }
        let (kind, rest) = text.strip_prefix("${")?.strip_suffix('}')?.split_once(':')?;
        match kind {
            "uid" => rest.split_once('/').map(|(resource, name)| Self::Uid(resource, name)),
            "path" => {
                let (resource, rest) = rest.split_once('/')?;
                let (name, path) = rest.split_once('/')?;
                Some(Self::Path(resource, name, path))
            }
            "saved" => Some(Self::Saved(rest)),
            _ => None,
        }
    }
}

impl Player<'_> {
    /// The value with every placeholder in it replaced.
    pub(super) async fn substitute(&self, value: &Value) -> Result<Value> {
        match value {
            Value::Object(fields) => {
                let mut replaced = Map::new();
                for (key, value) in fields {
                    replaced.insert(key.clone(), Box::pin(self.substitute(value)).await?);
                }
                Ok(Value::Object(replaced))
            }
            Value::Array(members) => {
                let mut replaced = Vec::new();
                for member in members {
                    replaced.push(Box::pin(self.substitute(member)).await?);
                }
                Ok(Value::Array(replaced))
            }
            Value::String(text) => match Placeholder::parse(text) {
                Some(placeholder) => self.value_of(&placeholder).await,
                None => Ok(value.clone()),
            },
            other => Ok(other.clone()),
        }
    }

    async fn value_of(&self, placeholder: &Placeholder<'_>) -> Result<Value> {
        let resource = |plural: &str| {
            Resource::of_plural(plural).with_context(|| format!("unknown resource {plural:?}"))
        };
        match placeholder {
            Placeholder::Name(alias) => Ok(self.real_name(alias).await?.into()),
            Placeholder::Uid(plural, name) => {
                let object = self.fetch(resource(plural)?, name).await?;
                Ok(text(&object["metadata"]["uid"]).into())
            }
            Placeholder::Path(plural, name, path) => {
                let object = self.fetch(resource(plural)?, name).await?;
                Ok(lookup(&object, path).cloned().unwrap_or_default())
            }
            Placeholder::Saved(name) => {
                let saved = self.saved.get(*name).cloned();
                saved.with_context(|| format!("nothing was saved as {name:?}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_other_texts() {
        use Placeholder as P;
        assert_eq!(P::parse("@web-rsA-p1"), Some(P::Name("@web-rsA-p1")));
        assert_eq!(P::parse("${uid:pods/a}"), Some(P::Uid("pods", "a")));
        let path = P::Path("pods", "a", "metadata.labels[a/b]");
        assert_eq!(P::parse("${path:pods/a/metadata.labels[a/b]}"), Some(path));
        assert_eq!(P::parse("${saved:x}"), Some(P::Saved("x")));
        for text in ["img:v1", "${HOME}", "${uid:pods}", "", "a@b", "${other:x}"] {
            assert_eq!(P::parse(text), None, "{text}");
        }
    }
}
