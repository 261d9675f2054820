#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette::cli {
namespace {

constexpr size_t kMaxLine = 1200;  // a name in the middle of a message can be as long as its author likes

void write_line(std::string_view line) {
  const std::string text = "vedette: " + shortened(without_controls(line, LineBreaks::kSpaces), kMaxLine) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string printable(std::string_view text) {
  return without_controls(text, LineBreaks::kKeep);
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

std::string path_text(const std::string& path) {
  return stdout_is_terminal() ? without_controls(path, LineBreaks::kSpaces) : path;
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
