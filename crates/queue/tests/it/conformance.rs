//! What every engine of the queue does: the same list of cases, run against each.

mod ids;
mod in_the_process;
mod lanes;
mod workers;

use ids::*;
use lanes::*;
use workers::*;

macro_rules! conformance {
    ($($case:ident,)*) => {
        mod local {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::support::Place::local()).await;
            })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::support::Place::redis()).await;
            })*
        }
    };
}

conformance! {
    an_id_is_handed_out_once_however_often_it_is_pushed,
    pushing_what_is_scheduled_does_not_bring_it_forward,
    pushing_what_is_leased_does_not_hand_it_out_again,
    a_push_names_what_is_leased_and_nothing_else,
    ids_come_out_in_the_order_in_which_they_went_in,
    a_delayed_id_comes_at_its_time_and_not_before,
    delayed_ids_come_in_the_order_in_which_they_are_due,
    what_is_done_is_forgotten_and_can_be_pushed_anew,
    what_is_to_come_again_comes_after_its_wait_and_not_before,
    what_is_to_come_again_at_once_comes_at_once,
    a_lease_that_runs_out_comes_back_before_all_others,
    a_lease_that_is_renewed_does_not_come_back,
    an_acknowledgement_that_is_too_late_does_not_end_the_next_lease,
    an_acknowledgement_of_what_was_never_pushed_makes_nothing_ready,
    nothing_to_do_is_no_error,
    of_fifteen_each_lane_has_its_turns,
    fetched_one_by_one_no_lane_starves,
    a_turn_that_a_lane_cannot_use_is_not_lost,
    within_a_lane_ids_come_in_the_order_in_which_they_went_in,
    an_id_that_is_pushed_into_two_lanes_is_handed_out_once,
    what_comes_due_waits_in_its_lane,
    what_is_to_come_again_waits_among_the_retries,
    a_flood_of_retries_holds_up_nothing_that_was_not_tried,
    what_was_never_begun_goes_back_before_all_lanes,
    while_it_is_paused_nothing_is_handed_out_and_nothing_is_lost,
    the_end_of_a_pause_wakes_an_idle_worker,
    a_process_on_hold_takes_nothing_and_is_woken_when_it_goes_on,
    a_survey_tells_how_long_the_oldest_has_waited_and_when_somebody_fetched,
    what_is_overdue_and_not_promoted_counts_as_waiting,
    at_and_around_8000_due_at_once_all_run,
    twenty_thousand_due_at_once_all_run,
    a_push_wakes_an_idle_worker,
    a_due_time_wakes_an_idle_worker,
    an_expired_lease_wakes_an_idle_worker,
    a_worker_that_goes_idle_leaves_nothing_leased,
    fifty_thousand_jobs_are_handled_once_each,
    a_stop_in_the_middle_gives_back_what_was_not_begun,
    a_stop_waits_for_more_handlers_than_a_batch_holds,
    a_worker_that_is_cut_off_gives_back_what_it_had,
    a_handler_that_panics_ends_no_worker_and_loses_no_id,
    a_handler_that_fails_gets_its_id_again,
}
