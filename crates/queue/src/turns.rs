use posthaste_jobs::Lane;

/// Turns until the order of lanes begins again.
pub(crate) const ROUND: usize = 15;

/// Says how many of the next `count` turns each lane uses, if so many ids wait in each; `turn` turns were used before.
///
/// The same as in `fetch.lua`, where it is told why.
pub(crate) fn share(turn: usize, count: usize, waiting: [usize; 4]) -> [usize; 4] {
    let rounds = count / ROUND;
    let mut turns = Lane::ALL.map(|lane| lane.turns() * rounds);
    for position in turn..turn + count % ROUND {
        turns[(position % ROUND + 1).trailing_zeros() as usize] += 1;
    }
    let mut unused = count;
    for (turns, waiting) in turns.iter_mut().zip(waiting) {
        *turns = (*turns).min(waiting);
        unused -= *turns;
    }
    for (turns, waiting) in turns.iter_mut().zip(waiting) {
        let more = unused.min(waiting - *turns);
        *turns += more;
        unused -= more;
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: [usize; 4] = [1000; 4];

    #[test]
    fn a_round_gives_each_lane_its_turns_wherever_it_begins_and_however_it_is_cut() {
        let fair = Lane::ALL.map(Lane::turns);
        for begin in 0..ROUND {
            assert_eq!(share(begin, ROUND, PLENTY), fair);

            let one_by_one = (begin..begin + ROUND).map(|turn| share(turn, 1, PLENTY));
            let sum = one_by_one.fold([0; 4], |sum, turns| {
                std::array::from_fn(|lane| sum[lane] + turns[lane])
            });
            assert_eq!(sum, fair);
        }
    }

    #[test]
    fn a_turn_that_its_lane_cannot_use_goes_to_the_first_that_can() {
        assert_eq!(share(0, 30, [0, 0, 100, 0]), [0, 0, 30, 0]);
        assert_eq!(share(0, 15, [100, 0, 0, 100]), [14, 0, 0, 1]);
        assert_eq!(share(0, 15, [1, 100, 100, 100]), [1, 11, 2, 1]);
    }

    #[test]
    fn all_that_waits_is_shared_out_and_not_one_more() {
        assert_eq!(share(3, 10, [2, 3, 4, 1]), [2, 3, 4, 1]);
        assert_eq!(share(7, 0, PLENTY), [0; 4]);
    }
}
