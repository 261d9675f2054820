// Lines from the user: edited, with history, on a terminal; plain otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/interrupts.h"

namespace vedette::cli {

struct InputLine {
  enum class Kind { kText, kInterrupted, kEnd, kStopped, kFailed } kind = Kind::kEnd;
  std::string text;  // without its line break; kFailed: why
};

// Main thread. On a terminal Ctrl-C is a key here: it gives kInterrupted and drops the line. Without one, SIGINT
// gives kStopped: read no more. A line holds at most 16 MiB.
class LineEditor {
 public:
  // history_file: read now, written at the end; "": none.
  LineEditor(Interrupts& interrupts, std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  InputLine read(const std::string& prompt);
  // Adds an entry to the history.
  void remember(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::cli
