//! The list of rules. A rule that is not listed here does not run.

/// The rules of every store.
macro_rules! conformance {
    ($name:ident, $fixture:ty) => {
        rules!($name, $fixture, {
            session_rules: a_session_is_stored_unchanged,
            session_rules: an_existing_session_id_is_refused_and_changes_nothing,
            session_rules: an_unknown_session_is_none_and_cannot_be_changed,
            session_rules: an_update_succeeds_on_the_revision_that_was_read,
            block_rules: a_client_is_blocked_until_the_latest_time,
            block_rules: a_block_is_of_one_client_of_one_principal,
            block_rules: a_block_can_be_removed,
            block_rules: a_sweep_deletes_blocks_that_are_over,
            block_rules: no_session_id_collides_with_a_block,
            meter_rules: a_session_meter_is_charged_across_turns,
            meter_rules: all_meters_are_charged_or_none,
            meter_rules: meters_of_two_scopes_may_have_one_name,
            meter_rules: the_meters_are_charged_by_new_claims_only,
            meter_rules: a_claim_beyond_the_limit_leaves_nothing_behind,
            meter_rules: claims_without_charges_cost_nothing,
            meter_rules: a_turn_resets_its_meters,
            meter_rules: an_update_keeps_turn_and_meters,
            meter_rules: a_refused_charge_uses_up_no_approval,
            rate_rules: any_window_holds_at_most_the_limit,
            rate_rules: a_call_counts_for_all_of_its_rate_limits_or_for_none,
            rate_rules: rate_limits_are_spent_by_new_claims_only,
            rate_rules: a_rate_limited_claim_uses_up_no_approval,
            rate_rules: calls_without_a_claim_count_for_rate_limits,
            rate_rules: a_sweep_keeps_the_calls_of_current_windows,
            rate_rules: concurrent_claims_never_exceed_a_rate_limit,
            claim_rules: an_execution_is_claimed_once,
            claim_rules: execution_ids_are_separate_for_each_session,
            claim_rules: an_id_with_other_arguments_is_a_conflict,
            claim_rules: a_claim_needs_its_session,
            claim_rules: a_settled_execution_returns_its_envelope,
            claim_rules: the_first_settlement_wins,
            claim_rules: an_unclaimed_execution_cannot_be_settled,
            claim_rules: an_envelope_with_an_error_is_stored_unchanged,
            claim_rules: a_released_idempotent_execution_can_be_claimed_again,
            claim_rules: only_running_idempotent_executions_can_be_released,
            confirmation_rules: a_confirmation_is_stored_unchanged,
            confirmation_rules: a_second_request_keeps_the_confirmation_and_renews_its_token,
            confirmation_rules: a_decided_or_expired_confirmation_is_not_renewed,
            confirmation_rules: closed_confirmations_are_found_by_id,
            confirmation_rules: pending_confirmations_are_listed_by_session_oldest_first,
            confirmation_rules: pending_confirmations_are_listed_in_pages,
            confirmation_rules: an_approval_records_the_approver_and_the_arguments,
            confirmation_rules: a_rejection_records_the_approver_and_the_reason,
            confirmation_rules: a_confirmation_is_decided_once,
            confirmation_rules: an_expired_confirmation_cannot_be_decided,
            confirmation_rules: a_claim_needs_an_approval,
            confirmation_rules: an_approval_is_valid_for_one_execution_only,
            confirmation_rules: an_approval_is_used_once,
            confirmation_rules: a_refused_claim_uses_up_no_approval,
            confirmation_rules: approved_confirmations_are_listed_until_their_execution_is_claimed,
            confirmation_rules: a_closed_confirmation_stores_no_secrets,
            confirmation_rules: an_approval_can_be_withdrawn_until_it_is_used,
            retention_rules: a_session_that_was_asked_to_end_ends_instead_of_expiring,
            retention_rules: a_toolset_is_in_use_while_an_active_session_has_it,
            task_rules: a_task_is_stored_unchanged,
            task_rules: an_existing_task_stays_as_it_is,
            task_rules: a_task_changes_until_it_ends,
            task_rules: an_ended_task_stores_no_secrets,
            task_rules: tasks_are_listed_newest_first_in_pages,
            task_rules: a_task_of_a_living_process_is_not_adopted,
            task_rules: one_of_many_ends_counts,
            task_rules: an_ended_task_is_deleted_after_a_day,
            task_rules: a_task_is_deleted_with_its_session,
            toolset_rules: a_toolset_is_stored_unchanged,
            toolset_rules: a_toolset_is_written_once_and_its_use_is_recorded,
            toolset_rules: unused_toolsets_are_deleted_and_others_are_not,
            toolset_rules: a_sweep_deletes_toolsets_a_day_after_their_last_use,
            minute_rules: minutes_are_stored_by_process_and_replaced,
            minute_rules: minutes_of_more_than_a_day_ago_are_deleted,
            retention_rules: a_sweep_expires_sessions,
            retention_rules: a_sweep_expires_confirmations,
            retention_rules: the_last_hundred_executions_are_retained_whatever_their_age,
            retention_rules: all_executions_of_the_last_day_are_retained,
            retention_rules: running_executions_are_never_deleted,
            retention_rules: a_session_is_deleted_a_day_after_its_end,
            conversation_rules: entries_are_read_in_order_from_any_position,
            conversation_rules: the_last_entries_of_all_logs_are_read_in_pages,
            conversation_rules: a_log_has_one_writer,
            conversation_rules: one_of_many_writers_opens_a_log,
            conversation_rules: a_log_that_was_taken_refuses_the_writer_before,
            conversation_rules: a_log_is_deleted_with_its_session,
            audit_rules: rows_are_chained_in_the_order_they_were_written,
            audit_rules: rows_are_read_in_pages,
            audit_rules: a_settlement_writes_one_audit_row,
            history_rules: audit_pages_are_newest_first_and_filtered,
            history_rules: an_execution_is_found_with_its_nested_calls,
            history_rules: a_settlement_is_in_the_pages_with_its_arguments,
            history_rules: sessions_are_listed_newest_first,
            history_rules: a_deleted_session_is_not_listed,
            concurrency_rules: one_of_many_claims_is_new,
            concurrency_rules: a_meter_never_exceeds_its_limit,
            concurrency_rules: one_approval_admits_one_execution,
            concurrency_rules: one_of_many_deciders_wins,
            concurrency_rules: one_of_many_updates_wins,
            concurrency_rules: one_of_many_sessions_with_an_id_is_created,
            concurrency_rules: concurrent_requests_create_one_confirmation,
            concurrency_rules: one_of_many_settlements_wins,
            concurrency_rules: concurrent_sessions_are_independent,
        });
    };
}

/// The rules of stores that survive a crash.
macro_rules! persistence {
    ($name:ident, $fixture:ty) => {
        rules!($name, $fixture, {
            restart_rules: sessions_survive,
            block_rules: blocks_survive_a_restart,
            meter_rules: spent_meters_survive_a_restart,
            restart_rules: a_turn_survives_once_it_is_flushed,
            restart_rules: a_settled_execution_survives,
            restart_rules: an_unfinished_idempotent_execution_can_be_claimed_again,
            restart_rules: any_other_unfinished_execution_stays_in_doubt,
            restart_rules: an_execution_in_doubt_conflicts_with_other_arguments,
            restart_rules: confirmations_survive,
            restart_rules: an_approval_is_not_used_twice,
            restart_rules: an_abandoned_execution_needs_no_second_approval,
            restart_rules: an_expired_session_stays_expired,
            restart_rules: the_audit_continues,
            restart_rules: relaxed_changes_survive_once_they_are_flushed,
            restart_rules: deleted_records_stay_deleted,
            task_rules: tasks_survive_and_are_adopted_once,
            toolset_rules: toolsets_survive_a_restart,
            minute_rules: minutes_survive_a_restart,
            history_rules: pages_are_the_same_after_a_restart,
            conversation_rules: committed_entries_survive_and_their_writer_does_not,
            conversation_rules: a_relaxed_session_survives_with_its_first_committed_entry,
        });
    };
}

macro_rules! rules {
    ($name:ident, $fixture:ty, { $($file:ident: $rule:ident,)* }) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $rule() {
                    crate::$file::$rule::<$fixture>().await;
                }
            )*
        }
    };
}
