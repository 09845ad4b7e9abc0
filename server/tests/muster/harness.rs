//! A running `muster demo`, and those who ask it.

use reqwest::header::SET_COOKIE;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Nothing here takes longer, also on a slow machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The built binary.
pub fn muster() -> Command {
    Command::new(env!("CARGO_BIN_EXE_muster"))
}

/// What the command wrote, and how it ended. One that does not end within the deadline is killed, and fails by its name.
pub fn output_of(command: &mut Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let stdout = all_of(child.stdout.take().expect("its output"));
    let stderr = all_of(child.stderr.take().expect("its errors"));
    let read = |pipe: &Receiver<Vec<u8>>| pipe.recv_timeout(DEADLINE);
    // Both pipes close when it ends.
    if let (Ok(stdout), Ok(stderr)) = (read(&stdout), read(&stderr)) {
        let status = child.wait().expect("it has ended");
        return Output {
            status,
            stdout,
            stderr,
        };
    }
    let _ = child.kill();
    let _ = child.wait();
    let args: Vec<_> = command.get_args().collect();
    panic!("muster {args:?} does not end within {DEADLINE:?}");
}

/// Everything that comes out of a pipe, read by a thread of its own so that the wait for it has an end.
fn all_of(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (tell, read) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if pipe.read_to_end(&mut bytes).is_ok() {
            let _ = tell.send(bytes);
        }
    });
    read
}

/// The address in what a starting server says of itself; as [`all_of`].
fn address_in(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, read) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
        let url = lines.find_map(|line| {
            line.split(' ')
                .find(|word| word.starts_with("http://"))
                .map(str::to_owned)
        });
        if let Some(url) = url {
            let _ = tell.send(url);
        }
    });
    read
}

/// A running demo. Dropped, it is killed.
pub struct Server {
    child: Child,
    pub url: String,
    pub data: PathBuf,
    _folder: Option<TempDir>,
}

impl Server {
    /// Over a new folder, with a day of history and its clock this fast.
    pub async fn start(speed: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut server = Self::over(folder.path(), speed).await;
        server._folder = Some(folder);
        server
    }

    /// Over this folder; returns once it answers that it is ready.
    pub async fn over(data: &Path, speed: u32) -> Self {
        let mut child = muster()
            .args([
                "demo",
                "--addr",
                "127.0.0.1:0",
                "--seed",
                "1",
                "--history-days",
                "1",
            ])
            .args(["--speed", &speed.to_string(), "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("muster starts");
        let url = address_in(child.stdout.take().expect("its output"));
        // Before the wait, so that one that says nothing is killed when the test fails.
        let mut server = Self {
            child,
            url: String::new(),
            data: data.to_owned(),
            _folder: None,
        };
        server.url = match url.recv_timeout(DEADLINE) {
            Ok(url) => url,
            Err(RecvTimeoutError::Disconnected) => panic!("muster ends before it says where it is"),
            Err(RecvTimeoutError::Timeout) => {
                panic!("muster does not say where it is within {DEADLINE:?}")
            }
        };
        server.ready().await;
        server
    }

    async fn ready(&self) {
        let asked = async {
            let mut pause = tokio::time::interval(Duration::from_millis(20));
            loop {
                pause.tick().await;
                let answer = reqwest::get(format!("{}/readyz", self.url)).await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    return;
                }
            }
        };
        tokio::time::timeout(DEADLINE, asked)
            .await
            .expect("ready within the deadline");
    }

    /// `kill -9`, at whatever it is doing.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// A client with a token made on the box while the server runs.
    pub fn person(&self, id: &str) -> Person {
        let mut create = muster();
        create.args(["token", "create", "--as", id, "--data"]);
        let made = output_of(create.arg(&self.data));
        let text = stdout(&made);
        let token = text.lines().last().unwrap_or_default().to_owned();
        assert!(
            token.len() > 20 && !token.contains(' '),
            "the secret alone is on the last line: {text}"
        );
        Person {
            http: client(),
            url: self.url.clone(),
            token,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that follows no redirects.
pub fn client() -> Client {
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(DEADLINE)
        .build()
        .expect("a client")
}

/// Standard output of a command that did well.
pub fn stdout(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{:?}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// Somebody with a token.
#[derive(Clone)]
pub struct Person {
    pub http: Client,
    pub url: String,
    pub token: String,
}

impl Person {
    /// A request below `/api/v1`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}/api/v1{path}", self.url))
            .bearer_auth(&self.token)
    }

    /// Sends it: status and JSON.
    pub async fn ask(&self, request: RequestBuilder) -> (StatusCode, Value) {
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// `GET` of something that is there.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(self.request(Method::GET, path)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// Submits a spec under a key.
    pub async fn submit(&self, spec: &Value, key: &str) -> (StatusCode, Value) {
        self.ask(
            self.request(Method::POST, "/jobs")
                .header("Idempotency-Key", key)
                .json(spec),
        )
        .await
    }

    /// Asks for a job until `done` holds.
    pub async fn job_until(&self, id: u64, done: impl Fn(&Value) -> bool) -> Value {
        let asked = async {
            let mut pause = tokio::time::interval(Duration::from_millis(20));
            loop {
                pause.tick().await;
                let job = self.get(&format!("/jobs/{id}")).await;
                if done(&job) {
                    return job;
                }
            }
        };
        tokio::time::timeout(DEADLINE, asked)
            .await
            .unwrap_or_else(|_| panic!("job {id} does not get there"))
    }

    /// The command line as this person.
    pub fn cli(&self, args: &[&str]) -> Output {
        output_of(
            muster()
                .args(args)
                .env("MUSTER_URL", &self.url)
                .env("MUSTER_TOKEN", &self.token),
        )
    }
}

/// Somebody with a browser.
pub struct Browser {
    pub http: Client,
    pub url: String,
    pub cookie: String,
}

impl Browser {
    /// Signs in by the form; the answer to it comes along.
    pub async fn sign_in(server: &Server, person: &str, next: &str) -> (Self, Response) {
        let http = client();
        let form = [("person", person), ("next", next)];
        let answer = http
            .post(format!("{}/sign-in", server.url))
            .form(&form)
            .send()
            .await
            .expect("an answer");
        let cookie = answer
            .headers()
            .get(SET_COOKIE)
            .and_then(|cookie| cookie.to_str().ok())
            .unwrap_or_default();
        for word in ["HttpOnly", "SameSite=Lax", "Path=/"] {
            assert!(cookie.contains(word), "{cookie}");
        }
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        (
            Self {
                http,
                url: server.url.clone(),
                cookie,
            },
            answer,
        )
    }
    /// The same browser with another cookie.
    pub fn with_cookie(&self, cookie: &str) -> Self {
        Self {
            http: self.http.clone(),
            url: self.url.clone(),
            cookie: cookie.to_owned(),
        }
    }
    /// Sends it with the session.
    pub async fn send(&self, request: RequestBuilder) -> Response {
        request
            .header("cookie", &self.cookie)
            .send()
            .await
            .expect("an answer")
    }
    /// `GET` with the session.
    pub async fn get(&self, path: &str) -> Response {
        self.send(self.http.get(format!("{}{path}", self.url)))
            .await
    }
    /// A form with the session.
    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        self.send(self.http.post(format!("{}{path}", self.url)).form(form))
            .await
    }
}

/// A fine-tune on 32 GPUs of one block that works for two hours.
pub fn fine_tune(name: &str) -> Value {
    json!({
        "team": "fraud-ml", "name": name, "image": "fraud/train:4.12", "flavours": ["h100-80g"], "pods": 4, "gpus_per_pod": 8,
        "topology": "block", "time_limit": "12h", "run_time": "2h", "checkpoint": { "period": "30m", "save": "30s" },
    })
}

/// A notebook with one GPU.
pub fn notebook(name: &str) -> Value {
    json!({
        "team": "fraud-ml", "name": name, "kind": "notebook", "image": "fraud/lab:2", "flavours": ["h100-80g"], "gpus_per_pod": 1,
    })
}

/// One small job that needs no GPU.
pub fn small_job(name: &str) -> Value {
    json!({ "team": "fraud-ml", "name": name, "image": "fraud/count:1", "gpus_per_pod": 0, "run_time": "10m" })
}
