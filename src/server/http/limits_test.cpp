// What the transport refuses by itself, over real connections: sizes, codings, times.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/json.h"
#include "server/http/handler_pool.h"
#include "server/http/raw_client.h"

namespace vedette::server::transport {
namespace {

using std::chrono::milliseconds;

class Limits : public testing::Test {
 protected:
  void start(const HttpSettings& settings) {
    server_ = start_server(
        [this](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
          ++handled_;
          responder->send({.body = std::to_string(request.body.size())});
        },
        settings);
  }

  // The envelope, its status, and the end of the connection.
  void expect_refusal(RawClient& client, int status, std::string_view word) {
    Reply reply = client.reply();
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(reply.headers["content-type"], "application/json");
    EXPECT_EQ(reply.headers["connection"], "close");
    const auto json = parse_json(reply.body, "reply");
    ASSERT_TRUE(json.ok()) << reply.body;
    const Json* error = json->find("error");
    ASSERT_NE(error, nullptr);
    EXPECT_NE(error->find("message")->as_string().find(word), std::string::npos) << reply.body;
    EXPECT_EQ(error->find("code")->as_int(), status);
    EXPECT_EQ(error->find("type")->as_string(), status >= 500 ? "server_error" : "invalid_request_error");
    EXPECT_TRUE(client.ends_within(milliseconds(500)));
  }

  std::atomic<int> handled_ = 0;
  std::unique_ptr<HttpServer> server_;
};

std::string zeros_by_zstd(size_t size) {
  const std::string zeros(size, '\0');
  std::string out(ZSTD_compressBound(size), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), zeros.data(), size, 3));
  return out;
}

// Texts of many megabytes, each read by a handler for seconds, held up everything else: even GET /health.
TEST(HandlerPool, LargeRequestsDidHoldUpSmallOnes) {
  HandlerPool pool(3);
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  std::atomic<int> begun = 0, ended = 0;
  for (int i = 0; i < 5; ++i)
    pool.post(
        [&] {
          ++begun;
          opened.wait();
          ++ended;
        },
        true);
  std::promise<void> small;
  pool.post([&] { small.set_value(); });
  const bool came = small.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  EXPECT_TRUE(came);
  EXPECT_LE(begun, 2);
  gate.set_value();
  pool.stop();
  EXPECT_EQ(ended, 5);
  std::atomic<int> alone = 0;
  HandlerPool one(1);
  for (const bool large : {true, false, true}) one.post([&] { ++alone; }, large);
  one.stop();
  EXPECT_EQ(alone, 3);
}

TEST_F(Limits, ABodyIsRefusedBeforeItIsRead) {
  HttpSettings settings;
  settings.max_body_bytes = 1000;
  start(settings);
  RawClient declared(server_->port());
  ASSERT_TRUE(declared.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nstart"));
  expect_refusal(declared, 413, "1000 bytes");
  RawClient asking(server_->port());
  ASSERT_TRUE(asking.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n"));
  expect_refusal(asking, 413, "1000 bytes");
  RawClient chunked(server_->port());
  ASSERT_TRUE(chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n"));
  ASSERT_TRUE(chunked.send(std::string(2000, 'x')));
  expect_refusal(chunked, 413, "1000 bytes");
  RawClient fits(server_->port());
  EXPECT_EQ(fits.ask(post("/", std::string(1000, 'x'))).body, "1000");
  EXPECT_EQ(handled_, 1);
}

TEST_F(Limits, AClientThatSendsItAllStillReadsTheRefusal) {
  HttpSettings settings;
  settings.max_body_bytes = 1000;
  start(settings);
  RawClient client(server_->port());
  // Sent whole before the answer is looked at: were the connection reset, the answer would be lost.
  ASSERT_TRUE(client.send(post("/", std::string(8 << 20, 'x'))));
  EXPECT_EQ(client.reply().status, 413);
}

TEST_F(Limits, ACompressedBodyCountsDecompressed) {
  HttpSettings settings;
  settings.max_body_bytes = 1 << 20;
  start(settings);
  const std::string bomb = zeros_by_zstd(64 << 20), good = zeros_by_zstd(1 << 20);
  ASSERT_LT(bomb.size(), 100'000u);
  RawClient client(server_->port());
  EXPECT_EQ(client.ask(post("/", good, "Content-Encoding: zstd\r\n")).body, "1048576");
  ASSERT_TRUE(client.send(post("/", bomb, "Content-Encoding: zstd\r\n")));
  expect_refusal(client, 413, "decompressed");
}

TEST_F(Limits, BlocksThatGiveNothingEndToo) {
  HttpSettings settings;
  settings.max_body_bytes = 10'000;
  start(settings);
  RawClient client(server_->port());
  ASSERT_TRUE(
      client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string frame = "\x50\x2a\x4d\x18\x04" + std::string(3, '\0') + "skip";  // a skippable frame
  for (int i = 0; i < 1000; ++i)
    if (!client.send(fmt::format("{:x}\r\n{}\r\n", frame.size(), frame))) break;
  EXPECT_EQ(client.reply().status, 413);
}

TEST_F(Limits, UnknownCodings) {
  start({});
  RawClient client(server_->port());
  ASSERT_TRUE(client.send(post("/", "x", "Content-Encoding: br\r\n")));
  expect_refusal(client, 415, "gzip, deflate, zstd");
  RawClient damaged(server_->port());
  ASSERT_TRUE(damaged.send(post("/", "x", "Content-Encoding: gzip\r\n")));
  expect_refusal(damaged, 400, "gzip");
}

TEST_F(Limits, Headers) {
  start({});
  RawClient large(server_->port());
  ASSERT_TRUE(large.send(get("/", "X: " + std::string(70'000, 'x') + "\r\n")));
  expect_refusal(large, 431, "65536");
  RawClient endless(server_->port());
  ASSERT_TRUE(endless.send("GET / HTTP/1.1\r\nX: " + std::string(70'000, 'x')));
  expect_refusal(endless, 431, "65536");
  RawClient target(server_->port());
  ASSERT_TRUE(target.send(get("/" + std::string(20'000, 'x'))));
  expect_refusal(target, 414, "16384");
  RawClient tls(server_->port());
  ASSERT_TRUE(tls.send(std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n", 10)));
  expect_refusal(tls, 400, "malformed");
  RawClient smuggler(server_->port());
  ASSERT_TRUE(
      smuggler.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n"));
  expect_refusal(smuggler, 400, "Transfer-Encoding");
  EXPECT_EQ(handled_, 0);
}

TEST_F(Limits, AHeaderThatTricklesIsCutOff) {
  HttpSettings settings;
  settings.header_timeout_ms = 200;
  settings.idle_timeout_ms = 60'000;
  start(settings);
  RawClient client(server_->port());
  std::atomic<bool> done = false;
  std::thread trickle([&] {
    for (const char c : get("/", "X: " + std::string(1000, 'x') + "\r\n")) {
      if (done || !client.send({&c, 1})) return;
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(client.reply().status, 408);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, milliseconds(150));
  EXPECT_LT(took, milliseconds(1500));
  done = true;
  trickle.join();
  EXPECT_EQ(handled_, 0);
}

TEST_F(Limits, IdleConnectionsAreClosedWithoutAWord) {
  HttpSettings settings;
  settings.idle_timeout_ms = 150;
  start(settings);
  RawClient fresh(server_->port()), used(server_->port());
  EXPECT_EQ(used.ask(get("/")).status, 200);
  EXPECT_TRUE(fresh.ends_within(milliseconds(1500)));
  EXPECT_TRUE(used.ends_within(milliseconds(1500)));
  EXPECT_EQ(fresh.buffered() + used.buffered(), "");
  EXPECT_TRUE(eventually([&] { return server_->open_connections() == 0; }));
}

TEST_F(Limits, ABodyThatStopsIsCutOff) {
  HttpSettings settings;
  settings.io_timeout_ms = 150;
  start(settings);
  RawClient client(server_->port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"));
  expect_refusal(client, 408, "in time");
}

}  // namespace
}  // namespace vedette::server::transport
