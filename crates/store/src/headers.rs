use bytes::Bytes;

/// Headers of a request as received: order, case and duplicates kept, values as bytes.
///
/// Stored as one block of `name: value` lines. A line break, which HTTP allows in neither a name nor a
/// value, is stored as a space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Bytes)>);

impl Headers {
    /// Makes headers from name and value, in order.
    #[must_use]
    pub fn new(pairs: Vec<(String, Bytes)>) -> Self {
        Self(pairs)
    }

    /// Goes through them in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the first value of a name, case ignored.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns the block that is stored.
    pub(crate) fn to_block(&self) -> Vec<u8> {
        let size = self
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        let mut block = Vec::with_capacity(size);
        for (name, value) in self.iter() {
            block.extend(name.bytes().map(without_break));
            block.extend_from_slice(b": ");
            block.extend(value.iter().copied().map(without_break));
            block.extend_from_slice(b"\r\n");
        }
        block
    }

    /// Reads a stored block; the values share its memory.
    pub(crate) fn from_block(block: Bytes) -> Self {
        let mut pairs = Vec::new();
        let mut start = 0;
        while let Some(length) = find(&block[start..], b"\r\n") {
            let line = block.slice(start..start + length);
            start += length + 2;
            if let Some(colon) = find(&line, b": ") {
                let name = String::from_utf8_lossy(&line[..colon]).into_owned();
                pairs.push((name, line.slice(colon + 2..)));
            }
        }
        Self(pairs)
    }
}

fn without_break(byte: u8) -> u8 {
    match byte {
        b'\r' | b'\n' => b' ',
        other => other,
    }
}

fn find(text: &[u8], pair: &[u8; 2]) -> Option<usize> {
    text.windows(2).position(|window| window == pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &[u8])]) -> Headers {
        Headers::new(
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Bytes::copy_from_slice(value)))
                .collect(),
        )
    }

    #[test]
    fn order_case_duplicates_and_bytes_survive_being_stored() {
        let sent = headers(&[
            ("X-Twice", b"one"),
            ("x-twice", b"two: three"),
            ("Empty", b""),
            ("Latin", b"caf\xe9"),
            ("Spaces", b"  kept  "),
        ]);

        assert_eq!(Headers::from_block(sent.to_block().into()), sent);
        assert_eq!(
            Headers::from_block(Headers::default().to_block().into()),
            Headers::default()
        );
    }

    #[test]
    fn the_first_value_is_found_whatever_the_case() {
        let sent = headers(&[("X-Twice", b"one"), ("x-twice", b"two")]);

        assert_eq!(sent.get("x-TWICE").map(|value| &value[..]), Some(&b"one"[..]));
        assert_eq!(sent.get("x-thrice"), None);
    }

    #[test]
    fn a_line_break_in_a_value_does_not_make_another_header() {
        let sent = headers(&[("A", b"1\r\nB: 2")]);

        let read = Headers::from_block(sent.to_block().into());

        assert_eq!(read, headers(&[("A", b"1  B: 2")]));
    }
}
