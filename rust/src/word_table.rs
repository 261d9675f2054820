//! A vocabulary in a few flat arrays: texts laid end to end, found by text or by id.

use crate::border::Failure;
use ahash::RandomState;

const NONE: u32 = u32::MAX;

/// Ids from here on are taken for a damaged file, since tables are made by id.
pub const MAX_ID: u32 = 1 << 24;

/// An entry's index, and a part of its hash that tells most others apart without a look at their texts.
#[derive(Clone, Copy)]
struct Slot {
    mark: u32,
    index: u32,
}
const FREE: Slot = Slot { mark: 0, index: NONE };

#[derive(Clone)]
struct Entry {
    end: u32,
    id: u32,
}

/// Words with their ids; a word given twice has its last id.
#[derive(Clone)]
pub struct WordTable {
    bytes: String,
    entries: Vec<Entry>,
    slots: Vec<Slot>,
    hasher: RandomState,
    by_id: Vec<u32>,
}

impl WordTable {
    pub fn new() -> WordTable {
        WordTable {
            bytes: String::new(),
            entries: Vec::new(),
            slots: Vec::new(),
            hasher: RandomState::new(),
            by_id: Vec::new(),
        }
    }

    /// Room for so many words, so that no table is rebuilt on the way.
    pub fn reserve(&mut self, words: usize, bytes: usize) {
        self.bytes.reserve(bytes);
        self.entries.reserve(words);
        self.grow_slots(words);
    }

    pub fn insert(&mut self, word: &str, id: u32) -> Result<(), Failure> {
        if id >= MAX_ID {
            return Err(Failure::invalid(format!("token id {id} is above {MAX_ID}")));
        }
        self.grow_slots(self.entries.len() + 1);
        let hash = self.hasher.hash_one(word);
        let at = self.slot(word, hash);
        let found = self.slots[at].index;
        if found != NONE {
            self.entries[found as usize].id = id;
            return Ok(());
        }
        let end = u32::try_from(self.bytes.len() + word.len());
        let end = end.map_err(|_| Failure::invalid("over 4 GiB of tokens"))?;
        self.slots[at] = Slot { mark: mark(hash), index: self.entries.len() as u32 };
        self.bytes.push_str(word);
        self.entries.push(Entry { end, id });
        Ok(())
    }

    /// To be called once all words are there: makes ids findable. Two words with one id could not be told apart.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let size = self.entries.iter().map(|entry| entry.id as usize + 1).max().unwrap_or(0);
        self.by_id = vec![NONE; size];
        for (index, entry) in self.entries.iter().enumerate() {
            let other = std::mem::replace(&mut self.by_id[entry.id as usize], index as u32);
            if other != NONE {
                return Err(one_id(self.word(other as usize), self.word(index), entry.id));
            }
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The largest id plus one.
    pub fn id_end(&self) -> u32 {
        self.by_id.len() as u32
    }

    pub fn id(&self, word: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        match self.slots[self.slot(word, self.hasher.hash_one(word))].index {
            NONE => None,
            index => Some(self.entries[index as usize].id),
        }
    }

    pub fn word_of(&self, id: u32) -> Option<&str> {
        match self.by_id.get(id as usize) {
            None | Some(&NONE) => None,
            Some(&index) => Some(self.word(index as usize)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.entries.iter().enumerate().map(|(index, entry)| (self.word(index), entry.id))
    }

    fn word(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.entries[index - 1].end };
        &self.bytes[start as usize..self.entries[index].end as usize]
    }

    /// The slot that holds the word, or the free one where it belongs.
    fn slot(&self, word: &str, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.index == NONE || (slot.mark == mark(hash) && self.word(slot.index as usize) == word) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// At least half of the slots stay free.
    fn grow_slots(&mut self, words: usize) {
        if words * 2 <= self.slots.len() {
            return;
        }
        self.slots = vec![FREE; (words * 2).next_power_of_two().max(64)];
        let mask = self.slots.len() - 1;
        for index in 0..self.entries.len() {
            let hash = self.hasher.hash_one(self.word(index));
            let mut at = hash as usize & mask;
            while self.slots[at].index != NONE {
                at = (at + 1) & mask;
            }
            self.slots[at] = Slot { mark: mark(hash), index: index as u32 };
        }
    }
}

fn mark(hash: u64) -> u32 {
    (hash >> 32) as u32
}

pub fn one_id(word: &str, other: &str, id: u32) -> Failure {
    let (first, second) = if other < word { (other, word) } else { (word, other) };
    Failure::invalid(format!(
        "vocabulary: expected one word for each id, found '{first}' and '{second}' for id {id}; \
         take a fresh copy of the file"
    ))
}
