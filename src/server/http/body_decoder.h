// Request bodies, decompressed while they arrive: gzip (RFC 1952), deflate (zlib and raw), zstd (RFC 8878).
//
// The limit holds for the decompressed bytes and is checked block by block, so a small body that expands without end
// costs no more memory than the limit. One owner, one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/problem.h"

namespace vedette::server::transport {

inline constexpr std::string_view kSupportedCodings = "gzip, deflate, zstd, identity";

class BodyDecoder {
 public:
  virtual ~BodyDecoder() = default;
  // Problems: 413 beyond the limit, 400 for corrupt data.
  virtual std::optional<Problem> feed(std::string_view bytes) = 0;
  // The body is complete. 400 if the compressed stream is not.
  virtual std::optional<Problem> finish() = 0;
  std::string take() { return std::move(body_); }

 protected:
  explicit BodyDecoder(size_t limit) : limit_(limit) {}
  std::optional<Problem> append(std::string_view bytes);  // 413 beyond the limit
  Problem corrupt(std::string_view coding, std::string_view what) const;

  size_t limit_;
  std::string body_;
};

Problem body_too_large(size_t limit);
// `coding` is the value of Content-Encoding, "" if there is none; nullptr if it is not supported.
std::unique_ptr<BodyDecoder> make_body_decoder(std::string_view coding, size_t limit);

}  // namespace vedette::server::transport
