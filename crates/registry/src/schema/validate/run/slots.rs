//! Which property of a schema each member of an object is: found in one pass, kept on the stack for
//! objects of ordinary size.

use serde_json::{Map, Value};

use crate::schema::validate::node::OfObject;

pub const NONE: u16 = u16::MAX;
/// A property that need not be checked. There are never so many that this is the place of one.
const SOUND: u16 = u16::MAX - 1;
/// So many properties have a bit that says whether they are there.
const BITS: u16 = 64;
const FEW: usize = 32;

pub struct Slots {
    few: [u16; FEW],
    many: Vec<u16>,
    length: usize,
    /// Members come in the order of the schema's properties.
    pub in_order: bool,
    /// Some member is no property of the schema.
    pub has_unknown: bool,
    /// The first properties that are there, a bit each.
    present: u64,
    /// The place after the last property found.
    next: usize,
}

impl Slots {
    pub fn of(rules: &OfObject, members: &Map<String, Value>) -> Self {
        let mut slots = Self {
            few: [NONE; FEW],
            many: Vec::new(),
            length: 0,
            in_order: true,
            has_unknown: false,
            present: 0,
            next: 0,
        };
        for name in members.keys() {
            slots.add(rules.slot(name, slots.next).unwrap_or(NONE));
        }
        slots
    }

    /// Notes the next member, which need not be checked.
    pub fn add_sound(&mut self, slot: u16) {
        if slot < BITS {
            self.push(SOUND);
            self.present |= 1 << slot;
        } else {
            // Without a bit, only its place tells that it is there.
            self.add(slot);
        }
    }

    fn push(&mut self, slot: u16) {
        match self.few.get_mut(self.length) {
            Some(place) => *place = slot,
            None => self.many.push(slot),
        }
        self.length += 1;
    }

    /// Notes the next member.
    pub fn add(&mut self, slot: u16) {
        self.push(slot);
        if slot == NONE {
            self.has_unknown = true;
            return;
        }
        self.in_order &= usize::from(slot) >= self.next;
        self.next = usize::from(slot) + 1;
        if slot < BITS {
            self.present |= 1 << slot;
        }
    }

    pub fn get(&self, index: usize) -> u16 {
        let slot = if index < FEW { self.few.get(index) } else { self.many.get(index - FEW) };
        slot.copied().unwrap_or(NONE)
    }

    pub fn has(&self, slot: u16) -> bool {
        if slot < BITS {
            return self.present & (1 << slot) != 0;
        }
        self.few.iter().take(self.length).chain(&self.many).any(|other| *other == slot)
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
