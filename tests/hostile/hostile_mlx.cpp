#include "hostile_case.h"

namespace vedette::hostile {
namespace {

using wt::SafetensorsBuilder;

std::string zeros(size_t bytes) {
  return std::string(bytes, '\0');
}

// A quantized weight of 2 rows x 64 columns at 4 bits, groups of 64, with parts changed by `scales` and `biases`.
std::string triple(const std::vector<int64_t>& weight = {2, 8}, const std::vector<int64_t>& scales = {2, 1},
                   const std::vector<int64_t>& biases = {2, 1}, const std::string& side = "BF16") {
  const auto bytes = [](const std::vector<int64_t>& shape, int64_t unit) {
    for (const int64_t d : shape) unit *= d;
    return zeros(static_cast<size_t>(unit));
  };
  const int64_t unit = side == "F32" || side == "I32" ? 4 : 2;
  return SafetensorsBuilder()
      .add("l.weight", "U32", weight, bytes(weight, 4))
      .add("l.scales", side, scales, bytes(scales, unit))
      .add("l.biases", side, biases, bytes(biases, unit))
      .build();
}

Case with(const std::string& name, const std::string& config, const std::string& file,
          const std::vector<std::string>& expected) {
  return {name, [=](const wt::TempFolder& folder) { return model_folder(folder, config, file); }, expected};
}

constexpr const char* kGood = R"({"quantization":{"bits":4,"group_size":64}})";

}  // namespace

std::vector<Case> mlx_cases() {
  const std::string no_biases =
      SafetensorsBuilder().add("l.weight", "U32", {2, 8}, zeros(64)).add("l.scales", "BF16", {2, 1}, zeros(4)).build();
  const std::string no_scales = SafetensorsBuilder().add("l.weight", "U32", {2, 8}, zeros(64)).build();
  return {
      with("mlx_quantization_is_text", R"({"quantization":"zzz"})", triple(), {"config.json", "'quantization'", "zzz"}),
      with("mlx_mode_mxfp4", R"({"quantization":{"bits":4,"group_size":32,"mode":"mxfp4"}})", triple(),
           {"config.json", "'quantization.mode'", "mxfp4", "affine"}),
      with("mlx_mode_number", R"({"quantization":{"bits":4,"group_size":32,"mode":7}})", triple(),
           {"'quantization.mode'", "7"}),
      with("mlx_bits_7", R"({"quantization":{"bits":7,"group_size":64}})", triple(), {"'quantization.bits'", "7", "8"}),
      with("mlx_bits_huge", R"({"quantization":{"bits":99999999999,"group_size":64}})", triple(),
           {"'bits'", "99999999999"}),
      with("mlx_bits_text", R"({"quantization":{"bits":"4","group_size":64}})", triple(), {"'bits'", "\"4\""}),
      with("mlx_group_48", R"({"quantization":{"bits":4,"group_size":48}})", triple(), {"group_size", "48", "128"}),
      with("mlx_override_mode", R"({"quantization":{"bits":4,"group_size":64,"m.l":{"mode":"nvfp4"}}})", triple(),
           {"quantization.m.l.mode", "nvfp4"}),
      with("mlx_override_text", R"({"quantization":{"bits":4,"group_size":64,"m.l":"no"}})", triple(),
           {"quantization.m.l", "no"}),
      with("mlx_gptq", R"({"quantization_config":{"quant_method":"gptq","bits":4}})", triple(),
           {"quantization_config.quant_method", "gptq"}),
      with("mlx_no_configuration", "{}", triple(), {"l.weight", "[2, 8]", "[2, 1]", "'quantization'"}),
      with("mlx_biases_missing", kGood, no_biases, {"model.safetensors", "l.weight", "'l.biases'", "[2, 8]"}),
      with("mlx_scales_missing", kGood, no_scales, {"model.safetensors", "l.weight", "'l.scales'", "[2, 8]"}),
      with("mlx_scales_rows", kGood, triple({2, 8}, {3, 1}, {3, 1}), {"l.weight", "[2, 8]", "[3, 1]"}),
      with("mlx_biases_shape", kGood, triple({2, 8}, {2, 1}, {2, 2}), {"l.biases", "[2, 2]", "[2, 1]"}),
      with("mlx_scales_dtype", kGood, triple({2, 8}, {2, 1}, {2, 1}, "I32"), {"l.scales", "I32", "BF16"}),
      with("mlx_no_width_fits", kGood, triple({2, 7}, {2, 1}, {2, 1}), {"l.weight", "[2, 7]", "[2, 1]", "64"}),
      with("mlx_scales_do_not_divide", kGood, triple({2, 8}, {2, 3}, {2, 3}), {"l.weight", "[2, 8]", "[2, 3]"}),
      with("mlx_weight_of_one_axis", kGood, triple({8}, {1}, {1}), {"l.weight", "[8]", "[1]"}),
      with("mlx_no_columns", kGood, triple({2, 0}, {2, 0}, {2, 0}), {"l.weight", "[2, 0]", "scales"}),
  };
}

}  // namespace vedette::hostile
