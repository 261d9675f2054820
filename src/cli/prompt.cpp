#include "cli/prompt.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette::cli {
namespace {

constexpr size_t kMaxPromptBytes = 256u << 20;

struct CloseFile {
  void operator()(FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

Json message(std::string_view role, std::string_view content) {
  Json out = Json::object();
  out.set("role", role);
  out.set("content", content);
  return out;
}

Status check_prompt_text(std::string_view text, std::string_view where) {
  if (text.empty())
    return invalid_request("prompt", "{}: expected text, found none; give at least one character", where);
  if (is_valid_utf8(text)) return ok_status();
  // The first bad byte: repair leaves everything before it as it was.
  const std::string repaired = repair_utf8(text);
  size_t at = 0;
  while (at < text.size() && at < repaired.size() && text[at] == repaired[at]) ++at;
  return invalid_request("prompt",
                         "{}: expected UTF-8, found the byte 0x{:02x} at offset {}; convert the text to UTF-8", where,
                         static_cast<unsigned char>(text[std::min(at, text.size() - 1)]), at);
}

Result<std::string> read_prompt_file(const std::string& path, std::string_view option) {
  std::unique_ptr<FILE, CloseFile> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return not_found("", "{}: {}: {}; name a readable file", option, path, std::strerror(errno));
  std::string text;
  char buffer[65536];
  size_t count = sizeof buffer;
  while (count == sizeof buffer) {
    count = std::fread(buffer, 1, sizeof buffer, file.get());
    text.append(buffer, count);
    if (text.size() > kMaxPromptBytes)
      return invalid_request("", "{}: {}: holds more than {} bytes, the most that is read", option, path,
                             kMaxPromptBytes);
  }
  if (std::ferror(file.get()) != 0)
    return unavailable("", "{}: {}: cannot be read; name a readable file", option, path);
  return text;
}

}  // namespace vedette::cli
