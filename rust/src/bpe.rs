//! Byte-pair vocabularies given as lists (GGUF): splitting a text into pieces, and the merging of each.

use crate::border::{Failure, Texts};
use crate::merging::{ByteMerges, MergeOptions, MergeScratch};
use crate::word_table::WordTable;
use onig::{MatchParam, Regex, Region, SearchOptions};

/// How a text is cut further; a step applies to each piece of the step before.
pub enum Split {
    /// Matches and the gaps between them.
    Pattern(Regex),
    /// Runs of decimal digits, in groups of three counted from the right end of the run.
    DigitsByThree,
    /// The same, only where the run ends at a word boundary.
    DigitsBounded,
}

pub struct Rules {
    pub splits: Vec<Split>,
    pub byte_level: bool,
    pub ignore_merges: bool,
    pub whole_newlines: bool,
}

pub struct BytePairs {
    model: ByteMerges,
    rules: Rules,
}

type Piece = (usize, usize);

impl BytePairs {
    pub fn new(tokens: Texts, merges: Texts, rules: Rules) -> Result<BytePairs, Failure> {
        let mut words = WordTable::new();
        words.reserve(tokens.len(), tokens.bytes());
        for (id, token) in tokens.iter().enumerate() {
            words.insert(token, id as u32)?;
        }
        words.finish()?;
        let pairs = merges.iter().enumerate().map(|(rank, merge)| {
            // A token may itself begin with a space, so the separator is looked for after the first character.
            let start = merge.chars().next().map_or(0, char::len_utf8);
            let at = merge[start..].find(' ').map(|at| at + start).ok_or_else(|| {
                Failure::invalid(format!("merge {rank} '{merge}' is not two tokens joined by a space"))
            })?;
            Ok((&merge[..at], &merge[at + 1..]))
        });
        let options = MergeOptions {
            byte_fallback: !rules.byte_level,
            ignore_merges: rules.ignore_merges,
            ..MergeOptions::default()
        };
        let model = ByteMerges::new(words, pairs, options)?;
        Ok(BytePairs { model, rules })
    }

    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Failure> {
        let mut pieces: Vec<Piece> = vec![(0, text.len())];
        for split in &self.rules.splits {
            let mut next = Vec::with_capacity(pieces.len() + 16);
            for &piece in &pieces {
                match split {
                    Split::Pattern(pattern) => split_pattern(pattern, text, piece, &mut next)?,
                    Split::DigitsByThree => split_digits(text, piece, false, &mut next),
                    Split::DigitsBounded => split_digits(text, piece, true, &mut next),
                }
            }
            pieces = next;
        }
        let mut ids = Vec::with_capacity(pieces.len() * 2);
        let mut spelled = String::new();
        let mut scratch = MergeScratch::default();
        for (start, end) in pieces {
            let mut piece = &text[start..end];
            if piece.is_empty() {
                continue;
            }
            if self.rules.whole_newlines && piece.bytes().all(|b| b == b'\n') {
                if let Some(id) = self.model.words.id(piece) {
                    ids.push(id);
                    continue;
                }
            }
            if self.rules.byte_level {
                spelled.clear();
                spelled.extend(piece.bytes().map(byte_char));
                piece = &spelled;
            }
            self.model.tokenize(piece, &mut scratch, |id, _| ids.push(id))?;
        }
        Ok(ids)
    }
}

/// The printable character that stands for a byte in byte-level vocabularies: itself where Latin-1 prints it,
/// otherwise the next of U+0100, U+0101, ... in byte order.
fn byte_char(byte: u8) -> char {
    let code = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => byte as u32,
        0x00..=0x20 => 0x100 + byte as u32,
        0x7f..=0xa0 => 0x100 + 0x21 + (byte as u32 - 0x7f),
        0xad => 0x100 + 0x43,
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn split_pattern(pattern: &Regex, text: &str, piece: Piece, out: &mut Vec<Piece>) -> Result<(), Failure> {
    let part = &text[piece.0..piece.1];
    let mut region = Region::new();
    let (mut from, mut gap) = (0, 0);
    while from < part.len() {
        let found = pattern
            .search_with_param(
                part,
                from,
                part.len(),
                SearchOptions::SEARCH_OPTION_NONE,
                Some(&mut region),
                MatchParam::default(),
            )
            .map_err(|error| Failure::invalid(format!("pre-tokenizer pattern gave up: {}", error.description())))?;
        if found.is_none() {
            break;
        }
        let Some((start, end)) = region.pos(0) else { break };
        if end == start {
            from = end + part[end..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        if gap < start {
            out.push((piece.0 + gap, piece.0 + start));
        }
        out.push((piece.0 + start, piece.0 + end));
        from = end;
        gap = end;
    }
    if gap < part.len() {
        out.push((piece.0 + gap, piece.1));
    }
    Ok(())
}

/// Cuts runs of ASCII and other decimal digits into threes from the right; what lies between runs is one piece.
fn split_digits(text: &str, piece: Piece, bounded: bool, out: &mut Vec<Piece>) {
    let part = &text[piece.0..piece.1];
    let mut gap = 0;
    let mut chars = part.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if !is_decimal(c) {
            continue;
        }
        let mut offsets = vec![start];
        let mut end = start + c.len_utf8();
        while let Some(&(at, d)) = chars.peek() {
            if !is_decimal(d) {
                break;
            }
            offsets.push(at);
            end = at + d.len_utf8();
            chars.next();
        }
        if bounded && part[end..].chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        if gap < start {
            out.push((piece.0 + gap, piece.0 + start));
        }
        let first = match offsets.len() % 3 {
            0 => 3,
            rest => rest,
        };
        let mut at = 0;
        let mut next = first;
        while at < offsets.len() {
            let group_end = offsets.get(next).copied().unwrap_or(end);
            out.push((piece.0 + offsets[at], piece.0 + group_end));
            at = next;
            next += 3;
        }
        gap = end;
    }
    if gap < part.len() {
        out.push((piece.0 + gap, piece.1));
    }
}

fn is_decimal(c: char) -> bool {
    c.is_ascii_digit()
        || (!c.is_ascii() && c.is_numeric() && DECIMAL.with(|pattern| pattern.is_match(c.encode_utf8(&mut [0; 4]))))
}

thread_local! {
    static DECIMAL: Regex = Regex::new(r"^\p{Nd}$").expect("a constant pattern");
}
