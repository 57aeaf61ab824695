//! `[server]` and `[telemetry]`: sections of the file, whose settings are also flags of `toolwright serve`.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde::{Deserialize, Serialize};
use toolwright_contract::object;
use toolwright_server::auth::keys::KeyFile;
use toolwright_server::auth::{Auth, JwksSource, JwtOptions};
use toolwright_server::otlp::Collector;
use toolwright_server::{AccessLog, Limits, Options};

use super::{Config, check_http_url, check_positive, listen_address};
use crate::args::variable_of;
use crate::log::LogFormat;
use crate::output::Failure;

/// Calls are short, and handlers have threads of their own: more serving threads only compete with each other.
const MAX_DEFAULT_WORKERS: NonZeroU16 = match NonZeroU16::new(4) {
    Some(workers) => workers,
    None => NonZeroU16::MIN,
};
/// The limit of the HTTP library is 64 KB.
const MAX_HEADER_KB: u32 = 60;
/// As for every OpenTelemetry exporter; headers may be secrets, so they come only from the environment.
const OTLP_HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

#[derive(Debug, Clone, Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// The address to listen on [default: 127.0.0.1:7300]
    #[arg(help_heading = "Server", long, value_name = "ADDR:PORT", env = "TOOLWRIGHT_LISTEN", value_parser = listen_address::parse)]
    #[serde(deserialize_with = "listen_address::deserialize")]
    pub listen: SocketAddr,
    /// The URL of the server for clients, if it differs from the address; URLs of images begin with it
    #[arg(help_heading = "Server", long, value_name = "URL", env = "TOOLWRIGHT_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// The file with the API keys [default: .toolwright/keys.json]
    #[arg(help_heading = "Server", long, value_name = "FILE", env = "TOOLWRIGHT_KEYS")]
    pub keys: PathBuf,
    /// The format of the log on stderr [default: text]
    #[arg(
        help_heading = "Server",
        long,
        value_enum,
        value_name = "text|json",
        env = "TOOLWRIGHT_LOG_FORMAT"
    )]
    pub log_format: LogFormat,
    /// Whether to log every request [default: true]
    #[arg(help_heading = "Server", long, value_name = "BOOL", action = ArgAction::Set, env = "TOOLWRIGHT_ACCESS_LOG")]
    access_log: bool,
    /// The number of serving threads [default: the number of processors, at most 4]
    #[arg(help_heading = "Limits", long, value_name = "N", env = "TOOLWRIGHT_WORKERS")]
    workers: Option<NonZeroU16>,
    /// The maximum size of a request's body [default: 1024]
    #[arg(help_heading = "Limits", long, value_name = "KB", env = "TOOLWRIGHT_MAX_BODY_KB")]
    max_body_kb: u32,
    /// The maximum size of a request's body on the chat routes [default: 8192]
    #[arg(long, value_name = "KB", env = "TOOLWRIGHT_MAX_CHAT_BODY_KB")]
    max_chat_body_kb: u32,
    /// The maximum size of a request's headers; at most 60 [default: 16]
    #[arg(help_heading = "Limits", long, value_name = "KB", env = "TOOLWRIGHT_MAX_HEADER_KB")]
    max_header_kb: u32,
    /// The maximum number of connections; for a further one the longest idle is closed [default: 1024]
    #[arg(help_heading = "Limits", long, value_name = "N", env = "TOOLWRIGHT_MAX_CONNECTIONS")]
    max_connections: u32,
    /// The maximum number of connections from one address; raise it behind a proxy [default: 384]
    #[arg(help_heading = "Limits", long, value_name = "N", env = "TOOLWRIGHT_MAX_CONNECTIONS_PER_PEER")]
    max_connections_per_peer: u32,
    /// The maximum number of event streams of a session; further ones get status 429 [default: 16]
    #[arg(help_heading = "Limits", long, value_name = "N", env = "TOOLWRIGHT_MAX_STREAMS_PER_SESSION")]
    max_streams_per_session: u32,
    /// The maximum number of event streams of a principal; further ones get status 429 [default: 256]
    #[arg(help_heading = "Limits", long, value_name = "N", env = "TOOLWRIGHT_MAX_STREAMS_PER_PRINCIPAL")]
    max_streams_per_principal: u32,
    /// The maximum number of requests at a time; further ones get status 429 [default: 512]
    #[arg(help_heading = "Limits", long, value_name = "N", env = "TOOLWRIGHT_MAX_REQUESTS")]
    max_requests: u32,
    /// The maximum number of requests of a principal at a time; further ones get status 429 [default: 384]
    #[arg(long, value_name = "N", env = "TOOLWRIGHT_MAX_REQUESTS_PER_PRINCIPAL")]
    max_requests_per_principal: u32,
    /// The timeout for a request's headers, and for an idle connection [default: 30]
    #[arg(help_heading = "Limits", long, value_name = "SECONDS", env = "TOOLWRIGHT_HEADER_TIMEOUT_S")]
    header_timeout_s: u32,
    /// The timeout for a request's body [default: 30]
    #[arg(help_heading = "Limits", long, value_name = "SECONDS", env = "TOOLWRIGHT_BODY_TIMEOUT_S")]
    body_timeout_s: u32,
    /// How long a client may read nothing of a response before it is disconnected [default: 30]
    #[arg(help_heading = "Limits", long, value_name = "SECONDS", env = "TOOLWRIGHT_WRITE_TIMEOUT_S")]
    write_timeout_s: u32,
    /// How long running requests may take after the server was told to stop [default: 35]
    #[arg(help_heading = "Limits", long, value_name = "SECONDS", env = "TOOLWRIGHT_SHUTDOWN_S")]
    shutdown_s: u32,
    /// An origin of web pages that may send requests; repeat it for more [default: none]
    #[arg(
        help_heading = "Server",
        long = "cors-origin",
        value_name = "ORIGIN",
        env = "TOOLWRIGHT_CORS_ORIGINS",
        value_delimiter = ','
    )]
    cors_origins: Vec<String>,
    #[command(flatten)]
    #[serde(skip_serializing_if = "JwtSection::is_unused", deserialize_with = "object::only")]
    pub jwt: JwtSection,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7300)),
            public_url: None,
            keys: ".toolwright/keys.json".into(),
            log_format: LogFormat::Text,
            access_log: true,
            workers: None,
            max_body_kb: 1024,
            max_chat_body_kb: 8192,
            max_header_kb: 16,
            max_connections: 1024,
            max_connections_per_peer: 384,
            max_streams_per_session: 16,
            max_streams_per_principal: 256,
            max_requests: 512,
            max_requests_per_principal: 384,
            header_timeout_s: 30,
            body_timeout_s: 30,
            write_timeout_s: 30,
            shutdown_s: 35,
            cors_origins: Vec::new(),
            jwt: JwtSection::default(),
        }
    }
}

#[derive(Debug, Clone, Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtSection {
    /// The public keys of a JWT issuer: a URL or a file
    #[arg(
        help_heading = "Tokens of an issuer (JWT)",
        long = "jwt-jwks",
        value_name = "URL|FILE",
        env = "TOOLWRIGHT_JWT_JWKS"
    )]
    jwks: Option<String>,
    /// The `iss` that a JWT must have
    #[arg(
        help_heading = "Tokens of an issuer (JWT)",
        long = "jwt-issuer",
        value_name = "ISSUER",
        env = "TOOLWRIGHT_JWT_ISSUER"
    )]
    issuer: Option<String>,
    /// The `aud` that a JWT must have
    #[arg(
        help_heading = "Tokens of an issuer (JWT)",
        long = "jwt-audience",
        value_name = "AUDIENCE",
        env = "TOOLWRIGHT_JWT_AUDIENCE"
    )]
    audience: Option<String>,
    /// The claim with the roles [default: roles]
    #[arg(
        help_heading = "Tokens of an issuer (JWT)",
        long = "jwt-roles-claim",
        value_name = "CLAIM",
        env = "TOOLWRIGHT_JWT_ROLES_CLAIM"
    )]
    roles_claim: String,
    /// The claim with the org [default: org]
    #[arg(
        help_heading = "Tokens of an issuer (JWT)",
        long = "jwt-org-claim",
        value_name = "CLAIM",
        env = "TOOLWRIGHT_JWT_ORG_CLAIM"
    )]
    org_claim: String,
}

impl Default for JwtSection {
    fn default() -> Self {
        let (roles_claim, org_claim) = ("roles".to_owned(), "org".to_owned());
        Self { jwks: None, issuer: None, audience: None, roles_claim, org_claim }
    }
}

impl JwtSection {
    fn is_unused(&self) -> bool {
        self.jwks.is_none() && self.issuer.is_none() && self.audience.is_none()
    }

    pub fn resolve_path(&mut self, base: &Path) {
        if let Some(JwksSource::File(path)) = self.jwks.as_deref().map(JwksSource::parse) {
            self.jwks = Some(base.join(path).display().to_string());
        }
    }
}

#[derive(Debug, Clone, Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySection {
    /// The OpenTelemetry collector that gets a span of every call, such as http://localhost:4318 [default: none]
    #[arg(help_heading = "Telemetry", long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
    /// The service name in those spans [default: toolwright]
    #[arg(help_heading = "Telemetry", long, value_name = "NAME", env = "OTEL_SERVICE_NAME")]
    service: String,
}

impl Default for TelemetrySection {
    fn default() -> Self {
        Self { otlp: None, service: "toolwright".to_owned() }
    }
}

/// The flags and environment variables of `[server]` and `[telemetry]`, which override the file.
#[derive(Debug)]
pub struct ServerFlags(ArgMatches);

impl Args for ServerFlags {
    fn augment_args(command: Command) -> Command {
        TelemetrySection::augment_args_for_update(ServerSection::augment_args_for_update(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServerFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

/// The settings of one server, with flags applied.
#[derive(Debug)]
pub struct ServerConfig {
    pub section: ServerSection,
    pub telemetry: TelemetrySection,
}

impl Config {
    /// The file with the API keys.
    pub fn keys(&self, flag: Option<&Path>) -> PathBuf {
        flag.unwrap_or(&self.settings.server.keys).to_owned()
    }

    /// The settings of a server that is started without flags.
    pub fn server_from_environment(&self) -> anyhow::Result<ServerConfig> {
        let command = ServerFlags::augment_args(Command::new("serve"));
        let matches = command.try_get_matches_from(["serve"]).map_err(|error| from_environment(&error))?;
        self.server(&ServerFlags(matches))
    }

    /// The server's settings: the file's, overridden by flags.
    pub fn server(&self, flags: &ServerFlags) -> anyhow::Result<ServerConfig> {
        let ServerFlags(flags) = flags;
        let mut section = self.settings.server.clone();
        section.update_from_arg_matches(flags)?;
        let mut telemetry = self.settings.telemetry.clone();
        telemetry.update_from_arg_matches(flags)?;
        let processors = std::thread::available_parallelism().ok().and_then(|count| count.try_into().ok());
        let default_workers = processors.unwrap_or(NonZeroU16::MIN).min(MAX_DEFAULT_WORKERS);
        section.workers.get_or_insert(default_workers);
        section.public_url = section.public_url.filter(|url| !url.is_empty());
        telemetry.otlp = telemetry.otlp.filter(|url| !url.is_empty());
        let server = ServerConfig { section, telemetry };
        server.check()?;
        Ok(server)
    }
}

/// A value of the environment that was refused.
fn from_environment(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match variable_of(error) {
        Some(name) => Failure::new(format!("{first} (from {name})"), format!("correct or unset {name}")),
        None => Failure::new(first, "correct the environment variable, or unset it"),
    }
}

impl ServerConfig {
    fn check(&self) -> Result<(), Failure> {
        let ServerSection { max_header_kb, public_url, .. } = &self.section;
        check_positive(
            "server",
            &[
                ("max_body_kb", self.section.max_body_kb),
                ("max_chat_body_kb", self.section.max_chat_body_kb),
                ("max_header_kb", *max_header_kb),
                ("max_connections", self.section.max_connections),
                ("max_connections_per_peer", self.section.max_connections_per_peer),
                ("max_streams_per_session", self.section.max_streams_per_session),
                ("max_streams_per_principal", self.section.max_streams_per_principal),
                ("max_requests", self.section.max_requests),
                ("max_requests_per_principal", self.section.max_requests_per_principal),
                ("header_timeout_s", self.section.header_timeout_s),
                ("body_timeout_s", self.section.body_timeout_s),
                ("write_timeout_s", self.section.write_timeout_s),
            ],
        )?;
        if *max_header_kb > MAX_HEADER_KB {
            let message =
                format!("`[server] max_header_kb` is {max_header_kb}, and must be at most {MAX_HEADER_KB}");
            return Err(Failure::new(message, "lower it, or leave it out for its default of 16"));
        }
        check_http_url("[server] public_url", public_url.as_deref(), "https://tools.example")?;
        check_http_url("[telemetry] otlp", self.telemetry.otlp.as_deref(), "http://localhost:4318")?;
        self.jwt().map(drop)
    }

    pub fn workers(&self) -> usize {
        self.section.workers.map_or(1, |workers| workers.get().into())
    }

    /// How callers are authenticated.
    pub fn auth(&self) -> Result<Auth, Failure> {
        Ok(Auth::new(KeyFile::new(&self.section.keys), self.jwt()?))
    }

    fn jwt(&self) -> Result<Option<JwtOptions>, Failure> {
        let JwtSection { jwks, issuer, audience, roles_claim, org_claim } = self.section.jwt.clone();
        match (jwks, issuer, audience) {
            (None, None, None) => Ok(None),
            (Some(jwks), Some(issuer), Some(audience)) => {
                let jwks = JwksSource::parse(&jwks);
                Ok(Some(JwtOptions { jwks, issuer, audience, roles_claim, org_claim }))
            }
            _ => Err(Failure::new(
                "`[server.jwt]` needs all of jwks, issuer and audience",
                "set all three, or none; docs/how-to/run-the-server.md has an example",
            )),
        }
    }

    /// The receiver of spans, if one is configured.
    pub fn collector(&self) -> Result<Option<Collector>, Failure> {
        let Some(endpoint) = self.telemetry.otlp.clone() else { return Ok(None) };
        let headers = std::env::var(OTLP_HEADERS_VARIABLE).unwrap_or_default();
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        let headers =
            headers.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect::<Option<_>>();
        let headers = headers.ok_or_else(|| {
            let message =
                format!("the environment variable {OTLP_HEADERS_VARIABLE} is not a list of name=value");
            Failure::new(message, "write name=value,name=value")
        })?;
        Ok(Some(Collector { endpoint, service: self.telemetry.service.clone(), headers }))
    }

    /// The options of the server library.
    pub fn options(&self, config: &Config) -> Options {
        let section = &self.section;
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let seconds = |number: u32| Duration::from_secs(number.into());
        Options {
            listen: section.listen,
            limits: Limits {
                body_bytes: count(section.max_body_kb).saturating_mul(1024),
                chat_body_bytes: count(section.max_chat_body_kb).saturating_mul(1024),
                header_bytes: count(section.max_header_kb).saturating_mul(1024),
                connections: count(section.max_connections),
                connections_per_peer: count(section.max_connections_per_peer),
                streams_per_session: count(section.max_streams_per_session),
                streams_per_principal: count(section.max_streams_per_principal),
                requests: count(section.max_requests),
                requests_per_principal: count(section.max_requests_per_principal),
                header_timeout: seconds(section.header_timeout_s),
                body_timeout: seconds(section.body_timeout_s),
                write_timeout: seconds(section.write_timeout_s),
                ..Limits::default()
            },
            cors_origins: section.cors_origins.clone(),
            access_log: match (section.access_log, section.log_format) {
                (false, _) => AccessLog::Off,
                (true, LogFormat::Text) => AccessLog::Text,
                (true, LogFormat::Json) => AccessLog::Json,
            },
            prompts: config.prompts_for_hosts(),
            mcp_turn_idle: config.mcp_turn_idle(),
            images: Some(config.images().dir),
            shutdown: seconds(section.shutdown_s),
            ..Options::default()
        }
    }
}
