// libedit on a terminal (BSD licence), a buffer over read() otherwise.
#include "cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/terminal.h"

namespace vedette::cli {
namespace {

constexpr size_t kMaxLineBytes = 16u << 20;
constexpr uintmax_t kMaxHistoryBytes = 16u << 20;

// A history that can be read and written without end or waiting: a file of moderate size, or none yet.
bool is_usable_history(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return true;
  return std::filesystem::is_regular_file(status) && std::filesystem::file_size(path, error) <= kMaxHistoryBytes;
}

// While it lives, Ctrl-C is a key of the terminal and no signal. libedit has a mode of its own for the time it waits
// for a key; this covers the moments before.
class InterruptKey {
 public:
  InterruptKey() {
    known_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!known_) return;
    termios changed = before_;
    changed.c_lflag &= ~static_cast<tcflag_t>(ISIG);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &changed);
  }
  ~InterruptKey() {
    if (known_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  InterruptKey(const InterruptKey&) = delete;
  InterruptKey& operator=(const InterruptKey&) = delete;

 private:
  termios before_{};
  bool known_ = false;
};

}  // namespace

struct LineEditor::Impl {
  Interrupts& interrupts;
  std::string history_file;
  std::string prompt;
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  bool interrupted = false;
  std::string buffer;  // read but not returned, without a terminal
  bool ended = false;

  explicit Impl(Interrupts& source) : interrupts(source) {}

  static Impl& of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<Impl*>(data);
  }
  static char* prompt_text(EditLine* editor) { return of(editor).prompt.data(); }
  static unsigned char on_interrupt(EditLine* editor, int) {
    of(editor).interrupted = true;
    return CC_NEWLINE;
  }

  // An end-of-file key that was typed while the terminal still read whole lines arrives as a NUL.
  static unsigned char on_end(EditLine* editor, int) {
    const LineInfo* line = el_line(editor);
    return line->lastchar == line->buffer ? CC_EOF : CC_NORM;
  }

  void open_terminal();
  InputLine read_terminal();
  InputLine read_plain();
  InputLine fill();
};

void LineEditor::Impl::open_terminal() {
  // libedit reads characters by the locale; without one, UTF-8.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
  editor = el_init("vedette", stdin, stdout, stderr);
  if (editor == nullptr) return;
  history = history_init();
  el_set(editor, EL_CLIENTDATA, this);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_PROMPT, prompt_text);
  el_set(editor, EL_SIGNAL, 0);
  el_set(editor, EL_ADDFN, "vedette-interrupt", "Drop the line", on_interrupt);
  el_set(editor, EL_BIND, "^C", "vedette-interrupt", nullptr);
  el_set(editor, EL_ADDFN, "vedette-end", "Leave if the line is empty", on_end);
  el_set(editor, EL_BIND, "^@", "vedette-end", nullptr);
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  if (history == nullptr) return;
  ::history(history, &event, H_SETSIZE, 1000);
  ::history(history, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_HIST, ::history, history);
  if (!history_file.empty()) ::history(history, &event, H_LOAD, history_file.c_str());
}

InputLine LineEditor::Impl::read_terminal() {
  interrupted = false;
  interrupts.take();  // what came after the reply's end
  int length = 0;
  const InterruptKey key;
  const char* line = el_gets(editor, &length);
  interrupts.take();  // sent to the prompt from elsewhere; the next reply is not meant
  if (interrupted) {
    std::fputs("\n", stdout);
    el_reset(editor);
    return {InputLine::Kind::kInterrupted, ""};
  }
  if (line == nullptr || length <= 0) return {InputLine::Kind::kEnd, ""};
  std::string text(line, static_cast<size_t>(length));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return {InputLine::Kind::kText, std::move(text)};
}

// More bytes into the buffer; kText if there may be more, else why there are none.
InputLine LineEditor::Impl::fill() {
  pollfd ready[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupts.descriptor(), POLLIN, 0}};
  while (poll(ready, 2, -1) < 0) {
    if (errno != EINTR) return {InputLine::Kind::kFailed, std::strerror(errno)};
  }
  if (interrupts.take() > 0) return {InputLine::Kind::kStopped, ""};
  char bytes[4096];
  const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (count < 0) return {InputLine::Kind::kFailed, std::strerror(errno)};
  if (count == 0) return {InputLine::Kind::kEnd, ""};
  if (buffer.size() > kMaxLineBytes) return {InputLine::Kind::kFailed, "a line holds more than 16 MiB"};
  buffer.append(bytes, static_cast<size_t>(count));
  return {InputLine::Kind::kText, ""};
}

InputLine LineEditor::Impl::read_plain() {
  size_t end, searched = 0;
  while ((end = buffer.find('\n', searched)) == std::string::npos && !ended) {
    searched = buffer.size();
    InputLine filled = fill();
    if (filled.kind == InputLine::Kind::kStopped || filled.kind == InputLine::Kind::kFailed) return filled;
    ended = filled.kind == InputLine::Kind::kEnd;
  }
  if (end == std::string::npos && buffer.empty()) return {InputLine::Kind::kEnd, ""};
  InputLine line{InputLine::Kind::kText, buffer.substr(0, end)};
  buffer.erase(0, end == std::string::npos ? buffer.size() : end + 1);
  if (line.text.ends_with('\r')) line.text.pop_back();
  return line;
}

LineEditor::LineEditor(Interrupts& interrupts, std::string history_file) : impl_(std::make_unique<Impl>(interrupts)) {
  if (is_usable_history(history_file)) impl_->history_file = std::move(history_file);
  if (stdin_is_terminal() && stdout_is_terminal()) impl_->open_terminal();
}

LineEditor::~LineEditor() {
  if (impl_->history != nullptr) {
    if (!impl_->history_file.empty()) {
      std::error_code ignored;
      std::filesystem::create_directories(std::filesystem::path(impl_->history_file).parent_path(), ignored);
      ::history(impl_->history, &impl_->event, H_SAVE, impl_->history_file.c_str());
    }
    history_end(impl_->history);
  }
  if (impl_->editor != nullptr) el_end(impl_->editor);
}

InputLine LineEditor::read(const std::string& prompt) {
  impl_->prompt = prompt;
  return impl_->editor != nullptr ? impl_->read_terminal() : impl_->read_plain();
}

void LineEditor::remember(const std::string& text) {
  if (impl_->history == nullptr || text.empty()) return;
  ::history(impl_->history, &impl_->event, H_ENTER, text.c_str());
}

}  // namespace vedette::cli
