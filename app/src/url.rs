//! Addresses. Every link of the portal is printed here and read here, so that it lands on exactly what it says.
//!
//! This is the router, too: a page is one arm of a `match` on [`Url`], which the compiler keeps whole; a router with patterns
//! would be a second list of the same routes.

use contract::{JobFilter, JobState, SortKey};
use std::fmt::{self, Write as _};

/// An address inside the portal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Url {
    /// What matters now.
    Overview,
    /// Jobs in a list.
    Queue(QueueUrl),
    /// One job.
    Job(u64),
    /// The submit form, empty, from a template or like an earlier job.
    NewJob(Start),
    /// The map, as a picture or a table.
    Map(MapUrl),
    /// The quota tree, of one flavour; `None` = the first.
    Quotas {
        /// Flavour.
        flavour: Option<String>,
    },
    /// What is set aside; the form begins with this.
    Holds {
        /// Kind of thing: `node`, `rack`.
        on: Option<String>,
        /// Its name.
        what: Option<String>,
    },
    /// Limits on what runs and waits at once, with the form of one team.
    Limits {
        /// Whose form is open.
        team: Option<String>,
    },
    /// The policies, with the form of one.
    Policies {
        /// Whose form is open.
        change: Option<String>,
    },
    /// Reclaims: those that wait, those under way, and those that are over.
    Reclaims {
        /// Where the page before ended, of those that are over.
        after: Option<String>,
    },
    /// One reclaim.
    Reclaim(u64),
    /// A month's bill by team; `None` = this month.
    Bills {
        /// `2026-11`.
        month: Option<String>,
    },
    /// A team's bill of a month.
    Bill {
        /// Team.
        team: String,
        /// `2026-11`.
        month: Option<String>,
    },
    /// API tokens.
    Tokens,
    /// Choosing a person; then on to where one wanted to go.
    SignIn {
        /// An own path.
        next: Option<String>,
    },
}

/// Which jobs. Without a filter it is what the one who asks wants first: their own, or their team's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueUrl {
    /// `Some` of an empty filter = everything that one may see.
    pub filter: Option<JobFilter>,
    /// Where the page before ended.
    pub after: Option<String>,
}

/// What the form begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Nothing.
    #[default]
    Empty,
    /// A template by its name.
    Template(String),
    /// The spec of a job.
    Like(u64),
}

/// How the map is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapUrl {
    /// Picture or table.
    pub look: MapLook,
    /// Only this block; `None` = all.
    pub block: Option<String>,
}

/// Picture or table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapLook {
    /// One drawing a block.
    #[default]
    Picture,
    /// One row a node.
    Table,
}

/// Why an address leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No such page.
    #[error("there is no page at this address")]
    NoPage,
    /// A page, with a query that it does not understand.
    #[error("the address has a wrong `{field}`: {message}")]
    Query {
        /// The query's key.
        field: String,
        /// What would be right.
        message: String,
    },
}

/// States of jobs that have not ended, in order: `state=live`.
pub const LIVE: [JobState; 6] = [
    JobState::Queued,
    JobState::Admitted,
    JobState::Starting,
    JobState::Running,
    JobState::Reclaiming,
    JobState::Recovering,
];
/// States of jobs that have: `state=ended`.
pub const ENDED: [JobState; 4] = [
    JobState::Succeeded,
    JobState::Failed,
    JobState::Cancelled,
    JobState::TimedOut,
];

impl Url {
    /// The list of everything that fits.
    pub fn queue(filter: JobFilter) -> Self {
        Self::Queue(QueueUrl {
            filter: Some(filter),
            after: None,
        })
    }

    /// Jobs of one team in some states.
    pub fn team_queue(team: &str, states: &[JobState]) -> Self {
        Self::queue(JobFilter {
            teams: vec![team.to_owned()],
            states: states.to_vec(),
            ..JobFilter::default()
        })
    }

    /// Reads a path with its query.
    pub fn parse(path_and_query: &str) -> Result<Self, UrlError> {
        let (path, query) = path_and_query
            .split_once('?')
            .unwrap_or((path_and_query, ""));
        let query = Query::parse(query);
        let segments: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(decode)
            .collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        Ok(match segments.as_slice() {
            [] => Self::Overview,
            ["queue"] => Self::Queue(queue_of(&query)?),
            ["jobs", "new"] => Self::NewJob(start_of(&query)?),
            ["jobs", id] => Self::Job(id.parse().map_err(|_| UrlError::NoPage)?),
            ["map"] => Self::Map(map_of(&query)?),
            ["quotas"] => Self::Quotas {
                flavour: query.get("flavour"),
            },
            ["holds"] => Self::Holds {
                on: query.get("on"),
                what: query.get("what"),
            },
            ["limits"] => Self::Limits {
                team: query.get("team"),
            },
            ["admin", "policies"] => Self::Policies {
                change: query.get("change"),
            },
            ["reclaims"] => Self::Reclaims {
                after: query.get("after"),
            },
            ["reclaims", id] => Self::Reclaim(id.parse().map_err(|_| UrlError::NoPage)?),
            ["bills"] => Self::Bills {
                month: query.get("month"),
            },
            ["bills", team] => Self::Bill {
                team: (*team).to_owned(),
                month: query.get("month"),
            },
            ["tokens"] => Self::Tokens,
            ["sign-in"] => Self::SignIn {
                next: query.get("next"),
            },
            _ => return Err(UrlError::NoPage),
        })
    }
}

fn wrong(field: &str, message: impl Into<String>) -> UrlError {
    UrlError::Query {
        field: field.to_owned(),
        message: message.into(),
    }
}

fn start_of(query: &Query) -> Result<Start, UrlError> {
    Ok(match (query.get("template"), query.get("like")) {
        (Some(name), _) => Start::Template(name),
        (None, Some(id)) => Start::Like(
            id.parse()
                .map_err(|_| wrong("like", "the number of a job"))?,
        ),
        (None, None) => Start::Empty,
    })
}

fn map_of(query: &Query) -> Result<MapUrl, UrlError> {
    let look = match query.get("view").as_deref() {
        None | Some("picture") => MapLook::Picture,
        Some("table") => MapLook::Table,
        Some(_) => return Err(wrong("view", "picture or table")),
    };
    Ok(MapUrl {
        look,
        block: query.get("block"),
    })
}

/// Keys of the query that make a list another one than the first that one sees.
const FILTER_KEYS: [&str; 5] = ["team", "state", "owner", "search", "sort"];

fn queue_of(query: &Query) -> Result<QueueUrl, UrlError> {
    let after = query.get("after");
    if FILTER_KEYS.iter().all(|key| query.get(key).is_none()) {
        return Ok(QueueUrl {
            filter: query.has_any(&FILTER_KEYS).then(JobFilter::default),
            after,
        });
    }
    let mut teams = query.all("team");
    teams.sort_unstable();
    teams.dedup();
    let mut states = Vec::new();
    for word in query.all("state") {
        match word.as_str() {
            "any" => states.extend(JobState::ALL),
            "live" => states.extend(LIVE),
            "ended" => states.extend(ENDED),
            one => states.push(one.parse().map_err(|message: String| {
                wrong("state", format!("{message}, live, ended or any"))
            })?),
        }
    }
    states.sort_unstable();
    states.dedup();
    if states == JobState::ALL {
        states.clear();
    }
    let sort = match query.get("sort").as_deref() {
        None | Some("newest") => SortKey::Newest,
        Some("oldest") => SortKey::Oldest,
        Some(_) => return Err(wrong("sort", "newest or oldest")),
    };
    let filter = JobFilter {
        teams,
        states,
        owner: query.get("owner"),
        search: query.get("search"),
        sort,
    };
    Ok(QueueUrl {
        filter: Some(filter),
        after,
    })
}

/// How `state=` writes a set of states; nothing when it is all of them.
pub fn states_word(states: &[JobState]) -> String {
    if states == LIVE {
        "live".to_owned()
    } else if states == ENDED {
        "ended".to_owned()
    } else {
        let words: Vec<_> = states.iter().map(|state| state.as_str()).collect();
        words.join(",")
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut query = Pairs::default();
        match self {
            Self::Overview => f.write_str("/"),
            Self::Queue(queue) => {
                if let Some(filter) = &queue.filter {
                    query.filter(filter);
                }
                query.push("after", queue.after.as_deref().unwrap_or_default());
                write!(f, "/queue{query}")
            }
            Self::Job(id) => write!(f, "/jobs/{id}"),
            Self::NewJob(start) => {
                match start {
                    Start::Empty => {}
                    Start::Template(name) => query.push("template", name),
                    Start::Like(id) => query.push("like", &id.to_string()),
                }
                write!(f, "/jobs/new{query}")
            }
            Self::Map(map) => {
                if map.look == MapLook::Table {
                    query.push("view", "table");
                }
                query.push("block", map.block.as_deref().unwrap_or_default());
                write!(f, "/map{query}")
            }
            Self::Quotas { flavour } => {
                query.push("flavour", flavour.as_deref().unwrap_or_default());
                write!(f, "/quotas{query}")
            }
            Self::Holds { on, what } => {
                query.push("on", on.as_deref().unwrap_or_default());
                query.push("what", what.as_deref().unwrap_or_default());
                write!(f, "/holds{query}")
            }
            Self::Limits { team } => {
                query.push("team", team.as_deref().unwrap_or_default());
                write!(f, "/limits{query}")
            }
            Self::Policies { change } => {
                query.push("change", change.as_deref().unwrap_or_default());
                write!(f, "/admin/policies{query}")
            }
            Self::Reclaims { after } => {
                query.push("after", after.as_deref().unwrap_or_default());
                write!(f, "/reclaims{query}")
            }
            Self::Reclaim(id) => write!(f, "/reclaims/{id}"),
            Self::Bills { month } => {
                query.push("month", month.as_deref().unwrap_or_default());
                write!(f, "/bills{query}")
            }
            Self::Bill { team, month } => {
                query.push("month", month.as_deref().unwrap_or_default());
                write!(f, "/bills/{}{query}", encode(team))
            }
            Self::Tokens => f.write_str("/tokens"),
            Self::SignIn { next } => {
                query.push("next", next.as_deref().unwrap_or_default());
                write!(f, "/sign-in{query}")
            }
        }
    }
}

/// A query being written; what is empty is left out.
#[derive(Default)]
struct Pairs(String);

impl Pairs {
    fn push(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            let mark = if self.0.is_empty() { '?' } else { '&' };
            write!(self.0, "{mark}{key}={}", encode(value)).expect("a String takes all text");
        }
    }

    fn filter(&mut self, filter: &JobFilter) {
        if *filter == JobFilter::default() {
            return self.push("state", "any");
        }
        self.push("team", &filter.teams.join(","));
        self.push("state", &states_word(&filter.states));
        self.push("owner", filter.owner.as_deref().unwrap_or_default());
        self.push("search", filter.search.as_deref().unwrap_or_default());
        if filter.sort == SortKey::Oldest {
            self.push("sort", "oldest");
        }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A query as it came, decoded.
struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    let value = value.replace('+', " ");
                    (decode(key), decode(&value).trim().to_owned())
                })
                .collect(),
        )
    }

    /// The first value that is not empty.
    fn get(&self, key: &str) -> Option<String> {
        let mut values = self
            .0
            .iter()
            .filter(|(name, value)| name == key && !value.is_empty());
        values.next().map(|(_, value)| value.clone())
    }

    /// All values, of repeated keys and of lists with commas.
    fn all(&self, key: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(name, _)| name == key);
        values
            .flat_map(|(_, value)| value.split(','))
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// True when one of the keys is there, even if empty: a form was sent.
    fn has_any(&self, keys: &[&str]) -> bool {
        self.0.iter().any(|(name, _)| keys.contains(&name.as_str()))
    }
}

/// Percent-encodes all that is not plain in a path segment or a query value.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b',' | b':' => {
                out.push(byte.into());
            }
            _ => write!(out, "%{byte:02X}").expect("a String takes all text"),
        }
    }
    out
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digit = |index: usize| {
            bytes
                .get(index)
                .and_then(|byte| (*byte as char).to_digit(16))
        };
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `given` lands on a page whose own address is `canonical`, and that address is stable.
    fn check(given: &str, canonical: &str) {
        let url = Url::parse(given).expect(given);
        assert_eq!(url.to_string(), canonical, "{given}");
        assert_eq!(Url::parse(canonical), Ok(url), "{canonical}");
    }

    #[test]
    fn a_link_lands_on_exactly_what_it_says() {
        check("/", "/");
        check("/queue", "/queue");
        check("/queue?state=any", "/queue?state=any");
        check("/queue?team=&state=&owner=&search=", "/queue?state=any");
        check(
            "/queue?team=&state=live&owner=&search=",
            "/queue?state=live",
        );
        check(
            "/queue?team=b&team=a,b&state=running&state=queued",
            "/queue?team=a,b&state=queued,running",
        );
        check(
            "/queue?state=failed,succeeded,cancelled,timed_out",
            "/queue?state=ended",
        );
        check(
            "/queue?search=a+b%2Fc%3F%26&sort=oldest&after=1_2",
            "/queue?search=a%20b%2Fc%3F%26&sort=oldest&after=1_2",
        );
        check("/queue?after=x", "/queue?after=x");
        check("/jobs/412", "/jobs/412");
        check("/jobs/new?template=one-gpu", "/jobs/new?template=one-gpu");
        check("/jobs/new?like=7", "/jobs/new?like=7");
        check(
            "/map?view=table&block=h100-b03",
            "/map?view=table&block=h100-b03",
        );
        check("/map/?view=picture", "/map");
        check("/quotas?flavour=a100-80g", "/quotas?flavour=a100-80g");
        check("/holds", "/holds");
        check("/limits?team=fraud-ml", "/limits?team=fraud-ml");
        check(
            "/admin/policies?change=grace",
            "/admin/policies?change=grace",
        );
        check("/holds?on=node&what=n1", "/holds?on=node&what=n1");
        check("/reclaims?after=12", "/reclaims?after=12");
        check("/reclaims/12", "/reclaims/12");
        check("/bills", "/bills");
        check(
            "/bills/fraud-ml?month=2026-11",
            "/bills/fraud-ml?month=2026-11",
        );
        check(
            "/sign-in?next=%2Fqueue%3Fstate%3Dlive",
            "/sign-in?next=%2Fqueue%3Fstate%3Dlive",
        );
        check("/tokens", "/tokens");
    }

    #[test]
    fn any_team_and_text_survive_the_round_trip() {
        for text in [
            "a b",
            "ü/ß",
            "50%",
            "a&b=c",
            "+",
            "\"<script>\"",
            "#?",
            "日本",
        ] {
            for url in [
                Url::Bill {
                    team: text.into(),
                    month: Some(text.into()),
                },
                Url::queue(JobFilter {
                    search: Some(text.into()),
                    ..JobFilter::default()
                }),
                Url::queue(JobFilter {
                    owner: Some(text.into()),
                    states: vec![JobState::Failed],
                    ..JobFilter::default()
                }),
                Url::SignIn {
                    next: Some(text.into()),
                },
            ] {
                assert_eq!(Url::parse(&url.to_string()), Ok(url.clone()), "{url}");
            }
        }
    }

    #[test]
    fn a_wrong_query_is_named_and_never_widens_the_list() {
        assert!(
            matches!(Url::parse("/queue?state=runing"), Err(UrlError::Query { field, .. }) if field == "state")
        );
        assert!(
            matches!(Url::parse("/map?view=3d"), Err(UrlError::Query { field, .. }) if field == "view")
        );
        assert_eq!(Url::parse("/jobs/x"), Err(UrlError::NoPage));
        assert_eq!(Url::parse("/nowhere"), Err(UrlError::NoPage));
    }
}
