//! Byte-pair merging over flat tables: the results of the `tokenizers` crate's BPE at a fraction of its memory and
//! building time, for the options that published vocabularies use.

use crate::border::Failure;
use crate::word_table::WordTable;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;
/// Characters below this are found without hashing: all of the GPT-2 byte alphabet.
const DIRECT_CHARACTERS: usize = 0x180;

#[derive(Clone, Default)]
pub struct MergeOptions {
    /// Stands for characters without a token; without it they vanish.
    pub unknown: Option<String>,
    /// A run of unknown characters gives one token.
    pub fuse_unknown: bool,
    /// Characters without a token become tokens `<0xNN>`, if all of theirs exist.
    pub byte_fallback: bool,
    /// A piece that is a token is taken whole.
    pub ignore_merges: bool,
}

#[derive(Clone, Copy)]
struct Merge {
    left: u32,
    right: u32,
    rank: u32,
    id: u32,
}

/// Pairs of ids in open addressing; a pair given twice has its last rank.
#[derive(Clone)]
struct MergeTable {
    slots: Vec<Merge>,
}

impl MergeTable {
    fn new(pairs: usize) -> MergeTable {
        let size = (pairs + pairs / 2 + 2).next_power_of_two();
        MergeTable { slots: vec![Merge { left: NONE, right: NONE, rank: NONE, id: NONE }; size] }
    }

    fn slot(&self, left: u32, right: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (mixed >> 32) as usize & mask;
        while self.slots[at].id != NONE && (self.slots[at].left, self.slots[at].right) != (left, right) {
            at = (at + 1) & mask;
        }
        at
    }

    fn insert(&mut self, merge: Merge) {
        let at = self.slot(merge.left, merge.right);
        self.slots[at] = merge;
    }

    fn find(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        let merge = &self.slots[self.slot(left, right)];
        (merge.id != NONE).then_some((merge.rank, merge.id))
    }
}

#[derive(Clone)]
pub struct ByteMerges {
    pub words: WordTable,
    merges: MergeTable,
    options: MergeOptions,
    unknown: Option<u32>,
    characters: Vec<u32>,
    bytes: Option<Vec<u32>>,
}

/// A run of text that became one token; `size` is its bytes, 0 once it is part of another.
#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    size: u32,
    previous: u32,
    next: u32,
}

/// The working memory of one text's pieces.
#[derive(Default)]
pub struct MergeScratch {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Candidate>,
}

/// The greatest is the one with the lowest rank, of equal ones the leftmost.
struct Candidate {
    /// Rank in the upper half, position of the left symbol in the lower.
    order: u64,
    /// Of the whole; the rank tells it.
    id: u32,
}

impl Candidate {
    fn new((rank, id): (u32, u32), at: u32) -> Candidate {
        Candidate { order: u64::from(rank) << 32 | u64::from(at), id }
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        other.order.cmp(&self.order)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.order == other.order
    }
}

impl Eq for Candidate {}

impl ByteMerges {
    /// merges: left and right parts in order of rank.
    pub fn new<'a>(
        words: WordTable,
        merges: impl ExactSizeIterator<Item = Result<(&'a str, &'a str), Failure>>,
        options: MergeOptions,
    ) -> Result<ByteMerges, Failure> {
        let mut table = MergeTable::new(merges.len());
        let mut whole = String::new();
        for (rank, merge) in merges.enumerate() {
            let (left, right) = merge?;
            let find = |part: &str, does: &str| {
                words.id(part).ok_or_else(|| {
                    Failure::invalid(format!(
                        "merge {rank} '{left} {right}' {does} '{part}', which is no token of the vocabulary"
                    ))
                })
            };
            whole.clear();
            whole.push_str(left);
            whole.push_str(right);
            let (left, right, id) = (find(left, "names")?, find(right, "names")?, find(&whole, "makes")?);
            table.insert(Merge { left, right, rank: rank as u32, id });
        }
        let characters = (0..DIRECT_CHARACTERS as u32)
            .map(|code| char::from_u32(code).and_then(|c| words.id(c.encode_utf8(&mut [0; 4]))).unwrap_or(NONE))
            .collect();
        let bytes = if options.byte_fallback {
            Some((0..=255u8).map(|byte| words.id(&format!("<{byte:#04X}>")).unwrap_or(NONE)).collect())
        } else {
            None
        };
        let unknown = options.unknown.as_ref().and_then(|unknown| words.id(unknown));
        Ok(ByteMerges { words, merges: table, options, unknown, characters, bytes })
    }

    /// Calls `each` with the id and the size in bytes of every token of a piece.
    pub fn tokenize(
        &self,
        piece: &str,
        scratch: &mut MergeScratch,
        mut each: impl FnMut(u32, usize),
    ) -> Result<(), Failure> {
        if self.options.ignore_merges {
            if let Some(id) = self.words.id(piece) {
                each(id, piece.len());
                return Ok(());
            }
        }
        if piece.len() >= NONE as usize {
            return Err(Failure::invalid("a text of over 4 GiB"));
        }
        self.spell(piece, &mut scratch.symbols)?;
        self.merge(scratch);
        for symbol in scratch.symbols.iter().filter(|symbol| symbol.size != 0) {
            each(symbol.id, symbol.size as usize);
        }
        Ok(())
    }

    fn character(&self, text: &str, c: char) -> Option<u32> {
        match self.characters.get(c as usize) {
            Some(&NONE) => None,
            Some(&id) => Some(id),
            None => self.words.id(text),
        }
    }

    /// One symbol for each character.
    fn spell(&self, piece: &str, symbols: &mut Vec<Symbol>) -> Result<(), Failure> {
        symbols.clear();
        let mut add = |id: u32, size: usize| {
            let at = symbols.len() as u32;
            symbols.push(Symbol { id, size: size as u32, previous: at.wrapping_sub(1), next: at + 1 });
        };
        let mut unknown: Option<(u32, usize)> = None;
        for (start, c) in piece.char_indices() {
            let text = &piece[start..start + c.len_utf8()];
            if let Some(id) = self.character(text, c) {
                if let Some((id, size)) = unknown.take() {
                    add(id, size);
                }
                add(id, text.len());
                continue;
            }
            if let Some(ids) = &self.bytes {
                if text.bytes().all(|byte| ids[byte as usize] != NONE) {
                    // An unknown character before stays in waiting, as it does in the crate.
                    text.bytes().for_each(|byte| add(ids[byte as usize], 1));
                    continue;
                }
            }
            let Some(name) = &self.options.unknown else { continue };
            let id = self
                .unknown
                .ok_or_else(|| Failure::invalid(format!("the unknown token '{name}' is no token of the vocabulary")))?;
            unknown = match unknown {
                Some((id, size)) if self.options.fuse_unknown => Some((id, size + text.len())),
                Some((before, size)) => {
                    add(before, size);
                    Some((id, text.len()))
                }
                None => Some((id, text.len())),
            };
        }
        if let Some((id, size)) = unknown {
            add(id, size);
        }
        if let Some(last) = symbols.last_mut() {
            last.next = NONE;
        }
        Ok(())
    }

    /// An entry whose pair has changed since still counts if the
    /// changed pair makes the same token: several merges may make one, and the crate decides so.
    fn merge(&self, scratch: &mut MergeScratch) {
        let MergeScratch { symbols, queue } = scratch;
        queue.clear();
        for at in 1..symbols.len() {
            if let Some(merge) = self.merges.find(symbols[at - 1].id, symbols[at].id) {
                queue.push(Candidate::new(merge, at as u32 - 1));
            }
        }
        while let Some(Candidate { order, id }) = queue.pop() {
            let at = order as u32;
            let left = symbols[at as usize];
            if left.size == 0 || left.next == NONE {
                continue;
            }
            let right = symbols[left.next as usize];
            if self.merges.find(left.id, right.id).is_none_or(|(_, made)| made != id) {
                continue;
            }
            symbols[left.next as usize].size = 0;
            let merged = Symbol { id, size: left.size + right.size, previous: left.previous, next: right.next };
            symbols[at as usize] = merged;
            if let Some(next) = symbols.get_mut(right.next as usize) {
                next.previous = at;
                if let Some(merge) = self.merges.find(id, next.id) {
                    queue.push(Candidate::new(merge, at));
                }
            }
            if let Some(previous) = symbols.get(merged.previous as usize) {
                if let Some(merge) = self.merges.find(previous.id, id) {
                    queue.push(Candidate::new(merge, merged.previous));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::models::bpe::BPE;
    use tokenizers::Model;

    /// splitmix64
    struct Random(u64);
    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) % end as u64) as usize
        }
    }

    const ALPHABET: [&str; 9] = ["a", "b", "c", " ", "é", "ɘ", "日", "🦀", "0"];

    /// Random merges over a part of the alphabet. Texts are short, so that many merges make the same token.
    fn vocabulary(random: &mut Random) -> (Vec<String>, Vec<(String, String)>) {
        let known = 3 + random.below(ALPHABET.len() - 2);
        let mut words: Vec<String> = ALPHABET[..known].iter().map(|c| c.to_string()).collect();
        words.push("<unk>".to_string());
        // The bytes of é alone, and of all the others but one of 日's.
        let mut bytes: Vec<u8> = "é".bytes().collect();
        if random.below(2) == 0 {
            bytes.extend("ɘ🦀0日".bytes().skip(random.below(2) * 4).filter(|&byte| byte != 0xa5));
        }
        bytes.sort_unstable();
        bytes.dedup();
        words.extend(bytes.iter().map(|byte| format!("<{byte:#04X}>")));
        let mut merges = Vec::new();
        for _ in 0..random.below(120) {
            let (left, right) = (words[random.below(words.len())].clone(), words[random.below(words.len())].clone());
            let whole = format!("{left}{right}");
            if whole.len() <= 12 {
                if !words.contains(&whole) {
                    words.push(whole);
                }
                merges.push((left, right));
            }
        }
        (words, merges)
    }

    fn both(random: &mut Random) -> (BPE, ByteMerges) {
        let (words, merges) = vocabulary(random);
        let options = MergeOptions {
            unknown: (random.below(2) == 0).then(|| "<unk>".to_string()),
            fuse_unknown: random.below(2) == 0,
            byte_fallback: random.below(2) == 0,
            ignore_merges: random.below(2) == 0,
        };
        let ids = words.iter().enumerate().map(|(id, word)| (word.clone(), id as u32 * 3));
        let mut builder = BPE::builder()
            .vocab_and_merges(ids.clone().collect::<ahash::AHashMap<_, _>>(), merges.clone())
            .fuse_unk(options.fuse_unknown)
            .byte_fallback(options.byte_fallback)
            .ignore_merges(options.ignore_merges);
        if let Some(unknown) = &options.unknown {
            builder = builder.unk_token(unknown.clone());
        }
        let mut table = WordTable::new();
        for (word, id) in ids {
            table.insert(&word, id).ok().unwrap();
        }
        table.finish().ok().unwrap();
        let pairs = merges.iter().map(|(left, right)| Ok((left.as_str(), right.as_str())));
        (builder.build().unwrap(), ByteMerges::new(table, pairs, options).ok().unwrap())
    }

    #[test]
    fn tokens_are_those_of_the_crate() {
        let mut random = Random(7);
        let mut scratch = MergeScratch::default();
        let mut merged = 0;
        for _ in 0..400 {
            let (theirs, ours) = both(&mut random);
            for _ in 0..50 {
                let text: String = (0..1 + random.below(40)).map(|_| ALPHABET[random.below(ALPHABET.len())]).collect();
                let expected: Vec<(u32, usize)> =
                    theirs.tokenize(&text).unwrap().iter().map(|t| (t.id, t.offsets.1 - t.offsets.0)).collect();
                let mut found = Vec::new();
                ours.tokenize(&text, &mut scratch, |id, size| found.push((id, size))).ok().unwrap();
                assert_eq!(found, expected, "{text:?} with {theirs:?}");
                merged += usize::from(found.len() < text.chars().count());
            }
        }
        assert!(merged > 5000);
    }

    #[test]
    fn words_are_those_of_the_crate() {
        let mut random = Random(8);
        for _ in 0..50 {
            let (theirs, ours) = both(&mut random);
            assert_eq!(ours.words.len(), theirs.get_vocab_size());
            for (word, id) in theirs.get_vocab() {
                assert_eq!(ours.words.id(&word), Some(id));
                assert_eq!(ours.words.word_of(id), Some(word.as_str()));
                assert_eq!(ours.words.word_of(id + 1), None);
            }
            assert_eq!(ours.words.id("not a word"), None);
        }
    }

    #[test]
    fn a_merge_without_its_tokens_is_refused() {
        let mut table = WordTable::new();
        for (id, word) in ["a", "b", "ab"].into_iter().enumerate() {
            table.insert(word, id as u32).ok().unwrap();
        }
        table.finish().ok().unwrap();
        let refusal = |left: &'static str, right: &'static str| {
            let pairs = [Ok((left, right))].into_iter();
            ByteMerges::new(table.clone(), pairs, MergeOptions::default()).err().map(|failure| failure.text)
        };
        assert_eq!(refusal("a", "b"), None);
        assert!(refusal("c", "b").unwrap().contains("names 'c'"));
        assert!(refusal("b", "a").unwrap().contains("makes 'ba'"));
    }
}
