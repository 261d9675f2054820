// Streams: chunks, back-pressure, clients that go, servers that stop.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <thread>

#include "server/http/raw_client.h"

namespace vedette::server::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Keeps what handlers were given, for the test to answer from outside.
class Streams : public testing::Test {
 protected:
  void start(const HttpSettings& settings = {}) {
    server_ = start_server(
        [this](const HttpRequest&, std::shared_ptr<Responder> responder) {
          const std::lock_guard lock(mutex_);
          responder_ = std::move(responder);
          changed_.notify_all();
        },
        settings);
  }

  std::shared_ptr<Responder> next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(5), [this] { return responder_ != nullptr; });
    return std::exchange(responder_, nullptr);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Responder> responder_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Streams, ChunksArriveAsTheyAreWritten) {
  start();
  RawClient client(server_->port());
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  responder->begin_stream(200, "text/event-stream", {{"Cache-Control", "no-cache"}});
  ASSERT_TRUE(client.read_until("\r\n\r\n")) << "headers go out at once";
  responder->write("data: 1\n\n");
  ASSERT_TRUE(client.read_until("9\r\ndata: 1\n\n\r\n"));
  responder->write("");  // would be the end of a chunked body
  responder->write("data: 2\n\n");
  ASSERT_TRUE(client.read_until("data: 2\n\n"));
  responder->end();
  responder->write("after the end");
  const Reply reply = client.reply();
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.headers.at("cache-control"), "no-cache");
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(reply.body, "data: 1\n\ndata: 2\n\n");
  ASSERT_TRUE(client.send(get("/again")));
  next()->send({.body = "kept"});
  EXPECT_EQ(client.reply().body, "kept");
}

TEST_F(Streams, Http10GetsPlainBytesAndTheEnd) {
  start();
  RawClient client(server_->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  const auto responder = next();
  responder->begin_stream(200, "text/event-stream", {});
  responder->write("one ");
  responder->write("two");
  responder->end();
  const Reply reply = client.reply();
  EXPECT_FALSE(reply.headers.contains("transfer-encoding"));
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_EQ(reply.body, "one two");
}

TEST_F(Streams, HeadOfAStream) {
  start();
  RawClient client(server_->port());
  ASSERT_TRUE(client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"));
  const auto responder = next();
  responder->begin_stream(200, "text/event-stream", {});
  responder->write("unseen");
  responder->end();
  EXPECT_EQ(client.reply(true).status, 200);
  ASSERT_TRUE(client.send(get("/")));
  next()->send({.body = "next"});
  EXPECT_EQ(client.reply().body, "next");
}

TEST_F(Streams, ADroppedStreamIsCutSoThatTheClientCanTell) {
  start();
  RawClient client(server_->port());
  ASSERT_TRUE(client.send(get("/")));
  auto responder = next();
  responder->begin_stream(200, "text/plain", {});
  responder->write("half");
  ASSERT_TRUE(client.read_until("half"));
  responder.reset();
  const Reply reply = client.reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.complete);
}

TEST_F(Streams, ASlowReaderIsCountedAndDrains) {
  start();
  RawClient client(server_->port(), 16 << 10);
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  constexpr size_t kPiece = 64 << 10, kPieces = 128, kMark = 1 << 20;
  std::atomic<int> drained = 0;
  responder->begin_stream(200, "text/plain", {});
  responder->on_drained(kMark, [&] { ++drained; });
  const auto begin = Clock::now();
  for (size_t i = 0; i < kPieces; ++i) responder->write(std::string(kPiece, 'x'));
  EXPECT_LT(Clock::now() - begin, milliseconds(1000)) << "write() must not wait for the client";
  std::this_thread::sleep_for(milliseconds(100));
  const size_t unsent = responder->unsent_bytes();
  EXPECT_GT(unsent, size_t{6} << 20) << "the kernel keeps little, so that unread bytes are counted";
  EXPECT_EQ(drained, 0);
  const size_t first = kPiece * kPieces - kMark / 2;
  EXPECT_EQ(client.drop(first), first);
  EXPECT_TRUE(eventually([&] { return drained == 1; }));
  EXPECT_LE(responder->unsent_bytes(), kMark);
  // And once more.
  for (size_t i = 0; i < kPieces; ++i) responder->write(std::string(kPiece, 'y'));
  responder->end();
  const size_t second = kMark / 2 + kPiece * kPieces;
  EXPECT_EQ(client.drop(second), second);
  EXPECT_TRUE(eventually([&] { return drained == 2 && responder->unsent_bytes() == 0; }));
}

TEST_F(Streams, AStalledReaderIsGivenUp) {
  HttpSettings settings;
  settings.stall_timeout_ms = 200;
  start(settings);
  RawClient client(server_->port(), 16 << 10);
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  std::atomic<int> closed = 0;
  responder->on_closed([&] { ++closed; });
  responder->begin_stream(200, "text/plain", {});
  // Nothing to send is no stall, however long it takes.
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(closed, 0);
  responder->write(std::string(8 << 20, 'x'));
  const auto begin = Clock::now();
  EXPECT_TRUE(eventually([&] { return closed == 1; }));
  EXPECT_GE(Clock::now() - begin, milliseconds(150));
  EXPECT_LT(Clock::now() - begin, milliseconds(1500));
  EXPECT_EQ(responder->unsent_bytes(), 0u);
  EXPECT_TRUE(eventually([&] { return server_->open_connections() == 0; }));
}

TEST_F(Streams, AReaderThatTricklesIsNotStalled) {
  HttpSettings settings;
  settings.stall_timeout_ms = 400;
  start(settings);
  RawClient client(server_->port(), 16 << 10);
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  std::atomic<int> closed = 0;
  responder->on_closed([&] { ++closed; });
  responder->begin_stream(200, "text/plain", {});
  responder->write(std::string(8 << 20, 'x'));
  for (int i = 0; i < 40; ++i) {
    client.drop(200 << 10);
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(closed, 0);
}

// At which stage the client goes, and how.
enum class Going { kClose, kReset, kHalf };
class Gone : public Streams, public testing::WithParamInterface<std::tuple<Going, int>> {};

TEST_P(Gone, IsNoticedSoonAtEveryStage) {
  start();
  const auto [going, stage] = GetParam();
  RawClient client(server_->port());
  // Stages 3 to 5: with one, many, and more pipelined requests behind than are read ahead.
  std::string behind;
  for (int i = 0; i < (stage == 3 ? 1 : stage == 4 ? 20 : stage == 5 ? 54 : 0); ++i)
    behind += post("/", std::string(20'000, 'x'));
  ASSERT_TRUE(client.send(get("/") + behind));
  const auto responder = next();
  ASSERT_NE(responder, nullptr);
  std::atomic<int64_t> closed_at = 0;
  std::atomic<int> calls = 0;
  responder->on_closed([&] {
    closed_at = Clock::now().time_since_epoch().count();
    ++calls;
  });
  if (stage >= 1) {
    responder->begin_stream(200, "text/event-stream", {});
    ASSERT_TRUE(client.read_until("\r\n\r\n"));
  }
  if (stage == 2) {
    responder->write("data: x\n\n");
    ASSERT_TRUE(client.read_until("data: x"));
  }
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(calls, 0);
  const auto begin = Clock::now();
  if (going == Going::kReset) client.reset();
  if (going == Going::kClose) client.close();
  if (going == Going::kHalf) ::shutdown(client.fd(), SHUT_WR);
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  const auto took = Clock::duration(closed_at.load()) - begin.time_since_epoch();
  const auto ms = std::chrono::duration<double, std::milli>(took).count();
  std::printf("stage %d, way %d: noticed after %.2f ms\n", stage, static_cast<int>(going), ms);
  EXPECT_LT(took, milliseconds(1000));
  // All further calls are harmless, and a late on_closed is told at once.
  responder->begin_stream(200, "text/plain", {});
  responder->write("into the void");
  responder->end();
  responder->send({});
  EXPECT_EQ(responder->unsent_bytes(), 0u);
  int late = 0;
  responder->on_closed([&] { ++late; });
  EXPECT_EQ(late, 1);
  EXPECT_EQ(calls, 1);
}

INSTANTIATE_TEST_SUITE_P(All, Gone,
                         testing::Combine(testing::Values(Going::kClose, Going::kReset, Going::kHalf),
                                          testing::Range(0, 6)));

TEST_F(Streams, WritingToAClientThatWentKillsNobody) {
  start();
  for (int i = 0; i < 50; ++i) {
    RawClient client(server_->port());
    ASSERT_TRUE(client.send(get("/")));
    const auto responder = next();
    responder->begin_stream(200, "text/plain", {});
    i % 2 == 0 ? client.reset() : client.close();
    for (int k = 0; k < 20; ++k) responder->write(std::string(10'000, 'x'));
    responder->end();
  }
  EXPECT_TRUE(eventually([&] { return server_->open_connections() == 0; }));
}

TEST_F(Streams, NoCallbackAfterTheAnswerWasCarriedOut) {
  start();
  RawClient client(server_->port());
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  std::atomic<int> closed = 0;
  responder->on_closed([&] { ++closed; });
  responder->send({.body = "done"});
  EXPECT_EQ(client.reply().body, "done");
  client.close();
  EXPECT_TRUE(eventually([&] { return server_->open_connections() == 0; }));
  responder->on_closed([&] { ++closed; });
  EXPECT_EQ(closed, 0);
}

TEST_F(Streams, CallbacksThatOwnTheResponderAreLetGo) {
  start();
  std::weak_ptr<Responder> watched;
  for (const bool go : {true, false}) {
    RawClient client(server_->port());
    ASSERT_TRUE(client.send(get("/")));
    {
      const auto responder = next();
      watched = responder;
      responder->on_closed([responder] {});
      responder->on_drained(1, [responder] {});
      if (go) client.close();
      if (!go) responder->send({.body = "x"});
    }
    EXPECT_TRUE(eventually([&] { return watched.expired(); })) << go;
  }
}

TEST_F(Streams, StopLetsAStreamEnd) {
  start();
  RawClient client(server_->port()), idle(server_->port());
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  responder->begin_stream(200, "text/plain", {});
  responder->write("before ");
  ASSERT_TRUE(client.read_until("before"));
  std::thread stopper([&] { server_->stop(5000); });
  EXPECT_TRUE(idle.ends_within(milliseconds(1000)));
  EXPECT_TRUE(eventually([&] { return !RawClient(server_->port()).connected(); })) << "no new connections";
  responder->write("after");
  responder->end();
  EXPECT_EQ(client.reply().body, "before after");
  const auto begin = Clock::now();
  client.close();
  stopper.join();
  EXPECT_LT(Clock::now() - begin, milliseconds(1500)) << "it need not wait for the whole grace";
  EXPECT_EQ(server_->open_connections(), 0);
}

TEST_F(Streams, StopCutsAStreamAfterTheGrace) {
  start();
  RawClient client(server_->port());
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  std::atomic<int> closed = 0;
  responder->on_closed([&] { ++closed; });
  responder->begin_stream(200, "text/plain", {});
  const auto begin = Clock::now();
  server_->stop(150);
  EXPECT_GE(Clock::now() - begin, milliseconds(140));
  EXPECT_LT(Clock::now() - begin, milliseconds(1500));
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(client.ends_within(milliseconds(500)));
  server_->stop(0);
  server_.reset();
  // The server is no more; the answer still is.
  responder->write("nobody");
  responder->end();
  EXPECT_EQ(responder->unsent_bytes(), 0u);
}

TEST_F(Streams, AnswersWhileStoppingSayClose) {
  start();
  RawClient client(server_->port());
  ASSERT_TRUE(client.send(get("/")));
  const auto responder = next();
  std::thread stopper([&] { server_->stop(5000); });
  EXPECT_TRUE(eventually([&] { return !RawClient(server_->port()).connected(); }));
  responder->send({.body = "last"});
  const Reply reply = client.reply();
  EXPECT_EQ(reply.body, "last");
  EXPECT_EQ(reply.headers.at("connection"), "close");
  client.close();
  stopper.join();
}

TEST_F(Streams, ManyWritersAtOnce) {
  start();
  constexpr int kStreams = 16, kWrites = 500;
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::thread> writers;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(clients.back()->send(get("/")));
    writers.emplace_back([responder = next(), i] {
      responder->begin_stream(200, "text/plain", {});
      for (int k = 0; k < kWrites; ++k) responder->write(fmt::format("{}:{} ", i, k));
      responder->end();
    });
  }
  for (int i = 0; i < kStreams; ++i) {
    std::string expected;
    for (int k = 0; k < kWrites; ++k) expected += fmt::format("{}:{} ", i, k);
    EXPECT_EQ(clients[static_cast<size_t>(i)]->reply().body, expected);
  }
  for (auto& writer : writers) writer.join();
}

}  // namespace
}  // namespace vedette::server::transport
