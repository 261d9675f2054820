// Typed reading of request fields: one message form for every wrong type or range, with the field's path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/sampling_ranges.h"

namespace vedette::server {

// Reads members of one object of a request; `path` is put before their names ("messages[3]."). Null counts as absent.
// Errors (kInvalidRequest) say the path, what was expected, what was found.
class Fields {
 public:
  explicit Fields(const Json& object, std::string path = "") : object_(&object), path_(std::move(path)) {}

  const Json* get(std::string_view key) const;  // null and absent: nullptr
  bool has(std::string_view key) const { return get(key) != nullptr; }

  Result<std::optional<int64_t>> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<std::optional<double>> number(std::string_view key, double min, double max) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> string(std::string_view key) const;
  // A string, or a list of strings.
  Result<std::optional<std::vector<std::string>>> strings(std::string_view key, size_t most) const;
  Result<const Json*> object(std::string_view key) const;  // nullptr if absent
  Result<const Json*> array(std::string_view key) const;

  // Puts the member over `out`, which an absent one leaves as it is.
  Status store(std::string_view key, NumberRange range, double& out) const;
  Status store(std::string_view key, NumberRange range, int64_t& out) const;
  Status store(std::string_view key, NumberRange range, int& out) const;

  std::string path(std::string_view key) const { return path_ + std::string(key); }
  Error wrong(std::string_view key, std::string_view expected) const;

 private:
  const Json* object_;
  std::string path_;
};

// The same form for a value that is no member: "messages[3]: expected an object, found a string".
Error wrong_value(const std::string& path, std::string_view expected, const Json* found);

}  // namespace vedette::server
