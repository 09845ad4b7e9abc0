//! Who calls: a bearer token, or the portal's session cookie.

use crate::door::Door;
use crate::rest::problem::Refused;
use crate::web::session;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use control::{Actor, ServiceError};
use tower_sessions::Session;

/// The one who calls, with the rights that they have now.
pub struct Caller(pub Actor);

impl FromRequestParts<Door> for Caller {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Refused> {
        if let Some(header) = parts.headers.get(AUTHORIZATION) {
            let secret = header
                .to_str()
                .ok()
                .and_then(bearer)
                .ok_or(ServiceError::Unauthenticated)?;
            return Ok(Self(door.control.actor_of_token(secret).await?));
        }
        let session = parts
            .extensions
            .get::<Session>()
            .ok_or(ServiceError::Unauthenticated)?;
        Ok(Self(session::actor(door, session).await?))
    }
}

/// The secret of `Bearer SECRET`; the scheme in any case (RFC 9110).
fn bearer(header: &str) -> Option<&str> {
    let (scheme, secret) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}
