/// Returns the known name that `name` is most likely a slip of, if any is near enough.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // One slip in a short name, one in three letters of a long one.
    let slips = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= slips)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        assert_eq!(nearest("lisen", ["listen", "max_body"]), Some("listen"));
        assert_eq!(nearest("ordesr", ["orders", "users"]), Some("orders"));
    }

    #[test]
    fn one_slip_in_three_letters_is_near_and_one_more_is_not() {
        assert_eq!(nearest("abcxyf", ["abcdef"]), Some("abcdef"));
        assert_eq!(nearest("abxyzf", ["abcdef"]), None);
    }
}
