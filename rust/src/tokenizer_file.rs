//! What a tokenizer.json may not hold, found before the library takes its fields on trust.

use crate::border::Failure;
use crate::file_model::FileTokenizer;
use crate::word_table::{one_id, MAX_ID};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use tokenizers::Model;

/// Bytes that one byte of text may become by a normalizer's or decoder's replacements.
const MAX_GROWTH: usize = 64;

#[derive(Deserialize)]
struct Added {
    id: u64,
    content: String,
}

#[derive(Deserialize)]
struct ModelHead {
    dropout: Option<f64>,
}

/// The parts of the file that are looked at here.
#[derive(Deserialize)]
pub struct Head {
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<Value>,
    decoder: Option<Value>,
    model: Option<ModelHead>,
}

pub fn read(json: &[u8]) -> Result<Head, Failure> {
    let head: Head = serde_json::from_slice(json)?;
    if let Some(dropout) = head.model.as_ref().and_then(|model| model.dropout).filter(|dropout| *dropout != 0.0) {
        return Err(Failure::invalid(format!(
            "model.dropout: expected 0 or null, found {dropout}, which makes token ids random; set it to null"
        )));
    }
    for (name, step) in [("normalizer", &head.normalizer), ("decoder", &head.decoder)] {
        if let Some(step) = step {
            let mut growth = Growth { name, bound: 1, produced: String::new(), mixed: false };
            growth.add(step)?;
        }
    }
    Ok(head)
}

impl Head {
    /// The library numbers added tokens in order, whatever ids the file gives them.
    pub fn check_ids(&self, tokenizer: &FileTokenizer) -> Result<(), Failure> {
        for added in self.added_tokens.iter().filter(|added| !added.content.is_empty()) {
            match tokenizer.token_to_id(&added.content) {
                Some(id) if u64::from(id) == added.id => {}
                Some(id) => {
                    return Err(Failure::invalid(format!(
                        "added token '{}': expected id {id}, the place that is free or its own in the vocabulary, \
                         found {}; take a fresh copy of the file",
                        added.content, added.id
                    )))
                }
                None => {
                    return Err(Failure::invalid(format!("added token '{}' has no place", added.content)));
                }
            }
        }
        Ok(())
    }
}

/// Two words with one id could not be told apart. Returns the largest id plus one.
pub fn check_distinct(vocabulary: &HashMap<String, u32>) -> Result<u32, Failure> {
    let size = end_of_ids(vocabulary.values().copied())?;
    let mut words: Vec<Option<&str>> = vec![None; size as usize];
    for (word, id) in vocabulary {
        if let Some(other) = words[*id as usize].replace(word) {
            return Err(one_id(word, other, *id));
        }
    }
    Ok(size)
}

/// The same where the model's own words, with ids below `model_end`, are known to be distinct.
pub fn check_added(tokenizer: &FileTokenizer, model_end: u32) -> Result<u32, Failure> {
    let added = tokenizer.get_added_tokens_decoder();
    for (id, token) in &added {
        if let Some(word) = tokenizer.get_model().id_to_token(*id).filter(|word| *word != token.content) {
            return Err(one_id(&word, &token.content, *id));
        }
    }
    Ok(end_of_ids(added.into_keys())?.max(model_end))
}

fn end_of_ids(ids: impl Iterator<Item = u32>) -> Result<u32, Failure> {
    match ids.max() {
        None => Ok(0),
        Some(id) if id >= MAX_ID => Err(Failure::invalid(format!("token id {id} is above {MAX_ID}"))),
        Some(id) => Ok(id + 1),
    }
}

/// How far a chain of replacements can blow up a text. A step multiplies the bound if it can match what an earlier one
/// wrote; otherwise it acts on the given text alone.
struct Growth {
    name: &'static str,
    bound: usize,
    produced: String,
    /// A step between may turn what was written into other characters.
    mixed: bool,
}

impl Growth {
    fn add(&mut self, step: &Value) -> Result<(), Failure> {
        let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "Sequence" => {
                for list in ["normalizers", "decoders"] {
                    for inner in step.get(list).and_then(Value::as_array).into_iter().flatten() {
                        self.add(inner)?;
                    }
                }
            }
            "Replace" => self.replace(step.get("pattern").unwrap_or(&Value::Null), text("content"))?,
            "Prepend" => {
                self.bound = self.bound.saturating_add(text("prepend").len());
                self.produced.push_str(text("prepend"));
            }
            _ => self.mixed |= !self.produced.is_empty(),
        }
        if self.bound > MAX_GROWTH {
            return Err(Failure::invalid(format!(
                "{}: expected replacements that make a text at most {MAX_GROWTH} times as long, found {} times; \
                 take a fresh copy of the file",
                self.name, self.bound
            )));
        }
        Ok(())
    }

    fn replace(&mut self, pattern: &Value, content: &str) -> Result<(), Failure> {
        let text = pattern.get("String").and_then(Value::as_str);
        let regex = pattern.get("Regex").and_then(Value::as_str);
        // A pattern that matches no character has no place in a text.
        let empty = match (text, regex) {
            (Some(text), _) => text.is_empty(),
            (_, Some(regex)) => onig::Regex::new(regex).is_ok_and(|regex| regex.find("").is_some()),
            _ => false,
        };
        if empty {
            return Err(Failure::invalid(format!(
                "{}: Replace: expected a pattern that matches at least one character, found {pattern}",
                self.name
            )));
        }
        let factor = content.len().div_ceil(text.map_or(1, str::len)).max(1);
        let chained = self.mixed || text.is_none_or(|text| text.chars().any(|c| self.produced.contains(c)));
        let chained = chained && !self.produced.is_empty();
        self.bound = if chained { self.bound.saturating_mul(factor) } else { self.bound.max(factor) };
        self.produced.push_str(content);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(steps: &str) -> Result<usize, String> {
        let steps: Value = serde_json::from_str(&format!(r#"{{"type":"Sequence","normalizers":[{steps}]}}"#)).unwrap();
        let mut growth = Growth { name: "normalizer", bound: 1, produced: String::new(), mixed: false };
        growth.add(&steps).map(|()| growth.bound).map_err(|failure| failure.text)
    }

    fn replace(kind: &str, pattern: &str, content: &str) -> String {
        format!(r#"{{"type":"Replace","pattern":{{"{kind}":"{pattern}"}},"content":"{content}"}}"#)
    }

    #[test]
    fn growth_multiplies_only_where_steps_chain() {
        let metaspace = replace("String", " ", "\u{2581}");
        assert_eq!(growth(&format!(r#"{{"type":"Prepend","prepend":"▁"}},{metaspace}"#)), Ok(4));
        let independent: Vec<String> = ["a", "b", "c", "d"].iter().map(|p| replace("String", p, "xxxxxxxx")).collect();
        assert_eq!(growth(&independent.join(",")), Ok(8));
        let chained = [replace("String", "a", "bbbb"), replace("String", "b", "cccc"), replace("Regex", "c", "dd")];
        assert_eq!(growth(&chained.join(",")), Ok(32));
        let lowered =
            [replace("String", "a", "BBBB"), r#"{"type":"Lowercase"}"#.to_string(), replace("String", "b", "cccc")];
        assert_eq!(growth(&lowered.join(",")), Ok(16));
        assert!(growth(&vec![replace("String", "l", &"l".repeat(100)); 5].join(",")).is_err());
        for (kind, pattern) in [("String", ""), ("Regex", ""), ("Regex", "x*"), ("Regex", "^")] {
            assert!(growth(&replace(kind, pattern, "y")).unwrap_err().contains("at least one character"));
        }
        assert_eq!(growth(&replace("Regex", "^x+", "y")), Ok(1));
    }
}
