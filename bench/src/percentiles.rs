use std::time::Duration;

/// Durations in order, to ask for the one that a share of all does not exceed.
#[derive(Debug)]
pub(crate) struct Percentiles {
    sorted: Vec<Duration>,
}

impl Percentiles {
    /// Takes all durations, in any order.
    pub(crate) fn new(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        Self { sorted: durations }
    }

    /// Returns the shortest duration that at least `percent` of all do not exceed, in
    /// milliseconds; `None` when there are none. It is always one that was measured.
    pub(crate) fn millis(&self, percent: usize) -> Option<f64> {
        let rank = (self.sorted.len() * percent).div_ceil(100).max(1);
        let duration = self.sorted.get(rank - 1)?;
        Some(crate::figures::rounded(duration.as_secs_f64() * 1000.0, 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(values: impl IntoIterator<Item = u64>) -> Percentiles {
        Percentiles::new(values.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn of_a_hundred_the_fiftieth_and_the_ninety_ninth() {
        let hundred = millis((1..=100).rev());

        assert_eq!(hundred.millis(50), Some(50.0));
        assert_eq!(hundred.millis(99), Some(99.0));
        assert_eq!(hundred.millis(100), Some(100.0));
    }

    #[test]
    fn of_a_hundred_and_one_the_rank_is_rounded_up() {
        let more = millis(1..=101);

        assert_eq!(more.millis(50), Some(51.0));
        assert_eq!(more.millis(99), Some(100.0));
    }

    #[test]
    fn of_few_the_ninety_ninth_is_the_longest() {
        assert_eq!(millis([3, 1, 2]).millis(99), Some(3.0));
    }

    #[test]
    fn of_one_everything_is_that_one() {
        let one = millis([7]);

        assert_eq!(one.millis(1), Some(7.0));
        assert_eq!(one.millis(50), Some(7.0));
    }

    #[test]
    fn of_none_there_is_none() {
        assert_eq!(millis([]).millis(50), None);
    }
}
