/// Which event types a route takes: a text in which each `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: String,
}

impl Pattern {
    /// Makes a pattern; an empty text is none.
    pub(crate) fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self {
            text: text.to_owned(),
        })
    }

    /// Tells whether an event of this type is taken. An event without a type is taken by `*` alone.
    pub(crate) fn matches(&self, event_type: Option<&str>) -> bool {
        match event_type {
            None => self.text == "*",
            Some(event_type) => matches(&self.text, event_type),
        }
    }
}

/// Matches the runs between stars from left to right: the first is a prefix, the last is a suffix,
/// and taking each of the others at its first place leaves the most for the rest.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(prefix) else {
        return false;
    };
    let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
    for run in middle.split('*') {
        match text.split_once(run) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(pattern: &str, event_type: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(Some(event_type))
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        assert!(takes("payment_intent.*", "payment_intent.succeeded"));
        assert!(takes("payment_intent.*", "payment_intent."));
        assert!(takes("*.created", "plan.created"));
        assert!(takes("a*b*c", "a-b-b-c"));
        assert!(takes("*", ""));
        assert!(takes("**", "x"));
    }

    #[test]
    fn what_is_not_a_star_must_be_there() {
        assert!(!takes("payment_intent.*", "payment_intent"));
        assert!(!takes("push", "push2"));
        assert!(!takes("a*a", "a"));
        assert!(!takes("a*b*c", "a-c"));
        assert!(!takes("push", "Push"));
    }

    #[test]
    fn an_event_without_a_type_is_taken_by_a_lone_star_only() {
        assert!(Pattern::new("*").unwrap().matches(None));
        assert!(!Pattern::new("push*").unwrap().matches(None));
    }

    #[test]
    fn an_empty_text_is_no_pattern() {
        assert_eq!(Pattern::new(""), None);
    }
}
