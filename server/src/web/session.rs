//! Sessions: in SQLite, by a cookie that scripts cannot read.

use crate::door::{Door, stopped};
use async_trait::async_trait;
use control::{Actor, Control, ServiceError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tower_sessions::cookie::SameSite;
use tower_sessions::cookie::time;
use tower_sessions::session::{self, Id, Record};
use tower_sessions::session_store::{self, Result as Stored};
use tower_sessions::{ExpiredDeletion, Expiry, Session, SessionManagerLayer, SessionStore};
use tower_sessions_sqlx_store::SqliteStore;

/// The cookie's name. On plain HTTP, which is the demo on loopback alone, it has neither prefix nor Secure.
pub const COOKIE: &str = "muster_session";
/// A session that nobody uses for so long has ended.
const IDLE_HOURS: i64 = 12;
/// How often at most a used session is written again, so that reading a page costs no write.
const TOUCH_EVERY: Duration = Duration::from_secs(600);

const PERSON: &str = "person";
const TOUCHED: &str = "touched";

/// Counts stretches of [`TOUCH_EVERY`]; begins anywhere, so that a restart is not taken for the same stretch.
static STRETCH: AtomicU64 = AtomicU64::new(0);

/// Sessions in SQLite. Where the time of a session's last use cannot be written, the session is as good as before.
#[derive(Clone, Debug)]
pub struct Sessions(SqliteStore);

#[async_trait]
impl SessionStore for Sessions {
    async fn create(&self, record: &mut Record) -> Stored<()> {
        self.0.create(record).await
    }
    async fn save(&self, record: &Record) -> Stored<()> {
        // What a session is for stands in it from its creation on.
        if let Err(error) = self.0.save(record).await {
            tracing::warn!(%error, "a session's use was not noted");
        }
        Ok(())
    }
    async fn load(&self, id: &Id) -> Stored<Option<Record>> {
        self.0.load(id).await
    }
    async fn delete(&self, id: &Id) -> Stored<()> {
        self.0.delete(id).await
    }
}

/// The layer that gives each request its session, over the control plane's store. Ended sessions are deleted until `stopping`.
pub async fn layer(
    control: &Control,
    mut stopping: watch::Receiver<bool>,
) -> Result<SessionManagerLayer<Sessions>, ServiceError> {
    let store = SqliteStore::new(control.session_pool());
    store
        .migrate()
        .await
        .map_err(|error| ServiceError::Internal(error.into()))?;
    STRETCH.store(rand::random(), Ordering::Relaxed);
    let sweeper = store.clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(TOUCH_EVERY);
        loop {
            tokio::select! {
                () = stopped(&mut stopping) => return,
                _ = ticks.tick() => {
                    STRETCH.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = sweeper.delete_expired().await {
                        tracing::warn!(%error, "ended sessions were not deleted");
                    }
                }
            }
        }
    });
    Ok(SessionManagerLayer::new(Sessions(store))
        .with_name(COOKIE)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_secure(false)
        .with_expiry(Expiry::OnInactivity(time::Duration::hours(IDLE_HOURS))))
}

/// The one who is signed in, with the rights that they have now.
pub async fn actor(door: &Door, session: &Session) -> Result<Actor, ServiceError> {
    let person: Option<String> = session.get(PERSON).await.map_err(internal)?;
    let person = person.ok_or(ServiceError::Unauthenticated)?;
    if door.control.standing().is_none() {
        touch(session).await?;
    }
    match door.control.actor(&person).await {
        // Somebody who is gone is signed in no more.
        Err(ServiceError::NotFound(_)) => Err(ServiceError::Unauthenticated),
        other => other,
    }
}

/// Writes the session once in a stretch, which moves its end.
async fn touch(session: &Session) -> Result<(), ServiceError> {
    let now = STRETCH.load(Ordering::Relaxed);
    if session.get::<u64>(TOUCHED).await.map_err(internal)? != Some(now) {
        session.insert(TOUCHED, now).await.map_err(internal)?;
    }
    Ok(())
}

/// Signs a person in, under a new session id.
pub async fn begin(session: &Session, person: &str) -> Result<(), ServiceError> {
    session.clear().await;
    session.cycle_id().await.map_err(internal)?;
    session.insert(PERSON, person).await.map_err(internal)?;
    session
        .insert(TOUCHED, STRETCH.load(Ordering::Relaxed))
        .await
        .map_err(internal)?;
    // Now, and not after the answer: only so can a refusal say why.
    session.save().await.map_err(internal)
}

/// Signs out: the session is gone, here and in the store.
pub async fn end(session: &Session) -> Result<(), ServiceError> {
    session.flush().await.map_err(internal)
}

fn internal(error: session::Error) -> ServiceError {
    match error {
        session::Error::Store(session_store::Error::Backend(cause)) => {
            tracing::warn!(cause, "the sessions' store refuses");
            ServiceError::Standing("the sessions cannot be read or written".to_owned())
        }
        other => ServiceError::Internal(other.into()),
    }
}
