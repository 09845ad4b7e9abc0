//! A team's fair share in words and figures: one function for page, REST and CLI.

use crate::Gpus;
use crate::text::{gpu_count, gpus};
use scheduler::{FairShare, Lender, TeamId};
use serde::{Deserialize, Serialize};

/// A part that is lent: by or to whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoanView {
    /// The other side: a team, a cohort, or nobody.
    pub with: String,
    /// How much.
    pub gpus: Gpus,
}

/// One flavour of a team's fair share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShareView {
    /// Flavour.
    pub flavour: String,
    /// What it deserves now: its own and its part of the surplus.
    pub deserved: Gpus,
    /// Its own.
    pub nominal: Gpus,
    /// Its part of what others leave unused.
    pub surplus_part: Gpus,
    /// Charged now.
    pub charged: Gpus,
    /// Of these, borrowed.
    pub borrowed: Gpus,
    /// Borrowed from whom.
    pub borrowed_from: Vec<LoanView>,
    /// Lent, and to whom.
    pub lent_to: Vec<LoanView>,
    /// Of what it has borrowed, what it would have to give back if its lenders called it in now.
    pub exposed: Gpus,
    /// The same in sentences, with the reasons and a comparison with its peers.
    pub why: Vec<String>,
}

/// A team's fair share, by flavour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TeamShareView {
    /// The team.
    pub team: String,
    /// Each flavour that it has quota of.
    pub flavours: Vec<ShareView>,
}

fn lender(from: &Lender) -> String {
    match from {
        Lender::Team(id) => id.to_string(),
        Lender::Cohort(id) => format!("cohort {id}"),
        Lender::Nobody => "nobody (its quota was cut)".to_owned(),
    }
}

fn list(loans: &[LoanView]) -> String {
    let parts: Vec<String> = loans
        .iter()
        .map(|loan| format!("{} {}", loan.gpus, loan.with))
        .collect();
    parts.join(", ")
}

/// A share of `lendable`, in ten-thousandths, as people read it: `12.5 %`.
fn percent(e4: Option<u64>) -> String {
    e4.map_or("an unlimited share".to_owned(), |e4| {
        format!("{}.{} %", e4 / 100, e4 % 100 / 10)
    })
}

/// One flavour as every door shows it.
pub fn view(team: &TeamId, flavour: &str, fair: &FairShare) -> ShareView {
    let borrowed_from: Vec<LoanView> = fair
        .from
        .iter()
        .map(|loan| LoanView {
            with: lender(&loan.from),
            gpus: Gpus(loan.gpus),
        })
        .collect();
    let lent_to: Vec<LoanView> = fair
        .to
        .iter()
        .map(|(team, gpus)| LoanView {
            with: team.to_string(),
            gpus: Gpus(*gpus),
        })
        .collect();
    ShareView {
        flavour: flavour.to_owned(),
        deserved: Gpus(fair.deserved()),
        nominal: Gpus(fair.figures.nominal),
        surplus_part: Gpus(fair.surplus_part),
        charged: Gpus(fair.figures.charged),
        borrowed: Gpus(fair.figures.borrowed),
        why: sentences(team, fair, &list(&borrowed_from), &list(&lent_to)),
        borrowed_from,
        lent_to,
        exposed: Gpus(fair.exposed),
    }
}

fn sentences(team: &TeamId, fair: &FairShare, from: &str, to: &str) -> Vec<String> {
    let figures = &fair.figures;
    let mut why = vec![format!(
        "{team} owns {} and is charged {}.",
        gpu_count(figures.nominal),
        gpus(figures.charged)
    )];
    let itself = fair.peers.iter().find(|peer| peer.team == *team);
    let wants = fair.peers.iter().filter(|peer| peer.wants).count();
    if itself.is_some_and(|peer| peer.wants) {
        why.push(format!(
            "Its tree leaves {} unused, lent or not; by weight its part of that is {}, so it deserves {} now.",
            gpu_count(fair.surplus),
            gpus(fair.surplus_part),
            gpus(fair.deserved())
        ));
    } else {
        why.push(format!(
            "It neither borrows nor waits, so it deserves its own {} and takes no part in the {} that its tree leaves unused.",
            gpus(figures.nominal),
            gpu_count(fair.surplus)
        ));
    }
    if !to.is_empty() {
        why.push(format!("It has lent {}: {to}.", gpu_count(figures.lent)));
    }
    if figures.borrowed.0 > 0 {
        why.push(format!(
            "It has borrowed {}: of {from}.",
            gpu_count(figures.borrowed)
        ));
        why.push(format!(
            "If its lenders asked for all of it now, {} could move to what others leave unused and {} would have to be given back.",
            gpus(fair.movable),
            gpus(fair.exposed)
        ));
    } else {
        why.push("It borrows nothing, so nothing of it can be reclaimed.".to_owned());
    }
    why.extend(compare(team, fair, wants));
    why
}

/// The comparison with its peers, in one sentence.
fn compare(team: &TeamId, fair: &FairShare, wants: usize) -> Option<String> {
    let others = fair.peers.len() - 1;
    let place = fair.peers.iter().position(|peer| peer.team == *team)?;
    if others == 0 {
        return Some("It has no peers: it shares with nobody.".to_owned());
    }
    let own = &fair.peers[place];
    let most = fair.peers.iter().rev().find(|peer| peer.team != *team)?;
    let less = fair.peers[..place]
        .iter()
        .filter(|peer| peer.share_e4 < own.share_e4)
        .count();
    Some(format!(
        "Its share is {}, above that of {less} of its {others} peers, of which {} borrow or wait; the largest among them is {}'s with {}. \
         The smaller share goes first.",
        percent(own.share_e4),
        wants - usize::from(own.wants),
        most.team,
        percent(most.share_e4)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::{Loan, MilliGpu, Peer, QuotaFigures};

    #[test]
    fn a_borrower_is_told_whose_it_is_what_may_be_called_back_and_how_its_peers_stand() {
        let peer = |team: &str, borrowed: u64, share_e4: u64| Peer {
            team: team.into(),
            borrowed: MilliGpu::gpus(borrowed),
            share_e4: Some(share_e4),
            wants: borrowed > 0,
        };
        let fair = FairShare {
            figures: QuotaFigures {
                nominal: MilliGpu::gpus(4),
                charged: MilliGpu::gpus(8),
                own: MilliGpu::gpus(4),
                borrowed: MilliGpu::gpus(4),
                ..QuotaFigures::default()
            },
            surplus: MilliGpu::gpus(16),
            surplus_part: MilliGpu::gpus(8),
            from: vec![Loan {
                from: Lender::Team("idle".into()),
                gpus: MilliGpu::gpus(4),
            }],
            to: Vec::new(),
            movable: MilliGpu::gpus(1),
            exposed: MilliGpu::gpus(3),
            peers: vec![peer("idle", 0, 0), peer("a", 4, 1_666), peer("b", 8, 3_333)],
        };
        let told = view(&"a".into(), "h100", &fair);
        assert_eq!(
            told.why,
            [
                "a owns 4 GPUs and is charged 8.",
                "Its tree leaves 16 GPUs unused, lent or not; by weight its part of that is 8, so it deserves 12 now.",
                "It has borrowed 4 GPUs: of 4 idle.",
                "If its lenders asked for all of it now, 1 could move to what others leave unused and 3 would have to be given back.",
                "Its share is 16.6 %, above that of 1 of its 2 peers, of which 1 borrow or wait; the largest among them is b's with \
                 33.3 %. The smaller share goes first.",
            ]
        );
    }
}
