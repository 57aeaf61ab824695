//! One suite that every back end of the knowledge base passes, and what lies above the back ends.
//!
//! # How a back end plugs in
//!
//! A type implements [`harness::Harness`]: `fresh` gives an empty knowledge base, `open` another handle on it, as another
//! process would have. Below, `conformance!(name, Type);` runs all rules; each test calls `fresh` for itself, and tests
//! run side by side.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "kb/filters.rs"]
mod filters;
#[path = "kb/harness.rs"]
mod harness;
#[path = "kb/ingest.rs"]
mod ingest;
#[path = "kb/keeping.rs"]
mod keeping;
#[path = "kb/killed.rs"]
mod killed;
#[path = "kb/pgvector.rs"]
mod pgvector;
#[path = "kb/quality.rs"]
mod quality;
#[path = "kb/served.rs"]
mod served;
#[path = "kb/vectors.rs"]
mod vectors;
#[path = "kb/words.rs"]
mod words;

macro_rules! conformance {
    ($name:ident, $harness:ty) => {
        rules!($name, $harness, {
            keeping: what_is_committed_is_kept_whole_and_nothing_before,
            keeping: a_put_replaces_and_a_removal_removes,
            keeping: sources_are_noted_and_forgotten,
            keeping: there_is_one_writer,
            keeping: another_handle_sees_a_commit_with_its_next_search,
            keeping: a_rebuild_keeps_everything_in_use,
            keeping: records_are_visited_in_the_order_of_ids,
            words: words_are_found_by_their_stems_in_title_text_and_tags,
            words: any_text_is_a_query,
            words: scores_do_not_tell_from_how_many_sources_records_came,
            words: equal_scores_are_in_the_order_of_keys,
            filters: both_lists_hold_exactly_what_passes,
            filters: personal_records_are_their_owners,
            filters: both_ends_of_a_range_are_inclusive,
            vectors: vectors_may_come_later,
            vectors: the_nearest_come_first_and_each_record_once,
            vectors: makers_are_not_mixed,
        });
    };
}

macro_rules! rules {
    ($name:ident, $harness:ty, { $($file:ident: $rule:ident,)* }) => {
        mod $name {
            $(
                #[test]
                fn $rule() {
                    crate::$file::$rule::<$harness>();
                }
            )*
        }
    };
}

conformance!(embedded, crate::harness::InDirectory);
conformance!(postgres, crate::pgvector::Database);
