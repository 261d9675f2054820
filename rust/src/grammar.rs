//! Checks that a grammar compiles, over a vocabulary of the 256 bytes.

use crate::border::{borrow_str, guard, Failure, VtBytes};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::ApproximateTokEnv;
use llguidance::ParserFactory;

fn check(kind: &str, text: &str) -> Result<(), Failure> {
    let grammar = match kind {
        "json" => TopLevelGrammar::from_json_schema(serde_json::from_str(text)?),
        "regex" => TopLevelGrammar::from_regex(text),
        "lark" => TopLevelGrammar::from_lark(text.to_string()),
        _ => return Err(Failure::invalid(format!("grammar kind '{kind}': expected json, regex or lark"))),
    };
    let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env())?;
    factory.quiet();
    factory.create_parser(grammar)?;
    Ok(())
}

#[no_mangle]
pub unsafe extern "C" fn vt_grammar_check(
    kind: *const u8,
    kind_size: usize,
    text: *const u8,
    size: usize,
    error: *mut VtBytes,
) -> i32 {
    guard(error, || check(borrow_str(kind, kind_size)?, borrow_str(text, size)?), |()| ())
}
