#include "hub/repository.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "hub/checksum.h"
#include "hub/http_client.h"
#include "hub/model_source.h"

namespace vedette::hub {
namespace {

Repository repository(const std::vector<std::string>& names) {
  Repository out;
  out.id = "o/n";
  for (const std::string& name : names) out.files.push_back({.path = name, .size = 1});
  return out;
}

std::vector<std::string> chosen(const std::vector<std::string>& names, const std::vector<std::string>& include = {},
                                const std::vector<std::string>& exclude = {}) {
  const auto choice = choose_files(repository(names), include, exclude);
  std::vector<std::string> out;
  if (!choice.ok()) return {choice.error().message};
  for (const RepositoryFile& file : choice->files) out.push_back(file.path);
  std::ranges::sort(out);
  return out;
}

using Names = std::vector<std::string>;

TEST(Repository, ReadsSizesAndSums) {
  const std::string sum(64, 'a'), blob(40, 'B');
  const auto parsed = parse_repository("o/n", R"({"sha":"0123abc","siblings":[
      {"rfilename":"model.safetensors","size":7,"blobId":")" +
                                                  blob + R"(","lfs":{"sha256":")" + sum +
                                                  R"(","size":70}},
      {"rfilename":"config.json","size":5,"blobId":")" +
                                                  blob + R"("},
      {"rfilename":"README.md"}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->commit, "0123abc");
  ASSERT_EQ(parsed->files.size(), 3u);
  EXPECT_EQ(parsed->files[0].sha256, sum);
  EXPECT_EQ(parsed->files[0].size, 70);
  EXPECT_EQ(parsed->files[0].blob_id, "");
  EXPECT_EQ(parsed->files[1].blob_id, std::string(40, 'b'));
  EXPECT_EQ(parsed->files[2].size, -1);
}

TEST(Repository, NamesThatLeadOutAreRefused) {
  for (const std::string name : {"../x.json", "/etc/passwd", "a/../../x", "a//b", "./x", "a/.", "", "a\\\\b",
                                 "a\\u0000b", "a\\nb", "..", "a/"}) {
    const auto parsed = parse_repository("o/n", R"({"siblings":[{"rfilename":")" + name + R"("}]})");
    EXPECT_FALSE(parsed.ok()) << name;
  }
  EXPECT_TRUE(is_safe_path("a/b..c/.d"));
}

TEST(Repository, AnswersThatAreNoListAreRefused) {
  for (const std::string text : {"", "[]", "{}", R"({"siblings":1})", R"({"siblings":[1]})", "<html>"})
    EXPECT_FALSE(parse_repository("o/n", text).ok()) << text;
}

TEST(Repository, SafetensorsComeWithTheirCompanions) {
  EXPECT_EQ(chosen({"README.md", ".gitattributes", "config.json", "model-00001-of-00002.safetensors",
                    "model-00002-of-00002.safetensors", "model.safetensors.index.json", "consolidated.safetensors",
                    "pytorch_model.bin", "onnx/model.onnx", "onnx/config.json", "tokenizer.json", "tokenizer.model",
                    "modeling_x.py", "chat_template.jinja", "additional_chat_templates/tools.jinja", "x.gguf"}),
            (Names{"additional_chat_templates/tools.jinja", "chat_template.jinja", "config.json",
                   "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                   "model.safetensors.index.json", "tokenizer.json", "tokenizer.model"}));
}

TEST(Repository, OneGgufVariantIsChosen) {
  EXPECT_EQ(chosen({"m-Q8_0.gguf", "m-Q4_K_M.gguf", "mmproj-m.gguf"}), (Names{"m-Q4_K_M.gguf"}));
  EXPECT_EQ(chosen({"m-Q4_K_M-00001-of-00002.gguf", "m-Q4_K_M-00002-of-00002.gguf", "m-F16.gguf"}),
            (Names{"m-Q4_K_M-00001-of-00002.gguf", "m-Q4_K_M-00002-of-00002.gguf"}));
  EXPECT_EQ(chosen({"m-Q8_0.gguf", "m-Q4_K_M.gguf", "config.json"}, {"*Q8_0*"}), (Names{"m-Q8_0.gguf"}));
  EXPECT_EQ(chosen({"m.gguf", "config.json"}, {}, {"*.json"}), (Names{"m.gguf"}));
  const auto choice = choose_files(repository({"m-Q8_0.gguf", "m-Q4_K_M.gguf"}), {}, {});
  ASSERT_TRUE(choice.ok());
  EXPECT_NE(choice->note.find("--include"), std::string::npos);
}

TEST(Repository, NothingToFetchIsAnError) {
  EXPECT_NE(chosen({"README.md", "pytorch_model.bin"}).front().find("neither safetensors nor GGUF"), std::string::npos);
  EXPECT_NE(chosen({"m.gguf"}, {"*.xyz"}).front().find("no file of o/n matches"), std::string::npos);
}

TEST(Checksum, KnownSums) {
  Checksum sha(Checksum::Kind::kSha256, 3);
  sha.add("a");
  sha.add("bc");
  EXPECT_EQ(sha.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Checksum blob(Checksum::Kind::kGitBlob, 6);
  blob.add("hello\n");
  EXPECT_EQ(blob.finish(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(ModelSource, IsReadAsItWasWritten) {
  const std::string folder = testing::TempDir() + "/model_source";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_source(folder, {"v2", "abc", {"a.json", "b/c.jinja"}}).ok());
  EXPECT_EQ(read_source(folder).revision, "v2");
  EXPECT_EQ(read_source(folder).files, (Names{"a.json", "b/c.jinja"}));
  std::ofstream(folder + "/.vedette-source.json") << R"({"revision":"v2","files":["../x",3,"ok"]})";
  EXPECT_EQ(read_source(folder).files, (Names{"ok"}));
  std::ofstream(folder + "/.vedette-source.json") << "{";
  EXPECT_EQ(read_source(folder).revision, "");
  std::filesystem::remove_all(folder);
}

TEST(HttpClient, OriginsAreSchemeHostAndPort) {
  EXPECT_EQ(http_origin("https://huggingface.co/a/b?c"), "https://huggingface.co:443");
  EXPECT_EQ(http_origin("http://127.0.0.1:80/"), "http://127.0.0.1:80");
  EXPECT_EQ(http_origin("file:///etc/passwd"), "");
  EXPECT_EQ(http_origin("nothing"), "");
  EXPECT_EQ(http_get({.url = "file:///etc/passwd"}).error().kind, ErrorKind::kInvalidRequest);
  EXPECT_EQ(http_get({.url = "http://127.0.0.1:1/"}).error().field, "unreachable");
}

}  // namespace
}  // namespace vedette::hub
