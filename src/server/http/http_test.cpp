// Requests and answers over real connections.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

#include "base/json.h"
#include "server/http/raw_client.h"

namespace vedette::server::transport {
namespace {

using std::chrono::milliseconds;

// Says what it was asked.
void echo(const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
  std::string query;
  for (const auto& [name, value] : request.query) query += fmt::format("[{}={}]", name, value);
  responder->send({.body = fmt::format("{} {} {} {}", request.method, request.path, query, request.body),
                   .content_type = "text/plain"});
}

TEST(Http, AnswersAndKeepsTheConnection) {
  const auto server = start_server(echo);
  RawClient client(server->port());
  const Reply first = client.ask(post("/v1/messages/?beta=true&x=a%20b+c&y", "hello"));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "POST /v1/messages [beta=true][x=a b c][y=] hello");
  EXPECT_EQ(first.headers.at("content-type"), "text/plain");
  EXPECT_EQ(first.headers.at("server"), "vedette");
  EXPECT_TRUE(first.headers.at("date").ends_with(" GMT"));
  EXPECT_FALSE(first.headers.contains("connection"));
  EXPECT_EQ(client.ask(get("/")).body, "GET /  ");
  EXPECT_EQ(server->open_connections(), 1);
  EXPECT_EQ(server->address(), fmt::format("http://127.0.0.1:{}", server->port()));
  client.close();
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST(Http, ClosesWhereAsked) {
  const auto server = start_server(echo);
  RawClient asked(server->port());
  EXPECT_EQ(asked.ask(get("/", "Connection: close\r\n")).headers.at("connection"), "close");
  EXPECT_TRUE(asked.ends_within(milliseconds(500)));
  RawClient old(server->port());
  EXPECT_EQ(old.ask("GET /old HTTP/1.0\r\n\r\n").headers.at("connection"), "close");
  EXPECT_TRUE(old.ends_within(milliseconds(500)));
  RawClient kept(server->port());
  EXPECT_EQ(kept.ask("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").headers.at("connection"), "keep-alive");
  EXPECT_EQ(kept.ask(get("/again")).status, 200);
}

TEST(Http, HeadHasTheHeadersOfGetAndNoBody) {
  const auto server = start_server(echo);
  RawClient client(server->port());
  ASSERT_TRUE(client.send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n"));
  const Reply reply = client.reply(true);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-length"), std::to_string(std::string_view("HEAD /x  ").size()));
  // Were there a body, it would be in front of the next answer.
  EXPECT_EQ(client.ask(get("/y")).body, "GET /y  ");
}

TEST(Http, StatusWithoutBodyHasNoLength) {
  const auto server = start_server([](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->send({.status = 204, .body = "dropped", .headers = {{"X-One", "1"}}});
  });
  RawClient client(server->port());
  const Reply reply = client.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(reply.status, 204);
  EXPECT_FALSE(reply.headers.contains("content-length"));
  EXPECT_EQ(reply.headers.at("x-one"), "1");
  EXPECT_EQ(client.ask(get("/")).status, 204);
}

TEST(Http, HandlersCannotSplitTheHeader) {
  const auto server = start_server([](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    responder->send({.body = "b", .headers = {{"X-Evil", *request.parameter("v")}, {"content-length", "999"}}});
  });
  RawClient client(server->port());
  const Reply reply = client.ask(get("/?v=a%0d%0aX-Injected:%20yes"));
  EXPECT_EQ(reply.headers.at("x-evil"), "a  X-Injected: yes");
  EXPECT_FALSE(reply.headers.contains("x-injected"));
  EXPECT_EQ(reply.body, "b");
}

TEST(Http, OneByteAtATime) {
  const auto server = start_server(echo);
  RawClient client(server->port());
  const std::string chunked =
      "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n";
  for (const std::string& text : {post("/p", "body"), chunked}) {
    for (const char c : text) {
      ASSERT_TRUE(client.send({&c, 1}));
      if (c == '\n') std::this_thread::sleep_for(milliseconds(1));
    }
  }
  EXPECT_EQ(client.reply().body, "POST /p  body");
  EXPECT_EQ(client.reply().body, "POST /c  abcde");
}

TEST(Http, PipelinedRequestsAreAnsweredInTurn) {
  std::atomic<int> most = 0, running = 0;
  const auto server = start_server([&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    most = std::max(most.load(), ++running);
    // The earlier, the slower: out of turn they would come in reverse.
    std::this_thread::sleep_for(milliseconds(request.path == "/0" ? 30 : 0));
    --running;
    echo(request, responder);
  });
  RawClient client(server->port());
  std::string all;
  for (int i = 0; i < 50; ++i) all += i % 2 == 0 ? get(fmt::format("/{}", i)) : post(fmt::format("/{}", i), "b");
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(client.reply().body, i % 2 == 0 ? fmt::format("GET /{}  ", i) : fmt::format("POST /{}  b", i));
  EXPECT_EQ(most, 1);
}

TEST(Http, MorePipelinedThanFitsTheBuffer) {
  const auto server = start_server(echo);
  RawClient client(server->port());
  const std::string body(20'000, 'x');
  std::thread sender([&] {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.send(post("/big", body)));
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.reply().body.size(), body.size() + 11) << i;
  sender.join();
}

TEST(Http, AThousandRequestsOnOneConnection) {
  const auto server = start_server(echo);
  RawClient client(server->port());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.ask(get(fmt::format("/{}", i))).body, fmt::format("GET /{}  ", i));
  EXPECT_EQ(server->open_connections(), 1);
}

TEST(Http, SixtyFourConnectionsAtOnce) {
  const auto server = start_server(echo);
  std::latch ready(64);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  threads.reserve(64);
  for (int t = 0; t < 64; ++t)
    threads.emplace_back([&, t] {
      RawClient client(server->port());
      ready.arrive_and_wait();
      for (int i = 0; i < 10; ++i) {
        const std::string body = fmt::format("{}-{}", t, i);
        if (client.ask(post("/e", body)).body == "POST /e  " + body) ++good;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 640);
}

TEST(Http, ExpectContinue) {
  const auto server = start_server(echo);
  RawClient client(server->port());
  ASSERT_TRUE(client.send("POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(client.reply().status, 100);
  EXPECT_EQ(client.ask("body").body, "POST /e  body");
  // The body came along: no need to ask for it.
  EXPECT_EQ(client.ask(post("/f", "body", "Expect: 100-continue\r\n")).status, 200);
  const Reply other = client.ask(post("/g", "", "Expect: a-miracle\r\n"));
  EXPECT_EQ(other.status, 417);
}

TEST(Http, AFailingHandlerIsA500AndNoMore) {
  std::atomic<bool> dropped = false;
  const auto server = start_server([&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    if (request.path == "/throw") throw std::runtime_error("out of \"luck\"");
    if (request.path == "/number") throw 7;
    if (request.path == "/drop") {
      dropped = true;
      return;
    }
    if (request.path == "/twice") responder->send({.body = "first"});
    responder->send({.body = "second"});
    if (request.path == "/late") throw std::runtime_error("too late to matter");
  });
  RawClient client(server->port());
  const Reply reply = client.ask(get("/throw"));
  EXPECT_EQ(reply.status, 500);
  const auto json = parse_json(reply.body, "reply");
  ASSERT_TRUE(json.ok());
  const Json* error = json->find("error");
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->find("message")->as_string(), "internal error: out of \"luck\"");
  EXPECT_EQ(error->find("type")->as_string(), "server_error");
  EXPECT_EQ(error->find("code")->as_int(), 500);
  EXPECT_EQ(client.ask(get("/number")).status, 500);
  EXPECT_EQ(client.ask(get("/drop")).status, 500);
  EXPECT_TRUE(dropped);
  EXPECT_EQ(client.ask(get("/twice")).body, "first");
  EXPECT_EQ(client.ask(get("/late")).body, "second");
}

TEST(Http, ASlowHandlerHoldsUpNobodyElse) {
  std::latch go(1);
  const auto server = start_server([&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    if (request.path == "/slow") go.wait();
    echo(request, responder);
  });
  RawClient slow(server->port()), quick(server->port());
  ASSERT_TRUE(slow.send(get("/slow")));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(quick.ask(get("/quick")).status, 200);
  go.count_down();
  EXPECT_EQ(slow.reply().status, 200);
}

TEST(Http, AnswersFromAnotherThreadAfterTheHandlerReturned) {
  std::thread later;
  const auto server = start_server([&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    later = std::thread([request, responder] {
      std::this_thread::sleep_for(milliseconds(20));
      echo(request, responder);
    });
  });
  RawClient client(server->port());
  EXPECT_EQ(client.ask(get("/later")).body, "GET /later  ");
  later.join();
}

TEST(Http, Prefix) {
  HttpSettings settings;
  settings.api_prefix = "/llama/";
  const auto server = start_server(
      [](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
        responder->send({.body = request.path + (request.prefixed ? " yes" : " no")});
      },
      settings);
  RawClient client(server->port());
  EXPECT_EQ(client.ask(get("/llama/v1/models/")).body, "/v1/models yes");
  EXPECT_EQ(client.ask(get("/llama")).body, "/ yes");
  EXPECT_EQ(client.ask(get("/llamas/x")).body, "/llamas/x no");
  EXPECT_EQ(client.ask(get("/health")).body, "/health no");
}

TEST(Http, TheHostOfAnAbsoluteTargetCounts) {
  const auto server = start_server([](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    responder->send({.body = *request.header("host") + " " + request.path + " " + request.peer});
  });
  RawClient client(server->port());
  const Reply reply = client.ask("GET http://evil.example:80/a/?q HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(reply.body.starts_with("evil.example:80 /a 127.0.0.1:")) << reply.body;
}

TEST(Http, AddressesAreBoundOrRefusedWithAReason) {
  const auto server = start_server(echo);
  HttpSettings taken;
  taken.port = server->port();
  const auto second = HttpServer::start(taken, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(second.error().message.find(std::to_string(server->port())), std::string::npos);
  HttpSettings elsewhere;
  elsewhere.host = "192.0.2.1";  // reserved for documentation
  EXPECT_FALSE(HttpServer::start(elsewhere, echo).ok());
  HttpSettings shared;
  shared.reuse_port = true;
  const auto one = start_server(echo, shared);
  shared.port = one->port();
  EXPECT_TRUE(HttpServer::start(shared, echo).ok());
  HttpSettings name;
  name.host = "localhost";
  const auto named = start_server(echo, name);
  EXPECT_EQ(RawClient(named->port()).ask(get("/")).status, 200);
  EXPECT_EQ(named->address(), fmt::format("http://localhost:{}", named->port()));
}

TEST(Http, Ipv6WhereTheMachineHasIt) {
  const int probe = ::socket(AF_INET6, SOCK_STREAM, 0);
  HttpSettings settings;
  settings.host = "[::1]";
  settings.port = 0;
  const auto server = HttpServer::start(settings, echo);
  if (server.ok()) {
    EXPECT_EQ((*server)->address(), fmt::format("http://[::1]:{}", (*server)->port()));
    EXPECT_EQ(RawClient((*server)->port(), 0, "::1").ask(get("/")).status, 200);
  } else {
    EXPECT_EQ(server.error().kind, ErrorKind::kUnavailable);
    EXPECT_FALSE(RawClient(9, 0, "::1").connected());
  }
  if (probe >= 0) ::close(probe);
}

TEST(Http, UnixSocket) {
  const std::string path = fmt::format("{}/http-test-{}.sock", testing::TempDir(), ::getpid());
  HttpSettings settings;
  settings.host = path;
  {
    const auto server =
        start_server([](const HttpRequest& request,
                        const std::shared_ptr<Responder>& responder) { responder->send({.body = request.peer}); },
                     settings);
    EXPECT_EQ(server->port(), 0);
    EXPECT_EQ(server->address(), "unix:" + path);
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(RawClient(path).ask(get("/")).body, "unix");
    const auto second = HttpServer::start(settings, echo);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind, ErrorKind::kUnavailable);
    EXPECT_TRUE(std::filesystem::exists(path)) << "a refused server must leave the other's file alone";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    // What a killed server leaves behind: a socket file on which nobody listens.
    const auto first = start_server(echo, settings);
    std::filesystem::rename(path, path + ".kept");
  }
  std::filesystem::rename(path + ".kept", path);
  EXPECT_FALSE(RawClient(path).connected());
  const auto again = start_server(echo, settings);
  EXPECT_EQ(RawClient(path).ask(get("/")).status, 200);
}

TEST(Http, UnixSocketNeverReplacesAFile) {
  const std::string path = fmt::format("{}/http-file-{}.sock", testing::TempDir(), ::getpid());
  std::ofstream(path) << "precious";
  HttpSettings settings;
  settings.host = path;
  EXPECT_FALSE(HttpServer::start(settings, echo).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
  std::filesystem::remove(path);
  settings.host = std::string(200, 'x') + ".sock";
  const auto server = HttpServer::start(settings, echo);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().kind, ErrorKind::kInvalidRequest);
}

}  // namespace
}  // namespace vedette::server::transport
