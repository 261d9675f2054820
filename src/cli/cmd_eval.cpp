// `eval`: perplexity and divergence over a text, or the logits of given ids.
//
// Windows as llama-perplexity takes them: the text is encoded once and cut into runs of `window` tokens; where the
// model wants a BOS token, it replaces the first token of each run; the tokens after position window/2 are scored.
#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "base/json.h"
#include "cli/context.h"
#include "cli/divergence.h"
#include "cli/fetch_model.h"
#include "cli/logits_file.h"
#include "cli/prompt.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "cli/tidy_end.h"
#include "engine/evaluate.h"
#include "engine/load.h"
#include "hub/model_store.h"

namespace vedette::cli {
namespace {

struct EvalSettings {
  ModelSettings model;
  engine::LoadOptions load;
  std::string text_file, against, logits_file;
  bool windows_given = false;
  std::optional<std::string> against_compute;
  std::vector<int32_t> ids;
  int64_t window = 512;
  int64_t max_windows = 0;
  bool json = false, quiet = false;
};

// One model ready to evaluate, with its text.
struct Subject {
  std::string name;
  weights::Checkpoint checkpoint;
  engine::LoadedDecoder loaded;
};

Result<std::vector<int32_t>> parse_ids(const std::string& list) {
  std::vector<int32_t> ids;
  size_t at = 0;
  while (at <= list.size()) {
    size_t end = std::min(list.find(',', at), list.size());
    std::string_view word = std::string_view(list).substr(at, end - at);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    int32_t id = 0;
    auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size() || id < 0)
      return invalid_request("--ids", "--ids: expected token ids separated by commas, found '{}' at place {}",
                             word.substr(0, 40), ids.size() + 1);
    ids.push_back(id);
    at = end + 1;
  }
  return ids;
}

bool is_compute_mode(const std::string& text) {
  return text == "i8" || text == "i16" || text == "f32";
}

Status check_combination(const EvalSettings& settings, bool has_ids) {
  if (has_ids && !settings.text_file.empty())
    return invalid_request("--ids", "--perplexity and --ids exclude each other; choose one");
  if (has_ids && settings.windows_given)
    return invalid_request("--window", "--window and --max-windows belong to --perplexity; leave them out with --ids");
  if (has_ids == !settings.text_file.empty())
    return invalid_request("--perplexity", "eval needs either --perplexity FILE or --ids LIST with --logits-out FILE");
  if (has_ids == settings.logits_file.empty())
    return invalid_request("--logits-out", "--ids and --logits-out go together; give both or neither");
  if (!settings.against.empty() && has_ids)
    return invalid_request("--kl-against",
                           "--kl-against compares over a text; give --perplexity FILE in place of --ids");
  if (settings.against_compute && (settings.against.empty() || is_compute_mode(settings.against)))
    return invalid_request("--against-compute", "--against-compute belongs to a model named by --kl-against");
  return ok_status();
}

Result<EvalSettings> read_eval(const OptionValues& options) {
  EvalSettings settings;
  settings.model = read_model(options);
  VEDETTE_ASSIGN_OR_RETURN(settings.load, read_compute(options));
  settings.text_file = options.text("--perplexity").value_or("");
  settings.against = options.text("--kl-against").value_or("");
  if (options.given("--kl-against") && settings.against.empty())
    return invalid_request("--kl-against", "--kl-against: expected a model or i8, i16, f32, found an empty text");
  settings.windows_given = options.given("--window") || options.given("--max-windows");
  settings.against_compute = options.text("--against-compute");
  settings.logits_file = options.text("--logits-out").value_or("");
  settings.window = options.integer("--window").value_or(512);
  settings.max_windows = options.integer("--max-windows").value_or(0);
  settings.json = options.flag("--json");
  settings.quiet = read_verbosity(options).quiet;
  const auto ids = options.text("--ids");
  if (ids) {
    VEDETTE_ASSIGN_OR_RETURN(settings.ids, parse_ids(*ids));
  }
  VEDETTE_RETURN_IF_ERROR(check_combination(settings, ids.has_value()));
  return settings;
}

// The context is as long as what is evaluated; --ctx-size is no option here.
Error with_own_option(Error error, const EvalSettings& settings) {
  constexpr std::string_view kOther = "lower --ctx-size";
  if (const size_t at = error.message.find(kOther); at != std::string::npos)
    error.message.replace(at, kOther.size(), settings.ids.empty() ? "lower --window" : "shorten --ids");
  return error;
}

Result<Subject> load_subject(const EvalSettings& settings, const std::string& model, engine::LoadOptions load,
                             int64_t tokens) {
  Subject subject;
  VEDETTE_ASSIGN_OR_RETURN(hub::ResolvedModel resolved, find_model(model, settings.model, settings.quiet));
  subject.name = resolved.name;
  VEDETTE_ASSIGN_OR_RETURN(subject.checkpoint, weights::open_checkpoint(resolved.path));
  load.max_sequences = 1;
  load.context_length = tokens;
  load.prefill_chunk = static_cast<int>(std::min<int64_t>(load.prefill_chunk, tokens));
  load.max_logit_rows = load.prefill_chunk;
  ProgressBar bar("loading " + subject.name, !settings.quiet);
  load.progress = [&](int64_t done, int64_t total) { bar.update(done, total); };
  auto loaded = engine::load_decoder(subject.checkpoint, load);
  if (!loaded.ok()) return with_own_option(std::move(loaded).error(), settings);
  subject.loaded = std::move(*loaded);
  return subject;
}

std::string subject_line(const Subject& subject) {
  const engine::LoadReport& report = subject.loaded.report;
  return fmt::format("{} ({}): compute {}, {}, {} threads, K/V {}", subject.name, report.family,
                     ops::to_string(report.backend.compute), report.backend.isa, report.backend.threads,
                     ops::to_string(report.kv_type));
}

// Encoded text cut into windows.
struct Windows {
  std::vector<int32_t> ids;
  int64_t window = 0, count = 0;
  std::optional<int32_t> bos;

  std::vector<int32_t> at(int64_t index) const {
    std::vector<int32_t> run(ids.begin() + index * window, ids.begin() + (index + 1) * window);
    if (bos) run.front() = *bos;
    return run;
  }
};

Result<Windows> cut_windows(const EvalSettings& settings, const weights::Checkpoint& checkpoint, int64_t vocab_size) {
  VEDETTE_ASSIGN_OR_RETURN(std::string text, read_prompt_file(settings.text_file, "--perplexity"));
  VEDETTE_RETURN_IF_ERROR(check_prompt_text(text, settings.text_file));
  VEDETTE_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::create(checkpoint.tokenizer));
  Windows windows;
  windows.window = settings.window;
  VEDETTE_ASSIGN_OR_RETURN(windows.ids, tokenizer.encode(text));
  if (!windows.ids.empty() && tokenizer.bos() == windows.ids.front()) windows.bos = tokenizer.bos();
  for (const int32_t id : windows.ids) {
    if (id >= vocab_size)
      return corrupt_file("", "the checkpoint's tokenizer made token id {} of the text, the model has ids from 0 to {}",
                          id, vocab_size - 1);
  }
  const int64_t tokens = static_cast<int64_t>(windows.ids.size());
  windows.count = tokens / settings.window;
  if (windows.count == 0) {
    return invalid_request("window",
                           "{}: the text has {} tokens, a window needs {}; lower --window or take a longer text",
                           settings.text_file, tokens, settings.window);
  }
  if (settings.max_windows > 0) windows.count = std::min(windows.count, settings.max_windows);
  return windows;
}

struct Scores {
  Perplexity test, base;
  Divergence divergence;
};

// Base logits of one window's scored half are kept, then the model under test is compared row by row.
Status score_window(const std::vector<int32_t>& ids, int chunk, Subject& test, Subject* base, Scores& scores) {
  const int64_t first = static_cast<int64_t>(ids.size()) / 2;
  const int64_t last = static_cast<int64_t>(ids.size()) - 1;  // predicts nothing
  std::vector<float> kept;
  std::vector<double> base_row, test_row;
  auto next = [&](int64_t row) { return ids[static_cast<size_t>(row) + 1]; };
  if (base != nullptr) {
    VEDETTE_RETURN_IF_ERROR(engine::evaluate(
        *base->loaded.decoder, ids, chunk,
        [&](int64_t row, std::span<const float> logits) {
          if (row >= first && row < last) kept.insert(kept.end(), logits.begin(), logits.end());
          return ok_status();
        },
        first, base->loaded.config.health));
  }
  return engine::evaluate(
      *test.loaded.decoder, ids, chunk,
      [&](int64_t row, std::span<const float> logits) {
        if (row < first || row >= last) return ok_status();
        log_softmax(logits, test_row);
        scores.test.add(test_row, next(row));
        if (base == nullptr) return ok_status();
        const auto base_logits =
            std::span(kept).subspan(static_cast<size_t>(row - first) * logits.size(), logits.size());
        log_softmax(base_logits, base_row);
        scores.base.add(base_row, next(row));
        scores.divergence.add(base_logits, base_row, test_row);
        return ok_status();
      },
      first, test.loaded.config.health);
}

Json scores_json(const EvalSettings& settings, const Windows& windows, const Subject& test, const Subject* base,
                 const Scores& scores) {
  auto subject = [](const Subject& of, const Perplexity& perplexity) {
    Json out = Json::object();
    out.set("model", of.name);
    out.set("compute", ops::to_string(of.loaded.report.backend.compute));
    out.set("isa", of.loaded.report.backend.isa);
    out.set("threads", of.loaded.report.backend.threads);
    out.set("kv_type", ops::to_string(of.loaded.report.kv_type));
    out.set("perplexity", perplexity.value());
    out.set("mean_loss", perplexity.mean_loss());
    return out;
  };
  Json out = subject(test, scores.test);
  out.set("text", settings.text_file);
  out.set("window", windows.window);
  out.set("windows", windows.count);
  out.set("scored_tokens", scores.test.count());
  if (base == nullptr) return out;
  out.set("against", subject(*base, scores.base));
  out.set("mean_kl", scores.divergence.mean());
  out.set("kl_standard_error", scores.divergence.standard_error());
  out.set("max_kl", scores.divergence.maximum());
  out.set("same_top", scores.divergence.same_top_fraction());
  out.set("differing_tops", scores.divergence.differing_tops());
  out.set("largest_margin", scores.divergence.largest_margin());
  return out;
}

std::string scores_text(const Windows& windows, const Subject* base, const Scores& scores) {
  std::string out = fmt::format("Perplexity {:.6f} over {} tokens ({} windows of {})\n", scores.test.value(),
                                scores.test.count(), windows.count, windows.window);
  if (base == nullptr) return out;
  const Divergence& kl = scores.divergence;
  out += fmt::format(
      "Perplexity of the other {:.6f}\nMean KL {:.4e} +- {:.1e}, maximum {:.4e}\nSame top token {:.3f} % ({} of {} "
      "differ, "
      "largest "
      "margin there {:.5f})\n",
      scores.base.value(), kl.mean(), kl.standard_error(), kl.maximum(), 100 * kl.same_top_fraction(),
      kl.differing_tops(), kl.count(), kl.largest_margin());
  return out;
}

// What --kl-against names: another compute mode of the same model, or another model.
Result<Subject> load_other(const EvalSettings& settings) {
  engine::LoadOptions load = settings.load;
  const bool same_model = is_compute_mode(settings.against);
  const std::string mode = same_model ? settings.against : settings.against_compute.value_or("f32");
  VEDETTE_ASSIGN_OR_RETURN(load.compute, parse_compute(mode));
  load.kv_type.reset();
  return load_subject(settings, same_model ? settings.model.model : settings.against, load, settings.window);
}

Result<int> run_text(const EvalSettings& settings) {
  VEDETTE_ASSIGN_OR_RETURN(Subject test, load_subject(settings, settings.model.model, settings.load, settings.window));
  VEDETTE_ASSIGN_OR_RETURN(const Windows windows,
                           cut_windows(settings, test.checkpoint, test.loaded.decoder->spec().vocab_size));
  std::optional<Subject> base;
  if (!settings.against.empty()) {
    VEDETTE_ASSIGN_OR_RETURN(base, load_other(settings));
    const int64_t ours = test.loaded.decoder->spec().vocab_size, theirs = base->loaded.decoder->spec().vocab_size;
    if (ours != theirs)
      return invalid_request("--kl-against", "{} has a vocabulary of {}, {} one of {}; they cannot be compared",
                             test.name, ours, base->name, theirs);
  }
  if (!settings.quiet) {
    print_notice(subject_line(test));
    if (base) print_notice("against " + subject_line(*base));
  }
  Scores scores;
  ProgressBar bar("windows", !settings.quiet);
  for (int64_t i = 0; i < windows.count; ++i) {
    VEDETTE_RETURN_IF_ERROR(
        score_window(windows.at(i), settings.load.prefill_chunk, test, base ? &*base : nullptr, scores));
    bar.update(i + 1, windows.count);
  }
  const Subject* other = base ? &*base : nullptr;
  VEDETTE_RETURN_IF_ERROR(print(settings.json ? scores_json(settings, windows, test, other, scores).dump() + "\n"
                                              : scores_text(windows, other, scores)));
  return kExitDone;
}

Result<int> run_ids(const EvalSettings& settings, TidyEnd& end) {
  const int64_t tokens = static_cast<int64_t>(settings.ids.size());
  VEDETTE_ASSIGN_OR_RETURN(Subject test, load_subject(settings, settings.model.model, settings.load, tokens));
  if (!settings.quiet) print_notice(subject_line(test));
  const int64_t vocab = test.loaded.decoder->spec().vocab_size;
  for (size_t i = 0; i < settings.ids.size(); ++i) {
    if (settings.ids[i] >= vocab)
      return invalid_request("ids", "--ids: token id {} at place {}, {} has ids from 0 to {}", settings.ids[i], i + 1,
                             test.name, vocab - 1);
  }
  VEDETTE_ASSIGN_OR_RETURN(LogitsFile file, LogitsFile::create(settings.logits_file, tokens, vocab, end));
  VEDETTE_RETURN_IF_ERROR(engine::evaluate(
      *test.loaded.decoder, settings.ids, settings.load.prefill_chunk,
      [&](int64_t, std::span<const float> logits) { return file.append(logits); }, 0, test.loaded.config.health));
  VEDETTE_RETURN_IF_ERROR(file.close());
  Json out = Json::object();
  out.set("logits", settings.logits_file);
  out.set("tokens", tokens);
  out.set("vocab", vocab);
  out.set("compute", ops::to_string(test.loaded.report.backend.compute));
  out.set("isa", test.loaded.report.backend.isa);
  VEDETTE_RETURN_IF_ERROR(
      print(settings.json ? out.dump() + "\n"
                          : fmt::format("{}: logits [{}, {}]\n", path_text(settings.logits_file), tokens, vocab)));
  return kExitDone;
}

}  // namespace

Result<int> run_eval(Context& context) {
  VEDETTE_ASSIGN_OR_RETURN(const EvalSettings settings, read_eval(context.options));
  VEDETTE_RETURN_IF_ERROR(start(context));
  TidyEnd end;
  return settings.ids.empty() ? run_text(settings) : run_ids(settings, end);
}

}  // namespace vedette::cli
