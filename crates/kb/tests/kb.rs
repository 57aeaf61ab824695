//! The conformance suite of the back ends, and tests of the layers above them.
//!
//! A new back end implements [`support::StoreFixture`] and adds a line `conformance!(name, Type);`. Each test creates
//! its own fixture, and tests run concurrently.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "kb/capability.rs"]
mod capability;
#[path = "kb/crash.rs"]
mod crash;
#[path = "kb/filters.rs"]
mod filters;
#[path = "kb/ingest.rs"]
mod ingest;
#[path = "kb/keyword_search.rs"]
mod keyword_search;
#[path = "kb/postgres.rs"]
mod postgres;
#[path = "kb/quality.rs"]
mod quality;
#[path = "kb/records.rs"]
mod records;
#[path = "kb/support.rs"]
mod support;
#[path = "kb/vector_cache.rs"]
mod vector_cache;
#[path = "kb/vector_search.rs"]
mod vector_search;

macro_rules! conformance {
    ($name:ident, $fixture:ty) => {
        rules!($name, $fixture, {
            records: a_commit_stores_whole_records_and_nothing_is_visible_before,
            records: a_put_replaces_and_a_removal_removes,
            records: source_digests_are_set_and_removed,
            records: a_second_writer_is_locked_out,
            records: another_handle_sees_a_commit_with_its_next_search,
            records: a_rebuild_keeps_records_sources_and_vectors,
            records: records_are_visited_in_the_order_of_ids,
            keyword_search: words_are_found_by_their_stems_in_title_text_and_tags,
            keyword_search: any_text_is_a_valid_query,
            keyword_search: the_number_of_sources_does_not_change_scores,
            keyword_search: equal_scores_are_ordered_by_key,
            keyword_search: the_scale_of_scores_depends_on_the_words_and_how_rare_they_are,
            filters: both_lists_contain_exactly_the_matching_records,
            filters: personal_records_are_visible_to_their_owner_only,
            filters: both_ends_of_a_date_range_are_inclusive,
            vector_search: vectors_may_be_added_later,
            vector_search: the_nearest_records_come_first_and_each_once,
            vector_search: vectors_of_two_embedders_are_not_mixed,
        });
    };
}

macro_rules! rules {
    ($name:ident, $fixture:ty, { $($file:ident: $rule:ident,)* }) => {
        mod $name {
            $(
                #[test]
                fn $rule() {
                    crate::$file::$rule::<$fixture>();
                }
            )*
        }
    };
}

conformance!(embedded_store, crate::support::EmbeddedFixture);
conformance!(postgres_store, crate::postgres::PostgresFixture);
