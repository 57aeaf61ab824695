//! The list of rules. A rule that is not here does not run.

/// The rules of every store.
macro_rules! conformance {
    ($name:ident, $harness:ty) => {
        rules!($name, $harness, {
            sessions: a_session_is_kept_as_it_was_given,
            sessions: a_taken_id_is_refused_and_changes_nothing,
            sessions: an_unknown_session_is_none_and_cannot_be_changed,
            sessions: a_turn_is_counted_and_gets_a_fresh_budget,
            sessions: an_update_succeeds_on_the_revision_that_was_read,
            sessions: an_update_keeps_turn_and_budget,
            claims: a_call_is_claimed_once,
            claims: ids_belong_to_their_session,
            claims: an_id_with_other_arguments_is_a_conflict,
            claims: a_claim_needs_its_session,
            claims: the_budget_is_spent_by_new_claims_alone,
            claims: a_call_beyond_the_budget_leaves_nothing_behind,
            claims: calls_without_a_budget_cost_nothing_and_late_ones_cost_the_current_turn,
            claims: a_settled_call_gives_its_envelope,
            claims: the_first_settlement_stands,
            claims: what_was_never_claimed_cannot_be_settled,
            claims: a_failed_envelope_comes_back_whole,
            claims: an_idempotent_call_that_is_released_may_be_claimed_anew,
            claims: nothing_else_can_be_released,
            confirmations: a_question_is_kept_as_it_was_asked,
            confirmations: asking_again_keeps_the_question_and_renews_the_token,
            confirmations: an_answered_or_expired_question_is_not_renewed,
            confirmations: questions_wait_oldest_first_and_by_session,
            confirmations: an_approval_carries_its_author_and_the_arguments,
            confirmations: a_rejection_carries_its_author_and_the_reason,
            confirmations: a_question_is_decided_once,
            confirmations: an_expired_question_cannot_be_decided,
            confirmations: a_claim_needs_an_approval,
            confirmations: an_approval_fits_one_call_alone,
            confirmations: an_approval_is_used_once,
            confirmations: a_refused_claim_uses_up_no_approval,
            confirmations: approved_calls_are_listed_until_they_are_claimed,
            confirmations: a_closed_question_keeps_no_secrets,
            retention: a_session_whose_end_was_asked_for_ends_when_its_time_comes,
            retention: a_toolset_is_kept_by_the_sessions_that_go_on,
            retention: sessions_expire_when_their_time_comes,
            retention: questions_expire_when_their_time_comes,
            retention: the_last_hundred_are_kept_whatever_their_age,
            retention: everything_of_the_last_day_is_kept,
            retention: what_still_runs_is_never_forgotten,
            retention: a_session_is_forgotten_a_day_after_its_end,
            audit: rows_are_chained_in_the_order_they_were_written,
            audit: rows_come_in_pages,
            audit: a_settlement_brings_its_row_once,
            racing: one_of_many_claims_is_new,
            racing: a_budget_is_never_overspent,
            racing: one_approval_lets_one_call_run,
            racing: one_of_many_deciders_wins,
            racing: one_of_many_updates_wins,
            racing: one_of_many_sessions_gets_the_id,
            racing: one_question_is_asked,
            racing: one_of_many_settlements_stands,
            racing: many_sessions_do_not_mix,
        });
    };
}

/// The rules of stores that come back after a crash.
#[allow(unused_macros, reason = "for back ends that keep things on disk")]
macro_rules! reopening {
    ($name:ident, $harness:ty) => {
        rules!($name, $harness, {
            reopened: sessions_come_back,
            reopened: a_turn_comes_back_once_it_is_flushed,
            reopened: what_was_spent_stays_spent,
            reopened: a_settled_call_gives_its_envelope_again,
            reopened: an_unfinished_idempotent_call_may_run_again,
            reopened: any_other_unfinished_call_is_in_doubt_for_ever,
            reopened: a_call_in_doubt_is_a_conflict_for_other_arguments,
            reopened: questions_come_back,
            reopened: an_approval_is_not_used_twice,
            reopened: an_abandoned_call_needs_no_second_approval,
            reopened: an_expired_session_stays_expired,
            reopened: the_audit_goes_on,
            reopened: relaxed_changes_are_there_once_they_are_flushed,
            reopened: what_was_forgotten_stays_forgotten,
        });
    };
}

macro_rules! rules {
    ($name:ident, $harness:ty, { $($file:ident: $rule:ident,)* }) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $rule() {
                    crate::$file::$rule::<$harness>().await;
                }
            )*
        }
    };
}
