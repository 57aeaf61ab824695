//! `[server]`: defaults < file < environment < flags.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwright_server::auth::keys::KeyFile;
use toolwright_server::auth::{Auth, JwksSource, JwtOptions};
use toolwright_server::otlp::Collector;
use toolwright_server::{AccessLog, Limits, Options};

use super::Config;
use crate::args::{LogFormat, ServeSettings};
use crate::output::Failure;

/// Beside the embedded store, unless another is named.
const KEYS: &str = ".toolwright/keys.json";
/// More threads than that only take work from one another: calls are short, and handlers have threads of their own.
const MOST_WORKERS: usize = 4;
/// What the HTTP library reads at the most.
const MOST_HEADER_KB: u32 = 60;

/// As every OpenTelemetry exporter has it.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// How `toolwright serve` serves.
#[derive(Debug)]
pub struct Serving {
    pub options: Options,
    pub keys: PathBuf,
    pub jwt: Option<JwtOptions>,
    pub workers: usize,
    pub log_format: LogFormat,
    /// Where clients find the server, if not where it listens.
    pub public_url: Option<String>,
    /// Who gets spans of calls.
    pub collector: Option<Collector>,
}

impl Serving {
    pub fn auth(&self) -> Auth {
        Auth::new(KeyFile::new(&self.keys), self.jwt.clone())
    }
}

impl Config {
    /// The collector of spans, if one is named. Its headers may be secrets, so they come from the environment alone.
    fn collector(&self, flags: &ServeSettings) -> Result<Option<Collector>, Failure> {
        let named = flags.otlp.clone().or_else(|| self.telemetry.otlp.clone()).filter(|url| !url.is_empty());
        let Some(endpoint) = named else { return Ok(None) };
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            let message = "`[telemetry] otlp` is no address";
            return Err(Failure::new(
                message,
                "write the collector's HTTP address, such as http://localhost:4318",
            ));
        }
        let service = flags.service.clone().or_else(|| self.telemetry.service.clone());
        let headers = std::env::var(HEADERS).unwrap_or_default();
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        let headers =
            headers.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect::<Option<_>>();
        let wrong = || {
            Failure::new(
                format!("{HEADERS} is not a list of names and values"),
                "write name=value,name=value",
            )
        };
        Ok(Some(Collector {
            endpoint,
            service: service.unwrap_or_else(|| "toolwright".to_owned()),
            headers: headers.ok_or_else(wrong)?,
        }))
    }

    /// Where a server of this project listens, unless a flag says otherwise.
    pub fn listen(&self) -> SocketAddr {
        self.server.listen.unwrap_or(Options::default().listen)
    }

    /// Where the keys are.
    pub fn keys(&self, flag: Option<&Path>) -> PathBuf {
        let in_file = self.server.keys.as_deref().unwrap_or(Path::new(KEYS));
        flag.map_or_else(|| self.base.join(in_file), Path::to_owned)
    }

    /// The settings in force; flags (and their environment variables) win.
    pub fn serving(&self, flags: &ServeSettings) -> Result<Serving, Failure> {
        let file = &self.server;
        let default = Options::default();
        let log_format = flags.log_format.or(file.log_format).unwrap_or(LogFormat::Text);
        let access_log = match (flags.access_log.or(file.access_log).unwrap_or(true), log_format) {
            (false, _) => AccessLog::Off,
            (true, LogFormat::Text) => AccessLog::Text,
            (true, LogFormat::Json) => AccessLog::Json,
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = flags.workers.or(file.workers);
        let cors_origins =
            flags.cors_origins.clone().or_else(|| file.cors_origins.clone()).unwrap_or_default();
        Ok(Serving {
            options: Options {
                listen: flags.listen.or(file.listen).unwrap_or(default.listen),
                limits: self.server_limits(flags)?,
                cors_origins,
                access_log,
                prompts: self.prompts_for_hosts(),
                images: Some(self.images_dir()),
                shutdown: seconds(flags.shutdown_s.or(file.shutdown_s), default.shutdown),
            },
            keys: self.keys(flags.keys.as_deref()),
            jwt: self.jwt(flags)?,
            workers: workers.map_or(processors.min(MOST_WORKERS), |workers| workers.get().into()),
            log_format,
            public_url: self.public_url(flags)?,
            collector: self.collector(flags)?,
        })
    }

    fn public_url(&self, flags: &ServeSettings) -> Result<Option<String>, Failure> {
        let url = flags.public_url.clone().or_else(|| self.server.public_url.clone());
        match url.filter(|url| !url.is_empty()) {
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                let help = "write where clients find the server, such as https://tools.example";
                Err(Failure::new("`[server] public_url` is no address", help))
            }
            url => Ok(url),
        }
    }

    fn server_limits(&self, flags: &ServeSettings) -> Result<Limits, Failure> {
        let (file, default) = (&self.server, Limits::default());
        let header_kb = flags.max_header_kb.or(file.max_header_kb);
        let positive = [
            ("max_body_kb", flags.max_body_kb.or(file.max_body_kb)),
            ("max_header_kb", header_kb),
            ("max_connections", flags.max_connections.or(file.max_connections)),
            ("max_requests", flags.max_requests.or(file.max_requests)),
            ("header_timeout_s", flags.header_timeout_s.or(file.header_timeout_s)),
            ("body_timeout_s", flags.body_timeout_s.or(file.body_timeout_s)),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == Some(0)) {
            return Err(Failure::new(
                format!("`[server] {name}` must be at least 1"),
                "leave it out for its default",
            ));
        }
        if header_kb.is_some_and(|kb| kb > MOST_HEADER_KB) {
            let message = format!("`[server] max_header_kb` must be at most {MOST_HEADER_KB}");
            return Err(Failure::new(message, "leave it out for its default"));
        }
        let [body_kb, header_kb, connections, requests, header_s, body_s] = positive.map(|(_, value)| value);
        let count = |value: Option<u32>, unit: usize, default: usize| {
            value.map_or(default, |value| usize::try_from(value).unwrap_or(usize::MAX).saturating_mul(unit))
        };
        Ok(Limits {
            body_bytes: count(body_kb, 1024, default.body_bytes),
            header_bytes: count(header_kb, 1024, default.header_bytes),
            connections: count(connections, 1, default.connections),
            requests: count(requests, 1, default.requests),
            header_timeout: seconds(header_s, default.header_timeout),
            body_timeout: seconds(body_s, default.body_timeout),
            ..default
        })
    }

    fn jwt(&self, flags: &ServeSettings) -> Result<Option<JwtOptions>, Failure> {
        let file = &self.server.jwt;
        // A path in the file is relative to the file; one on the command line to the terminal's directory.
        let from_file = file.jwks.as_deref().map(|text| match JwksSource::parse(text) {
            JwksSource::File(path) => JwksSource::File(self.base.join(path)),
            url @ JwksSource::Url(_) => url,
        });
        let jwks = flags.jwt_jwks.as_deref().map(JwksSource::parse).or(from_file);
        let issuer = flags.jwt_issuer.clone().or_else(|| file.issuer.clone());
        let audience = flags.jwt_audience.clone().or_else(|| file.audience.clone());
        let claim = |flag: &Option<String>, file: &Option<String>, default: &str| {
            flag.clone().or_else(|| file.clone()).unwrap_or_else(|| default.to_owned())
        };
        match (jwks, issuer, audience) {
            (None, None, None) => Ok(None),
            (Some(jwks), Some(issuer), Some(audience)) => Ok(Some(JwtOptions {
                jwks,
                issuer,
                audience,
                roles_claim: claim(&flags.jwt_roles_claim, &file.roles_claim, "roles"),
                org_claim: claim(&flags.jwt_org_claim, &file.org_claim, "org"),
            })),
            _ => Err(Failure::new(
                "`[server.jwt]` needs all of jwks, issuer and audience",
                "a token is checked against all three; docs/reference/rest.md has an example",
            )),
        }
    }
}

fn seconds(value: Option<u32>, default: Duration) -> Duration {
    value.map_or(default, |value| Duration::from_secs(value.into()))
}
