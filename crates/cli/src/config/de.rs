//! Reads a configuration tree into types by serde, and says of each mistake where it stands.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::mistake::Mistake;
use super::origin::{Origin, Path};
use super::problem::Problem;
use super::tree::{Entry, Field, Node};

/// Reads the whole tree.
pub(crate) fn read<T: DeserializeOwned>(root: &Entry) -> Result<T, Problem> {
    let value = Value {
        entry: root,
        path: Path::default(),
    };
    T::deserialize(value).map_err(|error| {
        let (origin, path) = error.place.unwrap_or((Origin::Default, Path::default()));
        Problem::new(origin, path, error.message).hint(error.hint)
    })
}

struct Value<'a> {
    entry: &'a Entry,
    path: Path,
}

impl<'a> Value<'a> {
    /// Reads a number that the environment could only give as text.
    fn number<'de, N, V>(
        self,
        visitor: V,
        visit: fn(V, N) -> Result<V::Value, Mistake>,
    ) -> Result<V::Value, Mistake>
    where
        N: std::str::FromStr,
        V: Visitor<'de>,
    {
        let Node::Untyped(text) = &self.entry.node else {
            return self.deserialize_any(visitor);
        };
        let place = (self.entry.origin.clone(), self.path);
        match text.parse() {
            Ok(number) => visit(visitor, number),
            Err(_) => Err(Mistake::invalid_value(Unexpected::Str(text), &visitor)),
        }
        .map_err(|mistake| mistake.at(&place.0, &place.1))
    }
}

macro_rules! numbers {
    ($($deserialize:ident $visit:ident $number:ty,)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
            self.number::<$number, V>(visitor, V::$visit)
        }
    )*};
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let read = match &self.entry.node {
            Node::Text(text) | Node::Untyped(text) | Node::Datetime(text) => visitor.visit_str(text),
            Node::Integer(number) => match u64::try_from(*number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(*number),
            },
            Node::Float(number) => visitor.visit_f64(*number),
            Node::Boolean(truth) => visitor.visit_bool(*truth),
            Node::List(items) => visitor.visit_seq(Items {
                items: items.iter(),
                next: 0,
                path: &self.path,
            }),
            Node::Table(fields) => visitor.visit_map(Fields {
                fields: fields.iter(),
                value: None,
                path: &self.path,
            }),
        };
        read.map_err(|mistake| mistake.at(&self.entry.origin, &self.path))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.number::<bool, V>(visitor, V::visit_bool)
    }

    numbers! {
        deserialize_i8 visit_i64 i64,
        deserialize_i16 visit_i64 i64,
        deserialize_i32 visit_i64 i64,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u64 u64,
        deserialize_u16 visit_u64 u64,
        deserialize_u32 visit_u64 u64,
        deserialize_u64 visit_u64 u64,
        deserialize_f32 visit_f64 f64,
        deserialize_f64 visit_f64 f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let (origin, path) = (&self.entry.origin, self.path.clone());
        let read = match &self.entry.node {
            Node::Text(word) | Node::Untyped(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            Node::Table(fields) => match fields.as_slice() {
                [field] => visitor.visit_enum(Variant { field, path: &path }),
                _ => Err(Mistake::new(
                    "expected a word, or a table with exactly one key".to_owned(),
                )),
            },
            _ => return self.deserialize_any(visitor),
        };
        read.map_err(|mistake| mistake.at(origin, &path))
    }

    /// A table and nothing else: serde would also take a list, as values in the order of the fields.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        if let Node::List(_) = &self.entry.node {
            let mistake = Mistake::invalid_type(Unexpected::Seq, &visitor);
            return Err(mistake.at(&self.entry.origin, &self.path));
        }
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Entry>,
    next: usize,
    path: &'a Path,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mistake> {
        let Some(entry) = self.items.next() else {
            return Ok(None);
        };
        let path = self.path.index(self.next);
        self.next += 1;
        seed.deserialize(Value {
            entry,
            path: path.clone(),
        })
        .map(Some)
        .map_err(|mistake| mistake.at(&entry.origin, &path))
    }
}

struct Fields<'a> {
    fields: std::slice::Iter<'a, Field>,
    value: Option<&'a Field>,
    path: &'a Path,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        let Some(field) = self.fields.next() else {
            return Ok(None);
        };
        self.value = Some(field);
        let key: StrDeserializer<'_, Mistake> = field.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|mistake| mistake.at(&field.origin, self.path))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let field = self
            .value
            .take()
            .ok_or_else(|| Mistake::custom("a value was asked for before its key"))?;
        let path = self.path.key(&field.key);
        seed.deserialize(Value {
            entry: &field.entry,
            path: path.clone(),
        })
        .map_err(|mistake| mistake.at(&field.origin, &path))
    }
}

struct Variant<'a> {
    field: &'a Field,
    path: &'a Path,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Mistake;
    type Variant = Value<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Value<'a>), Mistake> {
        let key: StrDeserializer<'_, Mistake> = self.field.key.as_str().into_deserializer();
        let variant = seed
            .deserialize(key)
            .map_err(|mistake| mistake.at(&self.field.origin, self.path))?;
        let value = Value {
            entry: &self.field.entry,
            path: self.path.key(&self.field.key),
        };
        Ok((variant, value))
    }
}

impl<'de> VariantAccess<'de> for Value<'_> {
    type Error = Mistake;

    fn unit_variant(self) -> Result<(), Mistake> {
        Err(Mistake::new("this word stands alone, without a table".to_owned())
            .at(&self.entry.origin, &self.path))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mistake> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.deserialize_any(visitor)
    }
}
