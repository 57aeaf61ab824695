//! Errors of a CalDAV server, which a real server cannot be made to return.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{ANNA, Caller, MIRA, TestCalendar, code, commit, half_hour};
use crate::test_server::{Reply, serve};

const EMPTY: &str = r#"<multistatus xmlns="DAV:"/>"#;
const SHORT_DEADLINE: Caller = Caller { timeout: Duration::from_millis(600), ..ANNA };

/// A server without events that responds to each PUT with the next status; 0 stores the event and never responds.
async fn server(put: &'static [u16]) -> (TestCalendar, Arc<Mutex<Vec<String>>>) {
    let resources: Arc<Mutex<Vec<String>>> = Arc::default();
    let (stored, statuses) = (Arc::clone(&resources), Mutex::new(put.iter()));
    let url = serve(move |request| match request.method.as_str() {
        "REPORT" => Reply::Response(207, EMPTY.to_owned()),
        "GET" if stored.lock().unwrap().contains(&request.path) => {
            Reply::Response(200, "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n".to_owned())
        }
        "GET" => Reply::Response(404, String::new()),
        "PUT" => {
            assert_eq!(request.headers["if-none-match"], "*");
            assert!(request.body.contains("UID:evt_"), "{}", request.body);
            let mut stored = stored.lock().unwrap();
            match statuses.lock().unwrap().next() {
                _ if stored.contains(&request.path) => Reply::Response(412, String::new()),
                Some(0) => {
                    stored.push(request.path);
                    Reply::None
                }
                Some(status) => Reply::Response(*status, String::new()),
                None => {
                    stored.push(request.path);
                    Reply::Response(201, String::new())
                }
            }
        }
        other => panic!("{other}"),
    })
    .await;
    (TestCalendar::new(json!({ "url": url, "organizer": MIRA })), resources)
}

#[tokio::test]
async fn when_the_server_refuses_nothing_is_booked_and_a_retry_is_possible() {
    for (statuses, expected) in [
        (&[401_u16][..], "FORBIDDEN"),
        (&[403], "FORBIDDEN"),
        (&[409], "NOT_CONFIGURED"),
        (&[301], "NOT_CONFIGURED"),
        (&[429], "RATE_LIMIT"),
        (&[503], "UNREACHABLE"),
    ] {
        let (calendar, resources) = server(statuses).await;
        let draft = calendar.draft(ANNA, &[MIRA]).await;
        assert_eq!(
            code(calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await),
            expected,
            "{statuses:?}"
        );
        calendar.call(ANNA, "commit", commit(&draft, 0, "b")).await.unwrap();
        assert_eq!(resources.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_event_that_was_put_without_a_response_is_found_by_the_same_call_and_is_a_conflict_for_another() {
    for other in ["a", "b"] {
        let (calendar, resources) = server(&[0]).await;
        let draft = calendar.draft(ANNA, &[MIRA]).await;
        assert_eq!(code(calendar.call(SHORT_DEADLINE, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
        let later = Caller { now: "2026-03-01T10:05:00Z", ..ANNA };
        let again = calendar.call(later, "commit", commit(&draft, 0, other)).await;
        if other == "a" {
            assert_eq!(again.unwrap()["start"], "2026-03-02T09:00:00+01:00");
        } else {
            assert_eq!(code(again), "CONFLICT");
        }
        assert_eq!(resources.lock().unwrap().len(), 1);
        assert_eq!(calendar.events().rows().len(), 1);
    }
}

#[tokio::test]
async fn a_server_error_is_a_timeout_and_a_retry_succeeds() {
    let (calendar, resources) = server(&[500]).await;
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
    calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    assert_eq!(resources.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn when_busy_times_cannot_be_read_the_call_fails() {
    let responses: [(Reply, &str); 6] = [
        (Reply::Response(503, String::new()), "UNREACHABLE"),
        (Reply::Response(500, String::new()), "UNREACHABLE"),
        (Reply::Response(429, String::new()), "RATE_LIMIT"),
        (Reply::Response(200, "<html>".to_owned()), "NOT_CONFIGURED"),
        (Reply::Response(207, "<html>".to_owned()), "UNREACHABLE"),
        (Reply::None, "TIMEOUT"),
    ];
    for (response, expected) in responses {
        let response = Mutex::new(Some(response));
        let url = serve(move |_| response.lock().unwrap().take().unwrap_or(Reply::None)).await;
        let calendar = TestCalendar::new(json!({ "url": url, "organizer": MIRA }));
        assert_eq!(code(calendar.call(SHORT_DEADLINE, "propose", half_hour(&[MIRA])).await), expected);
    }
    let gone: Value = json!({ "url": "http://127.0.0.1:1/", "organizer": MIRA });
    assert_eq!(code(TestCalendar::new(gone).call(ANNA, "propose", half_hour(&[MIRA])).await), "UNREACHABLE");
}
