//! The query of a URL: only known names, each at most once.

use std::borrow::Cow;

use toolwright_contract::suggest::did_you_mean;

use crate::problem::{Kind, Problem};

/// The values of `names`, in their order. An unknown name is refused.
pub(crate) fn values<'a, const N: usize>(
    query: Option<&'a str>,
    names: [&str; N],
) -> Result<[Option<Cow<'a, str>>; N], Problem> {
    let mut values = [const { None }; N];
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let Some(index) = names.iter().position(|known| *known == name) else {
            let detail = match N {
                0 => format!("There is no query parameter `{name}` here."),
                _ => format!("There is no query parameter `{name}`: {}", did_you_mean(&name, &names)),
            };
            return Err(Problem::new(Kind::BAD_REQUEST, detail));
        };
        if values[index].replace(value).is_some() {
            return Err(Problem::new(
                Kind::BAD_REQUEST,
                format!("The query parameter `{name}` is given twice."),
            ));
        }
    }
    Ok(values)
}

/// A number up to `max`, or the default.
pub(crate) fn number(name: &str, value: Option<&str>, default: u64, max: u64) -> Result<u64, Problem> {
    let Some(text) = value else { return Ok(default) };
    text.parse().ok().filter(|number| *number <= max).ok_or_else(|| {
        Problem::new(
            Kind::BAD_REQUEST,
            format!("The query parameter `{name}` must be a whole number up to {max}, not `{text}`."),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_repeated_names_are_refused() {
        let [mode, category] = values(Some("mode=te%78t"), ["mode", "category"]).unwrap();
        assert_eq!((mode.as_deref(), category), (Some("text"), None));
        assert!(values(Some("mod=x"), ["mode"]).is_err());
        assert!(values(Some("mode=x&mode=y"), ["mode"]).is_err());
        assert!(values::<0>(None, []).is_ok());
        assert_eq!(number("limit", Some("7"), 1, 10), Ok(7));
        for wrong in ["-1", "11", "x", ""] {
            assert!(number("limit", Some(wrong), 1, 10).is_err(), "{wrong}");
        }
    }
}
