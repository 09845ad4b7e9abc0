//! Who acts, what they hold, and their tokens.

use super::{Answer, invalid, no_job, no_team};
use crate::clock::wall_now;
use crate::engine::hex;
use crate::period::instant;
use crate::store::{TokenRow, jobs};
use crate::{Actor, Admin, Control, Everyone, JobOwner, ServiceError, TeamMember, Visible};
use contract::{NewToken, PersonView, Role, TokenView};
use rand::TryRngCore;
use rand::rngs::OsRng;
use scheduler::{JobId, Millis, TeamId};
use sha2::{Digest, Sha256};

/// How every secret begins, so that a scanner finds one that leaked.
const SECRET_START: &str = "mst_";
/// Characters of a secret that are kept in clear, to find it by.
const PREFIX: usize = 12;
/// A token's use is noted once in so long.
const TOUCH_EVERY: Millis = Millis::MINUTE;

impl Control {
    /// The demo's people; empty outside the demo.
    pub async fn demo_people(&self) -> Answer<Vec<PersonView>> {
        if !self.is_demo() {
            return Ok(Vec::new());
        }
        Ok(self.inner.store.people().await?)
    }

    /// A person with the rights they have now.
    pub async fn actor(&self, person: &str) -> Answer<Actor> {
        let found = self.inner.store.person(person).await?;
        let PersonView {
            id,
            name,
            memberships,
        } = found.ok_or(ServiceError::Unauthenticated)?;
        Ok(Actor {
            id,
            name,
            memberships,
        })
    }

    /// The person behind an API token; notes its use.
    pub async fn actor_of_token(&self, secret: &str) -> Answer<Actor> {
        let found = self.inner.store.token(&hash_of(secret)).await?;
        let now = wall_now().0 as i64;
        let token = found
            .filter(|token| token.expires > now)
            .ok_or(ServiceError::Unauthenticated)?;
        if token
            .last_used
            .is_none_or(|last| now - last > TOUCH_EVERY.0 as i64)
        {
            self.note_use(&token.id, now).await;
        }
        self.actor(&token.person).await
    }

    /// Notes a token's use. Where it cannot be noted now, the token is as good as before.
    async fn note_use(&self, token: &str, now: i64) {
        if self.standing().is_some() {
            return;
        }
        if let Err(error) = self.inner.store.touch_token(token, now).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a token's use was not noted"
            );
        }
    }

    /// What anybody signed in may do.
    pub fn everyone(&self, actor: &Actor) -> Everyone {
        Everyone {
            control: self.clone(),
            actor: actor.clone(),
        }
    }

    /// Submitting to a team and reading its bill: members of it, and admins. Managers read bills by [`Self::everyone`].
    pub fn team_member(&self, actor: &Actor, team: &str) -> Answer<TeamMember> {
        let team_id = TeamId::from(team);
        let there = self
            .inner
            .published
            .read()
            .state
            .teams
            .contains_key(&team_id);
        if !there || !(actor.role_in(team).is_some() || actor.has(Role::Admin)) {
            return Err(no_team(team));
        }
        Ok(TeamMember {
            control: self.clone(),
            actor: actor.clone(),
            team: team_id,
        })
    }

    /// Seeing a job: its team, managers, admins; anybody else finds none.
    pub async fn visible(&self, actor: &Actor, job: u64) -> Answer<Visible> {
        self.seen(actor, job).await?;
        Ok(Visible {
            control: self.clone(),
            actor: actor.clone(),
            job: JobId(job),
        })
    }

    /// Ending a job: its owner, a lead of its team, an admin.
    pub async fn job_owner(&self, actor: &Actor, job: u64) -> Answer<JobOwner> {
        let (team, owner) = self.seen(actor, job).await?;
        if !may_end(actor, &team, &owner) {
            return Err(ServiceError::Forbidden(ENDERS.to_owned()));
        }
        Ok(JobOwner {
            control: self.clone(),
            actor: actor.clone(),
            job: JobId(job),
        })
    }

    /// Team and owner of a job that the actor may see.
    async fn seen(&self, actor: &Actor, job: u64) -> Answer<(String, String)> {
        // The store's numbers are signed.
        let id = i64::try_from(job).map_err(|_| no_job(job))?;
        let mut read = self.inner.store.read().await?;
        let found = jobs::team_and_owner(&mut read, JobId(id as u64)).await?;
        found
            .filter(|(team, _)| actor.role_in(team).is_some() || actor.has(Role::Manager))
            .ok_or_else(|| no_job(job))
    }

    /// Everything else.
    pub fn admin(&self, actor: &Actor) -> Answer<Admin> {
        if !actor.has(Role::Admin) {
            return Err(ServiceError::Forbidden(
                "only an admin may do this".to_owned(),
            ));
        }
        Ok(Admin {
            control: self.clone(),
            actor: actor.clone(),
        })
    }
}

/// Who may end a job, in words.
pub(crate) const ENDERS: &str = "only its owner, a lead of its team or an admin may cancel it";

/// Whether the actor may end a job that they may see.
pub(crate) fn may_end(actor: &Actor, team: &str, owner: &str) -> bool {
    let still_in = actor.role_in(team).is_some();
    (still_in && actor.id == owner)
        || actor.role_in(team) >= Some(Role::Lead)
        || actor.has(Role::Admin)
}

fn hash_of(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn view(token: &TokenRow) -> TokenView {
    let time = |at: i64| instant(Millis(at.max(0) as u64));
    TokenView {
        id: token.id.clone(),
        name: token.name.clone(),
        prefix: token.prefix.clone(),
        created: time(token.created),
        expires: time(token.expires),
        last_used: token.last_used.map(time),
    }
}

/// A new token for a person: what is kept, and what is told once.
pub(crate) fn mint(person: &str, name: &str, days: u32) -> Answer<(TokenRow, NewToken)> {
    let name = name.trim();
    let plain = !name.chars().any(contract::is_unseen);
    if name.is_empty() || name.chars().count() > 100 || !plain {
        return Err(invalid(
            "name",
            "say what the token is for, in 1 to 100 characters of plain text",
        ));
    }
    if !(1..=365).contains(&days) {
        return Err(invalid("days", "a token lives for 1 to 365 days"));
    }
    let mut random = [0; 40];
    OsRng
        .try_fill_bytes(&mut random)
        .map_err(|error| ServiceError::Internal(Box::new(error)))?;
    let secret = format!("{SECRET_START}{}", hex(&random[..32]));
    let now = wall_now();
    let row = TokenRow {
        id: hex(&random[32..]),
        person: person.to_owned(),
        name: name.to_owned(),
        prefix: secret[..PREFIX].to_owned(),
        hash: hash_of(&secret),
        created: now.0 as i64,
        expires: (now + Millis(Millis::DAY.0 * u64::from(days))).0 as i64,
        last_used: None,
    };
    let token = NewToken {
        token: view(&row),
        secret,
    };
    Ok((row, token))
}

impl Everyone {
    /// Makes a token for the actor. `days` 1 to 365.
    pub async fn create_token(&self, name: &str, days: u32) -> Answer<NewToken> {
        let (row, token) = mint(&self.actor.id, name, days)?;
        self.control.inner.store.add_token(&row).await?;
        Ok(token)
    }

    /// The actor's tokens.
    pub async fn tokens(&self) -> Answer<Vec<TokenView>> {
        let rows = self.control.inner.store.tokens_of(&self.actor.id).await?;
        Ok(rows.iter().map(view).collect())
    }

    /// Ends one of the actor's tokens.
    pub async fn revoke_token(&self, id: &str) -> Answer<()> {
        match self
            .control
            .inner
            .store
            .drop_token(&self.actor.id, id)
            .await?
        {
            true => Ok(()),
            false => Err(ServiceError::NotFound(format!("token `{id}`"))),
        }
    }
}
