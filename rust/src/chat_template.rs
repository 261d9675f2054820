//! Chat templates as transformers renders them: its Jinja environment, rebuilt on minijinja.

use crate::border::{borrow, guard, on_large_stack, on_large_stack_limited, Failure, Limits, VtBytes, RAISED};
use crate::{python, template_source, values};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "chat template";

/// Work allowed for one rendering; a 100,000-token conversation needs about a hundredth.
const FUEL: u64 = 10_000_000;

/// Time and memory allowed for one rendering: steps of very different size cost the same fuel.
const LIMITS: Limits = Limits { time: Duration::from_secs(10), memory: 1 << 30 };

/// The same of a template that has been beyond them: what a rendering that is given up holds is lost until the process
/// ends, so it may not hold much again. A 100,000-token conversation needs less.
const WARY_LIMITS: Limits = Limits { time: Duration::from_secs(2), memory: 64 << 20 };

/// A template as its owner beyond the border holds it. A rendering holds it as well, for as long as it runs.
pub struct VtTemplate(Arc<Template>);

struct Template {
    environment: Environment<'static>,
    /// As given, to show lines of.
    source: String,
    /// Whether a rendering was given up.
    given_up: AtomicBool,
}

/// Marks an error as the template's own raise_exception.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(state: &State, message: Value) -> Result<Value, Error> {
    let text = python::message(state, &message)?;
    Err(Error::new(ErrorKind::InvalidOperation, text.clone()).with_source(Raised(text)))
}

fn environment(source: String, syntax: &SyntaxConfig) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_debug(true);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(python::method);
    environment.set_fuel(Some(FUEL));
    environment.add_filter("tojson", python::tojson);
    environment.add_function("raise_exception", raise_exception);
    // In Python a text and a mapping are sequences too, and None cannot be iterated over.
    environment.add_test("sequence", |value: &Value| {
        use minijinja::value::ValueKind::{Map, Seq, String};
        value.is_undefined() || matches!(value.kind(), Seq | String | Map)
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_filter(template_source::BOUNDED, values::bounded);
    environment.add_filter(template_source::KEPT, values::kept);
    environment.set_syntax(syntax.clone());
    environment.add_template_owned(NAME, source)?;
    Ok(environment)
}

impl Template {
    fn parse(source: &[u8]) -> Result<Template, Failure> {
        let source = std::str::from_utf8(source).map_err(|error| {
            let at = error.valid_up_to();
            Failure::invalid(format!("expected UTF-8 text, found an invalid byte at {at}; save the template as UTF-8"))
        })?;
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
        template_source::check(source, &syntax)?;
        let scoped = template_source::scope_generation_blocks(source, &syntax);
        // The text as given is read first, for the positions in its errors.
        let bounded = template_source::bound_assignments(&scoped, &syntax);
        let environment =
            environment(scoped, &syntax).and_then(|_| environment(bounded, &syntax)).map_err(|error| {
                let line = error.line().unwrap_or(1);
                let column = error.range().map_or(1, |range| column_of(source, range.start));
                Failure::invalid(format!("line {line}, column {column}: {}", describe(&error)))
            })?;
        Ok(Template { environment, source: source.to_string(), given_up: AtomicBool::new(false) })
    }

    fn render(&self, variables: &[u8], now: i64) -> Result<String, Failure> {
        let clock = Value::from_function(move |format: Cow<'_, str>| strftime(&format, now));
        let mut context = vec![(Value::from("strftime_now"), clock)];
        let variables: Value = serde_json::from_slice(variables)?;
        for name in variables.try_iter()? {
            let value = variables.get_item(&name)?;
            context.push((name, value));
        }
        let context = Value::from_pairs(context);
        let template = self.environment.get_template(NAME)?;
        template.render(context).map_err(|error| {
            if let Some(text) = raised_text(&error) {
                return Failure { status: RAISED, text };
            }
            let line = error.line().unwrap_or(0);
            let excerpt: String =
                self.source.lines().nth(line.saturating_sub(1)).unwrap_or("").trim().chars().take(120).collect();
            Failure::invalid(format!("line {line}: {} in: {excerpt}", describe(&error)))
        })
    }
}

/// One line: kind and detail, and those of the errors beneath.
fn describe(error: &Error) -> String {
    let mut text = error.kind().to_string();
    if let Some(detail) = error.detail() {
        text = format!("{text}: {detail}");
    }
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let line = inner.to_string();
        text = format!("{text}; {}", line.lines().next().unwrap_or(""));
        source = inner.source();
    }
    text.replace('\n', " ")
}

fn raised_text(error: &Error) -> Option<String> {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(Raised(text)) = inner.downcast_ref::<Raised>() {
            return Some(text.clone());
        }
        source = inner.source();
    }
    None
}

fn column_of(source: &str, offset: usize) -> usize {
    let before = source.get(..offset).unwrap_or(source);
    before.chars().rev().take_while(|c| *c != '\n').count() + 1
}

/// strftime of local time; negative seconds mean the clock's.
fn strftime(format: &str, now: i64) -> Result<String, Error> {
    let wrong = |text: &str| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {text}"));
    if format.is_empty() {
        return Ok(String::new());
    }
    let seconds = if now >= 0 {
        now
    } else {
        let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        elapsed.map_or(0, |elapsed| elapsed.as_secs() as i64)
    };
    let pattern = std::ffi::CString::new(format).map_err(|_| wrong("format holds a zero byte"))?;
    let mut buffer = vec![0u8; 256 + format.len().saturating_mul(4).min(1 << 16)];
    // SAFETY: tm is written by localtime_r before use, and strftime is told the buffer's size.
    let written = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&seconds, &mut tm).is_null() {
            return Err(wrong("the clock cannot be read"));
        }
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), pattern.as_ptr(), &tm)
    };
    buffer.truncate(written);
    String::from_utf8(buffer).map_err(|_| wrong("the result is not UTF-8"))
}

#[no_mangle]
pub unsafe extern "C" fn vt_template_parse(
    source: *const u8,
    size: usize,
    out: *mut *mut VtTemplate,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || {
            let source = borrow(source, size);
            on_large_stack(|| Template::parse(source))
        },
        |template| out.write(Box::into_raw(Box::new(VtTemplate(Arc::new(template))))),
    )
}

#[no_mangle]
pub unsafe extern "C" fn vt_template_free(template: *mut VtTemplate) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}

#[no_mangle]
pub unsafe extern "C" fn vt_template_render(
    template: *const VtTemplate,
    variables: *const u8,
    size: usize,
    now: i64,
    out: *mut VtBytes,
    error: *mut VtBytes,
) -> i32 {
    guard(
        error,
        || {
            let template = &(*template).0;
            let limits = if template.given_up.load(Ordering::Relaxed) { WARY_LIMITS } else { LIMITS };
            let (own, variables) = (template.clone(), borrow(variables, size).to_vec());
            on_large_stack_limited(limits, &template.given_up, move || own.render(&variables, now))
        },
        |text| out.write(text.into_bytes().into()),
    )
}
