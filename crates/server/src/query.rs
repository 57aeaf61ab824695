//! The query of a URL: names that are known, each at most once.

use std::borrow::Cow;

use toolwright_contract::suggest::did_you_mean;

use crate::problem::{Kind, Problem};

/// The values of `names`, in their order. An unknown name is a problem.
pub(crate) fn values<'a, const N: usize>(
    query: Option<&'a str>,
    names: [&str; N],
) -> Result<[Option<Cow<'a, str>>; N], Problem> {
    let mut values = [const { None }; N];
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let Some(at) = names.iter().position(|known| *known == name) else {
            let detail = match N {
                0 => format!("There is no parameter `{name}` here."),
                _ => format!("There is no parameter `{name}`: {}", did_you_mean(&name, &names)),
            };
            return Err(Problem::new(Kind::BadRequest, detail));
        };
        if values[at].replace(value).is_some() {
            return Err(Problem::new(Kind::BadRequest, format!("`{name}` is given twice.")));
        }
    }
    Ok(values)
}

/// A number within bounds, or the default.
pub(crate) fn number(name: &str, value: Option<&str>, default: u64, most: u64) -> Result<u64, Problem> {
    let Some(text) = value else { return Ok(default) };
    text.parse().ok().filter(|number| *number <= most).ok_or_else(|| {
        Problem::new(Kind::BadRequest, format!("`{name}` must be a whole number up to {most}."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_and_come_once() {
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
