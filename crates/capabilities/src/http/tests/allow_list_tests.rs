//! The grammar of allow list entries, and what each of them permits.

use super::allow;
use crate::http::allow_list::canonical;
use crate::http::{AllowList, Methods};
use reqwest::Method;
use url::Url;

fn permits(entry: &str, url: &str) -> bool {
    let url = Url::parse(url).ok().and_then(|url| canonical(url).ok());
    url.is_some_and(|url| allow(&[entry]).check_url(&url).is_ok())
}

/// Entry | URLs that it permits | URLs that it does not permit.
const ENTRIES: &str = "
api.example.com | https://api.example.com/x https://API.Example.COM:443/ https://api.example.com./ | http://api.example.com/ https://api.example.com:8443/ https://example.com/ https://x.api.example.com/
API.Example.com. | https://api.example.com/ | https://api.example.com../ https://api.example.com.evil.test/
api.example.com:8443 | https://api.example.com:8443/ | https://api.example.com/ http://api.example.com:8443/
api.example.com:80 | http://api.example.com/ | https://api.example.com:80/ https://api.example.com/
http://api.example.com | http://api.example.com/ | https://api.example.com/ http://api.example.com:443/
HTTP://api.example.com:8080 | http://api.example.com:8080/ | https://api.example.com:8080/
https://api.example.com | https://api.example.com/ | http://api.example.com/
*.example.com | https://a.example.com/ https://a.b.example.com/ | https://example.com/ https://.example.com/ https://badexample.com/ http://a.example.com/
https://*.example.com:8443 | https://a.example.com:8443/ | https://a.example.com/
bücher.example | https://xn--bcher-kva.example/ https://BÜCHER.example/ | https://bucher.example/
93.184.216.34 | https://93.184.216.34/ | http://93.184.216.34/
10.0.0.5 | http://10.0.0.5/ https://10.0.0.5/ | http://10.0.0.5:8080/ http://10.0.0.6/
127.0.0.1:8080 | http://127.0.0.1:8080/ https://127.0.0.1:8080/ | http://127.0.0.1/ http://localhost:8080/ http://[::1]:8080/
[::1]:8080 | http://[::1]:8080/ http://[0:0::0:1]:8080/ | http://[::1]/ http://127.0.0.1:8080/
localhost:8080 | http://localhost:8080/ http://LOCALHOST.:8080/ | http://localhost/ http://a.localhost:8080/";

#[test]
fn an_entry_permits_only_its_scheme_and_port() {
    for line in ENTRIES.trim().lines() {
        let [entry, permitted, refused] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        for url in permitted.split(' ') {
            assert!(permits(entry, url), "{entry} does not permit {url}");
        }
        for url in refused.split(' ') {
            assert!(!permits(entry, url), "{entry} permits {url}");
        }
    }
}

#[test]
fn unusual_spellings_of_an_address_are_checked_as_that_address() {
    let loopback = "
        http://127.1:8080/ http://2130706433:8080/ http://0x7f000001:8080/ http://0x7f.1:8080/ http://0177.0.0.1:8080/
        http://017700000001:8080/ http://127.0.0.1.:8080/ http://127.0.0.0x1:8080/ http://%31%32%37.0.0.1:8080/
        http://127。0。0。1:8080/ http://①②⑦.0.0.1:8080/ http:\\\\127.1:8080\\ http:127.0.1:8080";
    for url in loopback.split_whitespace() {
        assert!(permits("127.0.0.1:8080", url), "{url} is not parsed as 127.0.0.1");
        assert!(!permits("127.0.0.2:8080", url), "{url}");
        assert!(!permits("*.0.1.test", url), "{url}");
    }
    let other = "
        http://[::ffff:127.0.0.1]:8080/ http://[::ffff:7f00:1]:8080/ http://[::127.0.0.1]:8080/ http://0:8080/
        http://0.0.0.0:8080/ http://[::1%25lo]:8080/ http://[::1%lo]:8080/ http://127.0.0.1.nip.io:8080/
        http://127.0.0.1@evil.test:8080/ http://evil.test:8080#@127.0.0.1:8080/ http://256.0.0.1:8080/ http://127.0.0.1.1:8080/";
    for url in other.split_whitespace() {
        assert!(!permits("127.0.0.1:8080", url), "{url} counts as 127.0.0.1");
    }
}

#[test]
fn the_error_names_an_invalid_entry() {
    let entries = [
        "",
        "*",
        "*.com",
        "*.localhost:80",
        "*.10.0.0.1",
        "a.*.example.com",
        "a*.example.com",
        "https://",
        "ftp://example.com",
        "example.com/path",
        "https://example.com/",
        "user@example.com",
        "example.com?x",
        "example.com#x",
        "exa mple.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:+80",
        "example.com:x",
        "::1",
        "::1:8080",
        "[::1",
        "[::1]8080",
        "[fe80::1%eth0]:80",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "localhost",
        "http://localhost",
        "a.localhost",
        "0.0.0.0:80",
        "[::]:80",
        "224.0.0.1",
        "255.255.255.255",
        "[ff02::1]",
        "a..b",
        ".example.com",
        "256.1.1.1",
    ];
    for entry in entries {
        let problem = AllowList::parse(&["ok.example".to_owned(), entry.to_owned()]).expect_err(entry);
        assert!(problem.starts_with(&format!("http allow list: \"{entry}\": ")), "{problem}");
    }
}

#[test]
fn an_empty_list_permits_nothing() {
    let url = Url::parse("https://example.com/").unwrap();
    assert_eq!(allow(&[]).check_url(&url).unwrap_err().code, "NOT_ALLOWED");
}

#[test]
fn read_only_tools_may_use_get_and_head_and_no_tool_may_tunnel() {
    let (all, read_only) = (allow(&[]), allow(&[]).with_methods(Methods::ReadOnly));
    let is_permitted = |list: &AllowList, name: &str| {
        list.check_method(&Method::from_bytes(name.as_bytes()).unwrap()).is_ok()
    };
    for (name, in_all, in_read_only) in [
        ("GET", true, true),
        ("HEAD", true, true),
        ("POST", true, false),
        ("DELETE", true, false),
        ("OPTIONS", true, false),
        ("PROPFIND", true, false),
        ("CONNECT", false, false),
        ("TRACE", false, false),
    ] {
        assert_eq!(
            (is_permitted(&all, name), is_permitted(&read_only, name)),
            (in_all, in_read_only),
            "{name}"
        );
    }
}
