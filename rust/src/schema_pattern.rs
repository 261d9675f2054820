//! `pattern` and `format`. Patterns are ECMA-262 regular expressions; the compiler's engine reads a few of them
//! differently, so they are translated or refused.

use crate::border::Failure;
use crate::schema_check::refused;
use crate::schema_numbers;
use llguidance::derivre::RegexBuilder;
use llguidance::regex_to_lark;
use serde_json::{json, Map, Value};

/// White space by ECMA-262, without what other engines leave out; and with what any of them adds.
const SPACE: &str = r"\t\n\x0b\x0c\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}";
const SPACE_OF_ANY: &str =
    r"\t\n\x0b\x0c\r \x1c-\x1f\u{85}\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";
const ANY_BUT_LINE_ENDS: &str = r"[^\n\r\u{2028}\u{2029}]";

const MAX_PATTERN_BYTES: usize = 10_000;

/// The pattern for the compiler's engine, or why there is none.
pub fn translate(pattern: &str) -> Result<String, String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("the pattern is longer than {MAX_PATTERN_BYTES} bytes"));
    }
    let rewritten = rewrite(pattern)?;
    let mut builder = RegexBuilder::new();
    match builder.mk_regex_for_serach(&regex_to_lark(&rewritten, "dw")) {
        Ok(_) => Ok(rewritten),
        Err(error) => Err(format!("cannot be enforced: {}", telling_line(&error.to_string()))),
    }
}

/// The most telling line of an error: the engines draw the text with a caret below it.
pub fn telling_line(text: &str) -> String {
    let found = text.lines().find_map(|line| line.trim().strip_prefix("error:"));
    let first = text.lines().next().unwrap_or("").trim();
    match found {
        Some(line) if first.ends_with("error:") => format!("{first} {}", line.trim()),
        Some(line) => line.trim().to_string(),
        None => first.to_string(),
    }
}

fn rewrite(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(rest.next(), &mut rest, in_class, &mut out)?,
            '[' if in_class => out.push_str("\\["),
            '[' => {
                in_class = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if rest.peek() == Some(&']') {
                    return Err("empty classes are not supported".to_string());
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => out.extend(['\\', c]),
            '-' if in_class && rest.peek() == Some(&'-') => {
                return Err("'--' in a class is not supported; write '\\-'".to_string())
            }
            '.' if !in_class => out.push_str(ANY_BUT_LINE_ENDS),
            _ => out.push(c),
        }
    }
    Ok(out)
}

fn escape(
    escaped: Option<char>,
    rest: &mut std::iter::Peekable<std::str::Chars>,
    in_class: bool,
    out: &mut String,
) -> Result<(), String> {
    match escaped {
        None => return Err("ends in a backslash".to_string()),
        Some('s') if in_class => out.push_str(SPACE),
        Some('s') => out.extend(["[", SPACE, "]"]),
        Some('S') => out.extend(["[^", SPACE_OF_ANY, "]"]),
        Some('c') => match rest.next() {
            Some(letter) if letter.is_ascii_alphabetic() => {
                out.push_str(&format!("\\x{:02x}", letter as u32 % 32));
            }
            _ => return Err("'\\c' needs a letter".to_string()),
        },
        Some('0') if !rest.peek().is_some_and(char::is_ascii_digit) => out.push_str("\\x00"),
        Some('b') if in_class => out.push_str("\\x08"),
        Some(
            c @ ('b' | 'B' | 'A' | 'z' | 'Z' | 'G' | 'a' | 'Q' | 'E' | 'h' | 'R' | 'X' | 'k' | '<' | '>' | '0'..='9'),
        ) => return Err(format!("'\\{c}' is not supported")),
        Some(c) => out.extend(['\\', c]),
    }
    Ok(())
}

/// Formats of strings that the grammar enforces.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// What the compiler's patterns of dates and times leave open: February 29 in years that have none, the year 0, and a
/// second 60 at any time of the day.
const CALENDAR: &str = concat!(
    "^(?:(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:(?:0[13-9]|1[0-2])-|02-(?:[01][0-9]|2[0-8]))|",
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)"
);
const SECONDS: &str = ":[0-9]{2}:[0-5][0-9][.zZ+-]";

pub fn format(map: &mut Map<String, Value>, path: &str) -> Result<(), Failure> {
    let Some(format) = map.get("format") else { return Ok(()) };
    let Some(name) = format.as_str().map(str::to_string) else {
        return Err(refused(path, "format", "expected a string"));
    };
    if may_be_only(map, &["integer", "number"]) {
        if let Some(range) = schema_numbers::integer_format(&name) {
            schema_numbers::narrow(map, range);
            map.shift_remove("format");
            return Ok(());
        }
        if ["float", "double"].contains(&name.as_str()) {
            map.shift_remove("format");
            return Ok(());
        }
    } else if FORMATS.contains(&name.as_str()) {
        let calendar = name.starts_with("date").then_some(CALENDAR);
        let seconds = name.ends_with("time").then_some(SECONDS);
        calendar.into_iter().chain(seconds).for_each(|pattern| also(map, pattern));
        return Ok(());
    }
    Err(refused(path, "format", &format!("'{name}' cannot be enforced; known are {}", FORMATS.join(", "))))
}

/// Demands a pattern beside what the schema says.
fn also(map: &mut Map<String, Value>, pattern: &str) {
    let all = map.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(parts) = all.as_array_mut() {
        parts.push(json!({ "pattern": pattern }));
    }
}

fn may_be_only(map: &Map<String, Value>, types: &[&str]) -> bool {
    let among = |value: &Value| value.as_str().is_some_and(|name| types.contains(&name));
    match map.get("type") {
        Some(Value::Array(list)) => list.iter().all(|value| among(value) || value == "null"),
        Some(value) => among(value),
        None => false,
    }
}
