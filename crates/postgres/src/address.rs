//! The address of a database: its URL and its encryption. Errors never quote the URL, which may contain a password.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::form_urlencoded;

use crate::Error;

/// Where a database is.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    /// `None` for connections without encryption.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

impl Address {
    /// Parses a URL as libpq does, with three differences for safety: certificates are always verified in full
    /// (`sslrootcert` names a file of authorities that replaces the system's), encryption is required unless all
    /// hosts are this machine, and only `sslmode=disable` turns it off.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let (base, parameters) = url.split_once('?').unwrap_or((url, ""));
        let mut remaining = form_urlencoded::Serializer::new(String::new());
        let mut authorities = None;
        for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
            match (&*name, &*value) {
                ("sslrootcert", file) => authorities = Some(file.to_owned()),
                ("sslmode", "verify-ca" | "verify-full") => _ = remaining.append_pair("sslmode", "require"),
                _ => _ = remaining.append_pair(&name, &value),
            }
        }
        // The serializer writes spaces as `+`, which is valid in forms only.
        let parameters = remaining.finish().replace('+', "%20");
        let mut config: Config = format!("{base}?{parameters}").parse().map_err(|_| malformed())?;
        if config.get_hosts().is_empty() {
            return Err(malformed());
        }
        if config.get_ssl_mode() == SslMode::Prefer {
            let local = config.get_hosts().iter().all(is_this_machine)
                && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
            config.ssl_mode(if local { SslMode::Disable } else { SslMode::Require });
        }
        if config.get_application_name().is_none() {
            config.application_name("toolwright");
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(MakeRustlsConnect::new(encryption(authorities.as_deref())?)),
        };
        Ok(Self { config, tls })
    }

    /// The database without user and password, such as `PostgreSQL at db.example.com:5432/tools`.
    pub fn name(&self) -> String {
        let ports = self.config.get_ports();
        let host = |(index, host): (usize, &Host)| {
            let port = ports.get(index).or_else(|| ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().enumerate().map(host).collect();
        let database = self.config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
        format!("PostgreSQL at {}{database}", hosts.join(","))
    }
}

fn malformed() -> Error {
    Error::NotSent(
        "the URL of the database cannot be parsed; it must be \
         postgres://USER:PASSWORD@HOST:5432/DATABASE, with special characters of the password percent-encoded"
            .to_owned(),
    )
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn encryption(authorities: Option<&str>) -> Result<ClientConfig, Error> {
    let failed = |what: &str, error: &dyn std::fmt::Display| Error::NotSent(format!("{what}: {error}"));
    // The provider is passed rather than installed for the process: a library must not choose for its host.
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed("could not set up TLS", &error))?;
    let Some(file) = authorities else {
        let system = builder
            .with_platform_verifier()
            .map_err(|error| failed("could not read the system's certificates", &error))?;
        return Ok(system.with_no_client_auth());
    };
    let unreadable = |error: &dyn std::fmt::Display| failed("could not read the file of sslrootcert", error);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> SslMode {
        Address::parse(url).unwrap().config.get_ssl_mode()
    }

    #[test]
    fn a_name_has_hosts_and_database_but_no_credentials() {
        let name = |url: &str| Address::parse(url).unwrap().name();
        assert_eq!(name("postgres://ann:secret@127.0.0.1:6543/tools"), "PostgreSQL at 127.0.0.1:6543/tools");
        assert_eq!(
            name("postgres://ann:secret@localhost,[::1]:7/x?user=bob"),
            "PostgreSQL at localhost:5432,::1:7/x"
        );
        assert_eq!(name("postgres://localhost"), "PostgreSQL at localhost:5432");
    }

    #[test]
    fn encryption_is_required_for_other_machines() {
        for local in ["127.0.0.1", "localhost", "%2Ftmp", "[::1]"] {
            assert_eq!(mode(&format!("postgres://u@{local}/db")), SslMode::Disable, "{local}");
        }
        assert_eq!(mode("postgres://u@db.example.org/db"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost,db.example.org/db"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example.org/db?sslmode=prefer"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost/db?sslmode=verify-full"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example.org/db?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn other_parameters_are_preserved() {
        let url =
            "postgresql://u:p%40ss@localhost:6000/db?application_name=my+app%26more&options=-c%20jit%3Doff";
        let config = Address::parse(url).unwrap().config;
        assert_eq!(config.get_application_name(), Some("my app&more"));
        assert_eq!(config.get_options(), Some("-c jit=off"));
        assert_eq!(config.get_password(), Some(&b"p@ss"[..]));
        assert_eq!((config.get_ports(), config.get_dbname()), (&[6000][..], Some("db")));
    }

    #[test]
    fn errors_do_not_quote_the_url() {
        let urls = ["secret", "postgres://u:secret@h:port/d", "postgres://u:a?secret=b@h/d", "postgres://"];
        for url in urls {
            let error = Address::parse(url).err().unwrap().to_string();
            assert!(error.contains("percent-encoded") && !error.contains("secret"), "{error}");
        }
    }
}
