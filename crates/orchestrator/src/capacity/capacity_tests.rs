use super::*;

fn seats(capacity: Capacity) -> Seats {
    Seats::new(capacity)
}

/// A principal lives as long as the test.
fn seat_request(principal: &str, tool: &'static str) -> SeatRequest<'static> {
    let principal = Principal { id: principal.to_owned(), ..Principal::default() };
    SeatRequest { tool, principal: Box::leak(Box::new(principal)), root: None, depth: 0 }
}

fn nested(root: usize, depth: usize) -> SeatRequest<'static> {
    SeatRequest { root: Some(root), depth, ..seat_request("mira", "search") }
}

fn ask(seats: &Seats, request: &SeatRequest<'_>) -> Result<SeatAnswer, Failure> {
    seats.request(request, Instant::now() + Duration::from_secs(60))
}

#[track_caller]
fn take(seats: &Seats, request: &SeatRequest<'_>) -> Permit {
    match ask(seats, request) {
        Ok(SeatAnswer::Taken(permit)) => permit,
        Ok(SeatAnswer::Waiting(_)) => panic!("it waits"),
        Err(failure) => panic!("{failure:?}"),
    }
}

#[track_caller]
fn wait(seats: &Seats, request: &SeatRequest<'_>) -> Waiting {
    match ask(seats, request) {
        Ok(SeatAnswer::Waiting(waiting)) => waiting,
        Ok(SeatAnswer::Taken(_)) => panic!("it has a seat"),
        Err(failure) => panic!("{failure:?}"),
    }
}

fn refused(seats: &Seats, request: &SeatRequest<'_>) -> (ErrorKind, String) {
    let failure = ask(seats, request).err().unwrap();
    assert!(failure.retryable && failure.suggestion.is_some());
    (failure.kind, failure.message)
}

fn has_seat(waiting: &mut Waiting) -> Option<Permit> {
    waiting.granted.try_recv().ok()
}

#[test]
fn a_tool_and_a_principal_leave_seats_to_others() {
    let seats = seats(Capacity { max_waiting: 0, ..Capacity::with_concurrency(8) });
    let endless: Vec<_> = (0..4).map(|_| take(&seats, &seat_request("mallory", "endless"))).collect();
    let tool = "The tool `endless` has 4 calls running, which is its limit (`max_concurrent_per_tool`).";
    assert_eq!(refused(&seats, &seat_request("mira", "endless")), (ErrorKind::RateLimit, tool.to_owned()));
    let more: Vec<_> = (0..2).map(|_| take(&seats, &seat_request("mallory", "other"))).collect();
    let principal = "The user has 6 calls running, which is the limit (`max_concurrent_per_principal`).";
    assert_eq!(
        refused(&seats, &seat_request("mallory", "third")),
        (ErrorKind::RateLimit, principal.to_owned())
    );
    let good: Vec<_> = (0..2).map(|_| take(&seats, &seat_request("mira", "good"))).collect();
    let all = "The server has 8 calls of handlers running, which is its limit (`max_concurrent`).";
    assert_eq!(refused(&seats, &seat_request("jon", "good")), (ErrorKind::Unavailable, all.to_owned()));
    assert!(seats.used().is_full());
    drop((endless, more, good));
    assert_eq!(seats.used(), CapacityUse { seats: 8, ..CapacityUse::default() });
    assert!(seats.levels[0].is_forgotten(), "nothing is kept of owners that are gone");
}

#[test]
fn principals_and_their_tools_take_turns() {
    let seats = seats(Capacity { max_concurrent_per_tool: 1, ..Capacity::with_concurrency(1) });
    let running = take(&seats, &seat_request("mallory", "endless"));
    let mut crowd: Vec<_> = (0..64).map(|_| wait(&seats, &seat_request("mallory", "endless"))).collect();
    let mut good = wait(&seats, &seat_request("mallory", "good"));
    let mut other = wait(&seats, &seat_request("mira", "good"));
    assert_eq!((seats.used().running, seats.used().waiting), (1, 66));
    drop(running);
    let first = has_seat(&mut crowd[0]).expect("the principal that waits longest is first");
    assert!(has_seat(&mut other).is_none());
    drop(first);
    drop(has_seat(&mut other).expect("then it is the turn of the other principal"));
    drop(has_seat(&mut good).expect("then that of the other tool"));
    assert!(crowd[1..].iter_mut().filter_map(has_seat).count() > 0);
}

#[test]
fn whoever_has_a_free_limit_passes_those_that_wait_for_theirs() {
    let seats = seats(Capacity { max_concurrent_per_tool: 1, ..Capacity::with_concurrency(4) });
    let endless = take(&seats, &seat_request("mallory", "endless"));
    let mut waiting = wait(&seats, &seat_request("mallory", "endless"));
    let good = take(&seats, &seat_request("mallory", "good"));
    drop(good);
    assert!(has_seat(&mut waiting).is_none(), "the tool's own limit still holds");
    drop(endless);
    assert!(has_seat(&mut waiting).is_some());
}

#[test]
fn the_queue_is_bounded_for_each_tool_and_principal_and_in_all() {
    let seats = seats(Capacity { max_waiting: 4, ..Capacity::with_concurrency(1) });
    let _running = take(&seats, &seat_request("mallory", "endless"));
    let _first = wait(&seats, &seat_request("mallory", "endless"));
    // The other half of the tool's places is for other principals.
    assert_eq!(refused(&seats, &seat_request("mallory", "endless")).0, ErrorKind::RateLimit);
    let _same_tool = wait(&seats, &seat_request("mira", "endless"));
    let _second = wait(&seats, &seat_request("mallory", "other"));
    assert_eq!(refused(&seats, &seat_request("mallory", "third")).0, ErrorKind::RateLimit);
    let _last = wait(&seats, &seat_request("jon", "good"));
    assert_eq!(refused(&seats, &seat_request("ada", "third")).0, ErrorKind::Unavailable);
}

#[test]
fn a_call_that_goes_away_gives_back_its_place_and_its_seat() {
    let seats = seats(Capacity { max_waiting: 2, ..Capacity::with_concurrency(1) });
    let running = take(&seats, &seat_request("mira", "a"));
    drop(wait(&seats, &seat_request("mira", "a")));
    let gone = wait(&seats, &seat_request("mira", "a"));
    let mut next = wait(&seats, &seat_request("jon", "b"));
    drop(running);
    // It got the seat, and goes away before it has seen that.
    assert_eq!((seats.used().running, seats.used().waiting), (1, 1));
    drop(gone);
    assert!(has_seat(&mut next).is_some());
}

#[test]
fn each_depth_has_its_own_seats_and_a_root_call_only_some_of_them() {
    let seats = seats(Capacity { max_nested_per_call: 2, max_waiting: 0, ..Capacity::with_concurrency(8) });
    let roots: Vec<_> = (0..4).map(|_| take(&seats, &seat_request("mira", "search"))).collect();
    let mut taken = Vec::new();
    for depth in 1..MAX_CALL_DEPTH {
        taken.push(take(&seats, &nested(1, depth)));
    }
    let one_more = take(&seats, &nested(1, 1));
    let nested_limit = "The call has 2 nested calls running, which is the limit (`max_nested_per_call`).";
    assert_eq!(
        refused(&seats, &SeatRequest { root: Some(1), depth: 1, ..seat_request("jon", "other") }),
        (ErrorKind::RateLimit, nested_limit.to_owned())
    );
    assert_eq!(
        refused(&seats, &nested(2, 1)).1,
        "The tool `search` has 2 calls running, which is its limit (`max_concurrent_per_tool`)."
    );
    assert_eq!(seats.used().seats_taken, 4);
    drop((roots, taken, one_more));
    assert_eq!(seats.used().running, 0);
}

#[tokio::test]
async fn a_wait_ends_with_the_limit_that_caused_it() {
    let seats = seats(Capacity { max_wait: Duration::ZERO, ..Capacity::with_concurrency(2) });
    let _running = [take(&seats, &seat_request("mira", "a")), take(&seats, &seat_request("jon", "b"))];
    let kind = |failure: Result<Permit, Failure>| failure.err().map(|failure| failure.kind);
    assert_eq!(kind(wait(&seats, &seat_request("ada", "a")).seat().await), Some(ErrorKind::RateLimit));
    assert_eq!(kind(wait(&seats, &seat_request("ada", "c")).seat().await), Some(ErrorKind::Unavailable));
    assert_eq!(seats.used().waiting, 0);
}

#[test]
fn a_principal_leaves_seats_of_a_tool_to_others() {
    let seats = seats(Capacity { max_waiting: 0, ..Capacity::with_concurrency(16) });
    let _endless: Vec<_> = (0..7).map(|_| take(&seats, &seat_request("mallory", "endless"))).collect();
    let limit = "The user has 7 calls of this tool running, which is the limit for one user.";
    assert_eq!(
        refused(&seats, &seat_request("mallory", "endless")),
        (ErrorKind::RateLimit, limit.to_owned())
    );
    take(&seats, &seat_request("mira", "endless"));
}
