#include "hub/model_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace vedette::hub {
namespace {
namespace fs = std::filesystem;

// An empty folder that is the working folder, the store's parent and the Hugging Face home of one test.
class ModelStore : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "vedette-store-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    previous_ = fs::current_path();
    fs::current_path(root_);
    setenv("HF_HOME", (root_ / "hf").c_str(), 1);
    unsetenv("HF_HUB_CACHE");
    settings_.models_dir = (root_ / "store").string();
  }
  void TearDown() override {
    fs::current_path(previous_);
    fs::remove_all(root_);
    unsetenv("HF_HOME");
  }
  void write(const fs::path& file, const std::string& text = "x") {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string error_of(const std::string& argument) {
    auto result = resolve_model(argument, settings_);
    return result.ok() ? "resolved to " + result->path : result.error().message;
  }

  fs::path root_, previous_;
  StoreSettings settings_;
};

TEST_F(ModelStore, AnExistingPathComesFirst) {
  write("a/b/config.json");
  write("store/a/b/config.json");
  auto model = resolve_model("a/b", settings_);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->path, "a/b");
  EXPECT_EQ(model->source, "path");
}

TEST_F(ModelStore, LooksInModelsThenStoreThenHuggingFace) {
  write("hf/hub/models--o--n/refs/main", "abc123\n");
  write("hf/hub/models--o--n/snapshots/abc123/config.json");
  EXPECT_EQ(resolve_model("o/n", settings_)->source, "Hugging Face cache");
  write("store/o/n/config.json");
  EXPECT_EQ(resolve_model("o/n", settings_)->source, "store");
  write("models/n/config.json");
  EXPECT_EQ(resolve_model("o/n", settings_)->path, "models/n");
  write("models/o/n/config.json");
  EXPECT_EQ(resolve_model("o/n", settings_)->path, "models/o/n");
}

TEST_F(ModelStore, ABareNameTakesTheDefaultOwner) {
  write("store/mlx-community/n/config.json");
  EXPECT_EQ(resolve_model("n", settings_)->name, "mlx-community/n");
  settings_.default_org = "someone";
  EXPECT_NE(error_of("n").find("model someone/n"), std::string::npos);
}

TEST_F(ModelStore, AFolderWithOneGgufStandsForTheFile) {
  write("store/o/n/n-00001-of-00002.gguf");
  write("store/o/n/n-00002-of-00002.gguf");
  EXPECT_TRUE(resolve_model("o/n", settings_)->path.ends_with("n-00001-of-00002.gguf"));
  write("store/o/n/other.gguf");
  EXPECT_NE(error_of("o/n").find("holds 2 .gguf files"), std::string::npos);
}

TEST_F(ModelStore, RevisionsAreFoundInTheHuggingFaceCacheOnly) {
  write("hf/hub/models--o--n/refs/v2", "def456");
  write("hf/hub/models--o--n/snapshots/def456/config.json");
  settings_.revision = "v2";
  EXPECT_TRUE(resolve_model("o/n", settings_)->path.ends_with("def456"));
  settings_.revision = "def456";
  EXPECT_TRUE(resolve_model("o/n", settings_)->path.ends_with("def456"));
  settings_.revision = "../../refs/v2";
  EXPECT_NE(error_of("o/n").find("not in ./models"), std::string::npos);
  settings_.revision = "v2";
  write("store/o/n/config.json");
  EXPECT_NE(error_of("o/n").find("keeps no revisions apart"), std::string::npos);
  EXPECT_NE(error_of("store/o/n").find("has no revisions"), std::string::npos);
}

TEST_F(ModelStore, AMissSaysWhereItLookedAndHowToFetch) {
  write("store/vedette/Small/x.gguf");
  const std::string message = error_of("o/small");
  EXPECT_NE(message.find("model o/small (revision main): not in ./models"), std::string::npos) << message;
  EXPECT_NE(message.find((root_ / "store").string()), std::string::npos) << message;
  EXPECT_NE(message.find((root_ / "hf/hub").string()), std::string::npos) << message;
  EXPECT_NE(message.find("the store has vedette/Small"), std::string::npos) << message;
  EXPECT_NE(message.find("vedette download o/small"), std::string::npos) << message;
  EXPECT_NE(error_of(std::string(kDefaultModel)).find("tools/fetch_models.py"), std::string::npos);
}

TEST_F(ModelStore, BadArgumentsAreNamed) {
  write("file.txt");
  write("one.safetensors");
  fs::create_directories(root_ / "empty");
  EXPECT_NE(error_of("").find("no model named"), std::string::npos);
  EXPECT_NE(error_of("./nothing").find("no such file or folder"), std::string::npos);
  EXPECT_NE(error_of("x.gguf").find("no such file or folder"), std::string::npos);
  EXPECT_NE(error_of("a b/c").find("expected owner/name"), std::string::npos);
  EXPECT_NE(error_of("file.txt").find("another kind of file"), std::string::npos);
  EXPECT_NE(error_of("one.safetensors").find("name the folder it lies in"), std::string::npos);
  EXPECT_NE(error_of("empty").find("expected config.json or a .gguf file"), std::string::npos);
}

TEST_F(ModelStore, ListsFoldersThatHoldFiles) {
  EXPECT_TRUE(list_store((root_ / "store").string()).empty());
  write("store/b/two/model.gguf", "12345");
  write("store/a/one/config.json", "{}");
  fs::create_directories(root_ / "store/a/empty");
  write("store/stray.txt");
  auto entries = list_store((root_ / "store").string());
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].repo_id, "a/one");
  EXPECT_EQ(entries[1].repo_id, "b/two");
  EXPECT_EQ(entries[1].size_bytes, 5);
  EXPECT_GT(entries[1].modified.value_or(0), 1600000000);
}

TEST_F(ModelStore, TheStoreLiesInTheCacheUnlessNamed) {
  StoreSettings settings;
  settings.cache_dir = "/var/cache/v";
  EXPECT_EQ(store_root(settings), "/var/cache/v/models");
  settings.models_dir = "/data/models";
  EXPECT_EQ(store_root(settings), "/data/models");
}

}  // namespace
}  // namespace vedette::hub
