//! Meters: counted allowances of a turn or a session. A gate decides what a call is charged; a store only adds up, and
//! knows no meter by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// Counts the retrieval calls of a turn.
pub const RETRIEVAL_METER: &str = "retrieval";

/// A charge of a claim to a meter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Charge {
    pub meter: &'static str,
    pub scope: MeterScope,
    pub amount: u32,
    /// The claim is refused if the meter would exceed this.
    pub limit: u32,
}

/// How long a meter counts: it starts from zero with each turn or session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MeterScope {
    Turn,
    Session,
}

/// The amounts that a session has spent, by meter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    turn: BTreeMap<String, u32>,
    session: BTreeMap<String, u32>,
}

impl Spent {
    pub fn get(&self, scope: MeterScope, meter: &str) -> u32 {
        let meters = match scope {
            MeterScope::Turn => &self.turn,
            MeterScope::Session => &self.session,
        };
        meters.get(meter).copied().unwrap_or(0)
    }

    /// All meters with what was spent.
    pub fn iter(&self) -> impl Iterator<Item = (MeterScope, &str, u32)> {
        let turn = self.turn.iter().map(|(meter, spent)| (MeterScope::Turn, meter.as_str(), *spent));
        let session = self.session.iter().map(|(meter, spent)| (MeterScope::Session, meter.as_str(), *spent));
        turn.chain(session)
    }

    /// The first charge that would exceed its limit.
    pub fn exceeded<'a>(&self, charges: &'a [Charge]) -> Option<&'a Charge> {
        charges
            .iter()
            .find(|charge| self.get(charge.scope, charge.meter).saturating_add(charge.amount) > charge.limit)
    }

    pub(super) fn add(&mut self, charges: &[Charge]) {
        for charge in charges {
            let spent = self.meter(charge);
            *spent = spent.saturating_add(charge.amount);
        }
    }

    /// Takes charges back. Those of an earlier turn were reset with it.
    pub(super) fn refund(&mut self, charges: &[Charge], is_same_turn: bool) {
        for charge in charges.iter().filter(|charge| is_same_turn || charge.scope == MeterScope::Session) {
            let spent = self.meter(charge);
            *spent = spent.saturating_sub(charge.amount);
        }
        self.turn.retain(|_, spent| *spent > 0);
        self.session.retain(|_, spent| *spent > 0);
    }

    pub(super) fn begin_turn(&mut self) {
        self.turn.clear();
    }

    fn meter(&mut self, charge: &Charge) -> &mut u32 {
        let meters = match charge.scope {
            MeterScope::Turn => &mut self.turn,
            MeterScope::Session => &mut self.session,
        };
        meters.entry(charge.meter.to_owned()).or_default()
    }
}

/// Reads the meters of a session record. Before there were meters, a record had the number of `retrievals` of the turn.
pub(super) fn spent_or_retrievals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Spent, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Spent(Spent),
        Retrievals(u32),
    }
    Ok(match Stored::deserialize(deserializer)? {
        Stored::Spent(spent) => spent,
        Stored::Retrievals(0) => Spent::default(),
        Stored::Retrievals(count) => {
            Spent { turn: BTreeMap::from([(RETRIEVAL_METER.to_owned(), count)]), ..Spent::default() }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_added_and_refunded_by_scope() {
        let calls = Charge { meter: "calls", scope: MeterScope::Turn, amount: 2, limit: 3 };
        let cents = Charge { meter: "cents", scope: MeterScope::Session, amount: 40, limit: 50 };
        let charges = [calls.clone(), cents.clone()];
        let mut spent = Spent::default();
        assert_eq!(spent.exceeded(&charges), None);
        spent.add(&charges);
        assert_eq!(spent.exceeded(&charges), Some(&calls));
        spent.begin_turn();
        assert_eq!(spent.exceeded(&charges), Some(&cents));
        // The charges belong to the turn before.
        spent.refund(&charges, false);
        assert_eq!(spent, Spent::default());
    }
}
