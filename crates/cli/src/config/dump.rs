//! `--dump-config`: the settings in force, as a file that could be read again. Passwords are left out.

use toml::{Table, Value};
use toolwright_contract::Mode;
use toolwright_server::auth::JwksSource;
use toolwright_server::{AccessLog, Options};

use super::{Config, Serving};
use crate::args::LogFormat;

impl Config {
    /// All settings as TOML.
    pub fn dump(&self, serving: &Serving) -> String {
        let mut all = Table::new();
        let tools = table([
            ("dir", self.tools.display().to_string().into()),
            ("declared", list(self.declared.iter().map(|path| path.display()))),
        ]);
        all.insert("tools".to_owned(), tools);
        all.insert("prompts".to_owned(), table([("dir", self.prompts.display().to_string().into())]));
        all.insert("store".to_owned(), table([("url", without_password(&self.store).into())]));
        all.insert("kb".to_owned(), self.dump_kb());
        all.insert("limits".to_owned(), self.dump_limits());
        let policy = self.policy();
        let mut confirmation = vec![
            ("expires_after_s", Value::Integer(policy.confirmation_ms / 1000)),
            ("may_remember", policy.may_remember.into()),
        ];
        confirmation.extend(policy.approve_when.map(|rule| ("approve_when", rule.into())));
        all.insert("confirmation".to_owned(), table(confirmation));
        let session = table([
            ("expires_after_s", Value::Integer(policy.session_ms / 1000)),
            ("farewell_s", Value::Integer(policy.farewell_ms / 1000)),
        ]);
        all.insert("session".to_owned(), session);
        let handlers = self.handlers();
        let handlers = table([
            ("memory_mb", integer(handlers.memory_bytes >> 20)),
            ("cpu_ms", integer(handlers.cpu.as_millis())),
            ("output_kb", integer(handlers.output_bytes >> 10)),
            ("pending_calls", integer(handlers.pending_host_calls)),
        ]);
        all.insert("handlers".to_owned(), handlers);
        all.insert("server".to_owned(), server(serving));
        all.insert("images".to_owned(), self.dump_images());
        // What the calendar reads it can also write.
        all.extend(Value::try_from(&self.calendar).map(|calendar| ("calendar".to_owned(), calendar)));
        if let Some(collector) = &serving.collector {
            let telemetry =
                [("otlp", collector.endpoint.clone().into()), ("service", collector.service.clone().into())];
            all.insert("telemetry".to_owned(), table(telemetry));
        }
        if !self.tool.is_empty() {
            let tool = |(id, tool): (&String, &super::ToolFile)| {
                (id.clone(), table([("http", table([("allow", list(&tool.http.allow))]))]))
            };
            all.insert("tool".to_owned(), Value::Table(self.tool.iter().map(tool).collect()));
        }
        all.to_string()
    }

    fn dump_limits(&self) -> Value {
        let policy = self.policy();
        let of = |mode: Mode| {
            let numbers = policy.for_mode(mode);
            table([
                ("retrieval_calls", integer(numbers.retrieval_calls)),
                ("top_k", integer(numbers.top_k)),
                ("retrieval_soft_limit_ms", integer(numbers.retrieval_soft_limit_ms)),
                ("retries", integer(numbers.retries)),
            ])
        };
        let mut limits = vec![("voice", of(Mode::Voice)), ("text", of(Mode::Text))];
        let org = policy
            .org_rate
            .map(|rate| table([("calls", integer(rate.calls)), ("window", integer(rate.window))]));
        limits.extend(org.map(|org| ("org", org)));
        table(limits)
    }
}

fn server(serving: &Serving) -> Value {
    let Options { listen, limits, cors_origins, access_log, shutdown, prompts: _, images: _ } =
        &serving.options;
    let log_format = if serving.log_format == LogFormat::Json { "json" } else { "text" };
    let mut settings = vec![
        ("listen", listen.to_string().into()),
        ("keys", serving.keys.display().to_string().into()),
        ("log_format", log_format.into()),
        ("access_log", (*access_log != AccessLog::Off).into()),
        ("workers", integer(serving.workers)),
        ("max_body_kb", integer(limits.body_bytes >> 10)),
        ("max_header_kb", integer(limits.header_bytes >> 10)),
        ("max_connections", integer(limits.connections)),
        ("max_requests", integer(limits.requests)),
        ("header_timeout_s", integer(limits.header_timeout.as_secs())),
        ("body_timeout_s", integer(limits.body_timeout.as_secs())),
        ("shutdown_s", integer(shutdown.as_secs())),
        ("cors_origins", list(cors_origins)),
    ];
    settings.extend(serving.public_url.clone().map(|url| ("public_url", url.into())));
    if let Some(jwt) = &serving.jwt {
        let jwks = match &jwt.jwks {
            JwksSource::Url(url) => url.clone(),
            JwksSource::File(path) => path.display().to_string(),
        };
        let jwt = table([
            ("jwks", jwks.into()),
            ("issuer", jwt.issuer.clone().into()),
            ("audience", jwt.audience.clone().into()),
            ("roles_claim", jwt.roles_claim.clone().into()),
            ("org_claim", jwt.org_claim.clone().into()),
        ]);
        settings.push(("jwt", jwt));
    }
    table(settings)
}

pub(super) fn table<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Table(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

pub(super) fn list(items: impl IntoIterator<Item = impl ToString>) -> Value {
    Value::Array(items.into_iter().map(|item| Value::String(item.to_string())).collect())
}

pub(super) fn integer(number: impl TryInto<i64>) -> Value {
    Value::Integer(number.try_into().unwrap_or(i64::MAX))
}

/// `postgres://user:secret@host/db` becomes `postgres://user@host/db`.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => url.to_owned(),
    }
}
