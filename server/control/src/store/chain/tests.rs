//! Journals altered behind their triggers' back, on real files: a verification and a start both name the first wrong entry.

use super::super::connect_options;
use super::super::tests::{demo, submit};
use super::*;
use crate::offline;
use crate::store::Store;
use scheduler::{State, invariants};
use sqlx::{ConnectOptions, Connection};
use std::path::Path;
use tempfile::TempDir;

const NO_TRIGGERS: &str = "DROP TRIGGER journal_is_not_edited; DROP TRIGGER journal_is_not_cut; \
    DROP TRIGGER journal_formats_are_not_edited; DROP TRIGGER journal_formats_are_not_cut";

/// Does to a folder that nobody runs what no trigger lets pass.
async fn spoil(folder: &Path, sql: &str) {
    let mut database = connect_options(folder).connect().await.expect("it opens");
    let spoilt = sqlx::raw_sql(sql).execute(&mut database).await;
    spoilt.unwrap_or_else(|error| panic!("{sql}: {error}"));
    database.close().await.expect("it closes");
}

async fn number(folder: &Path, sql: &str) -> i64 {
    let mut database = connect_options(folder).connect().await.expect("it opens");
    let number = sqlx::query_scalar(sql).fetch_one(&mut database).await;
    database.close().await.expect("it closes");
    number.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// A folder as a kill leaves it: a snapshot, and a tail of entries behind it. With the snapshot's and the last entry.
async fn folder_with_a_tail() -> (TempDir, u64, u64) {
    let (folder, image) = (tempfile::tempdir(), tempfile::tempdir());
    let (folder, image) = (folder.expect("a folder"), image.expect("a folder"));
    let control = demo(folder.path(), 0, false).await.expect("it opens");
    for _ in 0..4 {
        submit(&control).await;
    }
    for name in ["muster.db", "muster.db-wal"] {
        std::fs::copy(folder.path().join(name), image.path().join(name)).expect("a copy");
    }
    let last = control.seq();
    control.close().await;
    spoil(image.path(), NO_TRIGGERS).await;
    let snapshot = number(image.path(), "SELECT max(seq) FROM snapshots").await as u64;
    assert!(snapshot > 20 && last >= snapshot + 6, "{snapshot}, {last}");
    (image, snapshot, last)
}

async fn refused(folder: &Path) -> String {
    let opened = demo(folder, 0, false).await;
    opened.err().expect("it is refused").to_string()
}

async fn verified(folder: &Path) -> String {
    let verified = offline::verify_journal(folder).await;
    verified.expect_err("it is told").to_string()
}

/// What is done to entry `n`, or to the last one, and what is then said of which one.
fn damages(n: u64, last: u64) -> Vec<(String, u64, String)> {
    let (before, after) = (n - 1, n + 1);
    let altered = "it is not as it was written: its checksum is of something else";
    let swapped = |columns: &str| {
        format!(
            "UPDATE journal SET seq = -1 WHERE seq = {n}; UPDATE journal SET seq = {n} WHERE seq = {after}; \
             UPDATE journal SET seq = {after} WHERE seq = -1; {columns}"
        )
    };
    let copied = |to: u64, sum: &str| {
        format!(
            "INSERT INTO journal SELECT {to}, at, job, kind, body, {sum} FROM journal WHERE seq = {n}"
        )
    };
    vec![
        (
            format!(
                "UPDATE journal SET body = replace(body, '{{\"at\":', '{{\"at\":1') WHERE seq = {n}"
            ),
            n,
            altered.into(),
        ),
        (
            format!("UPDATE journal SET sum = zeroblob(32) WHERE seq = {n}"),
            n,
            altered.into(),
        ),
        (
            format!("UPDATE journal SET sum = NULL WHERE seq = {n}"),
            n,
            "it has no checksum, and entries have one from 1 on".into(),
        ),
        (
            format!("UPDATE journal SET kind = 'hour_passed', job = NULL, at = 0 WHERE seq = {n}"),
            n,
            "its columns `at`, `job` and `kind` are not those of its event".into(),
        ),
        (
            swapped(""),
            n,
            format!("it is not as it was written: what belongs here stands at {after}"),
        ),
        (
            // Each checksum where it was.
            swapped(&format!(
                "CREATE TEMP TABLE sums AS SELECT seq, sum FROM journal WHERE seq IN ({n}, {after}); \
                 UPDATE journal SET sum = (SELECT sums.sum FROM sums WHERE sums.seq = {n} + {after} - journal.seq) \
                 WHERE seq IN ({n}, {after})"
            )),
            n,
            format!("it is not as it was written: what belongs here stands at {after}"),
        ),
        (
            format!("DELETE FROM journal WHERE seq = {n}"),
            n,
            format!("it is missing; {after} follows"),
        ),
        (
            // The gap closed by moving up what follows.
            format!(
                "DELETE FROM journal WHERE seq = {n}; UPDATE journal SET seq = -seq WHERE seq > {n}; \
                 UPDATE journal SET seq = -seq - 1 WHERE seq < 0"
            ),
            n,
            altered.into(),
        ),
        (
            format!(
                "UPDATE journal SET seq = -seq WHERE seq > {n}; UPDATE journal SET seq = 1 - seq WHERE seq < 0; {}",
                copied(after, "sum")
            ),
            after,
            format!("it is not as it was written: it repeats {n}"),
        ),
        (
            copied(last + 1, "sum"),
            last + 1,
            format!("it is not as it was written: it repeats {n}"),
        ),
        (
            copied(last + 1, "NULL"),
            last + 1,
            format!("it is not as it was written: it repeats {n}"),
        ),
        (
            format!("DELETE FROM journal WHERE seq > {before}"),
            n,
            format!("it is missing; the journal ends at {before}, and was written up to {last}"),
        ),
    ]
}

#[tokio::test]
async fn an_altered_tail_is_named_by_verify_and_refused_by_a_start() {
    let (folder, snapshot, last) = folder_with_a_tail().await;
    let n = snapshot + 3;
    for (sql, wrong, problem) in damages(n, last) {
        let spoilt = copy(folder.path());
        spoil(spoilt.path(), &sql).await;
        let named = format!("is damaged at entry {wrong}: {problem}");
        let (verified, refused) = (verified(spoilt.path()).await, refused(spoilt.path()).await);
        for said in [&verified, &refused] {
            assert!(said.contains(&named), "{sql}: {said}");
            let kept = format!("Entries 1 to {} before it stand. Keep a copy", wrong - 1);
            assert!(said.contains(&kept) && said.contains("backup"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_lost_note_of_where_checksums_begin_or_end_is_no_way_round_them() {
    let (folder, _, last) = folder_with_a_tail().await;
    let formatless = "it has a checksum, and the note of where they begin is not there";
    let unreadable =
        "it may not be the last one: what is noted of the journal's end cannot be read";
    for (sql, wrong, problem) in [
        ("DELETE FROM journal_formats", 1, formatless),
        (
            "UPDATE facts SET value = 'x' WHERE key = 'journal_end'",
            last,
            unreadable,
        ),
    ] {
        let spoilt = copy(folder.path());
        spoil(spoilt.path(), sql).await;
        let named = format!("is damaged at entry {wrong}: {problem}");
        for said in [verified(spoilt.path()).await, refused(spoilt.path()).await] {
            assert!(said.contains(&named), "{sql}: {said}");
        }
    }
}

/// Another folder with the same database.
fn copy(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["muster.db", "muster.db-wal"] {
        if folder.join(name).exists() {
            std::fs::copy(folder.join(name), copy.path().join(name)).expect("a copy");
        }
    }
    copy
}

#[tokio::test]
async fn what_a_start_does_not_read_is_proved_behind_it_and_ends_the_taking() {
    let (folder, snapshot, last) = folder_with_a_tail().await;
    let n = snapshot / 2;
    for (sql, wrong, problem) in damages(n, last) {
        let in_the_tail = wrong > snapshot || problem.contains("missing");
        if in_the_tail || problem.contains("columns") {
            continue;
        }
        let spoilt = copy(folder.path());
        spoil(spoilt.path(), &sql).await;
        let said = verified(spoilt.path()).await;
        assert!(
            said.contains(&format!("is damaged at entry {wrong}: {problem}")),
            "{sql}: {said}"
        );
        let control = match demo(spoilt.path(), 0, false).await {
            Ok(control) => control,
            // The journal's end moved, too, which a start does read.
            Err(error) => {
                let said = error.to_string();
                assert!(
                    said.contains(&format!("at entry {wrong}: {problem}")),
                    "{said}"
                );
                continue;
            }
        };
        control.stopped().await;
        let fault = control.fault().expect("it says why").to_owned();
        assert!(
            fault.contains(&format!("is damaged at entry {wrong}: {problem}")),
            "{sql}: {fault}"
        );
        assert!(fault.contains(&format!("Entries 1 to {} before it stand", wrong - 1)));
        assert!(fault.contains("restore it from a backup"), "{fault}");
        assert!(!control.ready());
        control.close().await;
    }
}

#[tokio::test]
async fn a_last_entry_made_anew_with_its_checksum_is_not_the_one_that_was_written() {
    let (folder, _, last) = folder_with_a_tail().await;
    let mut database = connect_options(folder.path())
        .connect()
        .await
        .expect("it opens");
    let before = sum_of(&mut database, last - 1)
        .await
        .expect("read")
        .expect("a checksum");
    let body: String = sqlx::query_scalar("SELECT body FROM journal ORDER BY seq DESC LIMIT 1")
        .fetch_one(&mut database)
        .await
        .expect("an entry");
    let other = body.replacen("\"attempt\":1", "\"attempt\":2", 1);
    assert_ne!(other, body);
    sqlx::query("UPDATE journal SET body = ?, sum = ? WHERE seq = ?")
        .bind(&other)
        .bind(before.and(last, &other).as_bytes())
        .bind(last as i64)
        .execute(&mut database)
        .await
        .expect("altered");
    database.close().await.expect("it closes");
    let named = format!("at entry {last}: it is not the one that was written last");
    let said = [verified(folder.path()).await, refused(folder.path()).await];
    assert!(said.iter().all(|said| said.contains(&named)), "{said:?}");
}

/// Makes a folder one of the version before checksums, as that version left it.
async fn make_older(folder: &Path) {
    spoil(
        folder,
        "DROP TRIGGER IF EXISTS journal_is_not_edited; DROP TABLE journal_formats; ALTER TABLE journal DROP COLUMN sum; \
         DELETE FROM _sqlx_migrations WHERE version >= 4; \
         UPDATE facts SET value = (SELECT max(seq) FROM journal) WHERE key = 'journal_end'",
    )
    .await;
}

#[tokio::test]
async fn a_folder_without_checksums_is_read_and_has_them_from_its_next_entry_on() {
    let (folder, _, last) = folder_with_a_tail().await;
    let whole = offline::verify_journal(folder.path()).await.expect("whole");
    make_older(folder.path()).await;
    let older = offline::verify_journal(folder.path()).await;
    assert_eq!(older.expect("it is read as it is"), whole);

    let control = demo(folder.path(), 0, false).await.expect("it opens");
    assert_eq!(control.resumed(), (whole.events, whole.hash.as_str()));
    submit(&control).await;
    control.close().await;
    spoil(folder.path(), NO_TRIGGERS_LEFT).await;
    let first = number(
        folder.path(),
        "SELECT first FROM journal_formats WHERE version = 2",
    )
    .await;
    let bare = number(
        folder.path(),
        "SELECT count(*) FROM journal WHERE sum IS NULL",
    )
    .await;
    assert_eq!((first as u64, bare as u64), (last + 1, last));
    let again = offline::verify_journal(folder.path()).await.expect("whole");
    assert!(again.events > last);

    let altered = "it is not as it was written";
    for (sql, wrong, problem) in [
        (
            "UPDATE journal SET body = replace(body, '{\"at\":', '{\"at\":1') WHERE seq = 7"
                .to_owned(),
            1,
            format!("it, or another one up to {last}, is not as it was when checksums began"),
        ),
        (
            "DELETE FROM journal WHERE seq = 7".to_owned(),
            7,
            "it is missing; 8 follows".to_owned(),
        ),
        (
            "UPDATE journal SET sum = zeroblob(32) WHERE seq = 7".to_owned(),
            7,
            format!(
                "it has a checksum, and entries have none before {}",
                last + 1
            ),
        ),
        (
            format!(
                "UPDATE journal SET body = replace(body, '{{\"at\":', '{{\"at\":1') WHERE seq = {}",
                last + 1
            ),
            last + 1,
            altered.to_owned(),
        ),
        (
            "UPDATE journal_formats SET anchor = zeroblob(32)".to_owned(),
            1,
            format!("it, or another one up to {last}, is not as it was when checksums began"),
        ),
    ] {
        let spoilt = copy(folder.path());
        spoil(spoilt.path(), &sql).await;
        let said = verified(spoilt.path()).await;
        assert!(
            said.contains(&format!("at entry {wrong}: {problem}")),
            "{sql}: {said}"
        );
    }
}

/// Of a folder that had none for the journal's own rows when it was made older.
const NO_TRIGGERS_LEFT: &str =
    "DROP TRIGGER journal_formats_are_not_edited; DROP TRIGGER journal_formats_are_not_cut";

/// A journal of the fixtures: a life of the simulation as some version wrote it, and what it folds to.
struct Fixture {
    version: u32,
    seed: u64,
}

const FIXTURES: [Fixture; 2] = [
    Fixture {
        version: 1,
        seed: 1,
    },
    Fixture {
        version: 2,
        seed: 2,
    },
];
/// Entries of a fixture.
const ENTRIES: usize = 400;

/// One line of a fixture: an entry's JSON, byte for byte, and its checksum where it has one.
fn parse(line: &str) -> (&str, Option<&str>) {
    let line = line.strip_suffix('}').expect("a line ends with its object");
    match line.strip_prefix("{\"sum\":\"") {
        Some(line) => {
            let (sum, body) = line.split_once("\",\"entry\":").expect("an entry");
            (body, Some(sum))
        }
        None => (line.strip_prefix("{\"entry\":").expect("an entry"), None),
    }
}

fn sum_of_hex(text: &str) -> Vec<u8> {
    let bytes = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16));
    bytes.collect::<Result<_, _>>().expect("hexadecimal")
}

impl Fixture {
    fn path(&self, what: &str) -> std::path::PathBuf {
        let name = format!("journal-v{}.{what}", self.version);
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name)
    }

    fn read(&self, what: &str) -> String {
        let path = self.path(what);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes what is not there, when asked to. What is there is never written again.
    fn make(&self) {
        if std::env::var("MUSTER_FIXTURES").as_deref() != Ok("append")
            || self.path("jsonl").exists()
        {
            return;
        }
        let life = simulation::trial::journal(self.seed, 2_000).expect("a life");
        let (mut sum, mut text) = (Sum::NONE, String::new());
        for (body, seq) in life.iter().take(ENTRIES).zip(1..) {
            sum = sum.and(seq, body);
            text += &match self.version {
                1 => format!("{{\"entry\":{body}}}\n"),
                _ => format!("{{\"sum\":\"{sum}\",\"entry\":{body}}}\n"),
            };
        }
        std::fs::write(self.path("jsonl"), text).expect("written");
    }

    /// A database with its entries, and nothing else.
    async fn load(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        Store::create(folder.path())
            .await
            .expect("a database")
            .close()
            .await;
        let mut database = connect_options(folder.path())
            .connect()
            .await
            .expect("it opens");
        if self.version >= 2 {
            sqlx::query("INSERT INTO journal_formats VALUES (2, 1, zeroblob(32))")
                .execute(&mut database)
                .await
                .expect("noted");
        }
        for (line, seq) in self.read("jsonl").lines().zip(1_i64..) {
            let (body, sum) = parse(line);
            let event: Event =
                serde_json::from_str(body).unwrap_or_else(|error| panic!("entry {seq}: {error}"));
            sqlx::query(
                "INSERT INTO journal (seq, at, job, kind, body, sum) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(seq)
            .bind(event.at.0 as i64)
            .bind(event.fact.job().map(|job| job.0 as i64))
            .bind(words::kind_of(&event.fact))
            .bind(body)
            .bind(sum.map(sum_of_hex))
            .execute(&mut database)
            .await
            .expect("appended");
        }
        database.close().await.expect("it closes");
        folder
    }
}

/// What a journal says in the end, in words that outlive the state's own form.
fn told(state: &State, lines: &[scheduler::UsageLine]) -> String {
    let mut text = format!(
        "entries {}, jobs {}\n",
        state.events, state.counts.submitted
    );
    for job in state.jobs.values() {
        let phase = serde_json::to_value(job.phase).expect("a word");
        text += &format!(
            "job {} of {} is {phase}, attempt {}\n",
            job.id, job.spec.team, job.attempt
        );
    }
    for claim in state.claims.values() {
        text += &format!("claim {} takes {} jobs\n", claim.id, claim.victims.len());
    }
    for line in lines {
        text += &format!(
            "line of job {}.{} of {}: {} mGPU {} {} {} to {}\n",
            line.job,
            line.attempt,
            line.team,
            line.gpus.0,
            words::entitlement(line.entitlement),
            words::phase(line.phase),
            line.from.0,
            line.to.0
        );
    }
    text
}

#[tokio::test]
async fn a_journal_of_every_version_is_read_as_it_was_meant() {
    for fixture in FIXTURES {
        fixture.make();
        let folder = fixture.load().await;
        let mut database = connect_options(folder.path())
            .connect()
            .await
            .expect("it opens");
        let mut chain = Chain::after(&mut database, 0).await.expect("a journal");
        let entries = chain
            .next(&mut database, u32::MAX)
            .await
            .expect("every entry is as it was written");
        assert_eq!(entries.len(), ENTRIES);
        let (mut state, mut meter, mut lines) =
            (State::default(), scheduler::Meter::default(), Vec::new());
        for entry in &entries {
            scheduler::apply(&mut state, &entry.event);
            lines.extend(meter.observe(&state, &entry.event));
        }
        invariants::check(&state).expect("a sound state");
        let told = told(&state, &lines);
        if std::env::var("MUSTER_FIXTURES").as_deref() == Ok("append")
            && !fixture.path("txt").exists()
        {
            std::fs::write(fixture.path("txt"), &told).expect("written");
        }
        assert_eq!(told, fixture.read("txt"), "version {}", fixture.version);
    }
}

#[test]
fn what_new_entries_are_written_in_has_a_fixture() {
    assert!(
        FIXTURES
            .iter()
            .any(|fixture| i64::from(fixture.version) == VERSION),
        "a new version needs a line in FIXTURES, and its file: MUSTER_FIXTURES=append cargo test -p control fixture"
    );
}

#[test]
fn a_checksum_is_what_the_table_says() {
    // sha256 of 32 zero bytes, the number 1 in eight bytes, and `{}`; then of that, the number 2, and `{}`.
    let one = Sum::NONE.and(1, "{}");
    let two = one.and(2, "{}");
    assert_eq!(
        one.to_string(),
        "1bad765d926feacace97a8ddcd329a1f4254c208affc1ba86b3c7d59e8fba83e"
    );
    assert_eq!(
        two.to_string(),
        "f3a2f7117ec70a4475364945fc5338e1e7e3198d39fe37688a9c021c1bb74e74"
    );
}
