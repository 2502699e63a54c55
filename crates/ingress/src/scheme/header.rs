use http::{HeaderMap, HeaderName};

/// Two lines of one header contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {name} is there twice with different values")]
pub(crate) struct Conflict {
    pub(crate) name: HeaderName,
}

/// Returns the value of the first of `names` that is there, without white space around it.
///
/// A header that is repeated with the same value counts once. Repeated with another value it is
/// refused: a proxy, or a library that takes the first or the last, would read another request.
pub(crate) fn single<'h>(headers: &'h HeaderMap, names: &[HeaderName]) -> Result<Option<&'h [u8]>, Conflict> {
    for name in names {
        let mut values = headers
            .get_all(name)
            .iter()
            .map(|value| value.as_bytes().trim_ascii());
        if let Some(value) = values.next() {
            return match values.all(|other| other == value) {
                true => Ok(Some(value)),
                false => Err(Conflict { name: name.clone() }),
            };
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const ID: HeaderName = HeaderName::from_static("x-id");
    const OTHER: HeaderName = HeaderName::from_static("x-other");

    fn headers(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_header_that_is_repeated_alike_counts_once() {
        let headers = headers(&[(ID, "a"), (ID, " a")]);

        assert_eq!(single(&headers, &[ID]), Ok(Some(b"a".as_slice())));
    }

    #[test]
    fn a_header_that_contradicts_itself_is_refused() {
        let headers = headers(&[(ID, "a"), (ID, "b")]);

        assert_eq!(single(&headers, &[ID]), Err(Conflict { name: ID }));
    }

    #[test]
    fn the_first_name_that_is_there_counts() {
        let both = headers(&[(OTHER, "b"), (ID, "a")]);
        let one = headers(&[(OTHER, "b")]);

        assert_eq!(single(&both, &[ID, OTHER]), Ok(Some(b"a".as_slice())));
        assert_eq!(single(&one, &[ID, OTHER]), Ok(Some(b"b".as_slice())));
        assert_eq!(single(&one, &[ID]), Ok(None));
    }
}
