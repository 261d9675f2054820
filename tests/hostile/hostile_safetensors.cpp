#include "hostile_case.h"

namespace vedette::hostile {
namespace {

using wt::raw;
using wt::safetensors_bytes;
using wt::SafetensorsBuilder;

// A file whose header is `header` over `data_bytes` bytes of data.
Case with_header(const std::string& name, const std::string& header, size_t data_bytes,
                 std::vector<std::string> expected) {
  expected.push_back("model.safetensors");
  return {name,
          [=](const wt::TempFolder& folder) {
            return model_folder(folder, "{}", safetensors_bytes(header, std::string(data_bytes, '\0')));
          },
          expected};
}

Case with_bytes(const std::string& name, const std::string& bytes, std::vector<std::string> expected) {
  expected.push_back("model.safetensors");
  return {name, [=](const wt::TempFolder& folder) { return model_folder(folder, "{}", bytes); }, expected};
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"x\":" + entry(dtype, shape, offsets) + "}";
}

std::string two(const std::string& a, const std::string& b) {
  return "{\"a\":" + a + ",\"b\":" + b + "}";
}

}  // namespace

std::string model_folder(const wt::TempFolder& folder, const std::string& config, const std::string& safetensors) {
  folder.write("config.json", config);
  folder.write("model.safetensors", safetensors);
  return folder.path();
}

std::vector<Case> safetensors_cases() {
  const std::string good = SafetensorsBuilder().add("x", "F32", {4}, std::string(16, '\0')).build();
  std::string deep = "{\"x\":";
  for (int i = 0; i < 5000; ++i) deep += "[";
  return {
      with_bytes("st_empty_file", "", {"0 bytes", "8"}),
      with_bytes("st_seven_bytes", "1234567", {"7 bytes", "8"}),
      with_bytes("st_header_length_beyond_file", raw<uint64_t>(500) + "{}", {"500", "2 bytes"}),
      with_bytes("st_header_length_huge", raw<uint64_t>(UINT64_MAX) + "{}", {"18446744073709551615", "100000000"}),
      with_bytes("st_header_is_a_pdf", "%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>", {"header length", "100000000"}),
      with_bytes("st_truncated_data", good.substr(0, good.size() - 5), {"'x'", "0-16", "11 bytes"}),
      with_bytes("st_surplus_data", good + "xyz", {"16 bytes", "19"}),
      with_header("st_header_no_json", "{\"x\":", 0, {"invalid JSON", "byte"}),
      with_header("st_header_is_array", "[1,2]", 0, {"array", "object"}),
      with_header("st_header_empty", "", 0, {"invalid JSON", "header"}),
      with_header("st_header_deep", deep, 0, {"nested deeper", "4"}),
      with_header("st_header_bad_utf8", "{\"\xff\xfe\":1}", 0, {"invalid JSON", "byte"}),
      with_header("st_header_control_in_name", "{\"a\\nb\":1}", 0, {"a?b", "integer"}),
      with_header("st_name_control", R"({"a\nb":)" + entry("F32", "[1]", "[0,4]") + "}", 4, {"a?b", "control"}),
      with_header("st_duplicate_tensor", two(entry("F32", "[1]", "[0,4]"), "1").replace(2, 1, "b"), 4,
                  {"duplicate", "'b'"}),
      with_header("st_metadata_no_object", R"({"__metadata__":[1]})", 0, {"__metadata__", "array"}),
      with_header("st_metadata_number", R"({"__metadata__":{"k":1}})", 0, {"__metadata__.k", "integer"}),
      with_header("st_entry_no_object", R"({"x":"y"})", 0, {"'x'", "string"}),
      with_header("st_dtype_missing", R"({"x":{"shape":[1],"data_offsets":[0,4]}})", 4, {"'x'", "dtype"}),
      with_header("st_dtype_unknown", one("F31", "[1]", "[0,4]"), 4, {"'x'", "F31"}),
      with_header("st_shape_missing", R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", 4, {"'x'", "shape"}),
      with_header("st_shape_negative", one("F32", "[-1]", "[0,4]"), 4, {"'x'", "-1"}),
      with_header("st_shape_fraction", one("F32", "[1.5]", "[0,4]"), 4, {"'x'", "1.5"}),
      with_header("st_shape_text", one("F32", R"(["1"])", "[0,4]"), 4, {"'x'", "\"1\""}),
      with_header("st_shape_overflow", one("F32", "[4294967296,4294967296]", "[0,4]"), 4,
                  {"'x'", "overflows", "4294967296"}),
      with_header("st_shape_rank", one("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, {"'x'", "17", "16"}),
      // Declared 1000 x 1000 F32 with 4 bytes of data.
      with_header("st_offsets_against_shape", one("F32", "[1000,1000]", "[0,4]"), 4, {"'x'", "4 bytes", "4000000"}),
      with_header("st_shape_smaller_than_offsets", one("BF16", "[2]", "[0,8]"), 8, {"'x'", "8 bytes", "needs 4"}),
      with_header("st_offsets_backwards", one("F32", "[1]", "[4,0]"), 4, {"'x'", "4-0"}),
      with_header("st_offsets_negative", one("F32", "[1]", "[-4,0]"), 4, {"'x'", "-4"}),
      with_header("st_offsets_three", one("F32", "[1]", "[0,4,8]"), 4, {"'x'", "two integers"}),
      with_header("st_offsets_beyond_data", one("F32", "[2]", "[0,8]"), 4, {"'x'", "0-8", "4 bytes"}),
      with_header("st_offsets_huge", one("F32", "[1]", "[9223372036854775803,9223372036854775807]"), 4,
                  {"'x'", "9223372036854775807", "4 bytes"}),
      with_header("st_overlap", two(entry("F32", "[2]", "[0,8]"), entry("F32", "[2]", "[4,12]")), 12,
                  {"'b'", "'a'", "offset 4", "8"}),
      with_header("st_same_place", two(entry("F32", "[1]", "[0,4]"), entry("F32", "[1]", "[0,4]")), 4,
                  {"'b'", "offset 0", "4"}),
      with_header("st_hole", two(entry("F32", "[1]", "[0,4]"), entry("F32", "[1]", "[8,12]")), 12,
                  {"'b'", "offset 8", "4-8"}),
      with_header("st_half_byte", one("F4", "[3]", "[0,2]"), 2, {"'x'", "12 bits"}),
  };
}

}  // namespace vedette::hostile
