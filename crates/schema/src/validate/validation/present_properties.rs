//! Which properties of a schema an object has: found in one pass.

use serde_json::{Map, Value};

use super::super::compiled_schema::{NO_SLOT, ObjectRules, PRESENCE_BITS, Remainder};

#[derive(Default)]
pub struct PresentProperties {
    /// The members do not have the order of the schema's properties.
    pub is_out_of_order: bool,
    /// There is a member that is no property of the schema.
    pub has_unknown: bool,
    /// A bit for each of the first properties.
    bits: u64,
    /// The slot after the last property found.
    pub next: usize,
}

impl PresentProperties {
    /// Adds the next member.
    #[inline]
    pub fn add(&mut self, slot: u16) {
        if slot == NO_SLOT {
            self.has_unknown = true;
            return;
        }
        self.is_out_of_order |= usize::from(slot) < self.next;
        self.next = usize::from(slot) + 1;
        self.mark(slot);
    }

    /// Marks a property as present.
    #[inline]
    pub fn mark(&mut self, slot: u16) {
        if slot < PRESENCE_BITS {
            self.bits |= 1 << slot;
        }
    }

    /// Whether the property is present; looks it up if it has no bit.
    #[inline]
    pub fn has(&self, slot: u16, name: &str, members: &Map<String, Value>) -> bool {
        if slot < PRESENCE_BITS { self.bits & (1 << slot) != 0 } else { members.contains_key(name) }
    }

    /// Whether only the properties themselves can make the object invalid.
    #[inline]
    pub fn satisfies_object_rules(&self, rules: &ObjectRules) -> bool {
        let has_required = self.bits & rules.required_bits == rules.required_bits;
        let is_open = matches!(rules.additional, None | Some(Remainder::Allowed));
        has_required && !rules.has_other_rules && (!self.has_unknown || is_open)
    }
}
