#include "text/rust_bridge.h"

#include "base/error.h"

namespace vedette::text {

std::string take(VtBytes bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  vt_bytes_free(bytes);
  return text;
}

std::vector<uint32_t> take(VtIds ids) {
  std::vector<uint32_t> copy(ids.data, ids.data + ids.size);
  vt_ids_free(ids);
  return copy;
}

Error rust_error(VtStatus status, VtBytes error, ErrorKind kind, std::string_view where) {
  std::string text = take(error);
  for (char& c : text)  // one line, whatever the input put into it
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (status == kVtPanic) kind = ErrorKind::kInternal;
  if (where.empty()) return make_error(kind, "", "{}", text);
  return make_error(kind, "", "{}: {}", where, text);
}

void PackedTexts::reserve(size_t count, size_t bytes) {
  ends_.reserve(count);
  bytes_.reserve(bytes);
}

void PackedTexts::add(std::string_view text) {
  bytes_ += text;
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
}

std::string_view PackedTexts::operator[](size_t index) const {
  const size_t start = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(bytes_).substr(start, ends_[index] - start);
}

}  // namespace vedette::text
