//! A CalDAV server in trouble, which a real one cannot be told to be in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{ANNA, By, Desk, MIRA, code, commit, half_hour};
use crate::loopback::{Reply, serve};

const EMPTY: &str = r#"<multistatus xmlns="DAV:"/>"#;
const HASTY: By = By { within: Duration::from_millis(600), ..ANNA };

/// A server without events that answers a PUT as it is told; each that has an effect is counted.
async fn server(put: &'static [u16]) -> (Desk, Arc<Mutex<Vec<String>>>) {
    let resources: Arc<Mutex<Vec<String>>> = Arc::default();
    let (kept, calls) = (Arc::clone(&resources), Mutex::new(put.iter()));
    let url = serve(move |request| match request.method.as_str() {
        "REPORT" => Reply::Answer(207, EMPTY.to_owned()),
        "GET" if kept.lock().unwrap().contains(&request.path) => {
            Reply::Answer(200, "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n".to_owned())
        }
        "GET" => Reply::Answer(404, String::new()),
        "PUT" => {
            assert_eq!(request.headers["if-none-match"], "*");
            assert!(request.body.contains("UID:evt_"), "{}", request.body);
            let mut kept = kept.lock().unwrap();
            match calls.lock().unwrap().next() {
                _ if kept.contains(&request.path) => Reply::Answer(412, String::new()),
                // It has its effect, and no answer.
                Some(0) => {
                    kept.push(request.path);
                    Reply::Silence
                }
                Some(status) => Reply::Answer(*status, String::new()),
                None => {
                    kept.push(request.path);
                    Reply::Answer(201, String::new())
                }
            }
        }
        other => panic!("{other}"),
    })
    .await;
    (Desk::new(json!({ "url": url, "organizer": MIRA })), resources)
}

#[tokio::test]
async fn what_the_server_refuses_books_nothing_and_can_be_tried_again() {
    for (statuses, expected) in [
        (&[401_u16][..], "FORBIDDEN"),
        (&[403], "FORBIDDEN"),
        (&[409], "NOT_CONFIGURED"),
        (&[301], "NOT_CONFIGURED"),
        (&[429], "RATE_LIMIT"),
        (&[503], "UNREACHABLE"),
    ] {
        let (desk, resources) = server(statuses).await;
        let draft = desk.draft(ANNA, &[MIRA]).await;
        assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await), expected, "{statuses:?}");
        desk.ask(ANNA, "commit", commit(&draft, 0, "b")).await.unwrap();
        assert_eq!(resources.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_event_that_was_put_without_an_answer_is_found_by_the_same_call_and_told_to_another() {
    for other in ["a", "b"] {
        let (desk, resources) = server(&[0]).await;
        let draft = desk.draft(ANNA, &[MIRA]).await;
        assert_eq!(code(desk.ask(HASTY, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
        let later = By { now: "2026-03-01T10:05:00Z", ..ANNA };
        let again = desk.ask(later, "commit", commit(&draft, 0, other)).await;
        if other == "a" {
            assert_eq!(again.unwrap()["start"], "2026-03-02T09:00:00+01:00");
        } else {
            assert_eq!(code(again), "CONFLICT");
        }
        assert_eq!(resources.lock().unwrap().len(), 1);
        assert_eq!(desk.listing().rows().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_fails_may_have_had_effects_and_a_retry_finds_out() {
    let (desk, resources) = server(&[500]).await;
    let draft = desk.draft(ANNA, &[MIRA]).await;
    assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
    desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    assert_eq!(resources.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn free_times_that_cannot_be_had_are_not_made_up() {
    let answers: [(Reply, &str); 6] = [
        (Reply::Answer(503, String::new()), "UNREACHABLE"),
        (Reply::Answer(500, String::new()), "UNREACHABLE"),
        (Reply::Answer(429, String::new()), "RATE_LIMIT"),
        (Reply::Answer(200, "<html>".to_owned()), "NOT_CONFIGURED"),
        (Reply::Answer(207, "<html>".to_owned()), "UNREACHABLE"),
        (Reply::Silence, "TIMEOUT"),
    ];
    for (answer, expected) in answers {
        let answer = Mutex::new(Some(answer));
        let url = serve(move |_| answer.lock().unwrap().take().unwrap_or(Reply::Silence)).await;
        let desk = Desk::new(json!({ "url": url, "organizer": MIRA }));
        assert_eq!(code(desk.ask(HASTY, "propose", half_hour(&[MIRA])).await), expected);
    }
    let gone: Value = json!({ "url": "http://127.0.0.1:1/", "organizer": MIRA });
    assert_eq!(code(Desk::new(gone).ask(ANNA, "propose", half_hour(&[MIRA])).await), "UNREACHABLE");
}
