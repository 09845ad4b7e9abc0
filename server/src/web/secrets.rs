//! Secrets of new tokens on their way to the page: in memory alone, for the session that made them, seen once.

use contract::NewToken;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A secret that nobody looks at, and the word that one was seen, are forgotten after this time.
const KEPT: Duration = Duration::from_secs(600);

/// What a session may see of the last token that it made.
#[derive(Clone, Debug)]
pub enum Secret {
    /// It was not seen yet.
    New(Box<NewToken>),
    /// It was; the token of that name.
    Seen(String),
}

/// At most one for each session.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Mutex<BTreeMap<String, (String, Secret)>>>);

impl Secrets {
    /// Keeps a secret for a session, in place of its last one.
    pub fn put(&self, session: String, token: NewToken) {
        let id = token.token.id.clone();
        let secret = Secret::New(Box::new(token));
        self.change(|all| all.insert(session.clone(), (id.clone(), secret)));
        let secrets = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            secrets.change(|all| {
                if all.get(&session).is_some_and(|(kept, _)| *kept == id) {
                    all.remove(&session);
                }
            });
        });
    }

    /// The session's secret, the first time; afterwards only that it was seen.
    pub fn see(&self, session: &str) -> Option<Secret> {
        self.change(|all| {
            let (_, secret) = all.get_mut(session)?;
            let seen = match secret {
                Secret::New(token) => Secret::Seen(token.token.name.clone()),
                Secret::Seen(name) => Secret::Seen(name.clone()),
            };
            Some(std::mem::replace(secret, seen))
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, (String, Secret)>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
