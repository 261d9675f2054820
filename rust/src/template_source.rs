//! What is done to a template's text before it is compiled: its size and shape are limited, since the compiler recurses
//! over it, and blocks and assignments that need help are rewritten.

use crate::border::Failure;
use minijinja::machinery::{tokenize, Span, Token};
use minijinja::syntax::SyntaxConfig;

const MAX_BYTES: usize = 512 << 10;
/// Parts (names, literals, operators) of one {{ }} or {% %}: long chains become deep trees.
const MAX_PARTS: usize = 2000;
/// Branches of all the open if blocks: each lies inside the one before.
const MAX_BRANCHES: usize = 500;

/// Filters that assignments are sent through; see the values module.
pub const BOUNDED: &str = "vedette_bounded";
pub const KEPT: &str = "vedette_kept";

/// Refuses a template that is too large or whose parts are too many.
pub fn check(source: &str, syntax: &SyntaxConfig) -> Result<(), Failure> {
    if source.len() > MAX_BYTES {
        return Err(Failure::invalid(format!(
            "expected at most {MAX_BYTES} bytes, found {}; use a shorter template",
            source.len()
        )));
    }
    let mut branches: Vec<usize> = Vec::new();
    let mut total = 0;
    for code in codes(source, syntax) {
        if code.tokens.len() > MAX_PARTS {
            let text = format!("expected at most {MAX_PARTS} names, values and operators in one expression or tag, found more; split it with set");
            return Err(code.failure(source, &text));
        }
        match code.name() {
            "if" => branches.push(0),
            "endif" => total -= branches.pop().unwrap_or(0),
            "elif" => {
                if let Some(open) = branches.last_mut() {
                    *open += 1;
                    total += 1;
                }
                if total > MAX_BRANCHES {
                    let text = format!("expected at most {MAX_BRANCHES} elif branches in open if blocks, found more");
                    return Err(code.failure(source, &text));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// `{% generation %}` blocks mark the assistant's own text for training and render as their body, in a scope of their
/// own. They become `with` blocks of the same length, so positions in messages stay true.
pub fn scope_generation_blocks(source: &str, syntax: &SyntaxConfig) -> String {
    let mut out = source.to_string();
    for code in codes(source, syntax) {
        let with = match (code.name(), code.tokens.len()) {
            ("generation", 1) => "with      ",
            ("endgeneration", 1) => "endwith      ",
            _ => continue,
        };
        let span = code.tokens[0].1;
        out.replace_range(span.start_offset as usize..span.end_offset as usize, with);
    }
    out
}

/// Sends what is assigned through a filter: `set x = value` becomes `set x = (value)|filter`. What a macro, a caller or
/// a turn of a recursive loop is given is assigned anew at its start. Lines stay as they are.
pub fn bound_assignments(source: &str, syntax: &SyntaxConfig) -> String {
    let mut out = String::with_capacity(source.len() + 1024);
    let mut copied = 0;
    for code in codes(source, syntax) {
        let Some(end) = code.end else { continue };
        if let Some(set) = code.assignment() {
            if let Some(start) = set.value_start {
                out.push_str(&source[copied..start]);
                out.push('(');
                copied = start;
            }
            out.push_str(&source[copied..end]);
            out.push_str(if set.value_start.is_some() { ")|" } else { "|" });
            out.push_str(if set.dotted { KEPT } else { BOUNDED });
            copied = end;
        }
        let received = code.received();
        if let (false, Some(length)) = (received.is_empty(), source[end..].find("%}")) {
            let mark = source[end..end + length + 2].trim_start();
            out.push_str(&source[copied..end + length + 2]);
            copied = end + length + 2;
            for name in received {
                out.push_str(&format!("{{% set {name} = ({name})|{BOUNDED} {mark}"));
            }
        }
    }
    out.push_str(&source[copied..]);
    out
}

/// One {{ }} or {% %}: what stands between its marks.
struct Code<'a> {
    block: bool,
    start: usize,
    /// Where the last token ends, if the code is closed.
    end: Option<usize>,
    tokens: Vec<(Token<'a>, Span)>,
}

struct Assignment {
    dotted: bool,
    value_start: Option<usize>,
}

impl Code<'_> {
    fn name(&self) -> &str {
        match self.tokens.first() {
            Some((Token::Ident(name), _)) if self.block => name,
            _ => "",
        }
    }

    /// A well-formed `set` whose value can be something else than a text.
    fn assignment(&self) -> Option<Assignment> {
        if self.name() != "set" {
            return None;
        }
        let mut depth = 0i32;
        let mut assign = None;
        let (mut dotted, mut filtered) = (false, false);
        for (index, (token, _)) in self.tokens.iter().enumerate() {
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
                Token::Dot if assign.is_none() && !filtered => dotted = true,
                Token::Pipe if assign.is_none() && depth == 0 => filtered = true,
                Token::Assign if assign.is_none() && !filtered && depth == 0 => assign = Some(index),
                _ => {}
            }
            if depth < 0 {
                return None; // a syntax error, which must stay one
            }
        }
        let value_start = match assign {
            Some(at) => Some(self.tokens.get(at + 1)?.1.start_offset as usize),
            None if filtered => None,
            None => return None,
        };
        (depth == 0).then_some(Assignment { dotted, value_start })
    }

    /// Names that a body is called with.
    fn received(&self) -> Vec<&str> {
        let skipped = match (self.name(), self.tokens.last()) {
            ("macro", _) => 2,
            ("call", _) => 1,
            ("for", Some((Token::Ident("recursive"), _))) => 1,
            _ => return Vec::new(),
        };
        let loops = self.name() == "for";
        let mut names = Vec::new();
        let mut depth = 0i32;
        let mut first = true; // at the beginning of a parameter
        for (token, _) in self.tokens.iter().skip(skipped) {
            match token {
                Token::Ident("in") if loops => break,
                Token::Ident(name) if loops || (depth == 1 && first) => names.push(*name),
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
                _ => {}
            }
            if depth == 0 && !loops {
                break;
            }
            first = matches!(token, Token::ParenOpen | Token::Comma);
        }
        names
    }

    fn failure(&self, source: &str, text: &str) -> Failure {
        let before = source.get(..self.start).unwrap_or(source);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Failure::invalid(format!("line {line}, column {column}: {text}"))
    }
}

/// The template's code as the compiler reads it, up to its first lexical error.
fn codes<'a>(source: &'a str, syntax: &SyntaxConfig) -> impl Iterator<Item = Code<'a>> {
    let mut tokens = tokenize(source, false, syntax.clone());
    std::iter::from_fn(move || {
        let mut code: Option<Code<'a>> = None;
        loop {
            let Some(Ok((token, span))) = tokens.next() else { return code };
            match (token, &mut code) {
                (Token::VariableStart | Token::BlockStart, Some(_)) => {}
                (token @ (Token::VariableStart | Token::BlockStart), None) => {
                    let block = matches!(token, Token::BlockStart);
                    code = Some(Code { block, start: span.start_offset as usize, end: None, tokens: Vec::new() });
                }
                (Token::VariableEnd | Token::BlockEnd, Some(open)) => {
                    open.end = open.tokens.last().map(|(_, span)| span.end_offset as usize);
                    return code;
                }
                (token, Some(open)) => open.tokens.push((token, span)),
                _ => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syntax() -> SyntaxConfig {
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap()
    }

    #[test]
    fn assignments_are_wrapped_where_they_are_values() {
        for (source, wanted) in [
            ("{%- set x = 1 -%}", "{%- set x = (1)|vedette_bounded -%}"),
            ("{% set n.x = [a, '%}'] %}é", "{% set n.x = ([a, '%}'])|vedette_kept %}é"),
            ("{% set a, b = 1, 2 %}", "{% set a, b = (1, 2)|vedette_bounded %}"),
            ("{% set x = f(y=2) %}", "{% set x = (f(y=2))|vedette_bounded %}"),
            ("{% set n.x | default([n.x], true) %}", "{% set n.x | default([n.x], true)|vedette_kept %}"),
            ("{% set x %}text{% endset %}", "{% set x %}text{% endset %}"),
            (
                "{% macro m(a, b=[c, d]) -%}\n x{% endmacro %}",
                "{% macro m(a, b=[c, d]) -%}{% set a = (a)|vedette_bounded -%}{% set b = (b)|vedette_bounded -%}\n x{% endmacro %}",
            ),
            ("{% macro m() %}{% endmacro %}", "{% macro m() %}{% endmacro %}"),
            ("{% call(a) m(b) %}{% endcall %}", "{% call(a) m(b) %}{% set a = (a)|vedette_bounded %}{% endcall %}"),
            ("{% call m(b) %}{% endcall %}", "{% call m(b) %}{% endcall %}"),
            (
                "{% for a in b recursive %}{% endfor %}",
                "{% for a in b recursive %}{% set a = (a)|vedette_bounded %}{% endfor %}",
            ),
            ("{% for a in b %}{% endfor %}", "{% for a in b %}{% endfor %}"),
            ("{% set x = a) + (b %}", "{% set x = a) + (b %}"),
            ("{% set x = %}", "{% set x = %}"),
            ("{% raw %}{% set x = 1 %}{% endraw %}", "{% raw %}{% set x = 1 %}{% endraw %}"),
            ("{# {% set x = 1 %} #}", "{# {% set x = 1 %} #}"),
        ] {
            assert_eq!(bound_assignments(source, &syntax()), wanted);
        }
    }

    #[test]
    fn generation_blocks_keep_their_length() {
        let source =
            "{% generation %}a{%- endgeneration -%}{{ '{% generation %}' }}{% raw %}{% generation %}{% endraw %}";
        let out = scope_generation_blocks(source, &syntax());
        assert_eq!(out.len(), source.len());
        assert!(out.starts_with("{% with       %}a{%- endwith       -%}{{ '{% generation %}' }}{% raw %}{% generation"));
    }

    #[test]
    fn limits_are_where_they_are_said_to_be() {
        let chain = |n: usize| format!("{{{{ 1{} }}}}", "+1".repeat(n));
        assert!(check(&chain(999), &syntax()).is_ok());
        assert!(check(&chain(1000), &syntax()).is_err());
        let branches = |n: usize| format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(n));
        assert!(check(&branches(500).repeat(3), &syntax()).is_ok());
        assert!(check(&branches(501), &syntax()).is_err());
        assert!(check(&"x".repeat(MAX_BYTES), &syntax()).is_ok());
        assert!(check(&"x".repeat(MAX_BYTES + 1), &syntax()).is_err());
        // Code that is never closed counts as well.
        assert!(check(&format!("{{{{ {} 1", "not ".repeat(20000)), &syntax()).is_err());
    }
}
