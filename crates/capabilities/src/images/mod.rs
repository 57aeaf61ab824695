//! The `images.*` capability (docs/reference/capabilities.md, "Images"): prompts from templates, pictures from any endpoint that
//! speaks OpenAI's images API. Pictures are kept in a directory and served from there under names that nobody can guess.
//! It must not know tools, sessions or how they are served.

mod answer;
mod draft;
mod kind;
mod provider;
mod shelf;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Fetcher;
use crate::{Answer, Answered, Asker, Capability, Fault};

pub use kind::Kind;
pub use shelf::{Shelf, is_name};

/// How pictures are made and kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// The endpoint up to `/v1`; without it nothing is generated.
    pub url: Option<String>,
    pub model: Option<String>,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// For the whole request, the pictures' way here included.
    pub timeout: Duration,
    /// The largest picture that is kept.
    pub max_bytes: usize,
    /// Where pictures are kept.
    pub dir: PathBuf,
    /// Where the server is that serves them.
    pub base: Address,
}

/// Where a server is, such as `http://127.0.0.1:7300`. It may become known only when the server listens; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Address(Arc<RwLock<String>>);

impl Address {
    pub fn new(address: impl Into<String>) -> Self {
        Self(Arc::new(RwLock::new(address.into())))
    }

    pub fn set(&self, address: impl Into<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = address.into();
    }

    fn get(&self) -> String {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The functions of `context.images`.
#[derive(Debug)]
pub struct Images {
    options: Arc<Options>,
    /// Made when it is first needed.
    fetcher: OnceLock<Result<Fetcher, String>>,
}

/// One request for pictures.
#[derive(Debug, Clone)]
struct Wanted {
    prompt: String,
    size: String,
    count: usize,
    quality: String,
}

impl Images {
    pub fn new(options: Options) -> Self {
        Self { options: Arc::new(options), fetcher: OnceLock::new() }
    }

    fn generate(&self, asker: &Asker<'_>, asked: &Value) -> Answer {
        let key = scope(asker, asked);
        match self.prepare(asked) {
            Ok((wanted, fetcher)) => {
                let (options, left) = (Arc::clone(&self.options), asker.deadline);
                let base = self.options.base.get();
                Box::pin(async move {
                    let within =
                        options.timeout.min(left.saturating_duration_since(std::time::Instant::now()));
                    let kept = Shelf::new(&options.dir);
                    let digest = wanted.digest();
                    if let Some(known) = kept.known(&key, &digest).await? {
                        return Ok(shown(&base, &known).into());
                    }
                    let made = provider::generate(&fetcher, &options, &wanted, within).await;
                    let made = made.inspect_err(|fault| tracing::warn!("images.generate: {fault}"))?;
                    let entries = kept.keep(&key, &digest, made).await?;
                    Ok(shown(&base, &entries).into())
                })
            }
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }

    fn prepare(&self, asked: &Value) -> Result<(Wanted, Fetcher), Fault> {
        let wanted = Wanted::read(asked)?;
        if self.options.url.is_none() {
            return Err(Fault::new("NOT_CONFIGURED", provider::NOT_SET_UP));
        }
        let made = self.fetcher.get_or_init(|| provider::fetcher(&self.options));
        let fetcher = made.clone().map_err(|error| {
            tracing::error!("images.generate cannot be set up: {error}");
            Fault::new("NOT_CONFIGURED", format!("`[images] url` cannot be used: {error}"))
        })?;
        Ok((wanted, fetcher))
    }
}

impl Capability for Images {
    fn call(&self, asker: &Asker<'_>, function: &str, args: Vec<Value>) -> Answer {
        let asked = args.into_iter().next().unwrap_or_default();
        match function {
            "draft" => Box::pin(std::future::ready(draft::draft(&asked).map(Answered::from))),
            "generate" => self.generate(asker, &asked),
            _ => {
                let fault = Fault::new("NOT_CONFIGURED", format!("there is no function `images.{function}`"));
                Box::pin(std::future::ready(Err(fault)))
            }
        }
    }
}

impl Wanted {
    fn read(asked: &Value) -> Result<Self, Fault> {
        let text = |name: &str| asked.get(name).and_then(Value::as_str).map(str::to_owned);
        let missing = |name: &str| Fault::invalid(format!("`{name}` is missing, or not what it should be"));
        let prompt = text("prompt").filter(|prompt| !prompt.trim().is_empty());
        // JavaScript has one kind of number.
        let count = asked.get("count").and_then(Value::as_f64).filter(|count| count.fract() == 0.0);
        Ok(Self {
            prompt: prompt.ok_or_else(|| missing("prompt"))?,
            size: text("size").filter(|size| side(size).is_some()).ok_or_else(|| missing("size"))?,
            count: count.filter(|count| (1.0..=10.0).contains(count)).ok_or_else(|| missing("count"))?
                as usize,
            quality: text("quality").ok_or_else(|| missing("quality"))?,
        })
    }

    /// What tells one request from another.
    fn digest(&self) -> String {
        let Self { prompt, size, count, quality } = self;
        shelf::digest(&[prompt, size, &count.to_string(), quality])
    }
}

/// Width and height of `1024x1024`.
fn side(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

/// An id of a call is its session's: two sessions may have the same.
fn scope(asker: &Asker<'_>, asked: &Value) -> String {
    let execution = asked.get("executionId").and_then(Value::as_str).unwrap_or(asker.execution_id);
    let org = asker.org.unwrap_or_default();
    let parts = [org, asker.user, asker.client_id, asker.session.unwrap_or_default(), execution];
    shelf::digest(&parts.map(str::to_owned).each_ref())
}

fn shown(base: &str, entries: &[shelf::Entry]) -> Value {
    let base = base.trim_end_matches('/');
    let one = |entry: &shelf::Entry| {
        json!({
            "url": format!("{base}/images/{}", entry.name),
            "width": entry.width,
            "height": entry.height,
            "mimeType": entry.kind.media_type(),
            "revisedPrompt": entry.revised_prompt,
        })
    };
    json!({ "images": entries.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests;
