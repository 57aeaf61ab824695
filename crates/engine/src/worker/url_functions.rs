//! The native part of `URL` and `URLSearchParams`, with the `url` crate.
use rquickjs::{Array, Ctx, FromJs, IntoJs, Result, String as JsString, Value};
use url::{Url, form_urlencoded, quirks};

use super::text;

/// All parts in the order that `url-globals.js` expects, or null if it is not a URL.
pub(crate) fn parse<'js>(ctx: &Ctx<'js>, address: &str, base: Option<&str>) -> Result<Value<'js>> {
    let parsed = match base {
        Some(base) => Url::parse(base).and_then(|base| base.join(address)),
        None => Url::parse(address),
    };
    match parsed {
        Ok(url) => parts(ctx, &url),
        Err(_) => Ok(Value::new_null(ctx.clone())),
    }
}

/// The parts after an assignment to one of them, or null if the value is invalid.
pub(crate) fn change<'js>(ctx: &Ctx<'js>, address: &str, part: &str, value: &str) -> Result<Value<'js>> {
    let changed = Url::parse(address).ok().and_then(|mut url| assign(&mut url, part, value).map(|()| url));
    match changed {
        Some(url) => parts(ctx, &url),
        None => Ok(Value::new_null(ctx.clone())),
    }
}

fn assign(url: &mut Url, part: &str, value: &str) -> Option<()> {
    match part {
        "href" => quirks::set_href(url, value).ok(),
        "protocol" => quirks::set_protocol(url, value).ok(),
        "username" => quirks::set_username(url, value).ok(),
        "password" => quirks::set_password(url, value).ok(),
        "host" => quirks::set_host(url, value).ok(),
        "hostname" => quirks::set_hostname(url, value).ok(),
        "port" => quirks::set_port(url, value).ok(),
        _ => {
            match part {
                "pathname" => quirks::set_pathname(url, value),
                "search" => quirks::set_search(url, value),
                "hash" => quirks::set_hash(url, value),
                _ => return None,
            }
            Some(())
        }
    }
}

fn parts<'js>(ctx: &Ctx<'js>, url: &Url) -> Result<Value<'js>> {
    let origin = quirks::origin(url);
    let texts = [
        quirks::href(url),
        origin.as_str(),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ];
    let array = Array::new(ctx.clone())?;
    for (index, text) in texts.iter().enumerate() {
        array.set(index, *text)?;
    }
    Ok(array.into_value())
}

pub(crate) fn parse_form<'js>(ctx: &Ctx<'js>, form: &str) -> Result<Value<'js>> {
    let pairs = Array::new(ctx.clone())?;
    for (index, (key, value)) in form_urlencoded::parse(form.as_bytes()).enumerate() {
        let pair = Array::new(ctx.clone())?;
        pair.set(0, &*key)?;
        pair.set(1, &*value)?;
        pairs.set(index, pair)?;
    }
    Ok(pairs.into_value())
}

pub(crate) fn write_form<'js>(ctx: &Ctx<'js>, pairs: &Array<'js>) -> Result<Value<'js>> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for index in 0..pairs.len() {
        let pair: Array<'js> = pairs.get(index)?;
        let part =
            |at| JsString::from_js(ctx, pair.get(at)?).and_then(|part| text::to_rust_string(ctx, &part));
        form.append_pair(&part(0)?, &part(1)?);
    }
    form.finish().into_js(ctx)
}
