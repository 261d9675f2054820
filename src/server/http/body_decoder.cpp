#include "server/http/body_decoder.h"

#include <fmt/core.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace vedette::server::transport {
namespace {

constexpr size_t kBlock = size_t{32} << 10;

class IdentityDecoder final : public BodyDecoder {
 public:
  explicit IdentityDecoder(size_t limit) : BodyDecoder(limit) {}
  std::optional<Problem> feed(std::string_view bytes) override { return append(bytes); }
  std::optional<Problem> finish() override { return {}; }
};

// zlib's window argument: 15 bits, +16 for gzip, negative for raw deflate.
constexpr int kZlibWindow = 15;
constexpr int kGzipWindow = 15 + 16;
constexpr int kRawWindow = -15;

class ZlibDecoder final : public BodyDecoder {
 public:
  ZlibDecoder(bool gzip, size_t limit) : BodyDecoder(limit), gzip_(gzip) {}
  ~ZlibDecoder() override {
    if (open_) inflateEnd(&stream_);
  }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;

  std::optional<Problem> feed(std::string_view bytes) override {
    if (!open_) {
      start_.append(bytes);
      if (start_.size() < 2) return {};
      if (!begin()) return corrupt(name(), "no memory for its window");
      return inflate_all(start_);
    }
    return inflate_all(bytes);
  }

  std::optional<Problem> finish() override {
    const bool empty = !open_ && start_.empty();
    if (!empty && !ended_) return corrupt(name(), "it ends early");
    return {};
  }

 private:
  const char* name() const { return gzip_ ? "gzip" : "deflate"; }

  // "deflate" is zlib's format by the letter, and raw deflate from some clients: the first two bytes tell.
  bool begin() {
    const auto first = static_cast<unsigned char>(start_[0]), second = static_cast<unsigned char>(start_[1]);
    const bool zlib_header = (first & 0x0f) == 8 && (first * 256 + second) % 31 == 0;
    const int window = gzip_ ? kGzipWindow : zlib_header ? kZlibWindow : kRawWindow;
    open_ = inflateInit2(&stream_, window) == Z_OK;
    return open_;
  }

  std::optional<Problem> inflate_all(std::string_view bytes) {
    // zlib does not write to its input, its older interface just lacks the const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    std::array<char, kBlock> block;
    while (true) {
      if (ended_) {
        if (stream_.avail_in == 0) return {};
        if (!gzip_) return corrupt(name(), "there are bytes after its end");
        if (inflateReset(&stream_) != Z_OK) return corrupt(name(), "its next member cannot be read");
        ended_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(block.data());
      stream_.avail_out = static_cast<uInt>(block.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (auto problem = append({block.data(), block.size() - stream_.avail_out})) return problem;
      if (code == Z_STREAM_END) {
        ended_ = true;
      } else if (code == Z_OK || code == Z_BUF_ERROR) {
        // Room is left in the block: all input was used.
        if (code == Z_BUF_ERROR || (stream_.avail_in == 0 && stream_.avail_out > 0)) return {};
      } else {
        return corrupt(name(), stream_.msg != nullptr ? stream_.msg : "its data is not valid");
      }
    }
  }

  z_stream stream_{};
  bool gzip_;
  bool open_ = false, ended_ = false;
  std::string start_;
};

// Windows beyond 8 MiB are refused, as RFC 9659 has it for HTTP.
constexpr int kZstdWindowLog = 23;

class ZstdDecoder final : public BodyDecoder {
 public:
  explicit ZstdDecoder(size_t limit) : BodyDecoder(limit), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    if (stream_) ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kZstdWindowLog);
  }

  std::optional<Problem> feed(std::string_view bytes) override {
    if (!stream_) return corrupt("zstd", "no memory for its window");
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    std::array<char, kBlock> block;
    ZSTD_outBuffer output{block.data(), block.size(), 0};
    // A full block may mean that more output waits in the stream although all input is read.
    while (input.pos < input.size || output.pos == output.size) {
      output.pos = 0;
      const size_t code = ZSTD_decompressStream(stream_.get(), &output, &input);
      if (ZSTD_isError(code)) return corrupt("zstd", ZSTD_getErrorName(code));
      if (auto problem = append({block.data(), output.pos})) return problem;
      complete_ = code == 0;
      if (complete_ && input.pos == input.size) break;
    }
    return {};
  }

  std::optional<Problem> finish() override {
    if (!complete_) return corrupt("zstd", "it ends early");
    return {};
  }

 private:
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  bool complete_ = true;
};

}  // namespace

Problem body_too_large(size_t limit) {
  return {413,
          fmt::format("Request body too large: at most {} bytes are accepted, decompressed bytes counted.", limit)};
}

std::optional<Problem> BodyDecoder::append(std::string_view bytes) {
  if (bytes.size() > limit_ - body_.size()) return body_too_large(limit_);
  body_.append(bytes);
  return {};
}

Problem BodyDecoder::corrupt(std::string_view coding, std::string_view what) const {
  return {400,
          fmt::format("request body: Content-Encoding is {}, but the body is not valid {}: {}", coding, coding, what)};
}

std::unique_ptr<BodyDecoder> make_body_decoder(std::string_view coding, size_t limit) {
  std::string name(coding);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.empty() || name == "identity") return std::make_unique<IdentityDecoder>(limit);
  if (name == "gzip" || name == "x-gzip") return std::make_unique<ZlibDecoder>(true, limit);
  if (name == "deflate") return std::make_unique<ZlibDecoder>(false, limit);
  if (name == "zstd") return std::make_unique<ZstdDecoder>(limit);
  return nullptr;
}

}  // namespace vedette::server::transport
