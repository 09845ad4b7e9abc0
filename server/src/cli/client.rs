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
    /// The address is none.
    #[error("MUSTER_URL (or --url) is `{url}`: {problem}; write it like http://127.0.0.1:3000")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The token cannot be sent.
    #[error(
        "MUSTER_TOKEN (or --token) holds a line break or another character that no token has: set it to the secret alone"
    )]
    Token,
    /// What was given makes no request.
    #[error("this makes no request: {0}")]
    Request(String),
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
            Self::NoToken
            | Self::Url { .. }
            | Self::Token
            | Self::Request(_)
            | Self::Strange { .. } => false,
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
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ClientError::Token);
        }
        let url = server(&args.url)?;
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

    /// The server's address.
    pub fn url(&self) -> &str {
        &self.url
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
        let broken = |error: reqwest::Error| {
            let problem = innermost(&error);
            if error.is_builder() {
                return ClientError::Request(problem);
            }
            ClientError::Connection {
                url: self.url.clone(),
                problem,
            }
        };
        let answer = request.send().await.map_err(broken)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(broken)?;
        let strange = || ClientError::Strange {
            url: self.url.clone(),
            status,
        };
        if status.is_success() {
            // An answer without a body says that it is done.
            let body: &[u8] = if body.is_empty() { b"null" } else { &body };
            return serde_json::from_slice(body).map_err(|_| strange());
        }
        Err(serde_json::from_slice(&body).map_or_else(
            |_| strange(),
            |problem| ClientError::Refused(Box::new(problem)),
        ))
    }
}

/// A server's address without what follows it, or what is wrong with it.
fn server(given: &str) -> Result<String, ClientError> {
    let refused = |problem: &str| ClientError::Url {
        url: given.to_owned(),
        problem: problem.to_owned(),
    };
    let scheme = given.split_once("://").map(|(scheme, _)| scheme);
    if !scheme.is_some_and(|scheme| matches!(scheme, "http" | "https")) {
        return Err(refused("it does not begin with http:// or https://"));
    }
    match reqwest::Url::parse(given) {
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            Err(refused("a server's address has no ? and no #"))
        }
        Ok(_) if given.contains(char::is_whitespace) => Err(refused("there is a blank in it")),
        Ok(_) => Ok(given.trim_end_matches('/').to_owned()),
        Err(error) => Err(refused(&error.to_string())),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str, token: &str) -> Result<String, String> {
        let args = ClientArgs {
            url: url.to_owned(),
            token: Some(token.to_owned()),
            output: Output::Json,
        };
        let client = Client::new(&args).map_err(|error| error.to_string())?;
        Ok(client.url)
    }

    #[test]
    fn what_is_wrong_with_the_environment_is_named_before_anything_is_sent() {
        assert_eq!(
            client("http://a:3000/", "mst_1").as_deref(),
            Ok("http://a:3000")
        );
        for (url, token, named) in [
            ("127.0.0.1:3000", "mst_1", "MUSTER_URL"),
            ("localhost", "mst_1", "MUSTER_URL"),
            ("ftp://a", "mst_1", "MUSTER_URL"),
            ("http://", "mst_1", "MUSTER_URL"),
            ("http://a b", "mst_1", "MUSTER_URL"),
            ("http://a\n", "mst_1", "MUSTER_URL"),
            ("http://a?b", "mst_1", "MUSTER_URL"),
            ("http://a", "mst_1\n", "MUSTER_TOKEN"),
            ("http://a", "mst 1", "MUSTER_TOKEN"),
            ("http://a", "mst_\u{e4}", "MUSTER_TOKEN"),
        ] {
            let said = client(url, token).expect_err(url);
            assert!(said.starts_with(named), "{url:?} {token:?}: {said}");
        }
    }
}
