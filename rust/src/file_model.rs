//! The model of a tokenizer.json: byte-pair vocabularies are read straight into flat tables, the others by the crate.

use crate::border::Failure;
use crate::merging::{ByteMerges, MergeOptions, MergeScratch};
use crate::word_table::WordTable;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokenizers::models::bpe::BPE;
use tokenizers::models::TrainerWrapper;
use tokenizers::{
    DecoderWrapper, Model, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Token,
    TokenizerImpl,
};

pub type FileTokenizer =
    TokenizerImpl<FileModel, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

#[derive(Clone)]
pub enum FileModel {
    Merges(Arc<ByteMerges>),
    Crate(Box<ModelWrapper>),
}

impl FileModel {
    pub fn name(&self) -> &'static str {
        match self {
            FileModel::Merges(_) => "BPE",
            FileModel::Crate(model) => match **model {
                ModelWrapper::BPE(_) => "BPE",
                ModelWrapper::WordPiece(_) => "WordPiece",
                ModelWrapper::WordLevel(_) => "WordLevel",
                ModelWrapper::Unigram(_) => "Unigram",
            },
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<MergeScratch> = RefCell::default();
}

impl Model for FileModel {
    type Trainer = TrainerWrapper;

    /// Tokens of flat tables carry no text: here only their ids and places are asked for.
    fn tokenize(&self, sequence: &str) -> tokenizers::Result<Vec<Token>> {
        let merges = match self {
            FileModel::Crate(model) => return model.tokenize(sequence),
            FileModel::Merges(merges) => merges,
        };
        let mut tokens = Vec::new();
        let mut at = 0;
        SCRATCH
            .with_borrow_mut(|scratch| {
                merges.tokenize(sequence, scratch, |id, size| {
                    tokens.push(Token::new(id, String::new(), (at, at + size)));
                    at += size;
                })
            })
            .map_err(|failure| failure.text)?;
        Ok(tokens)
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        match self {
            FileModel::Merges(merges) => merges.words.id(token),
            FileModel::Crate(model) => model.token_to_id(token),
        }
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        match self {
            FileModel::Merges(merges) => merges.words.word_of(id).map(str::to_string),
            FileModel::Crate(model) => model.id_to_token(id),
        }
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        match self {
            FileModel::Merges(merges) => merges.words.iter().map(|(word, id)| (word.to_string(), id)).collect(),
            FileModel::Crate(model) => model.get_vocab(),
        }
    }

    fn get_vocab_size(&self) -> usize {
        match self {
            FileModel::Merges(merges) => merges.words.len(),
            FileModel::Crate(model) => model.get_vocab_size(),
        }
    }

    fn save(&self, _folder: &Path, _prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        Err("a model of flat tables is not written to files".into())
    }

    fn get_trainer(&self) -> TrainerWrapper {
        match self {
            FileModel::Merges(_) => ModelWrapper::BPE(BPE::default()).get_trainer(),
            FileModel::Crate(model) => model.get_trainer(),
        }
    }
}

impl<'de> Deserialize<'de> for FileModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ModelVisitor)
    }
}

struct ModelVisitor;
impl<'de> Visitor<'de> for ModelVisitor {
    type Value = FileModel;

    fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "a model object")
    }

    /// The crate writes `type` first; a file that does not is read by the crate.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FileModel, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value: Value = map.next_value()?;
            let merges = fields.is_empty() && key == "type" && value == "BPE";
            fields.insert(key, value);
            if merges {
                return read_merges(map);
            }
        }
        let model = serde_json::from_value(Value::Object(fields)).map_err(Error::custom)?;
        Ok(FileModel::Crate(Box::new(model)))
    }
}

/// What of a byte-pair model the flat tables have no place for.
#[derive(Default)]
struct CrateOptions {
    dropout: Option<f32>,
    prefix: Option<String>,
    suffix: Option<String>,
}

fn read_merges<'de, A: MapAccess<'de>>(mut map: A) -> Result<FileModel, A::Error> {
    let mut options = MergeOptions::default();
    let mut others = CrateOptions::default();
    let (mut words, mut merges) = (None, None);
    while let Some(key) = map.next_key::<String>()? {
        match key.as_str() {
            "dropout" => others.dropout = map.next_value()?,
            "continuing_subword_prefix" => others.prefix = map.next_value()?,
            "end_of_word_suffix" => others.suffix = map.next_value()?,
            "unk_token" => options.unknown = map.next_value()?,
            "fuse_unk" => options.fuse_unknown = map.next_value::<Option<bool>>()?.unwrap_or(false),
            "byte_fallback" => options.byte_fallback = map.next_value::<Option<bool>>()?.unwrap_or(false),
            "ignore_merges" => options.ignore_merges = map.next_value::<Option<bool>>()?.unwrap_or(false),
            "vocab" => words = Some(map.next_value_seed(WordsSeed)?),
            "merges" => merges = Some(map.next_value_seed(MergesSeed)?),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
    }
    let (Some(words), Some(merges)) = (words, merges) else {
        return Err(Error::custom("a byte-pair model needs 'vocab' and 'merges'"));
    };
    let full = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    if others.dropout.is_some_and(|dropout| dropout != 0.0) || full(&others.prefix) || full(&others.suffix) {
        return crate_model(&words, &merges, options, others).map_err(Error::custom);
    }
    ByteMerges::new(words, merges.iter(), options)
        .map(|merges| FileModel::Merges(Arc::new(merges)))
        .map_err(|failure| Error::custom(failure.text))
}

fn crate_model(
    words: &WordTable,
    merges: &PairList,
    options: MergeOptions,
    others: CrateOptions,
) -> tokenizers::Result<FileModel> {
    let vocabulary = words.iter().map(|(word, id)| (word.to_string(), id)).collect::<ahash::AHashMap<_, _>>();
    let pairs = merges.iter().flatten().map(|(left, right)| (left.to_string(), right.to_string())).collect();
    let mut builder = BPE::builder()
        .vocab_and_merges(vocabulary, pairs)
        .fuse_unk(options.fuse_unknown)
        .byte_fallback(options.byte_fallback)
        .ignore_merges(options.ignore_merges);
    if let Some(unknown) = options.unknown {
        builder = builder.unk_token(unknown);
    }
    if let Some(dropout) = others.dropout {
        builder = builder.dropout(dropout);
    }
    if let Some(prefix) = others.prefix {
        builder = builder.continuing_subword_prefix(prefix);
    }
    if let Some(suffix) = others.suffix {
        builder = builder.end_of_word_suffix(suffix);
    }
    Ok(FileModel::Crate(Box::new(ModelWrapper::BPE(builder.build()?))))
}

struct WordsSeed;
impl<'de> DeserializeSeed<'de> for WordsSeed {
    type Value = WordTable;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<WordTable, D::Error> {
        deserializer.deserialize_map(self)
    }
}
impl<'de> Visitor<'de> for WordsSeed {
    type Value = WordTable;

    fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "an object of words and their ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WordTable, A::Error> {
        let mut words = WordTable::new();
        let mut word = String::new();
        while map.next_key_seed(TextSeed(&mut word))?.is_some() {
            let id: u32 = map.next_value()?;
            words.insert(&word, id).map_err(|failure| Error::custom(failure.text))?;
            word.clear();
        }
        words.finish().map_err(|failure| Error::custom(failure.text))?;
        Ok(words)
    }
}

/// Appends a string to a buffer, whether it could be borrowed or not.
struct TextSeed<'a>(&'a mut String);
impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}
impl Visitor<'_> for TextSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }
}

/// Left and right parts of merges, laid end to end.
#[derive(Default)]
struct PairList {
    bytes: String,
    ends: Vec<[usize; 2]>,
}

impl PairList {
    fn iter(&self) -> impl ExactSizeIterator<Item = Result<(&str, &str), Failure>> {
        let mut start = 0;
        self.ends.iter().map(move |&[middle, end]| {
            let from = std::mem::replace(&mut start, end);
            Ok((&self.bytes[from..middle], &self.bytes[middle..end]))
        })
    }
}

struct MergesSeed;
impl<'de> DeserializeSeed<'de> for MergesSeed {
    type Value = PairList;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PairList, D::Error> {
        deserializer.deserialize_seq(self)
    }
}
impl<'de> Visitor<'de> for MergesSeed {
    type Value = PairList;

    fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "a list of merges")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PairList, A::Error> {
        let mut pairs = PairList::default();
        while list.next_element_seed(PairSeed(&mut pairs))?.is_some() {}
        Ok(pairs)
    }
}

/// One merge: ["left", "right"], or "left right" in older files.
struct PairSeed<'a>(&'a mut PairList);
impl<'de> DeserializeSeed<'de> for PairSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}
impl<'de> Visitor<'de> for PairSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "a merge: two strings, or one with a space between its parts")
    }

    fn visit_str<E: Error>(self, merge: &str) -> Result<(), E> {
        if merge.starts_with("#version") {
            return Ok(());
        }
        let mut parts = merge.split(' ');
        let (Some(left), Some(right), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Error::custom(format!("merge '{merge}' is not two tokens joined by a space")));
        };
        self.0.bytes.push_str(left);
        let middle = self.0.bytes.len();
        self.0.bytes.push_str(right);
        self.0.ends.push([middle, self.0.bytes.len()]);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        let missing = |count| Error::invalid_length(count, &"two strings");
        parts.next_element_seed(TextSeed(&mut self.0.bytes))?.ok_or_else(|| missing(0))?;
        let middle = self.0.bytes.len();
        parts.next_element_seed(TextSeed(&mut self.0.bytes))?.ok_or_else(|| missing(1))?;
        if parts.next_element::<IgnoredAny>()?.is_some() {
            return Err(missing(3));
        }
        self.0.ends.push([middle, self.0.bytes.len()]);
        Ok(())
    }
}
