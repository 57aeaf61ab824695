//! Vectors in the database. The column has the dimensions of their maker, which the index needs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toolwright_postgres::Connection;

use super::{Trouble, maker};
use crate::store::{Error, Maker};

/// What an HNSW index of half-precision vectors takes.
const MOST_DIMENSIONS: usize = 4000;

const NAME_MAKER: &str = "INSERT INTO maker (name, dimensions) VALUES ($1, $2)";
const PUT: &str = "INSERT INTO vector (key, embedding)
    SELECT key, embedding::halfvec FROM unnest($1::bigint[], $2::text[]) AS new(key, embedding)
    ON CONFLICT (key) DO UPDATE SET embedding = excluded.embedding";

/// Keeps vectors in a transaction of its own.
pub async fn put(
    connection: &mut Connection,
    asked: &Maker,
    vectors: &[(u64, Vec<f32>)],
) -> Result<(), Trouble> {
    connection.run("BEGIN").await?;
    match maker(connection).await? {
        Some(kept) if kept == *asked => {}
        Some(kept) => {
            return Err(Error::OtherEmbedder { kept: kept.name, asked: asked.name.clone() }.into());
        }
        None => set_up(connection, asked).await?,
    }
    let mut new: BTreeMap<i64, String> = BTreeMap::new();
    for (key, vector) in vectors {
        if vector.len() != asked.dimensions {
            let found = format!("a vector has {} dimensions instead of {}", vector.len(), asked.dimensions);
            return Err(Error::Unusable(found).into());
        }
        new.insert(*key as i64, text(vector));
    }
    let (keys, texts): (Vec<i64>, Vec<String>) = new.into_iter().unzip();
    connection.query(PUT, &[&keys, &texts]).await?;
    Ok(connection.run("COMMIT").await?)
}

/// The first vectors of a maker: none of another's are left.
async fn set_up(connection: &mut Connection, maker: &Maker) -> Result<(), Trouble> {
    let dimensions = maker.dimensions;
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        let text = format!(
            "vectors of `{}` have {dimensions} dimensions; 1 to {MOST_DIMENSIONS} can be kept",
            maker.name
        );
        return Err(Error::Unusable(text).into());
    }
    connection
        .run(&format!(
            "TRUNCATE vector; DROP INDEX IF EXISTS vector_nearest;
             ALTER TABLE vector ALTER embedding TYPE halfvec({dimensions});
             CREATE INDEX vector_nearest ON vector USING hnsw (embedding halfvec_ip_ops)"
        ))
        .await?;
    connection.query(NAME_MAKER, &[&maker.name, &(dimensions as i32)]).await?;
    Ok(())
}

/// As pgvector reads it.
fn text(vector: &[f32]) -> String {
    let mut text = String::with_capacity(vector.len() * 12);
    for value in vector {
        // Writing to a string cannot fail.
        _ = write!(text, "{}{value}", if text.is_empty() { '[' } else { ',' });
    }
    text.push(']');
    text
}
