//! Sending a new job, and what is said of it.

use super::Done;
use super::client::{Client, ClientError, Output};
use super::job::{SubmitArgs, draw_dry_run, now_is, spec};
use super::table::{print, write_out};
use super::wait::wait;
use contract::{DryRun, JobView, Submitted};
use reqwest::Method;
use serde_json::Value;
use std::time::Duration;

/// How often a submission is sent when the connection breaks; the key makes it the same job.
const TRIES: u32 = 5;
/// Looks at a job that was just taken in, until it is known why it waits.
const LOOKS: u32 = 20;

/// Submits, or says what would happen; waits for its end when asked to.
pub async fn submit(args: &SubmitArgs) -> Done {
    let spec = spec(args)?;
    let client = Client::new(&args.client)?;
    if args.dry_run {
        let dry: DryRun = client.post("/jobs?dry_run=true", &spec).await?;
        return print(args.client.output, &dry, draw_dry_run);
    }
    let key = args
        .key
        .clone()
        .unwrap_or_else(|| format!("cli-{:032x}", rand::random::<u128>()));
    let submitted = send(&client, &spec, &key).await?;
    if args.wait {
        if args.client.output == Output::Table {
            write_out(&format!("job {}", submitted.id))?;
        }
        return wait(&client, submitted.id, args.client.output).await;
    }
    if args.client.output == Output::Table {
        tell(&client, &submitted).await;
    }
    print(args.client.output, &submitted, |submitted| {
        vec![submitted.id.to_string().into()]
    })
}

/// For people, on standard error: how the job is, and its page. Standard output has the number alone.
async fn tell(client: &Client, submitted: &Submitted) {
    let id = submitted.id;
    let again = if submitted.repeated {
        " (this key had made it before)"
    } else {
        ""
    };
    // It is stored; that it cannot be looked at now changes nothing.
    let path = format!("/jobs/{id}");
    let look = || client.get::<JobView>(&path, &[]);
    let mut job = look().await;
    // The next cycle finds out why it waits, if it does.
    for _ in 0..LOOKS {
        if !job.as_ref().is_ok_and(|job| {
            job.row.state == contract::JobState::Queued && job.row.reason.is_none()
        }) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        job = look().await;
    }
    let state = job.map_or_else(
        |_| "stored".to_owned(),
        |job| match &job.row.reason {
            Some(reason) => format!("{} ({})", now_is(&job.row), reason.text),
            None => now_is(&job.row),
        },
    );
    eprintln!("job {id} is {state}{again}: {}/jobs/{id}", client.url());
}

/// Sends the spec; when the connection breaks, again under the same key.
async fn send(client: &Client, spec: &Value, key: &str) -> Result<Submitted, ClientError> {
    let mut tried = 1;
    loop {
        let request = client
            .request(Method::POST, "/jobs")
            .header("Idempotency-Key", key)
            .json(spec);
        match client.send(request).await {
            Err(error) if error.may_pass() && tried < TRIES => {
                eprintln!("muster: {error}; trying again");
                tokio::time::sleep(Duration::from_millis(250 << tried)).await;
                tried += 1;
            }
            other => return other,
        }
    }
}
