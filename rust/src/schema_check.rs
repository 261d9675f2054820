//! What a JSON schema must not contain because the grammar compiler would drop it or get it wrong: refused by keyword
//! and path. What it would get wrong but can be told otherwise is rewritten in place.

use crate::border::Failure;
use crate::schema_numbers::{self, Multiples};
use crate::schema_pattern;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

/// Keywords of any draft that restrict values and that no grammar of ours can express.
const REFUSED: [&str; 22] = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "propertyNames",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "divisibleBy",
    "disallow",
    "extends",
];

const COUNTS: [&str; 6] = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
/// Counts above this are counters that the lexer cannot hold.
const MAX_COUNT: u64 = 1 << 30;
/// Each pair of patterns is checked for overlap.
const MAX_PATTERN_PROPERTIES: usize = 32;
/// Subschemas of one document, those reached by reference included.
const MAX_SUBSCHEMAS: usize = 50_000;

/// Checks and rewrites the schema and all that it refers to inside its document.
pub fn prepare(root: &mut Value) -> Result<(), Failure> {
    if root.is_boolean() {
        if *root == Value::Bool(false) {
            return Err(refused("", "schema", "'false' allows no value"));
        }
        *root = Value::Object(Map::new());
    }
    if root.get("x-guidance").is_some() {
        return Err(refused("", "x-guidance", "options of the grammar compiler cannot be set by a schema"));
    }
    let draft3 = root.get("$schema").and_then(Value::as_str).is_some_and(|name| name.contains("/draft-03/"));
    let mut walk = Walk { definitions: names_other_than_pointers(root, 0), draft3, ..Walk::default() };
    walk.pending.push(String::new());
    while let Some(pointer) = walk.pending.pop() {
        // A pointer that leads nowhere is reported by the compiler, with the reference's own base.
        if let Some(schema) = root.pointer_mut(&pointer) {
            walk.schema(schema, &pointer)?;
        }
    }
    walk.multiples.check()
}

pub fn refused(path: &str, keyword: &str, why: &str) -> Failure {
    Failure::invalid(format!("schema #{path}: '{keyword}': {why}"))
}

/// Whether references may lead to definitions in other ways than by a pointer from the root: by an anchor, by a URL, or
/// from a part of the document that has a base of its own.
fn names_other_than_pointers(value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str);
            let own_base = depth > 0 && ["$id", "id"].iter().any(|key| map.get(*key).is_some_and(Value::is_string));
            own_base
                || reference.is_some_and(|text| text != "#" && !text.starts_with("#/"))
                || map.values().any(|member| names_other_than_pointers(member, depth + 1))
        }
        Value::Array(items) => items.iter().any(|item| names_other_than_pointers(item, depth + 1)),
        _ => false,
    }
}

#[derive(Default)]
struct Walk {
    pending: Vec<String>,
    seen: BTreeSet<String>,
    /// Whether all definitions are checked, for want of knowing which are referred to.
    definitions: bool,
    /// Draft 3 gave one format another meaning.
    draft3: bool,
    count: usize,
    multiples: Multiples,
}

impl Walk {
    fn schema(&mut self, schema: &mut Value, path: &str) -> Result<(), Failure> {
        if !self.seen.insert(path.to_string()) {
            return Ok(());
        }
        self.count += 1;
        if self.count > MAX_SUBSCHEMAS {
            return Err(refused(path, "schema", "the document has too many subschemas"));
        }
        let map = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(map) => map,
            _ => return Err(refused(path, "schema", "expected an object or a boolean")),
        };
        drop_empty_keywords(map);
        if let Some(keyword) = REFUSED.iter().find(|keyword| map.contains_key(**keyword)) {
            return Err(refused(path, keyword, "this keyword cannot be enforced; leave it out"));
        }
        self.types(map, path)?;
        self.strings(map, path)?;
        for keyword in COUNTS {
            check_count(map, keyword, path)?;
        }
        check_required(map, path)?;
        schema_numbers::bounds(map, path)?;
        self.multiples.add(map, path)?;
        for keyword in ["const", "enum"] {
            if let Some(value) = map.get(keyword) {
                check_literal(value, keyword, path)?;
            }
        }
        self.reference(map, path)?;
        array_keywords(map, path)?;
        self.children(map, path)
    }

    fn types(&mut self, map: &Map<String, Value>, path: &str) -> Result<(), Failure> {
        let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let fine = match map.get("type") {
            None => true,
            Some(Value::Array(types)) => !types.is_empty() && types.iter().all(known),
            Some(value) => known(value),
        };
        if fine {
            return Ok(());
        }
        Err(refused(path, "type", &format!("expected one of {} or a list of them", TYPES.join(", "))))
    }

    fn strings(&mut self, map: &mut Map<String, Value>, path: &str) -> Result<(), Failure> {
        if let Some(pattern) = map.get("pattern") {
            let Some(text) = pattern.as_str() else { return Err(refused(path, "pattern", "expected a string")) };
            let rewritten = schema_pattern::translate(text).map_err(|why| refused(path, "pattern", &why))?;
            map.insert("pattern".to_string(), Value::String(rewritten));
        }
        if self.draft3 && map.get("format").is_some_and(|name| name == "time") {
            return Err(refused(path, "format", "'time' of draft 3 cannot be enforced; it had no time zone"));
        }
        schema_pattern::format(map, path)?;
        let Some(patterns) = map.get("patternProperties") else { return Ok(()) };
        let Some(members) = patterns.as_object() else {
            return Err(refused(path, "patternProperties", "expected an object"));
        };
        if members.len() > MAX_PATTERN_PROPERTIES {
            let why = format!("at most {MAX_PATTERN_PROPERTIES} patterns can be told apart");
            return Err(refused(path, "patternProperties", &why));
        }
        let mut rewritten = Map::new();
        for (pattern, schema) in members {
            let text = schema_pattern::translate(pattern).map_err(|why| refused(path, "patternProperties", &why))?;
            rewritten.insert(text, schema.clone());
        }
        map.insert("patternProperties".to_string(), Value::Object(rewritten));
        Ok(())
    }

    fn reference(&mut self, map: &Map<String, Value>, path: &str) -> Result<(), Failure> {
        let Some(reference) = map.get("$ref") else { return Ok(()) };
        let Some(text) = reference.as_str() else { return Err(refused(path, "$ref", "expected a string")) };
        if let Some(pointer) = text.strip_prefix('#') {
            self.pending.push(decoded(pointer));
        }
        Ok(())
    }

    fn children(&mut self, map: &mut Map<String, Value>, path: &str) -> Result<(), Failure> {
        for (keyword, value) in map.iter_mut() {
            let path = format!("{path}/{keyword}");
            match keyword.as_str() {
                "additionalProperties" | "additionalItems" => self.schema(value, &path)?,
                "items" if !value.is_array() => self.schema(value, &path)?,
                "items" | "prefixItems" | "allOf" | "anyOf" | "oneOf" => {
                    let Some(parts) = value.as_array_mut() else {
                        return Err(refused(&path, keyword, "expected an array of schemas"));
                    };
                    for (index, part) in parts.iter_mut().enumerate() {
                        self.schema(part, &format!("{path}/{index}"))?;
                    }
                }
                "properties" | "patternProperties" => self.members(keyword, value, &path)?,
                "$defs" | "definitions" if self.definitions => self.members(keyword, value, &path)?,
                _ => (),
            }
        }
        Ok(())
    }

    fn members(&mut self, keyword: &str, value: &mut Value, path: &str) -> Result<(), Failure> {
        let Some(members) = value.as_object_mut() else {
            return Err(refused(path, keyword, "expected an object of schemas"));
        };
        for (name, member) in members.iter_mut() {
            self.schema(member, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")))?;
        }
        Ok(())
    }
}

/// Keywords that are there but restrict nothing, such as `uniqueItems: false`.
fn drop_empty_keywords(map: &mut Map<String, Value>) {
    let restricts_nothing = |value: &Value| *value == Value::Bool(true) || is_empty_object(value);
    let has = |keyword: &str| map.contains_key(keyword);
    let conditional = has("if") && (has("then") || has("else"));
    let contains = has("contains");
    map.retain(|keyword, value| !match keyword.as_str() {
        "uniqueItems" | "not" => *value == Value::Bool(false),
        "if" | "then" | "else" => !conditional,
        "minContains" | "maxContains" => !contains,
        "propertyNames" | "unevaluatedItems" | "unevaluatedProperties" => restricts_nothing(value),
        "dependencies" | "dependentRequired" | "dependentSchemas" => is_empty_object(value),
        _ => false,
    });
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn check_count(map: &mut Map<String, Value>, keyword: &str, path: &str) -> Result<(), Failure> {
    let Some(value) = map.get(keyword) else { return Ok(()) };
    // 2.0 is an integer to JSON Schema.
    let whole = value.as_u64().or_else(|| value.as_f64().filter(|v| v.fract() == 0.0 && *v >= 0.0).map(|v| v as u64));
    match whole {
        Some(count) if count <= MAX_COUNT => {
            map.insert(keyword.to_string(), Value::from(count));
            Ok(())
        }
        Some(_) => Err(refused(path, keyword, &format!("the most that can be counted is {MAX_COUNT}"))),
        None => Err(refused(path, keyword, "expected a whole number of at least 0")),
    }
}

/// An object may repeat a name that it is free to choose, so at most one such name can be demanded.
fn check_required(map: &Map<String, Value>, path: &str) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    if let Some(required) = map.get("required") {
        let list = required.as_array().ok_or_else(|| refused(path, "required", "expected an array of strings"))?;
        for name in list {
            names.insert(name.as_str().ok_or_else(|| refused(path, "required", "expected an array of strings"))?);
        }
    }
    let demanded = map.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    if demanded > names.len() as u64 + 1 {
        let why = "more than one property beyond the required ones cannot be enforced; name them in 'required'";
        return Err(refused(path, "minProperties", why));
    }
    Ok(())
}

/// What cannot be told from its neighbours once written: large integers, and control characters that would need \u.
fn check_literal(value: &Value, keyword: &str, path: &str) -> Result<(), Failure> {
    match value {
        Value::String(text) => {
            if text.chars().any(|c| (c < ' ' && !"\n\r\t\u{8}\u{c}".contains(c)) || c == '\u{7f}') {
                return Err(refused(path, keyword, "strings with control characters cannot be written"));
            }
        }
        Value::Number(number) => {
            if !schema_numbers::is_exact(number) {
                return Err(refused(path, keyword, &format!("{number} has too many digits to be told apart")));
            }
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_literal(item, keyword, path))?,
        Value::Object(map) => map.values().try_for_each(|item| check_literal(item, keyword, path))?,
        Value::Null | Value::Bool(_) => (),
    }
    Ok(())
}

/// `items` given as a list goes with `additionalItems`, which the compiler must meet right after it; `prefixItems` means
/// nothing to drafts before 2020-12.
fn array_keywords(map: &mut Map<String, Value>, path: &str) -> Result<(), Failure> {
    if map.contains_key("prefixItems")
        && (map.get("items").is_some_and(Value::is_array) || map.contains_key("additionalItems"))
    {
        return Err(refused(path, "prefixItems", "cannot stand beside 'items' as a list or 'additionalItems'"));
    }
    if !map.get("items").is_some_and(Value::is_array) {
        map.shift_remove("additionalItems");
        return Ok(());
    }
    let Some(additional) = map.shift_remove("additionalItems") else { return Ok(()) };
    let old = std::mem::take(map);
    for (keyword, value) in old {
        let is_items = keyword == "items";
        map.insert(keyword, value);
        if is_items {
            map.insert("additionalItems".to_string(), additional.clone());
        }
    }
    Ok(())
}

/// A URI fragment without its percent signs.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        match hex {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
