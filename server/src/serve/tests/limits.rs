//! Callers that take their time, or come in crowds.

use super::{Control, Doors, House, Limits, TcpListener, attend, in_time, rest, watch};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Doors on a port of their own, until the sender is told or dropped.
async fn serve(limits: Limits) -> (SocketAddr, Control, watch::Sender<bool>, tempfile::TempDir) {
    let House {
        control,
        doors,
        _stop: stop,
        _folder: folder,
        ..
    } = House::limited(limits).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let doors = Doors {
        open: doors,
        full: rest::full_house(),
        limits,
    };
    let (served, stopping) = (control.clone(), stop.subscribe());
    tokio::spawn(async move { attend(listener, doors, &served, &stopping).await });
    (address, control, stop, folder)
}

async fn say(address: SocketAddr, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(words.as_bytes()).await.expect("heard");
    stream
}

/// Everything that comes until the other side hangs up.
async fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let read = in_time("it hangs up", stream.read_to_string(&mut text)).await;
    read.expect("text");
    text
}

#[tokio::test]
async fn a_head_that_does_not_end_is_answered_and_an_idle_line_is_closed() {
    // Long enough for a machine that stalls between the connection and its first words.
    let limits = Limits {
        head_within: Duration::from_secs(1),
        ..Limits::default()
    };
    let (address, _control, _stop, _folder) = serve(limits).await;
    let slow = say(
        address,
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    )
    .await;
    let text = answer(slow).await;
    assert!(
        text.starts_with("HTTP/1.1 408 ") && text.contains("/problems/slow"),
        "{text}"
    );
    let idle = say(address, "").await;
    assert_eq!(answer(idle).await, "");
}

#[tokio::test]
async fn a_body_that_does_not_end_is_answered_by_form_and_by_rest() {
    let limits = Limits {
        body_within: Duration::from_millis(100),
        ..Limits::default()
    };
    let (address, control, _stop, _folder) = serve(limits).await;
    let actor = control.actor("fraud-ml.engineer").await.expect("a person");
    let everyone = control.everyone(&actor);
    let token = everyone
        .create_token("laptop", 1)
        .await
        .expect("a token")
        .secret;
    for (path, kind, problem) in [
        ("/api/v1/jobs", "application/json", "/problems/slow"),
        ("/sign-in", "application/x-www-form-urlencoded", "Too slow"),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: {kind}\r\nContent-Length: 100\r\n\r\n{{"
        );
        let text = answer(say(address, &head).await).await;
        assert!(
            text.starts_with("HTTP/1.1 408 ") && text.contains(problem),
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn whoever_reads_nothing_of_an_answer_is_hung_up_on() {
    let limits = Limits {
        connections: 1,
        unread_within: Duration::from_millis(100),
        ..Limits::default()
    };
    let (address, _control, _stop, _folder) = serve(limits).await;
    // More than any buffer between the two holds.
    let asks = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(500);
    let _deaf = say(address, &asks).await;
    let ask = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let place = async {
        while !answer(say(address, ask).await)
            .await
            .starts_with("HTTP/1.1 200 ")
        {}
    };
    in_time("its place is free again", place).await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_a_place_is_given_again() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let (address, _control, _stop, _folder) = serve(limits).await;
    let ask = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut first = say(address, ask).await;
    let mut start = [0; 12];
    let read = in_time("the first is answered", first.read_exact(&mut start)).await;
    read.expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200");
    let text = answer(say(address, ask).await).await;
    assert!(
        text.starts_with("HTTP/1.1 503 ") && text.contains("/problems/full"),
        "{text}"
    );
    assert!(text.to_lowercase().contains("retry-after: "), "{text}");
    first.shutdown().await.expect("it is let go");
    answer(first).await;
    let last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let place = async {
        while !answer(say(address, last).await)
            .await
            .starts_with("HTTP/1.1 200")
        {}
    };
    in_time("its place is given again", place).await;
}
