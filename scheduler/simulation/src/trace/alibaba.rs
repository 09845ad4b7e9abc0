//! Alibaba's GPU trace of 2023: `openb_node_list_*` and `openb_pod_list_*`. Times are seconds since the trace began.

use super::{BrokenRow, Format, RowProblem, Rows, TraceError, expect, number};
use csv::StringRecord;
use scheduler::{MilliGpu, Millis};

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceNode {
    /// Its serial number.
    pub name: String,
    /// CPU in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Whole GPUs.
    pub cards: u16,
    /// The kind of its GPUs; `None` on a machine without.
    pub model: Option<String>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRow {
    /// Its name.
    pub name: String,
    /// CPU in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// GPUs: none, a share of one card, or whole cards.
    pub gpus: MilliGpu,
    /// Kinds of GPU it may have, in the file's order without repeats; empty = any.
    pub models: Vec<String>,
    /// True when the record saw it running last: it has no end of its own.
    pub left_running: bool,
    /// When it came.
    pub created: Millis,
    /// When it was scheduled; `None` = never.
    pub scheduled: Option<Millis>,
    /// When it was deleted; `None` = not said.
    pub deleted: Option<Millis>,
}

/// Most GPUs of a node that the engine's placement can name.
const MOST_CARDS: u64 = 32;
/// Columns of a node list.
const NODE_COLUMNS: [&str; 4] = ["sn", "cpu_milli", "memory_mib", "gpu"];
/// Columns of a pod list; the others may be absent.
const POD_COLUMNS: [&str; 8] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];

/// Reads a node list.
pub fn read_nodes(bytes: &[u8]) -> Result<Rows<TraceNode>, TraceError> {
    expect(bytes, Format::AlibabaNodes)?;
    read(bytes, Format::AlibabaNodes, &NODE_COLUMNS, node_row)
}

/// Reads a pod list with times.
pub fn read_pods(bytes: &[u8]) -> Result<Rows<PodRow>, TraceError> {
    expect(bytes, Format::AlibabaPods)?;
    read(bytes, Format::AlibabaPods, &POD_COLUMNS, pod_row)
}

/// A row with its header.
struct Fields<'a> {
    header: &'a StringRecord,
    row: &'a StringRecord,
}

impl Fields<'_> {
    /// The field of a column; empty where the file has no such column.
    fn get(&self, column: &str) -> &str {
        self.header
            .iter()
            .position(|name| name.trim() == column)
            .and_then(|at| self.row.get(at))
            .unwrap_or("")
            .trim()
    }

    fn number(&self, column: &'static str) -> Result<u64, RowProblem> {
        number(column, self.get(column))
    }

    /// Seconds since the trace began; `None` where the field is empty.
    fn time(&self, column: &'static str) -> Result<Option<Millis>, RowProblem> {
        match self.get(column) {
            "" => Ok(None),
            text => text
                .parse::<u32>()
                .map(|seconds| Some(Millis::seconds(u64::from(seconds))))
                .map_err(|_| RowProblem::Field {
                    field: column,
                    value: text.to_owned(),
                    wanted: "whole seconds since the trace began",
                }),
        }
    }
}

fn read<T>(
    bytes: &[u8],
    format: Format,
    needed: &[&'static str],
    parse: fn(&Fields<'_>) -> Result<T, RowProblem>,
) -> Result<Rows<T>, TraceError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let header = StringRecord::from_byte_record_lossy(
        reader
            .byte_headers()
            .map_err(|_| TraceError::Empty)?
            .clone(),
    );
    let missing: Vec<&str> = needed
        .iter()
        .copied()
        .filter(|name| !header.iter().any(|column| column.trim() == *name))
        .collect();
    if !missing.is_empty() {
        return Err(TraceError::MissingColumns {
            format,
            columns: missing,
        });
    }
    let mut rows = Rows::default();
    for record in reader.byte_records().map_while(Result::ok) {
        let line = record.position().map_or(0, csv::Position::line);
        let row = StringRecord::from_byte_record(record).map_err(|_| RowProblem::NotUtf8);
        let parsed = row.and_then(|row| {
            if row.len() != header.len() {
                return Err(RowProblem::FieldCount {
                    found: row.len(),
                    wanted: header.len(),
                });
            }
            parse(&Fields {
                header: &header,
                row: &row,
            })
        });
        match parsed {
            Ok(row) => rows.rows.push(row),
            Err(problem) => rows.broken.push(BrokenRow {
                format,
                line,
                problem,
            }),
        }
    }
    Ok(rows)
}

fn node_row(fields: &Fields<'_>) -> Result<TraceNode, RowProblem> {
    let cards = fields.number("gpu")?;
    if cards > MOST_CARDS {
        return Err(RowProblem::Field {
            field: "gpu",
            value: cards.to_string(),
            wanted: "at most 32",
        });
    }
    let model = fields.get("model");
    if cards > 0 && model.is_empty() {
        return Err(RowProblem::Field {
            field: "model",
            value: String::new(),
            wanted: "the kind of its GPUs",
        });
    }
    Ok(TraceNode {
        name: fields.get("sn").to_owned(),
        cpu_milli: fields.number("cpu_milli")?,
        memory_mib: fields.number("memory_mib")?,
        cards: cards as u16,
        model: (cards > 0).then(|| model.to_owned()),
    })
}

fn pod_row(fields: &Fields<'_>) -> Result<PodRow, RowProblem> {
    let (cards, milli) = (fields.number("num_gpu")?, fields.number("gpu_milli")?);
    if milli > 1_000 || (cards > 1 && milli != 1_000) {
        let wanted = "at most 1000, and 1000 for several GPUs";
        return Err(RowProblem::Field {
            field: "gpu_milli",
            value: milli.to_string(),
            wanted,
        });
    }
    let gpus = cards.checked_mul(milli).ok_or(RowProblem::Field {
        field: "num_gpu",
        value: cards.to_string(),
        wanted: "a number of GPUs",
    })?;
    let mut models: Vec<String> = Vec::new();
    for model in fields
        .get("gpu_spec")
        .split('|')
        .map(str::trim)
        .filter(|model| !model.is_empty())
    {
        if !models.iter().any(|known| known == model) {
            models.push(model.to_owned());
        }
    }
    let created = fields.time("creation_time")?.ok_or(RowProblem::Field {
        field: "creation_time",
        value: String::new(),
        wanted: "whole seconds since the trace began",
    })?;
    let (scheduled, deleted) = (
        fields.time("scheduled_time")?,
        fields.time("deletion_time")?,
    );
    if scheduled.is_some_and(|at| at < created) {
        return Err(RowProblem::Backwards {
            earlier: "creation_time",
            later: "scheduled_time",
        });
    }
    if deleted.is_some_and(|at| at < scheduled.unwrap_or(created)) {
        return Err(RowProblem::Backwards {
            earlier: "scheduled_time",
            later: "deletion_time",
        });
    }
    Ok(PodRow {
        name: fields.get("name").to_owned(),
        cpu_milli: fields.number("cpu_milli")?,
        memory_mib: fields.number("memory_mib")?,
        gpus: MilliGpu(gpus),
        models,
        left_running: fields.get("pod_phase") == "Running",
        created,
        scheduled,
        deleted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";

    fn pods(rows: &[&str]) -> Rows<PodRow> {
        let text = std::iter::once(HEADER)
            .chain(rows.iter().copied())
            .collect::<Vec<_>>()
            .join("\n");
        read_pods(text.as_bytes()).expect("a pod list is recognised")
    }

    #[test]
    fn fractions_and_alternatives_are_read() {
        let read = pods(&["p0,6000,12288,1,460,V100M16|V100M32|V100M32,LS,Running,5,90,7"]);
        let pod = &read.rows[0];
        assert_eq!(pod.gpus, MilliGpu(460));
        assert_eq!(pod.models, ["V100M16", "V100M32"]);
        assert_eq!(
            (pod.created, pod.scheduled, pod.deleted),
            (Millis(5_000), Some(Millis(7_000)), Some(Millis(90_000)))
        );
        assert!(pod.left_running);
    }

    #[test]
    fn a_pod_never_scheduled_has_no_such_time() {
        assert_eq!(
            pods(&["p0,1,1,0,0,,BE,Pending,5,6,"]).rows[0].scheduled,
            None
        );
    }

    #[test]
    fn broken_rows_are_named_by_line_and_the_rest_goes_on() {
        let read = pods(&[
            "p0,x,1,0,0,,BE,Failed,5,6,5",
            "p1,1,1,0,0,,BE,Failed,5,6,5",
            "p2,1,1",
            "p3,1,1,2,500,,BE,Failed,5,6,5",
        ]);
        assert_eq!(read.rows.len(), 1);
        let told: Vec<String> = read.broken.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "line 2: cpu_milli is `x`, not a whole number",
                "line 4: has 3 fields, not 11",
                "line 5: gpu_milli is `500`, not at most 1000, and 1000 for several GPUs",
            ]
        );
    }

    #[test]
    fn a_list_without_times_is_told_which_columns_it_lacks() {
        let error = read_pods(b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no column creation_time, deletion_time, scheduled_time"),
            "{error}"
        );
    }

    #[test]
    fn a_node_list_is_no_pod_list() {
        let error = read_pods(b"sn,cpu_milli,memory_mib,gpu,model\n")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "found: Alibaba GPU 2023 node list; needed here: Alibaba GPU 2023 pod list"
        );
    }
}
