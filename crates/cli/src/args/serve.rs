//! The settings of a server, as flags and as environment variables.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::LogFormat;

#[derive(Debug, Default, ClapArgs)]
pub struct ServeSettings {
    /// Where to listen [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDR:PORT", env = "TOOLWRIGHT_LISTEN")]
    pub listen: Option<std::net::SocketAddr>,
    /// Where clients find the server, if not where it listens: the addresses of pictures begin with it
    #[arg(long, value_name = "URL", env = "TOOLWRIGHT_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// The file of keys [default: .toolwright/keys.json]
    #[arg(long, value_name = "FILE", env = "TOOLWRIGHT_KEYS")]
    pub keys: Option<PathBuf>,
    /// The form of the log on stderr [default: text]
    #[arg(long, value_enum, value_name = "text|json", env = "TOOLWRIGHT_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
    /// A line for every request [default: true]
    #[arg(long, value_name = "BOOL", env = "TOOLWRIGHT_ACCESS_LOG")]
    pub access_log: Option<bool>,
    /// Threads that serve [default: the processors, at most 4]
    #[arg(long, value_name = "N", env = "TOOLWRIGHT_WORKERS")]
    pub workers: Option<std::num::NonZeroU16>,
    /// The largest body of a request [default: 1024]
    #[arg(long, value_name = "KB", env = "TOOLWRIGHT_MAX_BODY_KB")]
    pub max_body_kb: Option<u32>,
    /// The largest headers of a request; at most 60 [default: 16]
    #[arg(long, value_name = "KB", env = "TOOLWRIGHT_MAX_HEADER_KB")]
    pub max_header_kb: Option<u32>,
    /// Connections at a time; others wait [default: 1024]
    #[arg(long, value_name = "N", env = "TOOLWRIGHT_MAX_CONNECTIONS")]
    pub max_connections: Option<u32>,
    /// Requests at a time; others are refused [default: 512]
    #[arg(long, value_name = "N", env = "TOOLWRIGHT_MAX_REQUESTS")]
    pub max_requests: Option<u32>,
    /// For the head of a request, and for the pause before it [default: 30]
    #[arg(long, value_name = "SECONDS", env = "TOOLWRIGHT_HEADER_TIMEOUT_S")]
    pub header_timeout_s: Option<u32>,
    /// For the body of a request [default: 30]
    #[arg(long, value_name = "SECONDS", env = "TOOLWRIGHT_BODY_TIMEOUT_S")]
    pub body_timeout_s: Option<u32>,
    /// How long running requests may take when the server is told to stop [default: 35]
    #[arg(long, value_name = "SECONDS", env = "TOOLWRIGHT_SHUTDOWN_S")]
    pub shutdown_s: Option<u32>,
    /// An origin of web pages that may ask; give it once for each [default: none]
    #[arg(
        long = "cors-origin",
        value_name = "ORIGIN",
        env = "TOOLWRIGHT_CORS_ORIGINS",
        value_delimiter = ','
    )]
    pub cors_origins: Option<Vec<String>>,
    /// The issuer's public keys, a URL or a file: lets its JWTs in
    #[arg(long, value_name = "URL|FILE", env = "TOOLWRIGHT_JWT_JWKS")]
    pub jwt_jwks: Option<String>,
    /// The `iss` that a JWT must have
    #[arg(long, value_name = "ISSUER", env = "TOOLWRIGHT_JWT_ISSUER")]
    pub jwt_issuer: Option<String>,
    /// The `aud` that a JWT must have
    #[arg(long, value_name = "AUDIENCE", env = "TOOLWRIGHT_JWT_AUDIENCE")]
    pub jwt_audience: Option<String>,
    /// The claim with the roles [default: roles]
    #[arg(long, value_name = "CLAIM", env = "TOOLWRIGHT_JWT_ROLES_CLAIM")]
    pub jwt_roles_claim: Option<String>,
    /// The claim with the org [default: org]
    #[arg(long, value_name = "CLAIM", env = "TOOLWRIGHT_JWT_ORG_CLAIM")]
    pub jwt_org_claim: Option<String>,
    /// The OpenTelemetry collector that gets a span of every call, such as http://localhost:4318 [default: none]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp: Option<String>,
    /// What the collector is told that this server is called [default: toolwright]
    #[arg(long, value_name = "NAME", env = "OTEL_SERVICE_NAME")]
    pub service: Option<String>,
}
