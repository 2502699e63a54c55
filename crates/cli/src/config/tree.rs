//! The configuration as it was written: values, each with the line or variable it comes from.
//!
//! It knows nothing of which keys there are; that is for [`super::de`].

use std::path::PathBuf;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::DEFAULT;
use super::origin::{Origin, Path, Segment};
use super::problem::Problem;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) origin: Origin,
    pub(crate) node: Node,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Text(String),
    /// From the environment: a text that may stand for a number or a truth value.
    Untyped(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    List(Vec<Entry>),
    Table(Vec<Field>),
}

/// A key of a table, where it was written, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) origin: Origin,
    pub(crate) entry: Entry,
}

impl Entry {
    /// Returns a table without keys.
    pub(crate) fn empty() -> Self {
        Self {
            origin: Origin::Default,
            node: Node::Table(Vec::new()),
        }
    }

    /// Reads TOML.
    pub(crate) fn parse(text: &str, file: PathBuf) -> Result<Self, Problem> {
        let reader = Reader {
            text,
            file: Arc::new(file),
        };
        match DeTable::parse(text) {
            Ok(table) => reader.table(table.get_ref(), 0, &Path::default()),
            // Not `Display`: it would quote the line, and the line may hold a secret.
            Err(error) => {
                let offset = error.span().map_or(0, |span| span.start);
                let path = reader
                    .known_key(offset)
                    .map_or_else(Path::default, |key| Path::default().key(key));
                let message = format!("this is not TOML: {}", error.message());
                Err(Problem::new(reader.origin(offset), path, message))
            }
        }
    }

    /// Returns where the deepest part of `path` that was written stands.
    pub(crate) fn locate(&self, path: &Path) -> Origin {
        let mut entry = self;
        let mut origin = &self.origin;
        for segment in path.segments() {
            let step = match (&entry.node, segment) {
                (Node::Table(fields), Segment::Key(key)) => fields
                    .iter()
                    .find(|field| field.key == *key)
                    .map(|field| (&field.entry, &field.origin)),
                (Node::List(items), Segment::Index(index)) => {
                    items.get(*index).map(|item| (item, &item.origin))
                }
                _ => None,
            };
            let Some(step) = step else { break };
            (entry, origin) = step;
        }
        origin.clone()
    }
}

struct Reader<'a> {
    text: &'a str,
    file: Arc<PathBuf>,
}

impl Reader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        Origin::File {
            path: Arc::clone(&self.file),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
        }
    }

    /// Returns the key in the line of `offset`, if it is one that the default configuration has: in a
    /// broken file anything else may be a part of a secret.
    fn known_key(&self, offset: usize) -> Option<&str> {
        let start = self.text.get(..offset)?.rfind('\n').map_or(0, |end| end + 1);
        let key = self.text.get(start..)?.lines().next()?.split('=').next()?.trim();
        let is_known = DEFAULT.lines().any(|line| {
            let known = line
                .trim_start_matches('#')
                .split_once('=')
                .map(|(key, _)| key.trim());
            known == Some(key)
        });
        is_known.then_some(key)
    }

    fn table(&self, table: &DeTable<'_>, offset: usize, path: &Path) -> Result<Entry, Problem> {
        let mut fields = Vec::with_capacity(table.len());
        for (key, value) in table {
            let key_text = key.get_ref().as_ref();
            let offset = key.span().start;
            fields.push(Field {
                key: key_text.to_owned(),
                origin: self.origin(offset),
                entry: self.value(value.get_ref(), value.span().start, &path.key(key_text))?,
            });
        }
        Ok(Entry {
            origin: self.origin(offset),
            node: Node::Table(fields),
        })
    }

    fn value(&self, value: &DeValue<'_>, offset: usize, path: &Path) -> Result<Entry, Problem> {
        let origin = self.origin(offset);
        let node = match value {
            DeValue::String(text) => Node::Text(text.to_string()),
            DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
                Ok(number) => Node::Integer(number),
                Err(_) => {
                    return Err(Problem::new(origin, path.clone(), "the number is out of range"));
                }
            },
            DeValue::Float(digits) => match digits.as_str().parse() {
                Ok(number) => Node::Float(number),
                Err(_) => return Err(Problem::new(origin, path.clone(), "this is no number")),
            },
            DeValue::Boolean(truth) => Node::Boolean(*truth),
            DeValue::Datetime(moment) => Node::Datetime(moment.to_string()),
            DeValue::Array(items) => Node::List(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.value(item.get_ref(), item.span().start, &path.index(index)))
                    .collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => return self.table(table, offset, path),
        };
        Ok(Entry { origin, node })
    }
}
