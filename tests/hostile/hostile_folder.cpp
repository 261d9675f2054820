#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "hostile_case.h"

namespace vedette::hostile {
namespace {

using wt::GgufBuilder;
using wt::raw;
using wt::SafetensorsBuilder;
using wt::tiny_llama;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string one_tensor(const std::string& name) {
  return SafetensorsBuilder().add(name, "F32", {1}, raw(1.0f)).build();
}

Case index_case(const std::string& name, const std::string& index, const std::vector<std::string>& expected) {
  return {name,
          [=](const wt::TempFolder& folder) {
            folder.write("config.json", "{}");
            folder.write("a.safetensors", one_tensor("a"));
            folder.write("b.safetensors", one_tensor("b"));
            folder.write(kIndex, index);
            return folder.path();
          },
          expected};
}

Case config_case(const std::string& name, const std::string& config, const std::vector<std::string>& expected) {
  return {name, [=](const wt::TempFolder& folder) { return model_folder(folder, config, one_tensor("a")); }, expected};
}

// Two parts that state `number` and `count`; the second may be left out.
Case split_case(const std::string& name, int number, int count, bool second, const std::vector<std::string>& expected) {
  return {name,
          [=](const wt::TempFolder& folder) {
            GgufBuilder first = tiny_llama();
            first.u32("split.no", 0).u32("split.count", 2).u32("split.tensors.count", 12);
            folder.write("m-00001-of-00002.gguf", first.build());
            GgufBuilder last;
            last.u32("split.no", static_cast<uint32_t>(number)).u32("split.count", static_cast<uint32_t>(count));
            if (second) folder.write("m-00002-of-00002.gguf", last.build());
            return folder.path("m-00001-of-00002.gguf");
          },
          expected};
}

std::vector<Case> index_cases() {
  return {
      index_case("index_no_json", "{", {kIndex, "invalid JSON"}),
      index_case("index_no_map", R"({"metadata":{}})", {kIndex, "weight_map", "nothing"}),
      index_case("index_shard_number", R"({"weight_map":{"a":1}})", {kIndex, "'a'", "1"}),
      index_case("index_shard_outside", R"({"weight_map":{"a":"../../etc/passwd"}})",
                 {kIndex, "'a'", "../../etc/passwd"}),
      index_case("index_shard_hidden", R"({"weight_map":{"a":".."}})", {kIndex, "'a'", "\"..\""}),
      index_case("index_shard_missing", R"({"weight_map":{"a":"a.safetensors","c":"c.safetensors"}})",
                 {kIndex, "1 of 2 shards", "c.safetensors"}),
      index_case("index_tensor_elsewhere", R"({"weight_map":{"a":"b.safetensors","b":"b.safetensors"}})",
                 {kIndex, "'a'", "b.safetensors", "1 tensors", "2 named"}),
      index_case("index_shard_name_too_long", R"({"weight_map":{"a":")" + std::string(2000, 'x') + R"("}})",
                 {kIndex, "'a'", "expected a file name"}),
      {"index_tensor_in_two_shards",
       [](const wt::TempFolder& folder) {
         folder.write("config.json", "{}");
         folder.write("a.safetensors", one_tensor("a"));
         folder.write("b.safetensors", SafetensorsBuilder().add("a", "F32", {2}, std::string(8, '\0')).build());
         folder.write(kIndex, R"({"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})");
         return folder.path();
       },
       {kIndex, "'b'"}},
      {"shards_with_the_same_tensor",
       [](const wt::TempFolder& folder) {
         folder.write("config.json", "{}");
         folder.write("model-00001-of-00002.safetensors", one_tensor("a"));
         folder.write("model-00002-of-00002.safetensors",
                      SafetensorsBuilder().add("a", "F32", {2}, std::string(8, '\0')).build());
         return folder.path();
       },
       {"'a'", "model-00001-of-00002.safetensors", "[1]", "[2]"}},
      {"shards_incomplete",
       [](const wt::TempFolder& folder) {
         folder.write("config.json", "{}");
         folder.write("model-00001-of-00003.safetensors", one_tensor("a"));
         folder.write("model-00003-of-00003.safetensors", one_tensor("b"));
         return folder.path();
       },
       {"2 shards", "3"}},
  };
}

// A file that is a link to itself.
Case loop_case(const std::string& file) {
  std::string name = file;
  std::ranges::replace(name, '.', '_');
  return {"loop_" + name,
          [=](const wt::TempFolder& folder) {
            const std::string path = model_folder(folder, "{}", one_tensor("a"));
            std::error_code error;
            std::filesystem::remove(folder.path(file), error);
            std::filesystem::create_symlink(file, folder.path(file));
            return path;
          },
          {file, "symbolic links"}};
}

std::vector<Case> config_cases() {
  return {
      config_case("config_no_json", "{\"a\":}", {"config.json", "invalid JSON"}),
      config_case("config_array", "[]", {"config.json", "array"}),
      config_case("config_duplicate_key", R"({"a":1,"a":2})", {"config.json", "duplicate key 'a'"}),
      config_case("config_deep", std::string(100000, '['), {"config.json", "nested deeper", "64"}),
      config_case("config_too_large", "{\"a\":\"" + std::string(17u << 20, 'x') + "\"}",
                  {"config.json", "17825", "16777216"}),
      config_case("config_empty", "", {"config.json", "invalid JSON"}),
      {"tokenizer_config_broken",
       [](const wt::TempFolder& folder) {
         folder.write("tokenizer_config.json", "{\"a\"");
         return model_folder(folder, "{}", one_tensor("a"));
       },
       {"tokenizer_config.json", "invalid JSON"}},
  };
}

}  // namespace

std::vector<Case> folder_cases() {
  std::vector<Case> all = {
      {"path_missing",
       [](const wt::TempFolder& folder) { return folder.path("nothing"); },
       {"nothing", "no such file"}},
      {"folder_empty", [](const wt::TempFolder& folder) { return folder.path(); }, {"config.json", ".gguf"}},
      {"folder_without_tensors",
       [](const wt::TempFolder& folder) {
         folder.write("config.json", "{}");
         return folder.path();
       },
       {"config.json", "no .safetensors"}},
      {"folder_with_two_gguf",
       [](const wt::TempFolder& folder) {
         folder.write("a.gguf", tiny_llama().build());
         folder.write("b.gguf", tiny_llama().build());
         return folder.path();
       },
       {"2 .gguf files", "a.gguf, b.gguf"}},
      {"path_is_a_pipe",
       [](const wt::TempFolder& folder) {
         const std::string path = folder.path("pipe.gguf");
         return mkfifo(path.c_str(), 0600) == 0 ? path : std::string();
       },
       {"pipe.gguf", "regular file"}},
      split_case("split_part_missing", 1, 2, false, {"1 of 2 parts", "m-00002-of-00002.gguf"}),
      split_case("split_count_differs", 1, 3, true, {"m-00002-of-00002.gguf", "split.count", "3", "2"}),
      split_case("split_number_differs", 0, 2, true, {"m-00002-of-00002.gguf", "split.no", "0", "part 2"}),
      split_case("split_tensors_missing", 1, 2, true, {"split.tensors.count", "12", "11 tensors"}),
      {"split_name_lost",
       [](const wt::TempFolder& folder) {
         return folder.write("renamed.gguf", tiny_llama().u32("split.no", 0).u32("split.count", 3).build());
       },
       {"renamed.gguf", "3 parts", "1 file"}},
      {"split_name_part_4_of_2",
       [](const wt::TempFolder& folder) { return folder.write("m-00004-of-00002.gguf", tiny_llama().build()); },
       {"m-00004-of-00002.gguf", "part 4 of 2"}},
  };
  for (const char* file : {"config.json", "model.safetensors", kIndex, "tokenizer.json", "tokenizer_config.json",
                           "generation_config.json", "chat_template.jinja"})
    all.push_back(loop_case(file));
  for (const auto& part : {index_cases(), config_cases()}) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace vedette::hostile
