//! `text.validateEmail`: the form of an address, by RFC 5322 and IDNA. Whether a mailbox exists is nobody's business here.

use email_address::{EmailAddress, Error, Options};
use serde_json::{Value, json};

/// Domains that many addresses have, for slips of the finger. Short ones are too near to others.
const WELL_KNOWN: &[&str] = &[
    "aol.com",
    "btinternet.com",
    "comcast.net",
    "fastmail.com",
    "freenet.de",
    "gmail.com",
    "googlemail.com",
    "hotmail.co.uk",
    "hotmail.com",
    "hotmail.de",
    "hotmail.es",
    "hotmail.fr",
    "icloud.com",
    "laposte.net",
    "live.com",
    "mail.com",
    "orange.fr",
    "outlook.com",
    "outlook.de",
    "outlook.es",
    "outlook.fr",
    "posteo.de",
    "proton.me",
    "protonmail.com",
    "t-online.de",
    "telefonica.net",
    "verizon.net",
    "wanadoo.fr",
    "yahoo.co.uk",
    "yahoo.com",
    "yahoo.de",
    "yahoo.es",
    "yahoo.fr",
];

/// What is known of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked<'a> {
    /// What stands before the last `@`, and the domain in normal form; or why it is none.
    parts: Result<(&'a str, String), &'static str>,
    did_you_mean: Option<String>,
}

pub fn validate(email: &str) -> Checked<'_> {
    let email = email.trim();
    let did_you_mean = email.rsplit_once('@').and_then(|(local, domain)| {
        let corrected = corrected(&domain.to_lowercase())?;
        (!local.is_empty() && !local.contains('@')).then(|| format!("{local}@{corrected}"))
    });
    Checked { parts: parts(email), did_you_mean }
}

impl Checked<'_> {
    pub fn is_valid(&self) -> bool {
        self.parts.is_ok()
    }

    pub fn to_json(&self) -> Value {
        let valid = self.parts.as_ref().ok();
        json!({
            "valid": valid.is_some(),
            "normalized": valid.map(|(local, domain)| format!("{local}@{domain}")),
            "localPart": valid.map(|(local, _)| local),
            "domain": valid.map(|(_, domain)| domain),
            "reason": self.parts.as_ref().err(),
            "didYouMean": self.did_you_mean,
        })
    }
}

fn parts(email: &str) -> Result<(&str, String), &'static str> {
    let options = Options::default().with_required_tld().without_domain_literal().without_display_text();
    EmailAddress::parse_with_options(email, options).map_err(|error| reason(email, error))?;
    let (local, domain) = email.rsplit_once('@').ok_or("There is no @ in it.")?;
    let domain = normal(domain).ok_or("The domain is not a valid host name.")?;
    Ok((local, domain))
}

/// The domain in lower case, if it can be looked up: an international one as people write it.
fn normal(domain: &str) -> Option<String> {
    let ascii = idna::domain_to_ascii_strict(domain).ok()?;
    let top = ascii.rsplit('.').next()?;
    if ascii.len() > 253 || top.len() < 2 || top.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if domain.is_ascii() {
        return Some(ascii);
    }
    let (unicode, is_valid) = idna::domain_to_unicode(domain);
    is_valid.ok().map(|()| unicode)
}

fn corrected(domain: &str) -> Option<&'static str> {
    if WELL_KNOWN.contains(&domain) || domain.len() > 32 {
        return None;
    }
    WELL_KNOWN.iter().copied().find(|known| strsim::osa_distance(domain, known) == 1)
}

/// A sentence for people.
fn reason(email: &str, error: Error) -> &'static str {
    match error {
        Error::MissingSeparator => "There is no @ in it.",
        Error::LocalPartEmpty => "Nothing stands before the @.",
        Error::LocalPartTooLong => "What stands before the @ has more than 64 characters.",
        Error::DomainEmpty => "Nothing stands after the @.",
        Error::DomainTooLong => "The domain is too long.",
        Error::SubDomainEmpty => "The domain has two dots in a row, or one at its end.",
        Error::SubDomainTooLong => "A part of the domain has more than 63 characters.",
        Error::DomainTooFew => "The domain has no ending such as .com.",
        Error::DomainInvalidSeparator => "A dot is in the wrong place in the domain.",
        Error::UnbalancedQuotes => "A quotation mark is not closed.",
        Error::InvalidComment => "Comments in brackets are not allowed.",
        Error::InvalidIPAddress | Error::UnsupportedDomainLiteral => {
            "An IP address is not accepted as a domain."
        }
        Error::UnsupportedDisplayName | Error::MissingDisplayName | Error::MissingEndBracket => {
            "Only the address itself is wanted, without a name or brackets."
        }
        _ if email.matches('@').count() > 1 => "There is more than one @ in it.",
        _ if email.contains(char::is_whitespace) => "There is a space in it.",
        _ if email.split('@').any(|part| part.split('.').any(str::is_empty)) => {
            "A dot is at the beginning or end of a part, or two are in a row."
        }
        _ => "There is a character in it that an address cannot have.",
    }
}
