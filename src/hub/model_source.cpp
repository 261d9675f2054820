#include "hub/model_source.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "hub/repository.h"

namespace vedette::hub {
namespace {

std::string note_path(const std::string& folder) {
  return (std::filesystem::path(folder) / ".vedette-source.json").string();
}

std::string text_member(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

}  // namespace

ModelSource read_source(const std::string& folder) {
  ModelSource out;
  std::ifstream in(note_path(folder), std::ios::binary);
  if (!in) return out;
  std::ostringstream text;
  text << in.rdbuf();
  const auto note = parse_json(text.str(), note_path(folder), {.max_bytes = size_t{16} << 20, .max_depth = 4});
  if (!note.ok()) return out;
  out.revision = text_member(*note, "revision");
  out.commit = text_member(*note, "commit");
  const Json* files = note->find("files");
  if (files == nullptr || !files->is_array()) return out;
  for (const Json& file : files->as_array()) {
    if (file.is_string() && is_safe_path(file.as_string())) out.files.push_back(file.as_string());
  }
  return out;
}

Status write_source(const std::string& folder, const ModelSource& source) {
  Json files = Json::array();
  for (const std::string& file : source.files) files.push_back(file);
  Json note = Json::object();
  note.set("revision", source.revision);
  note.set("commit", source.commit);
  note.set("files", std::move(files));
  std::ofstream out(note_path(folder), std::ios::binary | std::ios::trunc);
  out << note.dump(2) << "\n";
  out.close();
  if (!out) return unavailable("", "{}: cannot be written", note_path(folder));
  return ok_status();
}

}  // namespace vedette::hub
