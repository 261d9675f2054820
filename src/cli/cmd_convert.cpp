// `convert`: any readable checkpoint as MLX-layout safetensors.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "cli/context.h"
#include "cli/fetch_model.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "cli/tidy_end.h"
#include "hub/model_store.h"
#include "weights/checkpoint.h"
#include "weights/writer.h"

namespace vedette::cli {
namespace {

std::optional<ops::DType> parse_dtype(const std::optional<std::string>& name) {
  if (name == "f32") return ops::DType::kF32;
  if (name == "f16") return ops::DType::kF16;
  if (name == "bf16") return ops::DType::kBF16;
  return std::nullopt;
}

Result<weights::ConvertOptions> read_conversion(const OptionValues& options) {
  weights::ConvertOptions conversion;
  if (auto bits = options.integer("--q-bits")) conversion.bits = static_cast<int>(*bits);
  if (auto group = options.text("--q-group-size")) conversion.group = std::stoi(*group);
  conversion.dtype = parse_dtype(options.text("--dtype"));
  if (conversion.bits == 7) return invalid_request("--q-bits", "--q-bits: expected 2, 3, 4, 5, 6 or 8, found 7");
  if (conversion.group && conversion.dtype && !conversion.bits)
    return invalid_request("--q-group-size",
                           "--dtype without --q-bits dequantizes everything; leave out --q-group-size");
  return conversion;
}

}  // namespace

Result<int> run_convert(Context& context) {
  const ModelSettings settings = read_model(context.options);
  const std::string output = context.options.text("--output").value_or("");
  VEDETTE_ASSIGN_OR_RETURN(weights::ConvertOptions conversion, read_conversion(context.options));
  const bool quiet = read_verbosity(context.options).quiet;
  VEDETTE_RETURN_IF_ERROR(start(context));
  TidyEnd end;
  conversion.begun = [&](const std::string& folder) { end.set_unfinished(folder); };
  if (output.empty())
    return invalid_request("--output", "no output named; give --output DIR, a folder that does not exist");
  std::error_code error;
  const std::filesystem::path target(output);
  if (std::filesystem::is_symlink(target, error) && !std::filesystem::exists(target, error))
    return invalid_request("--output", "--output: {} is a link to {}, which does not exist; name a new folder", output,
                           std::filesystem::read_symlink(target, error).string());

  VEDETTE_ASSIGN_OR_RETURN(hub::ResolvedModel resolved, find_model(settings.model, settings, quiet));
  VEDETTE_ASSIGN_OR_RETURN(weights::Checkpoint checkpoint, weights::open_checkpoint(resolved.path));
  {
    ProgressBar bar("converting " + resolved.name, !quiet);
    VEDETTE_RETURN_IF_ERROR(weights::convert_checkpoint(checkpoint, output, conversion,
                                                        [&](int64_t done, int64_t total) { bar.update(done, total); }));
  }
  VEDETTE_RETURN_IF_ERROR(print(path_text(output) + "\n"));
  return kExitDone;
}

}  // namespace vedette::cli
