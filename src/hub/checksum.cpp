#include "hub/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace vedette::hub {

struct Checksum::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

Checksum::Checksum(Kind kind, int64_t size) : impl_(std::make_unique<Impl>()) {
  EVP_DigestInit_ex(impl_->context, kind == Kind::kSha256 ? EVP_sha256() : EVP_sha1(), nullptr);
  if (kind != Kind::kGitBlob) return;
  const std::string head = fmt::format("blob {}", size);
  EVP_DigestUpdate(impl_->context, head.c_str(), head.size() + 1);  // with its zero byte
}

Checksum::~Checksum() = default;

void Checksum::add(std::string_view piece) {
  EVP_DigestUpdate(impl_->context, piece.data(), piece.size());
}

std::string Checksum::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  EVP_DigestFinal_ex(impl_->context, digest.data(), &length);
  std::string out;
  for (unsigned i = 0; i < length; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

Result<std::string> file_checksum(const std::string& path, Checksum::Kind kind, int64_t size) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return unavailable("", "{}: cannot be read", path);
  Checksum sum(kind, size);
  std::vector<char> buffer(size_t{1} << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    sum.add({buffer.data(), static_cast<size_t>(in.gcount())});
  }
  if (in.bad()) return unavailable("", "{}: cannot be read", path);
  return sum.finish();
}

}  // namespace vedette::hub
