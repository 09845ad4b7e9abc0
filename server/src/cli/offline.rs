//! On the box, in the data folder, also while the server runs on it: no token is asked, since whoever reads the folder has
//! everything.

use super::Done;
use super::client::Output;
use super::fleet::draw_team;
use super::table::{print, time, write_out};
use control::offline;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// `token create`: the secret alone on the last line of standard output.
pub async fn create_token(data: &Path, person: &str, name: &str, days: u32) -> Done {
    let made = offline::create_token(data, person, name, days).await?;
    let ends = time(made.token.expires);
    eprintln!("A token of {person}, until {ends}. It is shown this once; set it as MUSTER_TOKEN.");
    write_out(&made.secret)?;
    Ok(ExitCode::SUCCESS)
}

/// `team show --data`.
pub async fn team(data: &Path, team: &str, output: Output) -> Done {
    let view = offline::team_people(data, team).await?;
    print(output, &view, draw_team)
}

/// `journal verify`.
pub async fn verify(data: &Path, output: Output) -> Done {
    let verified = offline::verify_journal(data).await?;
    let offline::Verified {
        events,
        jobs,
        lines,
        hash,
    } = verified;
    let value = json!({ "events": events, "jobs": jobs, "usage_lines": lines, "hash": hash });
    print(output, &value, |_| {
        let counts = format!("{events} events, {jobs} jobs, {lines} usage lines");
        vec![format!("the journal is whole: {counts}\nstate hash {hash}").into()]
    })
}
