//! Usage lines and bills: the same query as on the page, as JSON and as CSV.

use super::Problems;
use super::caller::Caller;
use super::input::Query;
use super::problem::Refused;
use crate::door::Door;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use contract::{BillTotals, BillView, FieldError, UsageLineView};

/// A team's usage lines in a month, in order.
#[utoipa::path(get, path = "/api/v1/usage", tag = "bills", operation_id = "usage",
    params(
        ("team" = String, Query, description = "The team", min_length = 1),
        ("month" = Option<String>, Query, description = "This month when left out", pattern = "^(197[1-9]|19[89][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-(0[1-9]|1[0-2])$"),
        ("job" = Option<u64>, Query, description = "Only this job"),
        ("limit" = Option<u32>, Query, description = "At most, 200 when left out", minimum = 1, maximum = 1000),
        ("after" = Option<u64>, Query, description = "`number` of the last line of the page before"),
    ),
    responses((status = 200, description = "Usage lines", body = [UsageLineView]), Problems))]
pub async fn usage(
    State(door): State<Door>,
    Caller(actor): Caller,
    mut query: Query,
) -> Result<Json<Vec<UsageLineView>>, Refused> {
    let team = query.text("team");
    if team.is_none() {
        query.flag("team", "name the team whose usage it is".to_owned());
    }
    let month = month(&mut query);
    let job = query.number("job", 0, i64::MAX as u64);
    let limit = query.number("limit", 1, 1_000).unwrap_or(200) as u32;
    let after = query.number("after", 0, i64::MAX as u64);
    query.finish()?;
    let everyone = door.control.everyone(&actor);
    Ok(Json(
        everyone
            .usage(
                &team.unwrap_or_default(),
                month.as_deref(),
                job,
                limit,
                after,
            )
            .await
            .map_err(Refused::of_query)?,
    ))
}

/// The month over every team that the caller may read.
#[utoipa::path(get, path = "/api/v1/bills", tag = "bills", operation_id = "bills",
    params(("month" = Option<String>, Query, description = "This month when left out", pattern = "^(197[1-9]|19[89][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-(0[1-9]|1[0-2])$")),
    responses((status = 200, description = "The month by team", content((BillView = "application/json"), (String = "text/csv"))), Problems))]
pub async fn bills(
    State(door): State<Door>,
    Caller(actor): Caller,
    mut query: Query,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let month = month(&mut query);
    query.finish()?;
    let bill = door
        .control
        .everyone(&actor)
        .bills(month.as_deref())
        .await
        .map_err(Refused::of_query)?;
    Ok(if wants_csv(&headers) {
        csv_answer(&bill)
    } else {
        json_answer(&bill)
    })
}

/// A team's month with its lines. As CSV with `Accept: text/csv` or `.csv` after the team's name.
#[utoipa::path(get, path = "/api/v1/bills/{team}", tag = "bills", operation_id = "bill",
    params(
        ("team" = String, Path, description = "The team's name; with `.csv` behind it the answer is CSV"),
        ("month" = Option<String>, Query, description = "This month when left out", pattern = "^(197[1-9]|19[89][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-(0[1-9]|1[0-2])$"),
    ),
    responses((status = 200, description = "The team's month", content((BillView = "application/json"), (String = "text/csv"))), Problems))]
pub async fn bill(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(team): Path<String>,
    mut query: Query,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let month = month(&mut query);
    query.finish()?;
    let (team, csv) = match team.strip_suffix(".csv") {
        Some(team) => (team, true),
        None => (team.as_str(), wants_csv(&headers)),
    };
    let bill = door
        .control
        .everyone(&actor)
        .bill(team, month.as_deref())
        .await
        .map_err(Refused::of_query)?;
    Ok(if csv {
        csv_answer(&bill)
    } else {
        json_answer(&bill)
    })
}

/// A month as `2026-11`.
fn month(query: &mut Query) -> Option<String> {
    let text = query.given("month")?;
    let digits =
        |part: &str, count| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let good = text.split_once('-').is_some_and(|(year, month)| {
        digits(year, 4) && digits(month, 2) && (1..=12).contains(&month.parse().unwrap_or(0))
    });
    if !good {
        query.flag(
            "month",
            FieldError::new("month", "a month like 2026-11").message,
        );
    }
    good.then_some(text)
}

/// Whether CSV is named and liked at least as well as JSON.
fn wants_csv(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let weight = |kind: &str| accept.split(',').find_map(|offer| weight_of(offer, kind));
    let csv = weight("text/csv").unwrap_or(0);
    csv > 0 && csv >= weight("application/json").unwrap_or(0)
}

/// The weight in thousandths that an offer gives to a kind; 1,000 when it says none (RFC 9110, 12.4.2).
fn weight_of(offer: &str, kind: &str) -> Option<u32> {
    let mut parts = offer.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case(kind) {
        return None;
    }
    let weight = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    let parse = |text: &str| text.parse::<f32>().ok().filter(|q| (0.0..=1.0).contains(q));
    Some(weight.map_or(1_000, |text| {
        // What is no weight asks for nothing.
        parse(text).map_or(0, |q| (q * 1_000.0).round() as u32)
    }))
}

fn json_answer(bill: &BillView) -> Response {
    ([(VARY, "Accept")], Json(bill)).into_response()
}

/// A bill as a CSV file: a line for each job and flavour (or each team), and last a row `total`, which is the page's.
pub fn csv_answer(bill: &BillView) -> Response {
    let name = bill.team.as_deref().unwrap_or("all-teams");
    let file = format!("attachment; filename=\"muster-{name}-{}.csv\"", bill.month);
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, file),
        (VARY, "Accept".to_owned()),
    ];
    (headers, csv_text(bill)).into_response()
}

fn csv_text(bill: &BillView) -> String {
    let mut rows = vec![
        [
            "row",
            "month",
            "team",
            "job",
            "name",
            "project",
            "owner",
            "flavour",
            "own_gpu_hours",
            "own_amount",
            "borrowed_gpu_hours",
            "borrowed_amount",
            "failed_launch_gpu_hours",
            "gpu_hours",
            "amount",
            "currency",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut push = |row: &str, team: &str, about: [&str; 5], totals: &BillTotals| {
        let BillTotals {
            own_gpu_hours,
            own_amount,
            borrowed_gpu_hours,
            borrowed_amount,
            failed_launch_gpu_hours,
            gpu_hours,
            amount,
        } = totals;
        let mut cells = vec![row.to_owned(), bill.month.clone(), plain_text(team)];
        let [job, texts @ ..] = about;
        cells.push(job.to_owned());
        cells.extend(texts.map(plain_text));
        let sums = [
            own_gpu_hours,
            own_amount,
            borrowed_gpu_hours,
            borrowed_amount,
            failed_launch_gpu_hours,
            gpu_hours,
            amount,
        ];
        cells.extend(sums.map(String::clone));
        cells.push(plain_text(&bill.currency));
        rows.push(cells);
    };
    match &bill.team {
        Some(team) => {
            for line in &bill.lines {
                let about = [
                    &line.job.to_string(),
                    &line.name,
                    &line.project,
                    &line.owner,
                    line.flavour.as_str(),
                ];
                push("line", team, about, &line.totals);
            }
        }
        None => bill
            .teams
            .iter()
            .for_each(|team| push("team", &team.team, [""; 5], &team.totals)),
    }
    push(
        "total",
        bill.team.as_deref().unwrap_or_default(),
        [""; 5],
        &bill.totals,
    );
    rows.iter().map(|cells| csv_line(cells)).collect()
}

/// A text that a spreadsheet would take for a formula, a number or a date (`1e5`, `3-4`) begins with an apostrophe instead;
/// figures are never given here.
fn plain_text(cell: &str) -> String {
    let like_a_number = cell.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && cell
            .chars()
            .all(|letter| letter.is_ascii_digit() || "eE.,:/+-%_ ".contains(letter));
    if like_a_number || cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

/// One record as RFC 4180 has it.
fn csv_line(cells: &[String]) -> String {
    let quote = |cell: &String| {
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.clone()
        }
    };
    let cells: Vec<_> = cells.iter().map(quote).collect();
    format!("{}\r\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_sent_to_whoever_likes_it_best() {
        for (accept, csv) in [
            ("text/csv", true),
            ("Text/CSV; charset=utf-8", true),
            ("text/csv, application/json", true),
            ("text/csv;q=0.5, application/json;q=0.4", true),
            ("text/csv;q=0", false),
            ("text/csv; Q=0.000", false),
            ("text/csv;q=0, application/json", false),
            ("text/csv;q=0.5, application/json", false),
            ("text/csv;q=much", false),
            ("application/json", false),
            ("*/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().expect(accept));
            assert_eq!(wants_csv(&headers), csv, "{accept}");
        }
    }

    #[test]
    fn no_text_of_a_bill_is_a_formula_and_no_figure_is_changed() {
        let totals = BillTotals {
            own_amount: "-1.00".to_owned(),
            ..BillTotals::default()
        };
        for (cell, guarded) in [
            ("1e5", "'1e5"),
            ("-2/3", "'-2/3"),
            ("2026-11-05", "'2026-11-05"),
            ("007", "'007"),
            ("10:30", "'10:30"),
            ("fraud-ml", "fraud-ml"),
            ("3d-vision", "3d-vision"),
            ("h100-80g", "h100-80g"),
            ("", ""),
        ] {
            assert_eq!(plain_text(cell), guarded, "{cell}");
        }
        let line = contract::BillLine {
            job: 7,
            name: "=1+1".to_owned(),
            project: "-2, +3".to_owned(),
            owner: "@SUM(A1)".to_owned(),
            flavour: "\th100".to_owned(),
            totals,
        };
        let bill = BillView {
            month: "2026-11".to_owned(),
            zone: "Europe/Berlin".to_owned(),
            from: jiff::Timestamp::UNIX_EPOCH,
            to: jiff::Timestamp::UNIX_EPOCH,
            until: jiff::Timestamp::UNIX_EPOCH,
            currency: "USD".to_owned(),
            rate_card: "list".to_owned(),
            team: Some("fraud-ml".to_owned()),
            totals: BillTotals::default(),
            teams: Vec::new(),
            projects: Vec::new(),
            lines: vec![line],
            days: Vec::new(),
            months: Vec::new(),
        };
        let text = csv_text(&bill);
        let line = text.lines().nth(1).unwrap_or_default();
        assert!(
            line.starts_with("line,2026-11,fraud-ml,7,'=1+1,\"'-2, +3\",'@SUM(A1),'\th100,,-1.00,"),
            "{line}"
        );
    }
}
