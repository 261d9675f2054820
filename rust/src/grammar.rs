//! Grammars over one vocabulary: compiled to matchers that say which tokens may come next.

use crate::border::{borrow, borrow_str, guard, on_large_stack_within, Failure, VtBytes, PANIC};
use crate::{schema_check, schema_pattern};
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv, INVALID_TOKEN};
use llguidance::{earley::SlicedBiasComputer, Matcher, ParserFactory};
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::Duration;

/// The largest vocabulary whose prefix tree can be addressed.
const MAX_TOKENS: usize = 1 << 21;
const MAX_GRAMMAR_BYTES: usize = 4 << 20;
const MAX_NESTING: usize = 100;
/// What compiling may take before it is given up; its own limits end it soon after.
const COMPILE_TIME: Duration = Duration::from_secs(3);

/// A single space or a line break with its indentation may stand between two tokens of JSON: what models write, but no
/// room to run off into.
const JSON_SPACE: &str = r"\x20|\x0a[\x20\x09]{0,24}";
/// Escapes of strings. Without \u each string has one spelling, so a name cannot be written twice in two ways.
const JSON_ESCAPES: &str = "nrbtf\\\"";

fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 400_000,
        step_max_items: 100_000,
        max_lexer_states: 50_000,
        max_grammar_size: 500_000,
        precompute_large_lexemes: true,
        verbose_errors: false,
    }
}

struct Vocabulary {
    trie: TokTrie,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.greedy_tokenize(bytes)
    }

    // Nothing is forced token by token: a text may be spelled as the model likes.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

pub struct VtGrammars {
    factory: Arc<ParserFactory>,
}

pub struct VtMatcher {
    matcher: Matcher,
}

impl VtGrammars {
    fn new(tokens: Vec<Vec<u8>>, eos: &[u32]) -> Result<VtGrammars, Failure> {
        if tokens.is_empty() || tokens.len() > MAX_TOKENS {
            return Err(Failure::invalid(format!("vocabulary of {} tokens: expected 1 to {MAX_TOKENS}", tokens.len())));
        }
        if let Some(id) = eos.iter().find(|id| **id as usize >= tokens.len()) {
            return Err(Failure::invalid(format!("end token {id} is outside the vocabulary of {}", tokens.len())));
        }
        let info = TokRxInfo::new(tokens.len() as u32, eos.first().copied().unwrap_or(INVALID_TOKEN));
        let mut trie = TokTrie::from(&info, &tokens);
        if !eos.is_empty() {
            trie = trie.with_eos_tokens(eos);
        }
        let env: TokEnv = Arc::new(Vocabulary { trie });
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)?;
        factory.quiet();
        *factory.limits_mut() = limits();
        Ok(VtGrammars { factory: Arc::new(factory) })
    }

    fn compile(&self, kind: &str, text: &str) -> Result<VtMatcher, Failure> {
        if text.len() > MAX_GRAMMAR_BYTES {
            return Err(Failure::invalid(format!("grammar of {} bytes: at most {MAX_GRAMMAR_BYTES}", text.len())));
        }
        let factory = self.factory.clone();
        let (kind, text) = (kind.to_string(), text.to_string());
        let matcher = on_large_stack_within(COMPILE_TIME, move || {
            let (grammar, keywords) = read(&kind, &text)?;
            let explain = |text: String| match &keywords {
                Some(keywords) => explain_schema(keywords, &text),
                None => explain(&kind, &text),
            };
            let parser = factory.create_parser(grammar).map_err(|error| explain(format!("{error:#}")))?;
            let mut matcher = Matcher::new(Ok(parser));
            // Limits of size show when the first tokens are looked at.
            matcher.compute_mask_or_eos().map_err(|error| explain(format!("{error:#}")))?;
            Ok(VtMatcher { matcher })
        })?;
        matcher.ok_or_else(|| {
            Failure::invalid(format!("the grammar takes more than {} s to compile", COMPILE_TIME.as_secs()))
        })
    }
}

/// The grammar, and of a schema the keywords at its top.
fn read(kind: &str, text: &str) -> Result<(TopLevelGrammar, Option<String>), Failure> {
    match kind {
        "json" => {
            let mut schema: Value =
                serde_json::from_str(text).map_err(|error| Failure::invalid(format!("schema: {error}")))?;
            let keywords = schema.as_object().map(|map| map.keys().map(|key| format!("'{key}'")).collect::<Vec<_>>());
            prepare(&mut schema)?;
            let keywords = keywords.unwrap_or_default().join(", ");
            Ok((TopLevelGrammar::from_json_schema(schema), Some(keywords)))
        }
        "regex" => Ok((TopLevelGrammar::from_regex(text), None)),
        "lark" => {
            check_nesting(text)?;
            Ok((TopLevelGrammar::from_lark(with_checked_schemas(text)?), None))
        }
        _ => Err(Failure::invalid(format!("grammar kind '{kind}': expected json, regex or lark"))),
    }
}

fn prepare(schema: &mut Value) -> Result<(), Failure> {
    schema_check::prepare(schema)?;
    if let Some(map) = schema.as_object_mut() {
        let options = json!({"whitespace_pattern": JSON_SPACE, "json_allowed_escapes": JSON_ESCAPES});
        map.insert("x-guidance".to_string(), options);
    }
    Ok(())
}

/// A Lark grammar whose `%json` schemas are prepared as those that stand alone are.
fn with_checked_schemas(text: &str) -> Result<String, Failure> {
    const MARK: &str = "%json";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let (before, after) = rest.split_at(at + MARK.len());
        out.push_str(before);
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        match values.next() {
            Some(Ok(mut schema)) => {
                rest = &after[values.byte_offset()..];
                prepare(&mut schema)?;
                out.push(' ');
                out.push_str(&schema.to_string());
            }
            _ => rest = after,
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn check_nesting(text: &str) -> Result<(), Failure> {
    let mut depth = 0usize;
    for (line, content) in text.lines().enumerate() {
        for byte in content.bytes() {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth > MAX_NESTING {
                return Err(Failure::invalid(format!("grammar line {}: nested deeper than {MAX_NESTING}", line + 1)));
            }
        }
    }
    Ok(())
}

/// The compiler's error without what it appends for its own developers.
fn explain(kind: &str, text: &str) -> Failure {
    if text.starts_with("panic:") {
        return Failure::invalid("the grammar compiler failed on this grammar; simplify it");
    }
    Failure::invalid(format!("{kind}: {}", schema_pattern::telling_line(text)))
}

/// The same for a schema. What no keyword is named for is laid to the references, or to all keywords at the top.
fn explain_schema(keywords: &str, text: &str) -> Failure {
    let line = schema_pattern::telling_line(text);
    if ["Pointer ", "Resource ", "Anchor ", "invalid URI"].iter().any(|start| line.starts_with(start)) {
        let what = line.split(": ").next().unwrap_or(&line);
        return Failure::invalid(format!("schema: '$ref': {what}; references lead inside the schema only"));
    }
    match line.contains("Unsatisfiable") || line.contains("unsatisfiable") {
        true => Failure::invalid(format!("schema: no value satisfies it ({keywords}): {line}")),
        false => Failure::invalid(format!("schema ({keywords}): {line}")),
    }
}

impl VtMatcher {
    /// A mask of one bit per token; all end tokens where the grammar is complete.
    fn mask(&mut self, words: &mut [u32]) -> Result<(), Failure> {
        let mask = self.matcher.compute_mask_or_eos().map_err(|error| explain("grammar", &format!("{error:#}")))?;
        let source = mask.as_slice();
        for (index, word) in words.iter_mut().enumerate() {
            *word = source.get(index).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn consume(&mut self, token: u32) -> Result<(), Failure> {
        self.matcher.consume_token(token).map_err(|error| explain("grammar", &format!("{error:#}")))
    }
}

fn no_copy() -> Failure {
    Failure { status: PANIC, text: "the grammar's state could not be copied".to_string() }
}

#[repr(C)]
pub struct VtTokenBytes {
    bytes: *const u8,
    size: usize,
    ends: *const u32,
    count: usize,
}

impl VtTokenBytes {
    unsafe fn to_vectors(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let bytes = borrow(self.bytes, self.size);
        let mut start = 0;
        let mut out = Vec::with_capacity(self.count);
        for &end in borrow(self.ends, self.count) {
            let end = end as usize;
            let token = bytes.get(start..end).ok_or_else(|| Failure::invalid("a token ends outside the buffer"))?;
            out.push(token.to_vec());
            start = end;
        }
        Ok(out)
    }
}

#[no_mangle]
pub unsafe extern "C" fn vt_grammars_create(
    tokens: VtTokenBytes,
    eos: *const u32,
    eos_count: usize,
    out: *mut *mut VtGrammars,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || VtGrammars::new(tokens.to_vectors()?, borrow(eos, eos_count)),
        |grammars| out.write(Box::into_raw(Box::new(grammars))),
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_grammars_free(grammars: *mut VtGrammars) {
    if !grammars.is_null() {
        drop(Box::from_raw(grammars));
    }
}

#[no_mangle]
pub unsafe extern "C" fn vt_grammars_compile(
    grammars: *const VtGrammars,
    kind: *const u8,
    kind_size: usize,
    text: *const u8,
    size: usize,
    out: *mut *mut VtMatcher,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || (*grammars).compile(borrow_str(kind, kind_size)?, borrow_str(text, size)?),
        |matcher| out.write(Box::into_raw(Box::new(matcher))),
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_matcher_clone(
    matcher: *const VtMatcher,
    out: *mut *mut VtMatcher,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || Ok(VtMatcher { matcher: matcher.as_ref().ok_or_else(no_copy)?.matcher.clone() }),
        |copy| out.write(Box::into_raw(Box::new(copy))),
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_matcher_free(matcher: *mut VtMatcher) {
    if !matcher.is_null() {
        drop(Box::from_raw(matcher));
    }
}

#[no_mangle]
pub unsafe extern "C" fn vt_matcher_mask(
    matcher: *mut VtMatcher,
    words: *mut u32,
    count: usize,
    error: *mut VtBytes,
) -> i32 {
    guard(error, || matcher.as_mut().ok_or_else(no_copy)?.mask(std::slice::from_raw_parts_mut(words, count)), |()| ())
}

#[no_mangle]
pub unsafe extern "C" fn vt_matcher_consume(matcher: *mut VtMatcher, token: u32, error: *mut VtBytes) -> i32 {
    guard(error, || matcher.as_mut().ok_or_else(no_copy)?.consume(token), |()| ())
}

#[no_mangle]
pub unsafe extern "C" fn vt_matcher_stopped(matcher: *const VtMatcher) -> i32 {
    i32::from(matcher.as_ref().is_none_or(|matcher| matcher.matcher.is_stopped()))
}
