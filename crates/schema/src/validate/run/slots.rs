//! Which properties of a schema an object has: found in one pass.

use serde_json::{Map, Value};

use crate::validate::node::{BITS, NO_SLOT, OfObject, Sub2};

#[derive(Default)]
pub struct Slots {
    /// Members do not come in the order of the schema's properties.
    pub out_of_order: bool,
    /// Some member is no property of the schema.
    pub has_unknown: bool,
    /// The first properties that are there, a bit each.
    present: u64,
    /// The place after the last property found.
    pub next: usize,
}

impl Slots {
    /// Notes the next member.
    #[inline]
    pub fn add(&mut self, slot: u16) {
        if slot == NO_SLOT {
            self.has_unknown = true;
            return;
        }
        self.out_of_order |= usize::from(slot) < self.next;
        self.next = usize::from(slot) + 1;
        self.mark(slot);
    }

    /// Notes that a property is there.
    #[inline]
    pub fn mark(&mut self, slot: u16) {
        if slot < BITS {
            self.present |= 1 << slot;
        }
    }

    /// Whether the property is there; what has no bit is looked up.
    #[inline]
    pub fn has(&self, slot: u16, name: &str, members: &Map<String, Value>) -> bool {
        if slot < BITS { self.present & (1 << slot) != 0 } else { members.contains_key(name) }
    }

    /// Whether only the properties have anything to say about the object.
    #[inline]
    pub fn is_plain(&self, rules: &OfObject) -> bool {
        let has_required = self.present & rules.required_bits == rules.required_bits;
        let is_open = matches!(rules.additional, None | Some(Sub2::Always));
        has_required && !rules.has_more_rules && (!self.has_unknown || is_open)
    }
}

/// The number that a name is, if JavaScript takes it for an index and so visits it before others.
pub fn array_index(name: &str) -> Option<u32> {
    let digits = name.as_bytes();
    let plain = digits.first()?.is_ascii_digit() && (digits.len() == 1 || digits.first() != Some(&b'0'));
    if !plain {
        return None;
    }
    name.parse().ok().filter(|index| *index != u32::MAX)
}
