#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette::cli {
namespace {

void write_line(std::string_view line) {
  std::string text = "vedette: " + printable(line);
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string printable(std::string_view text) {
  const std::string valid = repair_utf8(text);
  std::string out;
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    // U+0080 to U+009F, the second set of controls, is 0xC2 0x80 to 0xC2 0x9F.
    const bool second = byte == 0xc2 && i + 1 < valid.size() && static_cast<unsigned char>(valid[i + 1]) < 0xa0;
    if (second)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(valid[++i]));
    else if ((byte < 0x20 && byte != '\n' && byte != '\r') || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += valid[i];
  }
  return out;
}

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) != 0;
}
bool stdin_is_terminal() {
  return isatty(STDIN_FILENO) != 0;
}

void print_error(std::string_view line) {
  write_line(line);
}
void print_notice(std::string_view line) {
  write_line(line);
}

Status print(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0)
    return unavailable("", "standard output cannot be written; it was closed or its disk is full");
  return ok_status();
}

std::string dimmed(std::string_view text) {
  if (!stdout_is_terminal() || text.empty()) return std::string(text);
  return fmt::format("\x1b[2m{}\x1b[0m", text);
}

ProgressBar::ProgressBar(std::string_view label, bool enabled)
    : label_(printable(label)), enabled_(enabled && stderr_is_terminal()) {}

ProgressBar::~ProgressBar() {
  if (!enabled_ || shown_percent_ < 0) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

void ProgressBar::update(int64_t done, int64_t total) {
  if (!enabled_ || total <= 0) return;
  const int percent = static_cast<int>(std::clamp<int64_t>(100 * done / total, 0, 100));
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  const int filled = percent * 30 / 100;
  const std::string line =
      fmt::format("\r{} [{}{}] {:3} %", label_, std::string(filled, '#'), std::string(30 - filled, ' '), percent);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace vedette::cli
