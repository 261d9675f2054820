//! Tokenizers, chat templates and grammars behind the C header `include/vedette_text.h`.
#![allow(clippy::missing_safety_doc)] // each contract stands in the header

mod border;
mod bpe;
mod chat_template;
mod grammar;
mod python;
mod tokenizer;

/// Panics are reported through statuses; without this hook each would also print to the terminal.
pub(crate) fn quiet_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::env::var_os("RUST_BACKTRACE").is_some() {
                previous(info);
            }
        }));
    });
}
