//! The address that a server listens on: `ADDR:PORT`, or `localhost:PORT`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Deserializer, de};

/// Parses an address. The error says what to write.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(match text.parse::<u16>() {
            Ok(port) => format!("`{text}` has no address; write 127.0.0.1:{port}"),
            Err(_) => format!("`{text}` is not an address with a port; write 127.0.0.1:7300"),
        });
    };
    let address = match host {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => address,
            Err(_) => {
                return Err(format!(
                    "`{host}` is not an IP address; write 127.0.0.1:7300, or 0.0.0.0:7300 for other machines"
                ));
            }
        },
    };
    match port.parse() {
        Ok(port) => Ok(SocketAddr::new(address, port)),
        Err(_) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("a port is at most 65535, not {port}; write {}", SocketAddr::new(address, 7300)))
        }
        Err(_) => Err(format!("the port `{port}` is not a number; write {}", SocketAddr::new(address, 7300))),
    }
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_or_its_error_says_what_to_write() {
        for (text, expected) in [
            ("127.0.0.1:7413", Ok("127.0.0.1:7413")),
            ("localhost:7413", Ok("127.0.0.1:7413")),
            ("[::1]:0", Ok("[::1]:0")),
            ("7413", Err("`7413` has no address; write 127.0.0.1:7413")),
            ("foo", Err("`foo` is not an address with a port; write 127.0.0.1:7300")),
            ("127.0.0.1:99999", Err("a port is at most 65535, not 99999; write 127.0.0.1:7300")),
            ("localhost:http", Err("the port `http` is not a number; write 127.0.0.1:7300")),
            ("[::1]:70000", Err("a port is at most 65535, not 70000; write [::1]:7300")),
            (
                "studio.example:80",
                Err(
                    "`studio.example` is not an IP address; write 127.0.0.1:7300, or 0.0.0.0:7300 for other machines",
                ),
            ),
        ] {
            let parsed = parse(text).map(|address| address.to_string());
            assert_eq!(parsed.as_deref().map_err(String::as_str), expected);
        }
    }
}
