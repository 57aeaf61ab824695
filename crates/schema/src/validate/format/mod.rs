//! The formats of JSON Schema, each by the document that the specification names for it, and those that
//! ajv-formats 3 adds, by the definition there. Unknown names constrain nothing.

mod date;
mod email;
mod idn;
mod net;
mod pattern;
mod pointer;
mod template;
mod uri;

use std::cmp::Ordering;

use serde_json::Number;

use crate::validate::number;

macro_rules! formats {
    ($($variant:ident $name:literal $check:expr;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format { $($variant,)* }

        impl Format {
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub fn takes(self, text: &str) -> bool {
                let check: fn(&str) -> bool = match self { $(Self::$variant => $check,)* };
                check(text)
            }
        }
    };
}

formats! {
    Date "date" date::is_date;
    Time "time" date::is_time;
    DateTime "date-time" date::is_date_time;
    IsoTime "iso-time" date::is_iso_time;
    IsoDateTime "iso-date-time" date::is_iso_date_time;
    Duration "duration" date::is_duration;
    Uri "uri" uri::is_uri;
    UriReference "uri-reference" uri::is_uri_reference;
    UriTemplate "uri-template" template::is_uri_template;
    Iri "iri" uri::is_iri;
    IriReference "iri-reference" uri::is_iri_reference;
    Url "url" pattern::is_url;
    Email "email" email::is_email;
    IdnEmail "idn-email" email::is_idn_email;
    Hostname "hostname" net::is_hostname;
    IdnHostname "idn-hostname" idn::is_idn_hostname;
    Ipv4 "ipv4" net::is_ipv4;
    Ipv6 "ipv6" net::is_ipv6;
    Regex "regex" pattern::is_regex;
    Uuid "uuid" net::is_uuid;
    JsonPointer "json-pointer" pointer::is_pointer;
    PointerFragment "json-pointer-uri-fragment" pointer::is_fragment;
    RelativePointer "relative-json-pointer" pointer::is_relative;
    Byte "byte" pattern::is_base64;
    Int32 "int32" anything;
    Int64 "int64" anything;
    Float "float" anything;
    Double "double" anything;
    Password "password" anything;
    Binary "binary" anything;
}

const fn anything(_: &str) -> bool {
    true
}

impl Format {
    pub const fn is_for_numbers(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64)
    }

    pub const fn is_for_strings(self) -> bool {
        !matches!(
            self,
            Self::Int32 | Self::Int64 | Self::Float | Self::Double | Self::Password | Self::Binary
        )
    }

    pub fn takes_number(self, value: &Number) -> bool {
        match self {
            Self::Int32 => {
                number::is_integer(value)
                    && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number::float(value))
            }
            Self::Int64 => number::is_integer(value),
            _ => true,
        }
    }

    /// Orders two texts for `formatMinimum` and its kin; `None` where Ajv finds no order either.
    pub fn order(self, left: &str, right: &str) -> Option<Ordering> {
        date::order(self, left, right)
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
