//! What Python's json.dumps and str methods give, for values of a template.

use minijinja::value::{from_args, Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use std::fmt::Write;

struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

/// json.dumps(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False), the `tojson` filter that
/// transformers installs: nothing is escaped for HTML.
pub fn tojson(
    state: &State,
    value: Value,
    ensure_ascii: Option<Value>,
    indent: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let argument = |positional: Option<Value>, name: &str| -> Result<Option<Value>, Error> {
        let given = match positional {
            Some(value) => Some(value),
            None => kwargs.get::<Option<Value>>(name)?,
        };
        Ok(given.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let ensure_ascii = argument(ensure_ascii, "ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = match argument(indent, "indent")? {
        None => None,
        Some(value) => Some(match value.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(i64::try_from(value)?.clamp(0, 64) as usize),
        }),
    };
    let separators = match argument(None, "separators")? {
        None => None,
        Some(pair) => {
            let pair: Vec<Value> = pair.try_iter()?.collect();
            match pair.as_slice() {
                [item, key] => Some((item.to_string(), key.to_string())),
                _ => return Err(Error::new(ErrorKind::InvalidOperation, "tojson: separators must be two texts")),
            }
        }
    };
    let sort_keys = argument(None, "sort_keys")?.is_some_and(|value| value.is_true());
    kwargs.assert_all_used()?;
    let (item_separator, key_separator) =
        separators.unwrap_or_else(|| (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string()));
    let style = Style { ensure_ascii, indent, item_separator, key_separator, sort_keys };
    let mut out = String::new();
    dump(state, &value, &style, 0, &mut out)?;
    Ok(Value::from(out))
}

/// The text of a value that a template gives as a message.
pub fn message(state: &State, value: &Value) -> Result<String, Error> {
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(value.to_string());
    }
    let (item_separator, key_separator) = (", ".to_string(), ": ".to_string());
    let style = Style { ensure_ascii: false, indent: None, item_separator, key_separator, sort_keys: false };
    let mut out = String::new();
    dump(state, value, &style, 0, &mut out)?;
    Ok(out)
}

/// Bytes written for one fuel, as the template engine counts them.
const BYTES_PER_FUEL: usize = 64;

fn dump(state: &State, value: &Value, style: &Style, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > 128 {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson: value nested more than 128 deep"));
    }
    state.consume_fuel(1)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => number(value, out)?,
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            state.consume_fuel((text.len() / BYTES_PER_FUEL) as u64)?;
            string(text, style.ensure_ascii, out);
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            brackets(state, style, depth, out, '[', ']', &items, |item, out| dump(state, item, style, depth + 1, out))?;
        }
        ValueKind::Map => {
            let mut pairs = Vec::new();
            for key in value.try_iter()? {
                let item = value.get_item(&key)?;
                pairs.push((key_text(&key)?, item));
            }
            if style.sort_keys {
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
            }
            brackets(state, style, depth, out, '{', '}', &pairs, |(key, item), out| {
                string(key, style.ensure_ascii, out);
                out.push_str(&style.key_separator);
                dump(state, item, style, depth + 1, out)
            })?;
        }
        kind => {
            return Err(Error::new(ErrorKind::InvalidOperation, format!("tojson: {kind} is not JSON serializable")));
        }
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn brackets<T>(
    state: &State,
    style: &Style,
    depth: usize,
    out: &mut String,
    open: char,
    close: char,
    items: &[T],
    mut write: impl FnMut(&T, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(open);
    let line = |depth: usize, out: &mut String| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    };
    let indent = style.indent.as_ref().map_or(0, String::len);
    let between = style.item_separator.len() + style.key_separator.len() + indent.saturating_mul(depth + 1);
    for (index, item) in items.iter().enumerate() {
        state.consume_fuel((between / BYTES_PER_FUEL) as u64)?;
        if index > 0 {
            out.push_str(&style.item_separator);
        }
        line(depth + 1, out);
        write(item, out)?;
    }
    if !items.is_empty() {
        line(depth, out);
    }
    out.push(close);
    Ok(())
}

fn key_text(key: &Value) -> Result<String, Error> {
    Ok(match key.kind() {
        ValueKind::String => key.to_string(),
        ValueKind::None => "null".to_string(),
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_string(),
        ValueKind::Number => {
            let mut text = String::new();
            number(key, &mut text)?;
            text
        }
        kind => return Err(Error::new(ErrorKind::InvalidOperation, format!("tojson: {kind} cannot be a key"))),
    })
}

fn number(value: &Value, out: &mut String) -> Result<(), Error> {
    if value.is_integer() {
        write!(out, "{value}").ok();
    } else {
        out.push_str(&float_text(f64::try_from(value.clone())?));
    }
    Ok(())
}

/// repr() of a Python float (JSON spells the non-finite ones NaN and Infinity).
pub fn float_text(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_string();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let shortest = format!("{x:e}"); // d.ddde±x with the fewest digits that round-trip
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{x}");
    if plain.contains('.') {
        plain
    } else {
        format!("{plain}.0")
    }
}

fn string(text: &str, ensure_ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => {
                write!(out, "\\u{:04x}", c as u32).ok();
            }
            c if ensure_ascii && !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").ok();
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Methods of Python's str and list that minijinja-contrib lacks or splits differently; all else goes to it.
pub fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match (value.kind(), value.as_str()) {
        (ValueKind::String, Some(text)) => {
            if let Some(result) = string_method(state, text, name, args)? {
                return Ok(result);
            }
        }
        (ValueKind::Seq, _) if name == "index" => {
            let (wanted,): (Value,) = from_args(args)?;
            for (position, item) in value.try_iter()?.enumerate() {
                state.consume_fuel(1)?;
                if item == wanted {
                    return Ok(Value::from(position));
                }
            }
            return Err(Error::new(ErrorKind::InvalidOperation, format!("{wanted} is not in list")));
        }
        _ => {}
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

fn string_method(state: &State, text: &str, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match name {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let at = if name == "partition" { text.find(separator) } else { text.rfind(separator) };
            let (before, middle, after) = match at {
                Some(at) => (&text[..at], separator, &text[at + separator.len()..]),
                None if name == "partition" => (text, "", ""),
                None => ("", "", text),
            };
            Value::from(minijinja::value::Tuple::new(vec![
                Value::from(before),
                Value::from(middle),
                Value::from(after),
            ]))
        }
        "index" => {
            let (wanted,): (&str,) = from_args(args)?;
            match text.find(wanted) {
                Some(at) => Value::from(text[..at].chars().count()),
                None => return Err(Error::new(ErrorKind::InvalidOperation, "substring not found")),
            }
        }
        "rsplit" => {
            let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
            let limit = limit.filter(|n| *n >= 0).map_or(usize::MAX, |n| n as usize);
            Value::from(rsplit(text, separator, limit)?)
        }
        "splitlines" => {
            let (keep,): (Option<bool>,) = from_args(args)?;
            Value::from(split_lines(text, keep.unwrap_or(false)))
        }
        "zfill" | "ljust" | "rjust" | "center" => {
            let (width, fill): (i64, Option<&str>) = from_args(args)?;
            let fill = fill.and_then(|text| text.chars().next()).unwrap_or(if name == "zfill" { '0' } else { ' ' });
            let missing = usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count());
            state.consume_fuel(missing as u64 / 16)?;
            Value::from(pad(text, name, missing, fill))
        }
        "swapcase" => Value::from(
            text.chars()
                .flat_map(|c| {
                    if c.is_uppercase() {
                        c.to_lowercase().collect::<Vec<_>>()
                    } else {
                        c.to_uppercase().collect()
                    }
                })
                .collect::<String>(),
        ),
        "title" => Value::from(title(text)),
        "capitalize" => {
            let mut chars = text.chars();
            let first: String = chars.next().map(title_case).unwrap_or_default();
            Value::from(format!("{first}{}", chars.as_str().to_lowercase()))
        }
        "casefold" => Value::from(text.to_lowercase()),
        _ => return Ok(None),
    }))
}

/// A character in title case: upper case, but only the first letter of a pair (ß, ǆ).
fn title_case(c: char) -> String {
    match c {
        '\u{1c4}'..='\u{1c6}' => return "\u{1c5}".to_string(),
        '\u{1c7}'..='\u{1c9}' => return "\u{1c8}".to_string(),
        '\u{1ca}'..='\u{1cc}' => return "\u{1cb}".to_string(),
        '\u{1f1}'..='\u{1f3}' => return "\u{1f2}".to_string(),
        _ => {}
    }
    let mut upper = c.to_uppercase();
    let first = upper.next().into_iter();
    first.chain(upper.flat_map(char::to_lowercase)).collect()
}

/// str.title: in each run of letters the first is in title case, the rest in lower case.
fn title(text: &str) -> String {
    let cased = |c: char| c.is_lowercase() || c.is_uppercase() || ('\u{1c4}'..='\u{1cc}').contains(&c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(cased) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let word = &rest[..rest.find(|c| !cased(c)).unwrap_or(rest.len())];
        rest = &rest[word.len()..];
        // The whole word is lowered at once, since a letter's form can depend on its place (final sigma).
        let lowered = word.to_lowercase();
        for first in word.chars().take(1) {
            out.push_str(&title_case(first));
            out.extend(lowered.chars().skip(first.to_lowercase().count()));
        }
    }
    out.push_str(rest);
    out
}

fn pad(text: &str, name: &str, missing: usize, fill: char) -> String {
    let run = |n: usize| std::iter::repeat_n(fill, n).collect::<String>();
    match name {
        "ljust" => format!("{text}{}", run(missing)),
        "rjust" => format!("{}{text}", run(missing)),
        "zfill" => match text.strip_prefix(['+', '-']) {
            Some(rest) => format!("{}{}{rest}", &text[..1], run(missing)),
            None => format!("{}{text}", run(missing)),
        },
        _ => {
            // CPython puts the odd fill character left when the width is odd.
            let width = missing + text.chars().count();
            let left = missing / 2 + (missing & width & 1);
            format!("{}{text}{}", run(left), run(missing - left))
        }
    }
}

fn rsplit(text: &str, separator: Option<&str>, limit: usize) -> Result<Vec<Value>, Error> {
    let mut parts: Vec<&str> = Vec::new();
    match separator {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(separator) => parts.extend(text.rsplitn(limit.saturating_add(1), separator)),
        None => {
            let mut rest = text.trim_end();
            while !rest.is_empty() {
                let cut = if parts.len() < limit { rest.rfind(char::is_whitespace) } else { None };
                match cut {
                    Some(at) => {
                        let width = rest[at..].chars().next().map_or(1, char::len_utf8);
                        parts.push(&rest[at + width..]);
                        rest = rest[..at].trim_end();
                    }
                    None => {
                        parts.push(if parts.len() < limit { rest.trim_start() } else { rest });
                        break;
                    }
                }
            }
        }
    }
    parts.reverse();
    Ok(parts.into_iter().map(Value::from).collect())
}

fn split_lines(text: &str, keep: bool) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}') {
            continue;
        }
        let mut end = at + c.len_utf8();
        if c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n') {
            chars.next();
            end += 1;
        }
        lines.push(Value::from(&text[start..if keep { end } else { at }]));
        start = end;
    }
    if start < text.len() {
        lines.push(Value::from(&text[start..]));
    }
    lines
}
