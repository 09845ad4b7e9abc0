//! The REST interface as a client has it: one request, one answer or one clear error.

use clap::{Args, ValueEnum};
use contract::Problem;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use thiserror::Error;

/// Longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Where the server is and who asks.
#[derive(Clone, Debug, Args)]
pub struct ClientArgs {
    /// The server.
    #[arg(long, env = "MUSTER_URL", default_value = "http://127.0.0.1:3000")]
    pub url: String,
    /// An API token; better in the environment than on the command line, where others see it.
    #[arg(long, env = "MUSTER_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Why a request brought nothing.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No token.
    #[error(
        "no token: make one on the portal's page /tokens, or on the server with `muster token create --as PERSON --data DIR`, and set MUSTER_TOKEN"
    )]
    NoToken,
    /// No connection, or it broke.
    #[error(
        "{url} does not answer ({problem}): is `muster demo` or `muster serve` running there? Set MUSTER_URL otherwise"
    )]
    Connection {
        /// The server.
        url: String,
        /// What happened.
        problem: String,
    },
    /// The server refuses.
    #[error("{}", in_lines(.0))]
    Refused(Box<Problem>),
    /// The answer is not Muster's.
    #[error("{url} answers {status}, and not as Muster does: is MUSTER_URL right?")]
    Strange {
        /// The server.
        url: String,
        /// Its status.
        status: StatusCode,
    },
}

/// A line for each wrong field, or the detail.
fn in_lines(problem: &Problem) -> String {
    if problem.errors.is_empty() {
        let hint = if problem.status == 401 {
            ": the token is not valid (any more); make a new one and set MUSTER_TOKEN"
        } else {
            ""
        };
        return format!("{}{hint}", problem.detail);
    }
    let lines: Vec<_> = problem
        .errors
        .iter()
        .map(|wrong| format!("{}: {}", wrong.field, wrong.message))
        .collect();
    lines.join("\nmuster: ")
}

impl ClientError {
    /// True when asking again may help: the connection broke, or the server is busy.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connection { .. } => true,
            Self::Refused(problem) => matches!(problem.status, 500 | 502 | 503 | 504),
            Self::NoToken | Self::Strange { .. } => false,
        }
    }
}

/// A client of one server, as one person.
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Client {
    /// Out of the arguments and the environment.
    pub fn new(args: &ClientArgs) -> Result<Self, ClientError> {
        let token = args
            .token
            .clone()
            .filter(|token| !token.is_empty())
            .ok_or(ClientError::NoToken)?;
        let url = args.url.trim_end_matches('/').to_owned();
        let http = reqwest::Client::builder()
            .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| ClientError::Connection {
                url: url.clone(),
                problem: error.to_string(),
            })?;
        Ok(Self { http, url, token })
    }

    /// A request below `/api/v1`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}/api/v1{path}", self.url))
            .bearer_auth(&self.token)
    }

    /// `GET`, with the parts of the query that are there.
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> Result<T, ClientError> {
        let query: Vec<_> = query
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_ref()?)))
            .collect();
        self.send(self.request(Method::GET, path).query(&query))
            .await
    }

    /// `POST` of a JSON body.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Sends it and reads the answer.
    pub async fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        let broken = |error: reqwest::Error| ClientError::Connection {
            url: self.url.clone(),
            problem: innermost(&error),
        };
        let answer = request.send().await.map_err(broken)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(broken)?;
        let strange = || ClientError::Strange {
            url: self.url.clone(),
            status,
        };
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| strange());
        }
        Err(serde_json::from_slice(&body).map_or_else(
            |_| strange(),
            |problem| ClientError::Refused(Box::new(problem)),
        ))
    }
}

/// The last cause in a chain: the one that says what the system saw.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
