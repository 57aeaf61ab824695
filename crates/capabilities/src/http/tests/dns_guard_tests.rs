//! Which hosts are reached: the allow list, the addresses of names, DNS rebinding, concurrency.

use super::test_server::{Reply, Server, hello};
use super::{allow, code, fetcher, fetcher_with, get, options};
use crate::http::dns_guard::{DnsGuard, NotPublic};
use reqwest::dns::Resolve;
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_listed_address_is_reached() {
    let server = Server::fixed("127.0.0.1", hello()).await;
    let base = format!("127.0.0.1:{}", server.port());
    let answer = get(&fetcher(), &allow(&[&base]), &format!("http://{base}/a?b=c#d")).await.unwrap();
    assert_eq!(
        answer,
        json!({
            "status": 200, "ok": true, "url": format!("http://{base}/a?b=c"), "body": "hello", "json": null,
            "headers": {"content-type": "text/plain", "content-length": "5"},
        })
    );
    assert!(server.requests()[0].starts_with("GET /a?b=c HTTP/1.1\r\n"));
}

#[tokio::test]
async fn localhost_with_a_port_is_this_machine_without_asking_dns() {
    let server = Server::fixed("127.0.0.1", hello()).await;
    let fetcher = fetcher_with(|name| panic!("asked for {name}"), options());
    for host in ["localhost", "app.localhost"] {
        let base = format!("{host}:{}", server.port());
        assert_eq!(code(get(&fetcher, &allow(&[&base]), &format!("http://{base}/")).await), "ok");
    }
}

#[tokio::test]
async fn ipv6_loopback_is_reached_when_listed() {
    let server = Server::fixed("::1", hello()).await;
    let base = format!("[::1]:{}", server.port());
    assert_eq!(code(get(&fetcher(), &allow(&[&base]), &format!("http://{base}/")).await), "ok");
}

#[tokio::test]
async fn unlisted_hosts_are_refused_without_a_connection() {
    let server = Server::fixed("127.0.0.1", hello()).await;
    let port = server.port();
    let fetcher = fetcher_with(|name| panic!("asked for {name}"), options());
    let list = allow(&["api.example.com", "http://public.test"]);
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://public.test:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://user:secret@api.example.com:{port}/"),
        "https://user@api.example.com/".to_owned(),
        "https://:secret@api.example.com/".to_owned(),
        "http://api.example.com/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "ftp://api.example.com/".to_owned(),
        "data:text/plain,x".to_owned(),
        "javascript:1".to_owned(),
        "ws://api.example.com/".to_owned(),
        "unix:/run/docker.sock".to_owned(),
    ] {
        let error = get(&fetcher, &list, &url).await.unwrap_err();
        assert_eq!(error.code, "NOT_ALLOWED", "{url}");
        assert!(!error.message.contains("secret"), "{error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_listed_name_is_reached_at_public_addresses_only() {
    let public = Server::fixed("127.0.0.2", hello()).await;
    let private = Server::fixed("127.0.0.1", hello()).await;
    let (open, closed) = (public.port(), private.port());
    let list = allow(&[
        &format!("http://*.public.test:{open}"),
        &format!("http://private.test:{closed}"),
        &format!("http://mixed.test:{open}"),
        "http://nowhere.test",
    ]);
    let fetcher = fetcher();
    assert_eq!(code(get(&fetcher, &list, &format!("http://a.public.test:{open}/")).await), "ok");
    for url in [format!("http://private.test:{closed}/"), format!("http://mixed.test:{open}/")] {
        let error = get(&fetcher, &list, &url).await.unwrap_err();
        assert_eq!(error.code, "NOT_ALLOWED", "{error}");
        assert!(!error.message.contains("127."), "{error}");
    }
    assert_eq!(code(get(&fetcher, &list, "http://nowhere.test/").await), "UNREACHABLE");
    assert_eq!((public.connections(), private.connections()), (1, 0));
}

#[tokio::test]
async fn a_name_that_is_rebound_after_the_first_answer_is_refused() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let fetcher = fetcher_with(
        move |_| {
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                vec![[127, 0, 0, 2]]
            } else {
                vec![[127, 0, 0, 1]]
            }
        },
        options(),
    );
    let public = Server::fixed("127.0.0.2", hello()).await;
    let base = format!("http://rebound.test:{}", public.port());
    let list = allow(&[&base]);
    assert_eq!(code(get(&fetcher, &list, &base).await), "ok");
    assert_eq!((asked.load(Ordering::SeqCst), public.connections()), (1, 1), "one lookup for one connection");
    assert_eq!(code(get(&fetcher, &list, &base).await), "NOT_ALLOWED");
}

/// Tests the guard alone: if it failed, a fetch would connect to these addresses.
#[tokio::test]
async fn the_real_table_guards_every_lookup() {
    let resolve = |addresses: Vec<IpAddr>| {
        let lookup = Arc::new(move |_| {
            Box::pin(std::future::ready(Ok(addresses.clone()))) as crate::http::dns_guard::LookupFuture
        });
        DnsGuard { lookup, ..DnsGuard::system() }.resolve("api.test".parse().unwrap())
    };
    let public = IpAddr::from([8, 8, 8, 8]);
    assert_eq!(resolve(vec![public]).await.unwrap().collect::<Vec<_>>(), [SocketAddr::new(public, 0)]);
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        "fd00:ec2::254",
        "64:ff9b::7f00:1",
    ] {
        let private = address.parse().unwrap();
        for answer in [vec![private], vec![public, private], vec![private, public]] {
            assert!(resolve(answer).await.is_err_and(|error| error.is::<NotPublic>()), "{address}");
        }
    }
}

#[tokio::test]
async fn the_system_resolves_localhost() {
    let addresses = (DnsGuard::system().lookup)("localhost".to_owned()).await.unwrap();
    assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
}

#[tokio::test]
async fn a_pooled_connection_is_used_only_by_lists_with_its_host() {
    let server = Server::start("127.0.0.2", |_| Reply::Keep(hello())).await;
    let base = format!("http://public.test:{}", server.port());
    let fetcher = fetcher();
    assert_eq!(code(get(&fetcher, &allow(&[&base]), &base).await), "ok");
    assert_eq!(code(get(&fetcher, &allow(&["http://other.test"]), &base).await), "NOT_ALLOWED");
    assert_eq!(code(get(&fetcher.clone(), &allow(&[&base]), &base).await), "ok");
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_fetches_at_once_do_not_mix() {
    let server = Server::start("127.0.0.1", |request| {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        Reply::Keep(super::test_server::reply("200 OK", "", path))
    })
    .await;
    let base = format!("127.0.0.1:{}", server.port());
    let (fetcher, list) = (fetcher(), Arc::new(allow(&[&base])));
    let calls: Vec<_> = (0..100)
        .map(|number| {
            let (fetcher, list, url) = (fetcher.clone(), list.clone(), format!("http://{base}/{number}"));
            tokio::spawn(async move { get(&fetcher, &list, &url).await.unwrap()["body"].clone() })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), json!(format!("/{number}")));
    }
}
