// Standard output and standard error: single lines for errors and notices, dimmed text, a progress bar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vedette::cli {

bool stdout_is_terminal();
bool stderr_is_terminal();
bool stdin_is_terminal();

// The text with every control character but line breaks shown as \xNN, and bytes that are not UTF-8 replaced.
std::string printable(std::string_view text);

// "vedette: <line>" on standard error; line breaks inside become spaces, the rest goes through printable();
// of an overlong line the middle is left out.
void print_error(std::string_view line);
void print_notice(std::string_view line);

// A path as it is shown on standard output: unchanged for a program, one line without controls on a terminal.
std::string path_text(const std::string& path);

// Writes and flushes standard output. Errors: kUnavailable (closed pipe, full disk).
Status print(std::string_view text);

// Text in the terminal's faint style; unchanged where standard output is no terminal.
std::string dimmed(std::string_view text);

// A bar on standard error while weights load; draws nothing unless that is a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string_view label, bool enabled);
  ~ProgressBar();  // clears the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(int64_t done, int64_t total);

 private:
  std::string label_;
  bool enabled_;
  int shown_percent_ = -1;
};

}  // namespace vedette::cli
