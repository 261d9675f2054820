//! Numbers in schemas. The compiler reads each as a double, so bounds that are none move inwards.

use crate::border::Failure;
use crate::schema_check::refused;
use serde_json::{Map, Number, Value};

/// Integer ranges are built over 64 bits.
const MAX_BOUND: f64 = 9.2e18;
/// A range of decimals is spelled out digit by digit.
const MAX_EXPONENT: i32 = 18;

/// Whether a literal is the only number that its double stands for.
pub fn is_exact(number: &Number) -> bool {
    if let Some(value) = number.as_i64() {
        return value.unsigned_abs() <= 1 << 53;
    }
    number.as_f64().is_some_and(has_short_form)
}

/// Whether the double is zero or of a size whose digits fit a pattern.
fn has_short_form(value: f64) -> bool {
    value == 0.0 || (value.abs() < MAX_BOUND && value.abs() > 10f64.powi(-MAX_EXPONENT))
}

pub fn bounds(map: &mut Map<String, Value>, path: &str) -> Result<(), Failure> {
    draft4_exclusive(map, "minimum", "exclusiveMinimum");
    draft4_exclusive(map, "maximum", "exclusiveMaximum");
    for (keyword, up) in
        [("minimum", true), ("exclusiveMinimum", true), ("maximum", false), ("exclusiveMaximum", false)]
    {
        let Some(value) = map.get(keyword) else { continue };
        let Some(number) = value.as_number() else { return Err(refused(path, keyword, "expected a number")) };
        let bound = inward(number, up);
        // Beyond what 64 bits hold, a bound that excludes them all cannot be met, and one that excludes none is loose.
        if (bound > MAX_BOUND) == up && bound.abs() > MAX_BOUND {
            return Err(refused(
                path,
                keyword,
                &format!("{number} is out of the range of numbers that can be written"),
            ));
        }
        if !has_short_form(bound) && bound.abs() < 1.0 {
            return Err(refused(path, keyword, &format!("{number} is too small to be told from 0")));
        }
        if number.as_f64() != Some(bound) {
            map.insert(keyword.to_string(), Value::from(bound));
        }
    }
    Ok(())
}

/// The nearest double that is not beyond the bound.
fn inward(number: &Number, up: bool) -> f64 {
    let value = number.as_f64().unwrap_or(f64::NAN);
    let exact = number.as_i128();
    match exact {
        Some(integer) if up && (value as i128) < integer => value.next_up(),
        Some(integer) if !up && (value as i128) > integer => value.next_down(),
        _ => value,
    }
}

/// Draft 4 wrote exclusive bounds as a boolean beside the bound.
fn draft4_exclusive(map: &mut Map<String, Value>, bound: &str, exclusive: &str) {
    let Some(flag) = map.get(exclusive).and_then(Value::as_bool) else { return };
    map.shift_remove(exclusive);
    if flag {
        if let Some(value) = map.shift_remove(bound) {
            map.insert(exclusive.to_string(), value);
        }
    }
}

/// All divisors of a document. The compiler may have to combine any of them, in 32 bits.
#[derive(Default)]
pub struct Multiples {
    /// Values as coefficient and number of decimals, and the path of the first.
    values: Vec<(u64, u32)>,
    path: String,
}

impl Multiples {
    pub fn add(&mut self, map: &Map<String, Value>, path: &str) -> Result<(), Failure> {
        let Some(value) = map.get("multipleOf") else { return Ok(()) };
        let number = value.as_f64().filter(|v| *v > 0.0);
        let number = number.ok_or_else(|| refused(path, "multipleOf", "expected a number above 0"))?;
        let mut scaled = number;
        let mut decimals = 0;
        while scaled.fract() != 0.0 && decimals < 10 {
            scaled *= 10.0;
            decimals += 1;
        }
        if scaled.fract() != 0.0 || scaled > f64::from(u32::MAX) {
            return Err(refused(path, "multipleOf", &format!("{number} has too many digits")));
        }
        if self.values.is_empty() {
            self.path = path.to_string();
        }
        self.values.push((scaled as u64, decimals));
        Ok(())
    }

    pub fn check(&self) -> Result<(), Failure> {
        let decimals = self.values.iter().map(|value| value.1).max().unwrap_or(0);
        let scaled = |value: &(u64, u32)| u128::from(value.0) * 10u128.pow(decimals - value.1);
        let largest = self.values.iter().map(scaled).max().unwrap_or(0);
        let mut common = 1u128;
        for value in self.values.iter().map(scaled) {
            common = common / gcd(common, value) * value;
            if self.values.len() > 1 && common * largest > u128::from(u32::MAX) {
                return Err(refused(&self.path, "multipleOf", "the divisors of this schema are too large to combine"));
            }
        }
        Ok(())
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// Bounds of the integer formats that OpenAPI and schema generators of typed languages write.
pub fn integer_format(name: &str) -> Option<(i128, i128)> {
    let bits = name.trim_start_matches('u').strip_prefix("int")?;
    let bits: u32 = match bits {
        "8" | "16" | "32" | "64" => bits.parse().ok()?,
        "" => 64,
        _ => return None,
    };
    Some(match name.starts_with('u') {
        true => (0, (1 << bits) - 1),
        false => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    })
}

/// Narrows `minimum` and `maximum` to a range.
pub fn narrow(map: &mut Map<String, Value>, (low, high): (i128, i128)) {
    let current = |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_f64);
    if current(map, "minimum").is_none_or(|minimum| minimum < low as f64) {
        map.insert("minimum".to_string(), Value::from(low as i64));
    }
    if current(map, "maximum").is_none_or(|maximum| maximum > high as f64) {
        map.insert("maximum".to_string(), Value::from(high as u64));
    }
}
