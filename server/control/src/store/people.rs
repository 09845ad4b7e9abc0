//! People, their roles and their tokens.

use super::{Deed, Store, Stored};
use contract::{Membership, PersonView, Role, TeamPerson};
use sqlx::FromRow;
use std::collections::BTreeMap;

/// A token as it is kept. Times in milliseconds of the wall's clock.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub(crate) struct TokenRow {
    /// Id.
    pub(crate) id: String,
    /// Whose.
    pub(crate) person: String,
    /// What for.
    pub(crate) name: String,
    /// Its first characters.
    pub(crate) prefix: String,
    /// Hash of the secret.
    pub(crate) hash: String,
    /// Made.
    pub(crate) created: i64,
    /// Ends.
    pub(crate) expires: i64,
    /// Last used.
    pub(crate) last_used: Option<i64>,
}

fn role(word: &str) -> Option<Role> {
    [Role::Member, Role::Lead, Role::Manager, Role::Admin]
        .into_iter()
        .find(|role| role.as_str() == word)
}

fn membership(team: String, word: &str) -> Option<Membership> {
    Some(Membership {
        team: (!team.is_empty()).then_some(team),
        role: role(word)?,
    })
}

fn in_team(id: String, name: String, word: &str) -> Option<TeamPerson> {
    let role = role(word)?;
    Some(TeamPerson { id, name, role })
}

impl Store {
    /// Adds people with their roles, or replaces what is known of them.
    pub(crate) async fn put_people(&self, people: &[PersonView]) -> Stored<()> {
        let mut transaction = self
            .rest
            .begin_with("BEGIN IMMEDIATE")
            .await
            .deed("begin a transaction")?;
        for person in people {
            sqlx::query("INSERT INTO people (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name")
                .bind(&person.id)
                .bind(&person.name)
                .execute(&mut *transaction)
                .await
                .deed("add a person")?;
            sqlx::query("DELETE FROM memberships WHERE person = ?")
                .bind(&person.id)
                .execute(&mut *transaction)
                .await
                .deed("replace a person's roles")?;
            for membership in &person.memberships {
                sqlx::query("INSERT INTO memberships (person, team, role) VALUES (?, ?, ?)")
                    .bind(&person.id)
                    .bind(membership.team.as_deref().unwrap_or_default())
                    .bind(membership.role.as_str())
                    .execute(&mut *transaction)
                    .await
                    .deed("add a role")?;
            }
        }
        transaction.commit().await.deed("commit people")
    }

    /// One person with their roles.
    pub(crate) async fn person(&self, id: &str) -> Stored<Option<PersonView>> {
        let rows: Vec<(String, String, Option<String>, Option<String>)> = sqlx::query_as(
            "SELECT id, name, team, role FROM people LEFT JOIN memberships ON person = id WHERE id = ? ORDER BY team",
        )
        .bind(id)
        .fetch_all(&self.reads)
        .await
        .deed("read a person")?;
        Ok(gather(rows).pop())
    }

    /// Everybody, by id.
    pub(crate) async fn people(&self) -> Stored<Vec<PersonView>> {
        let rows = sqlx::query_as(
            "SELECT id, name, team, role FROM people LEFT JOIN memberships ON person = id ORDER BY id, team",
        )
        .fetch_all(&self.reads)
        .await
        .deed("read people")?;
        Ok(gather(rows))
    }

    /// Everybody in a team, by id, with their role there.
    pub(crate) async fn people_of(&self, team: &str) -> Stored<Vec<TeamPerson>> {
        let rows: Vec<(String, String, String)> = sqlx::query_as(
            "SELECT id, name, role FROM memberships JOIN people ON id = person WHERE team = ? ORDER BY id",
        )
        .bind(team)
        .fetch_all(&self.reads)
        .await
        .deed("read a team's people")?;
        Ok(rows
            .into_iter()
            .filter_map(|(id, name, word)| in_team(id, name, &word))
            .collect())
    }

    /// Everybody in each team, by id, with their role there.
    pub(crate) async fn people_by_team(&self) -> Stored<BTreeMap<String, Vec<TeamPerson>>> {
        let rows: Vec<(String, String, String, String)> = sqlx::query_as(
            "SELECT team, id, name, role FROM memberships JOIN people ON id = person WHERE team <> '' ORDER BY id",
        )
        .fetch_all(&self.reads)
        .await
        .deed("read the teams' people")?;
        let mut teams: BTreeMap<String, Vec<TeamPerson>> = BTreeMap::new();
        for (team, id, name, word) in rows {
            let people = teams.entry(team).or_default();
            people.extend(in_team(id, name, &word));
        }
        Ok(teams)
    }

    /// Keeps a token.
    pub(crate) async fn add_token(&self, token: &TokenRow) -> Stored<()> {
        sqlx::query(
            "INSERT INTO tokens (id, person, name, prefix, hash, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&token.id)
        .bind(&token.person)
        .bind(&token.name)
        .bind(&token.prefix)
        .bind(&token.hash)
        .bind(token.created)
        .bind(token.expires)
        .execute(&self.rest)
        .await
        .deed("keep a token")
        .map(drop)
    }

    /// The token with that hash.
    pub(crate) async fn token(&self, hash: &str) -> Stored<Option<TokenRow>> {
        sqlx::query_as("SELECT * FROM tokens WHERE hash = ?")
            .bind(hash)
            .fetch_optional(&self.reads)
            .await
            .deed("look up a token")
    }

    /// A person's tokens, newest first.
    pub(crate) async fn tokens_of(&self, person: &str) -> Stored<Vec<TokenRow>> {
        sqlx::query_as("SELECT * FROM tokens WHERE person = ? ORDER BY created DESC, id")
            .bind(person)
            .fetch_all(&self.reads)
            .await
            .deed("list tokens")
    }

    /// Notes that a token was used.
    pub(crate) async fn touch_token(&self, id: &str, at: i64) -> Stored<()> {
        sqlx::query("UPDATE tokens SET last_used = ? WHERE id = ?")
            .bind(at)
            .bind(id)
            .execute(&self.rest)
            .await
            .deed("note a token's use")
            .map(drop)
    }

    /// Ends a person's token; false when they have none of that id.
    pub(crate) async fn drop_token(&self, person: &str, id: &str) -> Stored<bool> {
        let done = sqlx::query("DELETE FROM tokens WHERE person = ? AND id = ?")
            .bind(person)
            .bind(id)
            .execute(&self.rest)
            .await
            .deed("end a token")?;
        Ok(done.rows_affected() > 0)
    }
}

fn gather(rows: Vec<(String, String, Option<String>, Option<String>)>) -> Vec<PersonView> {
    let mut people: BTreeMap<String, PersonView> = BTreeMap::new();
    for (id, name, team, role) in rows {
        let person = people.entry(id.clone()).or_insert_with(|| PersonView {
            id,
            name,
            memberships: Vec::new(),
        });
        if let (Some(team), Some(role)) = (team, role) {
            person.memberships.extend(membership(team, &role));
        }
    }
    people.into_values().collect()
}
