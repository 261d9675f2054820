// Result<T>: a value or an Error. C++20, because device code includes it.
//
// Whatever parses something from outside returns Result. An Error says what was expected, what was
// found, where, and what to do (docs/architecture.md, "Errors").
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace vedette {

enum class ErrorKind {
  kInvalidRequest,  // the caller's input is wrong; the same input will fail again
  kNotFound,        // a file, model, tensor or route that does not exist
  kUnsupported,     // understood, but not available here
  kCorruptFile,     // a file contradicts its own format
  kOutOfBudget,     // memory or context would be exceeded
  kUnavailable,     // try again later
  kCancelled,       // the caller asked to stop
  kInternal,        // our own mistake
};

// Stable lower-case name of a kind, e.g. "invalid_request".
const char* to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;  // one line: what, where, what to do
  std::string field;    // path of the offending field, flag or tensor; may be empty
};

// Value type; not thread-safe. Reading value() of a failed result (or error() of a good one) is our
// own mistake and throws std::bad_variant_access.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};

// Success without a value.
using Status = Result<Unit>;
inline Status ok_status() {
  return Unit{};
}

}  // namespace vedette

#define VEDETTE_CONCAT_INNER(a, b) a##b
#define VEDETTE_CONCAT(a, b) VEDETTE_CONCAT_INNER(a, b)

// Evaluates a Status or Result and returns its error from the enclosing function.
#define VEDETTE_RETURN_IF_ERROR(expression)                                                                 \
  do {                                                                                                      \
    if (auto vedette_status = (expression); !vedette_status.ok()) return std::move(vedette_status).error(); \
  } while (false)

// VEDETTE_ASSIGN_OR_RETURN(auto x, f()): x = value of f(), or return its error.
#define VEDETTE_ASSIGN_OR_RETURN(declaration, expression) \
  VEDETTE_ASSIGN_OR_RETURN_INNER(VEDETTE_CONCAT(vedette_result_, __LINE__), declaration, expression)
#define VEDETTE_ASSIGN_OR_RETURN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                           \
  if (!temporary.ok()) return std::move(temporary).error();                \
  declaration = std::move(temporary).value()
