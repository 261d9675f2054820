// What the fuzz targets share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "weights/checkpoint.h"

namespace vedette::fuzz {

// A copy of exactly this size, so that the sanitizer sees every byte read beyond it.
inline std::vector<std::byte> copy(const uint8_t* data, size_t size) {
  std::vector<std::byte> out(size);
  if (size > 0) std::memcpy(out.data(), data, size);
  return out;
}

inline Json affine_config() {
  auto json = parse_json(R"({"quantization":{"bits":4,"group_size":64}})", "config.json");
  return json.ok() ? std::move(*json) : Json();
}

// An error is one line, and never our own mistake.
inline void check_message(const Error& error) {
  bool good = error.kind != ErrorKind::kInternal && !error.message.empty();
  for (const char c : error.message) good &= static_cast<unsigned char>(c) >= 0x20;
  if (good) return;
  std::fprintf(stderr, "bad error: %s\n", error.message.c_str());
  std::abort();
}

inline void read_all(const weights::Checkpoint& checkpoint) {
  float sum = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto values = weights::to_float(tensor);
    if (!values.ok()) continue;
    for (const float value : *values) sum += value;
  }
  volatile const float sink = sum;  // keeps the reads
  static_cast<void>(sink);
}

}  // namespace vedette::fuzz
