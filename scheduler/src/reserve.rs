//! Reservations of this cycle: what a job that has waited too long closes to those behind it.
//!
//! - It has the quota and lacks only **room** of its shape: it closes the flavour to all. Else small jobs would take
//!   every node that falls free, for ever.
//! - It lacks **quota** that is its team's own: it closes the flavour to its team, and while others have borrowed what it
//!   lacks, to all of its tree that would borrow. Else its team's small jobs, or borrowers, would take every GPU of it
//!   that falls free, for ever. A team that lacks only what it uses itself keeps nobody else from borrowing.
//!
//! Either only if the healthy hardware could hold it at all: a reservation that can never be met blocks nobody. Planned
//! starts will take the place of closing: then whatever ends in time may pass.

use crate::JobId;
use crate::quota::QuotaTree;
use std::collections::BTreeMap;

/// To whom a flavour is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// To all.
    All,
    /// To a team.
    Team {
        /// The team's index in the quota tree.
        of: usize,
    },
    /// To a team, and to those of its tree who would borrow.
    Borrowers {
        /// The team's index in the quota tree.
        of: usize,
    },
}

/// A job that wants to start in a flavour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanting {
    /// Its place in the order of the cycle.
    pub rank: usize,
    /// Its team's index.
    pub team: usize,
    /// The flavour's index.
    pub flavour: usize,
    /// What it asks.
    pub gpus: crate::MilliGpu,
}

/// All of a cycle, by flavour: in order of rank.
#[derive(Default)]
pub(crate) struct Reservations {
    closed: BTreeMap<usize, Vec<(usize, JobId, Closed)>>,
}

impl Reservations {
    /// Closes a flavour behind a job.
    pub(crate) fn close(&mut self, job: JobId, wanting: Wanting, to: Closed) {
        self.closed
            .entry(wanting.flavour)
            .or_default()
            .push((wanting.rank, job, to));
    }

    /// The first job that a wanting one must not pass.
    pub(crate) fn ahead_of(&self, wanting: Wanting, tree: &QuotaTree) -> Option<JobId> {
        let Wanting {
            rank,
            team,
            flavour,
            gpus,
        } = wanting;
        let meant = |to: Closed| match to {
            Closed::All => true,
            Closed::Team { of } => team == of,
            Closed::Borrowers { of } => {
                team == of
                    || (tree.root(team) == tree.root(of)
                        && !tree.inside_nominal(team, flavour, gpus))
            }
        };
        let closers = self.closed.get(&flavour)?;
        closers
            .iter()
            .find(|&&(closer, _, to)| closer < rank && meant(to))
            .map(|&(_, job, _)| job)
    }
}
