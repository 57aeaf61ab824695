//! `text.validateEmail`: checks the syntax of an address by RFC 5322 and IDNA. It does not check whether the mailbox
//! exists.

use email_address::{EmailAddress, Error, Options};
use serde_json::{Value, json};

use crate::is_listed;

/// Common mail domains, used to correct typos. Short domains are left out: they are one edit away from too many others.
const COMMON_DOMAINS: &str = "aol.com btinternet.com comcast.net fastmail.com freenet.de gmail.com \
    googlemail.com hotmail.co.uk hotmail.com hotmail.de hotmail.es hotmail.fr icloud.com laposte.net live.com \
    mail.com orange.fr outlook.com outlook.de outlook.es outlook.fr posteo.de proton.me protonmail.com \
    t-online.de telefonica.net verizon.net wanadoo.fr yahoo.co.uk yahoo.com yahoo.de yahoo.es yahoo.fr";

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailCheck<'a> {
    /// The local part and the normalized domain, or why the address is invalid.
    parts: Result<(&'a str, String), &'static str>,
    did_you_mean: Option<String>,
}

pub fn validate_email(email: &str) -> EmailCheck<'_> {
    let email = email.trim();
    let did_you_mean = email.rsplit_once('@').and_then(|(local, domain)| {
        let corrected = correct_domain(&domain.to_lowercase())?;
        (!local.is_empty() && !local.contains('@')).then(|| format!("{local}@{corrected}"))
    });
    EmailCheck { parts: parse_address(email), did_you_mean }
}

impl EmailCheck<'_> {
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

fn parse_address(email: &str) -> Result<(&str, String), &'static str> {
    let options = Options::default().with_required_tld().without_domain_literal().without_display_text();
    EmailAddress::parse_with_options(email, options).map_err(|error| explain_error(email, error))?;
    let (local, domain) = email.rsplit_once('@').ok_or("The address has no @.")?;
    let domain = normalize_domain(domain).ok_or("The domain is not a valid host name.")?;
    Ok((local, domain))
}

/// The domain in lower case, or `None` if it is not a valid host name. An international domain stays in Unicode.
fn normalize_domain(domain: &str) -> Option<String> {
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

/// The common domain that is one edit away.
fn correct_domain(domain: &str) -> Option<&'static str> {
    if is_listed(COMMON_DOMAINS, domain) || domain.len() > 32 {
        return None;
    }
    COMMON_DOMAINS.split_ascii_whitespace().find(|known| strsim::osa_distance(domain, known) == 1)
}

/// The error as a sentence for the user.
fn explain_error(email: &str, error: Error) -> &'static str {
    match error {
        Error::MissingSeparator => "The address has no @.",
        Error::LocalPartEmpty => "The part before the @ is empty.",
        Error::LocalPartTooLong => "The part before the @ has more than 64 characters.",
        Error::DomainEmpty => "The part after the @ is empty.",
        Error::DomainTooLong => "The domain has more than 254 characters.",
        Error::SubDomainEmpty => "The domain has two dots in a row or ends with a dot.",
        Error::SubDomainTooLong => "A part of the domain has more than 63 characters.",
        Error::DomainTooFew => "The domain has no ending such as .com.",
        Error::DomainInvalidSeparator => "A dot is in the wrong place in the domain.",
        Error::UnbalancedQuotes => "A quotation mark is not closed.",
        Error::InvalidComment => "Comments in parentheses are not allowed.",
        Error::InvalidIPAddress | Error::UnsupportedDomainLiteral => {
            "An IP address is not accepted as a domain."
        }
        Error::UnsupportedDisplayName | Error::MissingDisplayName | Error::MissingEndBracket => {
            "The address must not include a name or angle brackets."
        }
        _ if email.matches('@').count() > 1 => "The address has more than one @.",
        _ if email.contains(char::is_whitespace) => "The address contains a space.",
        _ if email.split('@').any(|part| part.split('.').any(str::is_empty)) => {
            "A dot is at the beginning or end of a part, or two are in a row."
        }
        _ => "The address contains a character that is not allowed.",
    }
}
