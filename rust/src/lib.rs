//! Tokenizers, chat templates and grammars behind the C header `include/vedette_text.h`.
#![allow(clippy::missing_safety_doc)] // each contract stands in the header

mod allocation;
mod border;
mod bpe;
mod chat_template;
mod file_model;
mod grammar;
mod merging;
mod python;
mod schema_check;
mod schema_numbers;
mod schema_pattern;
mod template_source;
mod tokenizer;
mod tokenizer_file;
mod values;
mod word_table;
