// TLS with a certificate made here.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>

#include "server/http/raw_client.h"

namespace vedette::server::transport {
namespace {

using std::chrono::milliseconds;

// A self-signed certificate for "localhost" and its key, as PEM files.
class Tls : public testing::Test {
 protected:
  void SetUp() override {
    const std::string base = fmt::format("{}/tls-test-{}", testing::TempDir(), ::getpid());
    settings_.certificate_file = base + ".crt";
    settings_.key_file = base + ".key";
    write_pair();
  }

  void TearDown() override {
    std::remove(settings_.certificate_file.c_str());
    std::remove(settings_.key_file.c_str());
  }

  void write_pair() {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
                               0);
    X509_set_issuer_name(certificate.get(), name);
    ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
    std::FILE* file = std::fopen(settings_.certificate_file.c_str(), "w");
    PEM_write_X509(file, certificate.get());
    std::fclose(file);
    file = std::fopen(settings_.key_file.c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }

  HttpSettings settings_;
};

class TlsClient {
 public:
  explicit TlsClient(uint16_t port, int most_version = 0)
      : socket_(port), context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free), ssl_(nullptr, &SSL_free) {
    SSL_CTX_set_security_level(context_.get(), 0);
    if (most_version != 0) SSL_CTX_set_max_proto_version(context_.get(), most_version);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_.fd());
  }
  ~TlsClient() { ERR_clear_error(); }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connect() { return SSL_connect(ssl_.get()) == 1; }
  bool send(std::string_view text) {
    return SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())) == static_cast<int>(text.size());
  }
  // Until `text` is there, or the end.
  std::string read_until(std::string_view text) {
    std::string out;
    char block[4096];
    while (out.find(text) == std::string::npos) {
      const int size = SSL_read(ssl_.get(), block, sizeof block);
      if (size <= 0) break;
      out.append(block, static_cast<size_t>(size));
    }
    return out;
  }
  bool ended_properly() {
    char c = 0;
    const int size = SSL_read(ssl_.get(), &c, 1);
    return SSL_get_error(ssl_.get(), size) == SSL_ERROR_ZERO_RETURN;
  }
  RawClient& socket() { return socket_; }

 private:
  RawClient socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
};

void echo(const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
  responder->send({.body = fmt::format("<{} {}>", request.path, request.body.size())});
}

TEST_F(Tls, RequestsAndAnswers) {
  const auto server = start_server(echo, settings_);
  EXPECT_EQ(server->address(), fmt::format("https://127.0.0.1:{}", server->port()));
  TlsClient client(server->port());
  ASSERT_TRUE(client.connect());
  ASSERT_TRUE(client.send(get("/one")));
  EXPECT_NE(client.read_until("<").find("200 OK"), std::string::npos);
  ASSERT_TRUE(client.send(post("/two", std::string(300'000, 'x'))));
  EXPECT_NE(client.read_until(" 300000>").find("/two"), std::string::npos);
  ASSERT_TRUE(client.send(get("/three", "Connection: close\r\n")));
  client.read_until("<");
  client.read_until(">");
  EXPECT_TRUE(client.ended_properly()) << "close_notify comes before the end";
}

TEST_F(Tls, OldVersionsAreRefused) {
  const auto server = start_server(echo, settings_);
  TlsClient old(server->port(), TLS1_1_VERSION);
  EXPECT_FALSE(old.connect());
  TlsClient good(server->port(), TLS1_2_VERSION);
  EXPECT_TRUE(good.connect());
}

TEST_F(Tls, LargeStreamWhileTheClientSends) {
  const auto server = start_server(
      [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
        responder->begin_stream(200, "text/plain", {});
        for (int i = 0; i < 64; ++i) responder->write(std::string(64 << 10, 'x'));
        responder->write("the end");
        responder->end();
      },
      settings_);
  TlsClient client(server->port());
  ASSERT_TRUE(client.connect());
  ASSERT_TRUE(client.send(get("/") + get("/")));
  EXPECT_GT(client.read_until("the end").size(), size_t{4} << 20);
  EXPECT_GT(client.read_until("the end").size(), size_t{4} << 20);
}

TEST_F(Tls, ADisconnectIsNoticed) {
  std::atomic<bool> started = false, closed = false;
  std::shared_ptr<Responder> kept;
  const auto server = start_server(
      [&](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
        kept = responder;
        responder->on_closed([&] { closed = true; });
        started = true;
      },
      settings_);
  TlsClient client(server->port());
  ASSERT_TRUE(client.connect());
  ASSERT_TRUE(client.send(get("/")));
  ASSERT_TRUE(eventually([&] { return started.load(); }));
  client.socket().close();
  EXPECT_TRUE(eventually([&] { return closed.load(); }, milliseconds(1000)));
}

TEST_F(Tls, ASilentOrPlainClientIsCutOff) {
  settings_.header_timeout_ms = 200;
  const auto server = start_server(echo, settings_);
  RawClient silent(server->port()), plain(server->port());
  ASSERT_TRUE(plain.send(get("/")));
  EXPECT_TRUE(plain.ends_within(milliseconds(1500)));
  EXPECT_TRUE(silent.ends_within(milliseconds(1500)));
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(Tls, BadFilesAreNamed) {
  const auto expect_error = [](const HttpSettings& settings, const std::string& word) {
    const auto server = HttpServer::start(settings, echo);
    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.error().kind, ErrorKind::kInvalidRequest);
    EXPECT_NE(server.error().message.find(word), std::string::npos) << server.error().message;
  };
  settings_.port = 0;
  HttpSettings settings = settings_;
  settings.key_file.clear();
  expect_error(settings, "both");
  settings.key_file = "/nowhere/x.key";
  expect_error(settings, "/nowhere/x.key");
  settings = settings_;
  settings.certificate_file = settings.key_file;
  expect_error(settings, settings.key_file);
  const std::string other = settings_.key_file + ".other";
  std::rename(settings_.key_file.c_str(), other.c_str());
  write_pair();
  settings = settings_;
  settings.key_file = other;
  expect_error(settings, other);
  std::remove(other.c_str());
}

}  // namespace
}  // namespace vedette::server::transport
