//! Keeps the values that templates build shallow: printing, comparing and freeing a value recurse over it.
//!
//! Only an assignment can make a value deeper without end, a loop or a long template repeating it. Each is sent through
//! one of the two filters here. They refuse a value that is nested too deep and write out what is computed when read
//! (the sum or a slice of lists), since such values refer to each other in chains. What a namespace keeps lives
//! beyond its scope, so it must be plain data: a namespace in a namespace could contain itself.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// Requests nest up to 128 levels.
const MAX_DEPTH: usize = 160;

pub fn bounded(state: &State, value: Value) -> Result<Value, Error> {
    let mut walk = Walk { state, kept: false, seen: 0 };
    Ok(walk.settle(&value, 0)?.unwrap_or(value))
}

pub fn kept(state: &State, value: Value) -> Result<Value, Error> {
    let mut walk = Walk { state, kept: true, seen: 0 };
    Ok(walk.settle(&value, 0)?.unwrap_or(value))
}

struct Walk<'a, 'template, 'environment> {
    state: &'a State<'template, 'environment>,
    kept: bool,
    seen: u64,
}

fn refuse(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

impl Walk<'_, '_, '_> {
    /// What stands for the value, or nothing if it can stay as it is.
    fn settle(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        self.seen += 1;
        if self.seen & 7 == 0 {
            self.state.consume_fuel(1)?;
        }
        if depth > MAX_DEPTH {
            return Err(refuse(format!("set: expected a value nested at most {MAX_DEPTH} deep, found a deeper one")));
        }
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => self.settle_list(value, depth),
            ValueKind::Map => self.settle_map(value, depth),
            ValueKind::Plain if self.kept => {
                Err(refuse("set: a namespace can keep texts, numbers, lists and mappings, found a function"))
            }
            _ => Ok(None),
        }
    }

    fn settle_list(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        let tuple = value.downcast_object_ref::<Tuple>().is_some();
        let mut changed = !tuple && value.downcast_object_ref::<Vec<Value>>().is_none();
        let mut items = Vec::with_capacity(value.len().unwrap_or(0).min(1 << 16));
        for item in value.try_iter()? {
            let settled = self.settle(&item, depth + 1)?;
            changed |= settled.is_some();
            items.push(settled.unwrap_or(item));
        }
        Ok(changed.then(|| if tuple { Value::from(Tuple::new(items)) } else { Value::from(items) }))
    }

    fn settle_map(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        let name = value.as_object().map_or("", |object| object.type_name());
        let live = ["Namespace", "Loop", "Module", "Macro"].iter().any(|live| name.ends_with(live));
        if live && self.kept {
            return Err(refuse(
                "set: a namespace can keep texts, numbers, lists and mappings, found a namespace, loop or macro",
            ));
        }
        let mut changed = !(live || name.contains("IndexMap") || name.contains("BTreeMap"));
        let mut pairs = Vec::new();
        for key in value.try_iter()? {
            let item = value.get_item(&key)?;
            let settled_key = self.settle(&key, depth + 1)?;
            let settled = self.settle(&item, depth + 1)?;
            changed |= settled_key.is_some() || settled.is_some();
            pairs.push((settled_key.unwrap_or(key), settled.unwrap_or(item)));
        }
        Ok((changed && !live).then(|| Value::from_pairs(pairs)))
    }
}
