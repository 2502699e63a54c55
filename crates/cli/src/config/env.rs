//! Overrides from the environment: `POSTHASTE__LEDGER__URL` stands for `ledger.url`.
//!
//! Two underscores separate levels; a number names an item of a list, from 0, either one that the file
//! has or the next: `POSTHASTE__ENDPOINTS__0__URL`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::origin::{Origin, Path, Segment};
use super::problem::Problem;
use super::tree::{Entry, Field, Node};

const PREFIX: &str = "POSTHASTE__";

/// The environment as it was when the process started.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, OsString>,
}

impl std::fmt::Debug for Environment {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn of_process() -> Self {
        Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
        }
    }

    /// Returns the value of a variable; a value that is not UTF-8 counts as none.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.to_str()
    }

    /// Writes every override over what the file says.
    pub(super) fn apply(&self, root: &mut Entry) -> Result<(), Problem> {
        let mut overrides: Vec<(Vec<Segment>, &str)> = self
            .variables
            .keys()
            .filter_map(|name| Some((segments(name.strip_prefix(PREFIX)?), name.as_str())))
            .collect();
        // By number, so that item 2 is added before item 10.
        overrides.sort();
        for (segments, name) in overrides {
            let origin = Origin::Variable(name.into());
            let value = self.get(name).ok_or_else(|| {
                Problem::new(origin.clone(), segments.clone().into(), "the value is not UTF-8")
            })?;
            set(root, &segments, value, &origin)
                .map_err(|message| Problem::new(origin, Path::from(segments), message))?;
        }
        Ok(())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
        }
    }
}

fn segments(name: &str) -> Vec<Segment> {
    name.split("__")
        .map(|level| match level.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key(level.to_lowercase()),
        })
        .collect()
}

fn set(entry: &mut Entry, segments: &[Segment], value: &str, origin: &Origin) -> Result<(), String> {
    let Some((first, rest)) = segments.split_first() else {
        *entry = Entry {
            origin: origin.clone(),
            node: Node::Untyped(value.to_owned()),
        };
        return Ok(());
    };
    match (&mut entry.node, first) {
        (Node::Table(fields), Segment::Key(key)) => {
            let place = match fields.iter().position(|field| field.key == *key) {
                Some(place) => place,
                None => {
                    fields.push(Field {
                        key: key.clone(),
                        origin: origin.clone(),
                        entry: container(rest, origin),
                    });
                    fields.len() - 1
                }
            };
            let field = &mut fields[place];
            if rest.is_empty() {
                field.origin = origin.clone();
            }
            set(&mut field.entry, rest, value, origin)
        }
        (Node::List(items), Segment::Index(index)) => {
            let length = items.len();
            if *index == length {
                items.push(container(rest, origin));
            }
            let item = items.get_mut(*index).ok_or_else(|| {
                format!("there is no item {index}: the list has {length}, so the next is {length}")
            })?;
            set(item, rest, value, origin)
        }
        (Node::List(_), Segment::Key(key)) => {
            Err(format!("a list has items with numbers, from 0; {key:?} is none"))
        }
        (Node::Table(_), Segment::Index(index)) => Err(format!("a table has keys; {index} is none")),
        _ => Err("there is nothing below this key, it holds a single value".to_owned()),
    }
}

/// Makes what can hold the `rest` of a path.
fn container(rest: &[Segment], origin: &Origin) -> Entry {
    Entry {
        origin: origin.clone(),
        node: match rest.first() {
            Some(Segment::Index(_)) => Node::List(Vec::new()),
            Some(Segment::Key(_)) | None => Node::Table(Vec::new()),
        },
    }
}
