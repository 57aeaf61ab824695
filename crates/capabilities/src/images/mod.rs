//! The `images.*` capability (docs/reference/capabilities.md, "Images"): prompts from templates, images from any
//! endpoint with OpenAI's images API. Images are stored in a directory and served under random names. It must not know
//! tools or sessions, or how images are served.

mod api_response;
mod endpoint;
mod image_format;
mod image_store;
mod prompt_draft;

use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::image_store::{StoredImage, digest};
use crate::http::Fetcher;
use crate::{CallIdentity, Capability, CapabilityError, CapabilityFuture, CapabilityOutput, Result, Secret};

pub use image_format::ImageFormat;
pub use image_store::{ImageStore, is_image_name};

/// How images are generated and stored.
#[derive(Debug, Clone)]
pub struct Options {
    /// The endpoint up to `/v1`; without it nothing is generated.
    pub url: Option<String>,
    pub model: Option<String>,
    /// Sent as a bearer token.
    pub key: Option<Secret>,
    /// For the whole request, including downloads.
    pub timeout: Duration,
    /// The maximum size of an image.
    pub max_bytes: usize,
    /// The directory of the stored images.
    pub dir: PathBuf,
    /// The URL of the server that serves them.
    pub base: BaseUrl,
}

/// The URL of a server, such as `http://127.0.0.1:7300`. It can be set later, when the port is known; clones share it.
#[derive(Debug, Clone, Default)]
pub struct BaseUrl(Arc<RwLock<String>>);

impl BaseUrl {
    pub fn new(url: impl Into<String>) -> Self {
        Self(Arc::new(RwLock::new(url.into())))
    }

    pub fn set(&self, url: impl Into<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = url.into();
    }

    fn get(&self) -> String {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The functions of `context.images`.
#[derive(Debug)]
pub struct Images {
    options: Arc<Options>,
    /// Created on first use.
    fetcher: OnceLock<Result<Fetcher, String>>,
}

/// The arguments of `images.generate`.
#[derive(Debug, Clone)]
struct GenerateRequest {
    prompt: String,
    size: String,
    count: usize,
    quality: String,
}

impl Images {
    pub fn new(options: Options) -> Self {
        Self { options: Arc::new(options), fetcher: OnceLock::new() }
    }

    fn generate(&self, caller: &CallIdentity<'_>, args: &Value) -> CapabilityFuture {
        let (request, fetcher) = match self.prepare(args) {
            Ok(prepared) => prepared,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let (execution, deadline) = (execution_key(caller, args), caller.deadline);
        let options = Arc::clone(&self.options);
        Box::pin(async move {
            let timeout = options.timeout.min(deadline.saturating_duration_since(Instant::now()));
            let store = ImageStore::new(&options.dir);
            let request_digest = request.digest();
            let images = match store.find(&execution, &request_digest).await? {
                Some(images) => images,
                None => {
                    let generated = endpoint::generate(&fetcher, &options, &request, timeout).await;
                    let generated = generated.inspect_err(|error| {
                        tracing::warn!("images.generate at {} failed: {error}", endpoint::host(&options));
                    })?;
                    store.save(&execution, &request_digest, generated).await?
                }
            };
            Ok(to_json(&options.base.get(), &images).into())
        })
    }

    /// Asks the configured service which models it offers: shows that the service responds and accepts the key. `None`
    /// if it has no list of models. Generates nothing.
    ///
    /// # Errors
    /// When the service does not respond within the timeout, or refuses the key.
    pub async fn models(&self, timeout: Duration) -> Result<Option<Vec<String>>> {
        let late = |_| CapabilityError::unreachable(format!("no response within {} s", timeout.as_secs()));
        let fetcher = self.fetcher()?;
        tokio::time::timeout(timeout, endpoint::models(&fetcher, &self.options)).await.map_err(late)?
    }

    fn prepare(&self, args: &Value) -> Result<(GenerateRequest, Fetcher)> {
        Ok((GenerateRequest::parse(args)?, self.fetcher()?))
    }

    fn fetcher(&self) -> Result<Fetcher> {
        if self.options.url.is_none() {
            return Err(CapabilityError::not_configured(endpoint::SETUP_HELP));
        }
        let fetcher = self.fetcher.get_or_init(|| endpoint::create_fetcher(&self.options));
        fetcher.clone().map_err(|error| {
            tracing::error!("could not create the client of images.generate: {error}");
            CapabilityError::not_configured(format!("`[images] url` is invalid: {error}"))
        })
    }
}

impl Capability for Images {
    fn call(&self, caller: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture {
        let args = args.into_iter().next().unwrap_or_default();
        let done = match function {
            "generate" => return self.generate(caller, &args),
            "draft" => prompt_draft::draft(&args).map(CapabilityOutput::from),
            _ => Err(CapabilityError::not_configured(format!("unknown function `images.{function}`"))),
        };
        Box::pin(ready(done))
    }
}

impl GenerateRequest {
    fn parse(args: &Value) -> Result<Self> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
        let invalid = |name: &str| CapabilityError::invalid(format!("`{name}` is missing or invalid"));
        let prompt = text("prompt").filter(|prompt| !prompt.trim().is_empty());
        // JavaScript numbers are floats.
        let count = args.get("count").and_then(Value::as_f64).filter(|count| count.fract() == 0.0);
        Ok(Self {
            prompt: prompt.ok_or_else(|| invalid("prompt"))?,
            size: text("size").filter(|size| is_size(size)).ok_or_else(|| invalid("size"))?,
            count: count.filter(|count| (1.0..=10.0).contains(count)).ok_or_else(|| invalid("count"))?
                as usize,
            quality: text("quality").ok_or_else(|| invalid("quality"))?,
        })
    }

    /// Differs between any two requests.
    fn digest(&self) -> String {
        let Self { prompt, size, count, quality } = self;
        digest(&[prompt, size, &count.to_string(), quality])
    }
}

/// Width and height, such as `1024x1024`.
fn is_size(text: &str) -> bool {
    let is_side = |side: &str| side.parse::<u32>().is_ok();
    text.split_once('x').is_some_and(|(width, height)| is_side(width) && is_side(height))
}

/// Execution ids are unique within a session only, so the key includes the session and its principal.
fn execution_key(caller: &CallIdentity<'_>, args: &Value) -> String {
    let execution = args.get("executionId").and_then(Value::as_str).unwrap_or(caller.execution_id);
    let (org, session) = (caller.org.unwrap_or_default(), caller.session.unwrap_or_default());
    digest(&[org, caller.user, caller.client_id, session, execution])
}

fn to_json(base: &str, images: &[StoredImage]) -> Value {
    let base = base.trim_end_matches('/');
    let image = |image: &StoredImage| {
        json!({
            "url": format!("{base}/images/{}", image.name),
            "width": image.width,
            "height": image.height,
            "mimeType": image.format().map(ImageFormat::media_type),
            "revisedPrompt": image.revised_prompt,
        })
    };
    json!({ "images": images.iter().map(image).collect::<Vec<_>>() })
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
