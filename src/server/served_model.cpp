#include "server/served_model.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/sampling_ranges.h"
#include "models/registry.h"

namespace vedette::server {
namespace {

// A number of generation_config.json; absent or null: fallback.
Result<double> config_number(const Json& config, const char* key, double fallback, NumberRange range) {
  const Json* value = config.find(key);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_number() || !(value->as_double() >= range.min && value->as_double() <= range.max))
    return corrupt_file(key,
                        "generation_config.json: {}: expected a number from {} to {}, found {}; correct it, or set the "
                        "value on the command line",
                        key, range.min, range.max, value->dump().substr(0, 60));
  return value->as_double();
}

// generation_config.json's sampling, where it asks for sampling and the command line said nothing.
Status apply_generation_config(const Json& config, GenerationDefaults& defaults) {
  if (!defaults.from_model) return ok_status();
  const Json* samples = config.find("do_sample");
  if (samples == nullptr || samples->is_null()) return ok_status();
  if (!samples->is_bool())
    return corrupt_file("do_sample", "generation_config.json: do_sample: expected true or false, found {}; correct it",
                        samples->dump().substr(0, 60));
  if (!samples->as_bool()) return ok_status();
  VEDETTE_ASSIGN_OR_RETURN(const double temperature,
                           config_number(config, "temperature", 1, sampling_ranges::kTemperature));
  VEDETTE_ASSIGN_OR_RETURN(const double top_k, config_number(config, "top_k", 0, sampling_ranges::kCountOrAll));
  VEDETTE_ASSIGN_OR_RETURN(const double top_p, config_number(config, "top_p", 1, sampling_ranges::kProbability));
  VEDETTE_ASSIGN_OR_RETURN(const double min_p, config_number(config, "min_p", 0, sampling_ranges::kProbability));
  VEDETTE_ASSIGN_OR_RETURN(const double penalty,
                           config_number(config, "repetition_penalty", 1, {0, sampling_ranges::kRepeatPenalty.max}));
  sampling::SamplingParams& params = defaults.sampling;
  if (!defaults.temperature_set) params.temperature = temperature;
  if (!defaults.top_k_set) params.top_k = static_cast<int64_t>(top_k);
  if (!defaults.top_p_set) params.top_p = top_p;
  if (!defaults.min_p_set) params.min_p = min_p;
  if (!defaults.penalty_set && penalty > 0) params.repetition_penalty = penalty;
  return sampling::validate(params);
}

// Further special tokens by name, from tokenizer_config.json: texts only.
Json special_tokens_of(const weights::Checkpoint& checkpoint) {
  Json out = Json::object();
  const auto* tokenizer = std::get_if<weights::HfTokenizer>(&checkpoint.tokenizer);
  if (tokenizer == nullptr || !tokenizer->tokenizer_config.is_object()) return out;
  for (const auto& [key, value] : tokenizer->tokenizer_config.as_object()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) out.set(key, value);
    const Json* content = value.find("content");
    if (content != nullptr && content->is_string()) out.set(key, *content);
  }
  return out;
}

void find_marks(ServedModel& model) {
  model.message_format.reasoning = text::detect_reasoning(model.template_source);
  model.message_format.tools = &text::detect_tool_syntax(model.template_source);
  std::vector<std::string> marks;
  for (const std::string_view mark : model.message_format.tools->markers()) marks.emplace_back(mark);
  if (model.message_format.reasoning) {
    marks.push_back(model.message_format.reasoning->open);
    marks.push_back(model.message_format.reasoning->close);
  }
  for (const std::string& mark : marks) {
    const auto id = model.tokenizer().id_of(mark);
    if (!id || !model.tokenizer().is_special(*id)) continue;
    model.visible_specials.push_back(*id);
    model.special_marks.push_back(mark);
  }
  std::sort(model.visible_specials.begin(), model.visible_specials.end());
}

Status read_template(const weights::Checkpoint& checkpoint, const ServedModelOptions& options, ServedModel& model) {
  if (options.use_template) model.template_source = checkpoint.chat_template;
  if (!options.chat_template.empty()) model.template_source = options.chat_template;
  if (model.template_source.empty()) return ok_status();
  auto parsed = text::ChatTemplate::parse(model.template_source);
  if (!parsed.ok()) {
    Error error = std::move(parsed).error();
    error.field = kTemplateField;
    return error;
  }
  model.chat_template = std::move(*parsed);
  const std::string_view source = model.template_source;
  model.template_knows_tools = source.find("tools") != std::string_view::npos;
  model.template_knows_thinking = source.find("enable_thinking") != std::string_view::npos;
  model.template_knows_effort = source.find("reasoning_effort") != std::string_view::npos;
  return ok_status();
}

// All that prompts take, so that they can be built before the weights are there.
Status read_vocabulary(const weights::Checkpoint& checkpoint, const engine::LoadOptions& load, ServedModel& model) {
  VEDETTE_ASSIGN_OR_RETURN(const models::DecoderSpec spec, models::build_spec(checkpoint));
  VEDETTE_RETURN_IF_ERROR(engine::check_context(load.context_length, spec.context_length));
  if (load.context_length == 1)
    return invalid_request("context_length", "a context of 1 token is of no use, 2 are needed; raise --ctx-size");
  model.vocabulary = spec.vocab_size;
  for (const auto& group : models::plan_kv_groups(spec))
    if (group.window > 0) model.has_sliding_layers = true;
  VEDETTE_ASSIGN_OR_RETURN(model.first_tokenizer, text::Tokenizer::create(checkpoint.tokenizer));
  find_marks(model);
  return ok_status();
}

}  // namespace

Result<const text::GrammarCompiler*> ServedModel::grammars() const {
  const std::scoped_lock lock(grammars_mutex);
  if (!made_grammars) {
    VEDETTE_ASSIGN_OR_RETURN(made_grammars, text::GrammarCompiler::create(tokenizer(), report.eos));
  }
  return made_grammars.get();
}

Result<OpenedModel> open_model(const ServedModelOptions& options) {
  VEDETTE_ASSIGN_OR_RETURN(weights::Checkpoint checkpoint, weights::open_checkpoint(options.path));
  auto model = std::make_shared<ServedModel>();
  model->id = options.id;
  model->aliases = options.aliases;
  model->path = options.path;
  model->format = checkpoint.format;
  GenerationDefaults defaults = options.defaults;
  model->before_submit = options.before_submit;
  VEDETTE_RETURN_IF_ERROR(read_template(checkpoint, options, *model));
  VEDETTE_RETURN_IF_ERROR(apply_generation_config(checkpoint.generation_config, defaults));
  model->first_defaults = std::make_shared<const GenerationDefaults>(std::move(defaults));
  model->defaults = model->first_defaults;
  model->special_tokens = special_tokens_of(checkpoint);
  VEDETTE_RETURN_IF_ERROR(read_vocabulary(checkpoint, options.load, *model));
  return OpenedModel{std::move(checkpoint), std::move(model)};
}

Result<std::shared_ptr<ServedModel>> load_model(OpenedModel opened, const ServedModelOptions& options) {
  const weights::Checkpoint& checkpoint = opened.checkpoint;
  const std::shared_ptr<ServedModel> model = std::move(opened.model);
  engine::LoadOptions load = options.load;
  if (options.before_load) VEDETTE_RETURN_IF_ERROR(options.before_load(checkpoint, *model, load));
  text::Tokenizer tokenizer = std::move(*model->first_tokenizer);
  VEDETTE_ASSIGN_OR_RETURN(engine::LoadedModel loaded, engine::load_model(checkpoint, load, std::move(tokenizer)));
  model->first_tokenizer.reset();
  model->report = std::move(loaded.report);
  model->family = model->report.family;
  model->storage = std::move(loaded.storage);
  model->engine = std::move(loaded.engine);
  model->loaded_at = static_cast<int64_t>(std::time(nullptr));
  if (options.constrains) {
    if (const auto made = model->grammars(); !made.ok()) return made.error();
  }
  return model;
}

Result<std::shared_ptr<ServedModel>> serve_model(const ServedModelOptions& options) {
  VEDETTE_ASSIGN_OR_RETURN(OpenedModel opened, open_model(options));
  return load_model(std::move(opened), options);
}

}  // namespace vedette::server
