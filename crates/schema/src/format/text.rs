//! `url` and `byte`, as ajv-formats defines them.

use std::sync::LazyLock;

use fancy_regex::Regex;

static URL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let space =
        r"\t\n\x0b\x0c\r\x20\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";
    let letter = r"a-z\u{a1}-\u{ffff}";
    let word = format!("(?:[0-9{letter}]+-)*[0-9{letter}]+");
    let private = "(?!(?:10|127)(?:[.][0-9]{1,3}){3})(?!(?:169[.]254|192[.]168)(?:[.][0-9]{1,3}){2})(?!172[.](?:1[6-9]|2[0-9]|3[0-1])(?:[.][0-9]{1,3}){2})";
    let first = "(?:[1-9][0-9]?|1[0-9][0-9]|2[01][0-9]|22[0-3])";
    let middle = "(?:[.](?:1?[0-9]{1,2}|2[0-4][0-9]|25[0-5])){2}";
    let last = "(?:[.](?:[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-4]))";
    let host =
        format!("(?:{private}{first}{middle}{last}|(?:{word})(?:[.]{word})*(?:[.](?:[{letter}]{{2,}})))");
    let user = format!("(?:[^{space}]+(?::[^{space}]*)?@)?");
    Regex::new(&format!(r"(?i)\A(?:https?|ftp)://{user}{host}(?::[0-9]{{2,5}})?(?:/[^{space}]*)?\z")).ok()
});

pub fn is_url(text: &str) -> bool {
    URL.as_ref().is_some_and(|regex| regex.is_match(text).unwrap_or(false))
}

/// ajv-formats matches with the `m` flag: one base64 line is enough.
pub fn is_base64(text: &str) -> bool {
    text.split(['\n', '\r', '\u{2028}', '\u{2029}']).any(is_base64_line)
}

fn is_base64_line(line: &str) -> bool {
    let padding = line.len() - line.trim_end_matches('=').len();
    let digits = line.get(..line.len() - padding).unwrap_or_default();
    line.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}
