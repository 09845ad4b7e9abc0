//! What is on disk: a journal of lines and, now and then, a snapshot. A process that dies comes back from these.

use crate::driver::Engine;
use scheduler::{Event, UsageLine, apply};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The journal as it would be read back, and the last snapshot.
#[derive(Default)]
pub(super) struct Disk {
    journal: Vec<String>,
    snapshot: Option<(usize, String)>,
    lines: Vec<UsageLine>,
    hash: DefaultHasher,
}

impl Disk {
    /// Writes a batch: all of it or, when the process dies before, nothing.
    pub(super) fn write(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            let text = serde_json::to_string(event).map_err(|error| error.to_string())?;
            text.hash(&mut self.hash);
            self.journal.push(text);
        }
        Ok(())
    }

    /// Usage lines that were closed by what was written.
    pub(super) fn close(&mut self, lines: &[UsageLine]) {
        self.lines.extend_from_slice(lines);
    }

    /// Keeps a snapshot of what is.
    pub(super) fn keep(&mut self, engine: &Engine) -> Result<(), String> {
        let text = serde_json::to_string(&(&engine.state, &engine.meter));
        let text = text.map_err(|error| error.to_string())?;
        self.snapshot = Some((self.journal.len(), text));
        Ok(())
    }

    pub(super) fn events(&self) -> u64 {
        self.journal.len() as u64
    }

    pub(super) fn journal(self) -> Vec<String> {
        self.journal
    }

    /// The engine as a start from disk makes it: the snapshot, and the journal behind it.
    pub(super) fn open(&self) -> Result<Engine, String> {
        let mut engine = Engine::default();
        let mut from = 0;
        if let Some((events, text)) = &self.snapshot {
            let read = serde_json::from_str(text);
            (engine.state, engine.meter) =
                read.map_err(|error| format!("the snapshot cannot be read: {error}"))?;
            from = *events;
        }
        self.fold(&mut engine, from)?;
        Ok(engine)
    }

    /// The fold of the whole journal, and its usage lines.
    pub(super) fn fold_all(&self) -> Result<Engine, String> {
        let mut engine = Engine::default();
        let lines = self.fold(&mut engine, 0)?;
        if lines != self.lines {
            return Err("the journal folds to other usage lines".to_owned());
        }
        Ok(engine)
    }

    fn fold(&self, engine: &mut Engine, from: usize) -> Result<Vec<UsageLine>, String> {
        let mut lines = Vec::new();
        for text in &self.journal[from..] {
            let event: Event = serde_json::from_str(text)
                .map_err(|error| format!("the journal cannot be read: {error}: {text}"))?;
            apply(&mut engine.state, &event);
            lines.extend(engine.meter.observe(&engine.state, &event));
        }
        Ok(lines)
    }

    /// Everything that was written, as one number.
    pub(super) fn digest(&self) -> u64 {
        let mut hash = self.hash.clone();
        for line in &self.lines {
            format!("{line:?}").hash(&mut hash);
        }
        hash.finish()
    }
}
