//! JSON pointers: plain, relative and as URI fragments.

use crate::uri::has_valid_escapes;

pub fn is_pointer(text: &str) -> bool {
    text.is_empty() || (text.starts_with('/') && has_valid_tilde_escapes(text))
}

/// Every `~` is followed by 0 or 1.
fn has_valid_tilde_escapes(text: &str) -> bool {
    text.split('~').skip(1).all(|after| after.starts_with(['0', '1']))
}

pub fn is_relative_pointer(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (up, rest) = text.split_at(digits);
    let plain = up == "0" || (!up.is_empty() && !up.starts_with('0'));
    plain && (rest == "#" || is_pointer(rest))
}

pub fn is_pointer_fragment(text: &str) -> bool {
    let Some(pointer) = text.strip_prefix('#') else { return false };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.!$&'()*+,;:=@/%~".contains(&byte);
    (pointer.is_empty() || pointer.starts_with('/'))
        && pointer.bytes().all(allowed)
        && has_valid_tilde_escapes(pointer)
        && has_valid_escapes(pointer)
}
