//! Vectors in the database. The column has the dimensions of their embedder, which the index needs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toolwright_postgres::Connection;

use super::stored_embedder;
use crate::store::{EmbedderId, Error, Result};

/// The limit of an HNSW index of half-precision vectors.
const MAX_DIMENSIONS: usize = 4000;
/// How many vectors one statement has.
const BATCH_SIZE: usize = 1000;

const INSERT_EMBEDDER: &str = "INSERT INTO maker (name, dimensions) VALUES ($1, $2)";
const INSERT_VECTORS: &str = "INSERT INTO vector (key, embedding)
    SELECT key, embedding::halfvec FROM unnest($1::bigint[], $2::text[]) AS new(key, embedding)
    ON CONFLICT (key) DO UPDATE SET embedding = excluded.embedding";

/// Stores vectors in one transaction.
pub async fn put_vectors(
    connection: &mut Connection,
    embedder: &EmbedderId,
    vectors: &[(u64, Vec<f32>)],
) -> Result<()> {
    connection.run("BEGIN").await?;
    let stored = stored_embedder(connection).await?;
    embedder.check_new(stored.as_ref(), vectors)?;
    if stored.is_none() {
        prepare_table(connection, embedder).await?;
    }
    // Without repetitions, which one statement must not have.
    let new: BTreeMap<i64, &[f32]> = vectors.iter().map(|(key, vector)| (*key as i64, &**vector)).collect();
    let new: Vec<(i64, &[f32])> = new.into_iter().collect();
    for batch in new.chunks(BATCH_SIZE) {
        let (keys, texts): (Vec<i64>, Vec<String>) =
            batch.iter().map(|(key, vector)| (*key, vector_text(vector))).unzip();
        connection.query(INSERT_VECTORS, &[&keys, &texts]).await?;
    }
    Ok(connection.run("COMMIT").await?)
}

/// Prepares the table for the first vectors of an embedder.
async fn prepare_table(connection: &mut Connection, embedder: &EmbedderId) -> Result<()> {
    let dimensions = embedder.dimensions;
    if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        let text = format!(
            "vectors of `{}` have {dimensions} dimensions; 1 to {MAX_DIMENSIONS} can be stored",
            embedder.name
        );
        return Err(Error::Unusable(text));
    }
    connection
        .run(&format!(
            "TRUNCATE vector; DROP INDEX IF EXISTS vector_nearest;
             ALTER TABLE vector ALTER embedding TYPE halfvec({dimensions});
             CREATE INDEX vector_nearest ON vector USING hnsw (embedding halfvec_ip_ops)"
        ))
        .await?;
    connection.query(INSERT_EMBEDDER, &[&embedder.name, &(dimensions as i32)]).await?;
    Ok(())
}

/// A vector in pgvector's text form.
fn vector_text(vector: &[f32]) -> String {
    let mut text = String::with_capacity(vector.len() * 12);
    for value in vector {
        // Writing to a string cannot fail.
        _ = write!(text, "{}{value}", if text.is_empty() { '[' } else { ',' });
    }
    text.push(']');
    text
}
