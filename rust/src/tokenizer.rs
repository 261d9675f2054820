//! One tokenizer object behind the border, whatever its vocabulary came from.

use crate::border::{borrow, borrow_str, guard, Failure, Texts, VtBytes, VtIds, VtTexts};
use crate::bpe::{BytePairs, Rules, Split};
use crate::file_model::{FileModel, FileTokenizer};
use crate::tokenizer_file;
use ahash::AHashMap;
use serde_json::{json, Value};
use std::sync::OnceLock;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{AddedToken, Tokenizer};

pub struct VtTokenizer {
    encoder: Encoder,
}

enum Encoder {
    /// `literal` reads special tokens in a text as plain text; made when first asked for.
    Json {
        tokenizer: Box<FileTokenizer>,
        literal: OnceLock<Box<FileTokenizer>>,
        size: u32,
    },
    BytePairs(Box<BytePairs>),
    WordPiece(Box<Tokenizer>),
}

impl VtTokenizer {
    fn from_json(json: &[u8], extra: &str) -> Result<VtTokenizer, Failure> {
        Self::read_json(json, extra)
            .map_err(|failure| Failure { status: failure.status, text: format!("tokenizer.json: {}", failure.text) })
    }

    fn read_json(json: &[u8], extra: &str) -> Result<VtTokenizer, Failure> {
        let head = tokenizer_file::read(json)?;
        let mut tokenizer: FileTokenizer = serde_json::from_slice(json)?;
        // Limits that training scripts left in the file are no part of the vocabulary.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None)?;
        head.check_ids(&tokenizer)?;
        if !extra.is_empty() {
            add_missing(&mut tokenizer, extra)?;
        }
        let size = match tokenizer.get_model() {
            FileModel::Merges(merges) => tokenizer_file::check_added(&tokenizer, merges.words.id_end())?,
            FileModel::Crate(_) => tokenizer_file::check_distinct(&tokenizer.get_vocab(true))?,
        };
        // Some contradictions of the parts show only in use.
        tokenizer.encode_fast("", true)?;
        Ok(VtTokenizer { encoder: Encoder::Json { tokenizer: Box::new(tokenizer), literal: OnceLock::new(), size } })
    }

    fn from_wordpiece(tokens: Texts, unknown: &str) -> Result<VtTokenizer, Failure> {
        let mut vocabulary = AHashMap::with_capacity(tokens.len());
        for (id, token) in tokens.iter().enumerate() {
            vocabulary.insert(token.to_string(), id as u32);
        }
        let model = WordPiece::builder().vocab(vocabulary).unk_token(unknown.to_string()).build()?;
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_normalizer(Some(BertNormalizer::new(true, true, None, true)))?;
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        Ok(VtTokenizer { encoder: Encoder::WordPiece(Box::new(tokenizer)) })
    }

    fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>, Failure> {
        match &self.encoder {
            Encoder::Json { tokenizer, literal, .. } => {
                let tokenizer = if parse_special {
                    tokenizer
                } else {
                    literal.get_or_init(|| {
                        let mut copy = tokenizer.clone();
                        copy.set_encode_special_tokens(true);
                        copy
                    })
                };
                Ok(tokenizer.encode_fast(text, add_special)?.get_ids().to_vec())
            }
            Encoder::BytePairs(pairs) => pairs.encode(text),
            Encoder::WordPiece(tokenizer) => Ok(tokenizer.encode_fast(text, false)?.get_ids().to_vec()),
        }
    }

    fn json(&self) -> Result<(&FileTokenizer, u32), Failure> {
        match &self.encoder {
            Encoder::Json { tokenizer, size, .. } => Ok((tokenizer, *size)),
            _ => Err(Failure::invalid("only a tokenizer from JSON can be asked for its tokens")),
        }
    }

    fn describe(&self) -> Result<Vec<u8>, Failure> {
        let (tokenizer, size) = self.json()?;
        let mut added: Vec<_> = tokenizer.get_added_tokens_decoder().into_iter().collect();
        added.sort_by_key(|(id, _)| *id);
        let added: Vec<Value> = added
            .into_iter()
            .map(|(id, token)| json!({"id": id, "content": token.content, "special": token.special}))
            .collect();
        let model = tokenizer.get_model().name();
        let decoder = serde_json::to_value(tokenizer.get_decoder())?;
        Ok(json!({"size": size, "model": model, "decoder": decoder, "added_tokens": added}).to_string().into_bytes())
    }

    fn tokens(&self) -> Result<(Vec<u8>, Vec<u32>), Failure> {
        let (tokenizer, size) = self.json()?;
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(size as usize);
        for id in 0..size {
            if let Some(token) = tokenizer.id_to_token(id) {
                bytes.extend_from_slice(token.as_bytes());
            }
            ends.push(u32::try_from(bytes.len()).map_err(|_| Failure::invalid("over 4 GiB of tokens"))?);
        }
        Ok((bytes, ends))
    }
}

fn add_missing(tokenizer: &mut FileTokenizer, extra: &str) -> Result<(), Failure> {
    let listed: Vec<Value> = serde_json::from_str(extra)?;
    for entry in listed {
        let id = entry.get("id").and_then(Value::as_u64);
        let token: AddedToken = serde_json::from_value(entry)?;
        if token.content.is_empty()
            || tokenizer.get_added_tokens_decoder().values().any(|have| have.content == token.content)
        {
            continue;
        }
        let content = token.content.clone();
        if token.special {
            tokenizer.add_special_tokens([token])?;
        } else {
            tokenizer.add_tokens([token])?;
        }
        if let (Some(id), Some(given)) = (id, tokenizer.token_to_id(&content)) {
            if id != u64::from(given) {
                return Err(Failure::invalid(format!(
                    "tokenizer_config.json lists added token '{content}' with id {id}, but its place here is {given}; \
                     take both files from one model"
                )));
            }
        }
    }
    Ok(())
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_from_json(
    json: *const u8,
    size: usize,
    extra: *const u8,
    extra_size: usize,
    out: *mut *mut VtTokenizer,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || VtTokenizer::from_json(borrow(json, size), borrow_str(extra, extra_size)?),
        |tokenizer| out.write(Box::into_raw(Box::new(tokenizer))),
    )
}

#[repr(C)]
pub struct VtSplit {
    kind: i32,
    pattern: *const u8,
    pattern_size: usize,
}

#[repr(C)]
pub struct VtBpeRules {
    splits: *const VtSplit,
    split_count: usize,
    byte_level: i32,
    ignore_merges: i32,
    whole_newlines: i32,
}

unsafe fn read_rules(rules: &VtBpeRules) -> Result<Rules, Failure> {
    let mut splits = Vec::new();
    for split in borrow(rules.splits, rules.split_count) {
        splits.push(match split.kind {
            0 => {
                let pattern = borrow_str(split.pattern, split.pattern_size)?;
                Split::Pattern(
                    onig::Regex::new(pattern)
                        .map_err(|error| Failure::invalid(format!("pattern {pattern}: {}", error.description())))?,
                )
            }
            1 => Split::DigitsByThree,
            2 => Split::DigitsBounded,
            kind => return Err(Failure::invalid(format!("unknown split kind {kind}"))),
        });
    }
    Ok(Rules {
        splits,
        byte_level: rules.byte_level != 0,
        ignore_merges: rules.ignore_merges != 0,
        whole_newlines: rules.whole_newlines != 0,
    })
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_from_bpe(
    tokens: VtTexts,
    merges: VtTexts,
    rules: *const VtBpeRules,
    out: *mut *mut VtTokenizer,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || {
            let pairs = BytePairs::new(tokens.read()?, merges.read()?, read_rules(&*rules)?)?;
            Ok(VtTokenizer { encoder: Encoder::BytePairs(Box::new(pairs)) })
        },
        |tokenizer| out.write(Box::into_raw(Box::new(tokenizer))),
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_from_wordpiece(
    tokens: VtTexts,
    unknown: *const u8,
    unknown_size: usize,
    out: *mut *mut VtTokenizer,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || VtTokenizer::from_wordpiece(tokens.read()?, borrow_str(unknown, unknown_size)?),
        |tokenizer| out.write(Box::into_raw(Box::new(tokenizer))),
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_free(tokenizer: *mut VtTokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_encode(
    tokenizer: *const VtTokenizer,
    text: *const u8,
    size: usize,
    add_special: i32,
    parse_special: i32,
    out: *mut VtIds,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || (*tokenizer).encode(borrow_str(text, size)?, add_special != 0, parse_special != 0),
        |ids| out.write(ids.into()),
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_describe(
    tokenizer: *const VtTokenizer,
    out: *mut VtBytes,
    error: *mut VtBytes,
) -> i32 {
    guard(error, || (*tokenizer).describe(), |text| out.write(text.into()))
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_tokens(
    tokenizer: *const VtTokenizer,
    bytes: *mut VtBytes,
    ends: *mut VtIds,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || (*tokenizer).tokens(),
        |(texts, positions)| {
            bytes.write(texts.into());
            ends.write(positions.into());
        },
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_tokenizer_decode(
    tokenizer: *const VtTokenizer,
    ids: *const u32,
    count: usize,
    skip_special: i32,
    out: *mut VtBytes,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || Ok((*tokenizer).json()?.0.decode(borrow(ids, count), skip_special != 0)?.into_bytes()),
        |text| out.write(text.into()),
    )
}
